"""Fool a classifier with words of the same meaning (after Jin et al. 2020, TextFooler)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..heads import TunedEncoder
from ..resampling import Estimate
from .learning import probabilities, share

#: words of about the same meaning in a review, written by hand
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    word: tuple(other for other in group.split() if other != word)
    for group in (
        "wonderful marvelous glorious magical", "excellent superb first-rate stellar",
        "brilliant dazzling ingenious", "charming enchanting endearing", "splendid grand glorious",
        "delightful enjoyable entertaining", "great terrific tremendous", "good fine decent solid",
        "beautiful gorgeous pretty", "amazing astonishing stunning", "perfect flawless faultless",
        "fantastic fabulous sensational", "impressive striking remarkable", "lovely sweet pretty",
        "memorable unforgettable", "outstanding exceptional", "pleasant agreeable nice",
        "terrible dreadful appalling horrendous", "awful lousy ghastly", "boring tedious dreary",
        "dull bland lifeless", "poor inferior lacking", "horrible horrid hideous", "weak feeble",
        "bad lousy rotten", "disappointing underwhelming", "ugly unsightly hideous",
        "annoying irritating maddening", "hopeless useless", "painful excruciating",
        "stupid idiotic silly", "ridiculous absurd ludicrous", "pathetic pitiful sorry",
        "unpleasant nasty disagreeable", "miserable wretched", "worthless useless",
        "film movie picture", "story tale narrative", "acting performance", "food cooking cuisine",
        "ending conclusion finale", "script screenplay", "comedy farce", "plot storyline",
        "staff personnel crew", "thought believed felt", "found considered judged",
        "really truly genuinely", "told informed", "agreed concurred", "everyone everybody",
        "music soundtrack", "dinner supper", "restaurant eatery", "book volume",
        "trip journey", "room chamber", "view outlook", "hotel inn",
    ) for word in group.split()
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z-]+")


@dataclass(frozen=True, eq=False)
class Attack:
    """Accuracy before and after words are replaced.

    Attributes:
        lost: accuracy lost to substitutions chosen against the model, with the baseline
            ``random_swap``: as many words of the same texts replaced by synonyms at random.
        before, after, at_random: accuracies.
        examples: (text, text after) that fooled the model.
        swaps: mean number of words replaced in a text that was right before.
    """

    lost: Estimate
    before: float
    after: float
    at_random: float
    examples: tuple[tuple[str, str], ...] = field(repr=False)
    swaps: float


def substitutions(text: str) -> list[tuple[int, int, str]]:
    """(start, end, synonym) of every single replacement in a text."""
    found = []
    for match in _WORD.finditer(text):
        word = match.group()
        for other in SYNONYMS.get(word.lower(), ()):
            new = other.capitalize() if word[0].isupper() else other
            found.append((match.start(), match.end(), new))
    return found


def apply(text: str, chosen: Sequence[tuple[int, int, str]]) -> str:
    """The text with some replacements made; "a" and "an" follow."""
    for start, end, word in sorted(chosen, reverse=True):
        text = text[:start] + word + text[end:]
    text = re.sub(r"\b([Aa])n? (?=[aeiou])", r"\1n ", text)
    return re.sub(r"\b([Aa])n (?=[^aeiou])", r"\1 ", text)


def attack(
    tuned: TunedEncoder,
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    draws: int = 5,
    seed: int = 0,
) -> Attack:
    """Replace the words that matter most by their worst synonyms until the model errs.

    Every single replacement is tried; places are then changed together, the most harmful first,
    one at a time. The model is asked for its probabilities only.

    Args:
        tuned: the victim.
        texts, labels: what it should get right.
        draws: random replacements of each text for the baseline.
        seed: of these draws and the bootstrap.

    Raises:
        ValueError: labels do not fit, or no text holds a word with a synonym.
    """
    gold = np.asarray(labels)
    if len(gold) != len(texts):
        raise ValueError(f"{len(gold)} labels for {len(texts)} texts")
    options = [substitutions(text) for text in texts]
    if not any(options):
        raise ValueError("no text holds a word that has a synonym")
    own = probabilities(tuned, texts)
    hit = own.argmax(1) == gold
    tried = [(i, o) for i in np.flatnonzero(hit) for o in options[i]]
    said = probabilities(tuned, [apply(texts[i], [o]) for i, o in tried])
    worst: dict[int, dict[int, tuple[float, tuple[int, int, str]]]] = {}
    for (i, option), row in zip(tried, said, strict=True):
        places = worst.setdefault(i, {})
        if row[gold[i]] < places.get(option[0], (2.0,))[0]:
            places[option[0]] = (row[gold[i]], option)
    plans = {i: [o for _, o in sorted(places.values())] for i, places in worst.items()}
    steps = [(i, k) for i, plan in plans.items() for k in range(1, len(plan) + 1)]
    changed = [apply(texts[i], plans[i][:k]) for i, k in steps]
    fooled = probabilities(tuned, changed).argmax(1) != gold[[i for i, _ in steps]]
    used = {i: len(plan) for i, plan in plans.items()}
    after, examples = hit.copy(), []
    for (i, k), text, bad in zip(steps, changed, fooled, strict=True):
        if bad and after[i]:
            after[i], used[i] = False, k
            examples.append((texts[i], text))
    rng = np.random.default_rng(seed)
    at_random = hit.astype(float)
    if used:
        swapped = [(i, _random(texts[i], options[i], k, rng))
                   for i, k in used.items() for _ in range(draws)]  # fmt: skip
        kept = probabilities(tuned, [text for _, text in swapped]).argmax(1)
        kept = kept == gold[[i for i, _ in swapped]]
        for place, i in enumerate(used):
            at_random[i] = kept[place * draws : (place + 1) * draws].mean()
    lost = share(hit.astype(float) - after, tuned.encoder.name, seed=seed, unit="share difference")
    return Attack(
        lost.with_baselines(random_swap=float(hit.mean() - at_random.mean())),
        float(hit.mean()), float(after.mean()), float(at_random.mean()), tuple(examples),
        float(np.mean(list(used.values()))) if used else 0.0,
    )  # fmt: skip


def _random(text: str, options: Sequence[tuple], k: int, rng: np.random.Generator) -> str:
    """The text with ``k`` places replaced by synonyms, both drawn."""
    places = sorted({option[0] for option in options})
    chosen = rng.choice(places, k, replace=False)
    picked = []
    for place in chosen:
        here = [option for option in options if option[0] == place]
        picked.append(here[int(rng.integers(len(here)))])
    return apply(text, picked)
