"""A ready suite of behavioural tests for classifiers of reviews (0 negative, 1 positive)."""

from __future__ import annotations

from ..stimuli._draw import Draw
from ..stimuli.sentiment import NEGATIVE, POSITIVE
from .checklist import BehaviouralTest, directional, fill, inv, mft

NEGATIVE_CLASS, POSITIVE_CLASS = 0, 1
# Adjectives that begin with a consonant, so that "a" always fits; all are of the training split.
_GOOD = tuple(w for w in POSITIVE[:14] if w[0] not in "aeiou")
_BAD = tuple(w for w in NEGATIVE[:14] if w[0] not in "aeiou")
#: every adjective of the reviews
ADJECTIVES = (*POSITIVE, *NEGATIVE)
_THINGS = ("film", "meal", "novel", "hotel", "dinner", "book", "comedy", "trip")
_ASPECTS = ("story", "food", "style", "room", "service", "music", "plot", "staff")


def _some(n: int, template: str, seed: int, **slots) -> list[str]:
    return Draw("suite", template, seed).sample(fill(template, **slots), n)


def sentiment_suite(n: int = 24, seed: int = 0) -> list[BehaviouralTest]:
    """Tests of vocabulary, negation, time, whose view it is, questions, names, typos and additions.

    All adjectives are those of the training split: what fails is not a matter of unknown words.

    Args:
        n: cases a test, an even number up to 48.
        seed: of the choice among all fillings.

    Raises:
        ValueError: ``n`` is odd or out of range.
    """
    if n % 2 or not 2 <= n <= 48:
        raise ValueError(f"n must be an even number from 2 to 48, not {n}")
    half = n // 2

    def both(praise: str, blame: str, **slots) -> dict[int, list[str]]:
        return {
            POSITIVE_CLASS: _some(half, praise, seed, **slots),
            NEGATIVE_CLASS: _some(half, blame, seed + 1, **slots),
        }

    g, b, t, a = _GOOD, _BAD, _THINGS, _ASPECTS
    plain = [
        *_some(half, "The {aspect} of this {thing} was {adj}.", seed, aspect=a, thing=t, adj=g),
        *_some(half, "The {aspect} of this {thing} was {adj}.", seed + 1, aspect=a, thing=t, adj=b),
    ]
    return [
        mft("vocabulary", {
            POSITIVE_CLASS: _some(half, "This is a {adj} {thing}.", seed, adj=g, thing=t),
            NEGATIVE_CLASS: _some(half, "This is a {adj} {thing}.", seed, adj=b, thing=t)}),
        mft("negation", {
            NEGATIVE_CLASS: _some(half, "The {aspect} was not {adj}.", seed, aspect=a, adj=g),
            POSITIVE_CLASS: _some(half, "The {aspect} was not {adj}.", seed, aspect=a, adj=b)}),
        mft("then and now", both(
            "I used to think that this {thing} was {bad}, but now I think it is {good}.",
            "I used to think that this {thing} was {good}, but now I think it is {bad}.",
            thing=t, good=g, bad=b)),
        mft("whose view", both(
            "Some people call this {thing} {bad}, but I think it is {good}.",
            "Some people call this {thing} {good}, but I think it is {bad}.",
            thing=t, good=g, bad=b)),
        mft("question with no", {
            NEGATIVE_CLASS: _some(half, "Do I think that the {aspect} was {adj}? No.", seed,
                                  aspect=a, adj=g),
            POSITIVE_CLASS: _some(half, "Do I think that the {aspect} was {adj}? No.", seed,
                                  aspect=a, adj=b)}),
        inv("other names", [(f"Anna told me: {text}", f"Robert told me: {text}")
                            for text in plain]),
        inv("typos", [(text, _typo(text, seed + i)) for i, text in enumerate(plain)]),
        inv("added day", [(text, f"{text} We were there on Tuesday.") for text in plain]),
        directional("added praise or blame", {
            POSITIVE_CLASS: [(text, f"{text} Everything was {g[i % len(g)]}.")
                             for i, text in enumerate(plain[half:])],
            NEGATIVE_CLASS: [(text, f"{text} Everything was {b[i % len(b)]}.")
                             for i, text in enumerate(plain[:half])]}),
    ]  # fmt: skip


def _typo(text: str, seed: int) -> str:
    """Two neighbouring letters change places in a word that is not the last (the adjective)."""
    words = text.split()
    draw = Draw("typo", text, seed)
    long = [i for i, word in enumerate(words[:-1]) if len(word) > 3]
    place = draw.pick(long)
    word = words[place]
    swaps = [k for k in range(1, len(word) - 1) if word[k] != word[k + 1]]
    k = draw.pick(swaps)
    words[place] = word[:k] + word[k + 1] + word[k] + word[k + 2 :]
    return " ".join(words)
