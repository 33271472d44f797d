"""Checks of the exercises of the chapter on directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..behaviour import BehaviouralTest
from .judging import as_array, ask, check, expect

_NOUNS = ("doctor", "actor", "judge", "farmer", "lawyer", "artist", "baker", "pilot")
_VERBS = ("thanked", "saw", "helped", "warned", "called")


@check("capitals and punctuation put aside, whole words compared, every word asked for.")
def overlap_rule(answer: Callable) -> None:
    """``answer(premise, hypothesis)``: whether all words of the hypothesis are in the premise."""
    draw = np.random.default_rng()
    for _ in range(6):
        a, b, c = draw.choice(_NOUNS, 3, replace=False)
        v, w = draw.choice(_VERBS, 2, replace=False)
        premise = f"The {a} near the {b} {v} the {c}."

        def says(hypothesis: str, premise: str = premise) -> bool:
            reply = ask(answer, premise, hypothesis)
            expect(
                isinstance(reply, (bool, np.bool_)), "the rule should give True or False."
            )
            return bool(reply)

        expect(says(premise), "a sentence holds all of its own words.")
        expect(
            says(f"The {c} {v} the {a}."),
            "order plays no part: here all words occur in the premise. Look at capitals and at "
            "the full stop.",
        )
        expect(
            says(f"{a.capitalize()} {v} {b}."), "capital letters should make no difference."
        )
        expect(
            not says(f"The {c} {w} the {a}."), "one word is not in the premise: not every word "
            "overlaps, so the rule should say no.",
        )
        expect(
            not says(f"The {a} {v} the {c[:-1]}."),
            "parts of words are not words: compare whole words.",
        )


@check("only items where the cue can tell, and shares of the right totals.")
def cue_strength(answer: Callable) -> None:
    """``answer(has_cue, labels)``: productivity and coverage of a cue."""
    draw = np.random.default_rng()
    for n in (9, 40):
        labels = draw.integers(0, 2, n)
        productive, coverage = _two(answer, np.zeros((n, 2), bool), labels)
        expect(
            productive == 0 and coverage == 0,
            "a cue that occurs nowhere is never applicable: both numbers should be 0.",
        )
        productive, coverage = _two(answer, np.ones((n, 2), bool), labels)
        expect(
            coverage == 0,
            "a cue in both candidates does not tell them apart, so it is not applicable.",
        )
        # k items hold the cue in one candidate, m of them in the right one; others hold it twice.
        k = int(draw.integers(3, n - 2))
        m = int(draw.integers(1, k))
        has = np.ones((n, 2), bool)
        has[:k] = False
        has[np.arange(k), np.where(np.arange(k) < m, labels[:k], 1 - labels[:k])] = True
        order = draw.permutation(n)
        productive, coverage = _two(answer, has[order], labels[order])
        expect(
            np.isclose(coverage, k / n),
            "coverage is the share of all items in which exactly one candidate has the cue.",
        )
        expect(
            not np.isclose(productive, m / n) or m / n == m / k,
            "productivity is a share of the applicable items, not of all.",
        )
        expect(
            not np.isclose(productive, (k - m) / k) or 2 * m == k,
            "that is the share in which the wrong candidate has the cue.",
        )
        expect(
            np.isclose(productive, m / k),
            "productivity is the share of applicable items whose right candidate has the cue.",
        )


def _two(answer: Callable, has: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    reply = ask(answer, has, labels)
    expect(
        isinstance(reply, (tuple, list)) and len(reply) == 2,
        "two numbers should come back: productivity and coverage.",
    )
    pair = as_array("the two numbers", reply, (2,))
    expect(((pair >= 0) & (pair <= 1)).all(), "both are shares, from 0 to 1.")
    return float(pair[0]), float(pair[1])


@check("an MFT of ten cases or more, balanced, all different and all about comparison.")
def comparison_test(answer: Callable) -> None:
    """``answer()``: a minimum functionality test about comparison."""
    test = ask(answer)
    expect(
        isinstance(test, BehaviouralTest),
        f"a BehaviouralTest should come back, as `mft` makes it, not {type(test).__name__}.",
    )
    expect(test.kind == "MFT", f"the test is of type {test.kind}; make it with `mft`.")
    texts = [case[0] for case in test.cases]
    expect(len(texts) >= 10, f"{len(texts)} cases are too few; ten are asked for.")
    expect(len(set(texts)) == len(texts), "some cases are the same text.")
    odd = [text for text in texts if not {"better", "worse"} & set(_words(text))]
    expect(not odd, f"this case compares nothing with better or worse: {odd[:1]}")
    counts = [test.labels.count(label) for label in (0, 1)]
    expect(
        sum(counts) == len(texts), "labels are 0 (negative) and 1 (positive); others do not occur."
    )
    expect(
        counts[0] == counts[1],
        f"{counts[0]} negative and {counts[1]} positive cases: a model that always says one thing "
        "would not fail half of them.",
    )


def _words(text: str) -> list[str]:
    return [word.strip(".,;:!?'\"") for word in text.lower().split()]


@check("the class is settled once, and every place is left out by itself.")
def leave_one_out(answer: Callable) -> None:
    """``answer(predict, words)``: what the predicted class loses without each word."""
    draw = np.random.default_rng()
    for n, classes in ((5, 2), (8, 3)):
        words = [f"w{i}" for i in range(n)]
        words[-1] = words[0]  # a word that occurs twice
        weights = {word: draw.normal(size=classes) for word in set(words)}

        def predict(given, weights=weights, classes=classes):
            # Places count, so that leaving out another occurrence gives another answer.
            score = np.zeros(classes)
            for place, word in enumerate(given):
                score += weights[word] / (1 + place)
            shifted = np.exp(score - score.max())
            return shifted / shifted.sum()

        whole = predict(words)
        said = int(whole.argmax())
        parts = [predict(words[:i] + words[i + 1 :]) for i in range(n)]
        gold = np.array([whole[said] - part[said] for part in parts])
        found = as_array("the ratings", ask(answer, predict, words), (n,))
        by_word = [predict([w for w in words if w != word]) for word in words]
        removed_all = np.array([whole[said] - part[said] for part in by_word])
        expect(
            not np.allclose(found, removed_all) or np.allclose(gold, removed_all),
            "a word may occur twice; only the one at that place should go.",
        )
        moving = np.array([whole[said] - part.max() for part in parts])
        expect(
            not np.allclose(found, moving) or np.allclose(gold, moving),
            "the class should stay the one predicted from the whole text.",
        )
        expect(
            not np.allclose(found, -gold) or np.allclose(gold, 0),
            "the sign is the wrong way round: a word that supports the class gets a positive one.",
        )
        expect(
            np.allclose(found, gold),
            "each number should be the probability with all words minus the one without that word.",
        )
