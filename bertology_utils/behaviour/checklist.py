"""Behavioural tests that a reader can write (Ribeiro et al. 2020, arXiv 2005.04118).

Three kinds: a *minimum functionality* test has the right answer for every text; an *invariance*
test changes a text in a way that must not change the answer; a *directional* test changes it so
that one class must not become less probable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from ..heads import TunedEncoder
from ..resampling import Estimate, percentile_interval
from .learning import probabilities

KINDS = ("MFT", "INV", "DIR")
#: how far a probability may move against its direction before a directional test fails
TOLERANCE = 0.1
_RESAMPLES = 1000


@dataclass(frozen=True)
class BehaviouralTest:
    """A capability and the cases that test it.

    Attributes:
        name: of the capability.
        kind: one of :data:`KINDS`.
        cases: one tuple of texts a case: one text for MFT; the text before and after for others.
        labels: [n] right class (MFT), or class that must not lose (DIR); empty for INV.
    """

    name: str
    kind: str
    cases: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, must be one of {', '.join(KINDS)}")
        if not self.cases:
            raise ValueError(f"test {self.name!r} has no cases")
        size = 1 if self.kind == "MFT" else 2
        if odd := next((case for case in self.cases if len(case) != size), None):
            raise ValueError(f"{self.kind} cases hold {size} text(s), not {len(odd)}: {odd!r}")
        if len(self.labels) != (0 if self.kind == "INV" else len(self.cases)):
            raise ValueError(
                f"test {self.name!r} has {len(self.labels)} labels for {len(self.cases)} cases"
            )


@dataclass(frozen=True, eq=False)
class TestResult:
    """What a model did on a test.

    Attributes:
        test: the test.
        failed: [n] True where the model failed the case.
        probabilities: [n, texts of a case, C].
        model: the model's name.
    """

    __test__ = False  # pytest collects classes of this name

    test: BehaviouralTest
    failed: np.ndarray = field(repr=False)
    probabilities: np.ndarray = field(repr=False)
    model: str

    @property
    def rate(self) -> Estimate:
        """Share of cases failed, with a bootstrap interval."""
        return failure_rate([self])

    @property
    def failures(self) -> list[tuple[str, ...]]:
        """The cases failed."""
        return [case for case, bad in zip(self.test.cases, self.failed, strict=True) if bad]


def fill(template: str, **slots: Sequence[str]) -> list[str]:
    """Every way to fill a template: ``fill("The {a} was {b}.", a=[...], b=[...])``.

    Raises:
        KeyError: the template has a slot without fillers.
        ValueError: a slot with no fillers, or fillers the template does not use.
    """
    for name, fillers in slots.items():
        if not fillers:
            raise ValueError(f"slot {name!r} has no fillers")
        if isinstance(fillers, str):
            raise ValueError(f"slot {name!r} needs a list of fillers, not the string {fillers!r}")
        if "{" + name + "}" not in template:
            raise ValueError(f"template {template!r} has no slot {name!r}")
    return [
        template.format(**dict(zip(slots, chosen, strict=True)))
        for chosen in product(*slots.values())
    ]


def mft(name: str, texts: Mapping[int, Sequence[str]]) -> BehaviouralTest:
    """A minimum functionality test: right class -> texts."""
    cases = tuple((text,) for own in texts.values() for text in own)
    labels = tuple(label for label, own in texts.items() for _ in own)
    return BehaviouralTest(name, "MFT", cases, labels)


def inv(name: str, pairs: Sequence[tuple[str, str]]) -> BehaviouralTest:
    """An invariance test: (text, changed text) whose class must be the same."""
    return BehaviouralTest(name, "INV", tuple(map(tuple, pairs)))


def directional(name: str, pairs: Mapping[int, Sequence[tuple[str, str]]]) -> BehaviouralTest:
    """A directional test: class -> (text, changed text) in which it must not lose probability."""
    cases = tuple(tuple(pair) for own in pairs.values() for pair in own)
    labels = tuple(label for label, own in pairs.items() for _ in own)
    return BehaviouralTest(name, "DIR", cases, labels)


def run_tests(tuned: TunedEncoder, tests: Sequence[BehaviouralTest]) -> dict[str, TestResult]:
    """Name -> result of every test.

    Raises:
        ValueError: no tests, or two of the same name.
    """
    names = [test.name for test in tests]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"tests need different names, not {names}")
    texts = [text for test in tests for case in test.cases for text in case]
    said = probabilities(tuned, texts)
    results, start = {}, 0
    for test in tests:
        size = len(test.cases[0])
        stop = start + size * len(test.cases)
        own = said[start:stop].reshape(len(test.cases), size, -1)
        results[test.name] = TestResult(test, _failed(test, own), own, tuned.encoder.name)
        start = stop
    return results


def _failed(test: BehaviouralTest, said: np.ndarray) -> np.ndarray:
    if test.kind == "INV":
        return said[:, 0].argmax(1) != said[:, 1].argmax(1)
    labels = np.array(test.labels)
    if test.kind == "MFT":
        return said[:, 0].argmax(1) != labels
    every = np.arange(len(labels))
    return said[every, 1, labels] < said[every, 0, labels] - TOLERANCE


def failure_rate(results: Sequence[TestResult], *, seed: int = 0) -> Estimate:
    """Mean of the tests' failure rates; every test counts the same.

    The interval resamples cases within tests: it speaks of these tests, not of others that one
    might have written.

    Raises:
        ValueError: no results.
    """
    if not results:
        raise ValueError("no results of tests")
    draw = np.random.default_rng(seed)
    draws = [
        r.failed[draw.integers(0, len(r.failed), (_RESAMPLES, len(r.failed)))].mean(1)
        for r in results
    ]
    value = float(np.mean([r.failed.mean() for r in results]))
    return Estimate(
        value=value, unit="share", n=sum(len(r.failed) for r in results), model=results[0].model,
        seed=seed, interval=percentile_interval(np.mean(draws, axis=0), value),
    )  # fmt: skip
