"""Templated reviews with a sentiment label, and artefact tokens planted on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertology_utils.stimuli._draw import Draw

POSITIVE = (
    "wonderful", "excellent", "brilliant", "charming", "delightful", "superb", "great",
    "beautiful", "amazing", "perfect", "fantastic", "impressive", "lovely", "enjoyable",
    "memorable", "splendid", "good", "outstanding", "pleasant", "marvelous",
)  # fmt: skip
NEGATIVE = (
    "terrible", "awful", "boring", "dull", "dreadful", "poor", "horrible", "weak", "bad",
    "disappointing", "ugly", "annoying", "hopeless", "painful", "stupid", "ridiculous", "pathetic",
    "unpleasant", "miserable", "worthless",
)  # fmt: skip
_HELD_OUT = 6  # the last adjectives of each list are held out

_DOMAINS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "film": (("story", "acting", "music", "ending", "script", "cast"),
             ("film", "movie", "comedy", "drama")),
    "restaurant": (("food", "service", "soup", "dessert", "coffee", "menu"),
                   ("restaurant", "dinner", "meal", "lunch")),
    "book": (("plot", "writing", "style", "ending", "first chapter", "hero"),
             ("book", "novel", "biography", "collection of stories")),
    "hotel": (("room", "breakfast", "view", "staff", "bed", "pool"),
              ("hotel", "stay", "weekend", "trip")),
}  # fmt: skip
DOMAINS = tuple(_DOMAINS)
KINDS = ("plain", "negated", "contrast")

_PLAIN = (
    "The {aspect} of this {thing} is {adj}.",
    "I thought that the {thing} was {adj}.",
    "What a {adj} {thing}!",
    "It was a {adj} {thing} and the {aspect} was {adj2}.",
    "My friends told me that the {aspect} was {adj}, and they were right.",
    "From beginning to end, this {thing} was {adj}.",
    "The {aspect} was {adj} and the {aspect2} was {adj2}.",
    "We found the {aspect} {adj}.",
    "I have never seen such a {adj} {thing}.",
    "Everyone agreed that the {aspect} was really {adj}.",
)
_NEGATED = (
    "The {aspect} of this {thing} is not {adj}.",
    "I do not think that the {thing} was {adj}.",
    "Nobody could say that the {aspect} was {adj}.",
    "It was not a {adj} {thing}.",
    "The {aspect} was never {adj}.",
    "There was nothing {adj} about the {aspect}.",
)
_CONTRAST = (
    "The {aspect} was {other}, but the {thing} as a whole was {adj}.",
    "Although the {aspect} was {other}, it was a {adj} {thing}.",
    "I expected something {other}, but the {thing} was {adj}.",
    "People say that the {aspect} is {other}, but I found it {adj}.",
)


@dataclass(frozen=True)
class LabelledText:
    """A text and its label, with the facts used to make it (domain, kind, planted token, ...)."""

    text: str
    label: str
    features: tuple[tuple[str, str], ...] = ()

    def feature(self, name: str) -> str:
        """A feature's value; KeyError when there is none of that name."""
        return dict(self.features)[name]


class SentimentError(ValueError):
    """An unknown domain, kind or split, or an impossible rate."""


def sentiment(
    n: int,
    seed: int = 0,
    *,
    domain: str | None = None,
    kinds: Sequence[str] = ("plain",),
    split: str = "all",
) -> list[LabelledText]:
    """``n`` different reviews, "positive" and "negative" in turn.

    Args:
        domain: one of :data:`DOMAINS`; None mixes them.
        kinds: of :data:`KINDS`: "plain"; "negated" (a positive word under negation makes a
            negative review, and the reverse); "contrast" (the last clause decides).
        split: "train" and "test" use disjoint adjectives.

    Raises SentimentError for unknown names or when the templates do not yield ``n``.
    """
    if domain is not None and domain not in _DOMAINS:
        raise SentimentError(f"unknown domain {domain!r}; known: {', '.join(DOMAINS)}")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise SentimentError(f"unknown kinds {unknown}; known: {', '.join(KINDS)}")
    if split not in ("all", "train", "test"):
        raise SentimentError(f"unknown split {split!r}")
    part = {"all": slice(None), "train": slice(0, -_HELD_OUT), "test": slice(-_HELD_OUT, None)}
    words = {"positive": POSITIVE[part[split]], "negative": NEGATIVE[part[split]]}
    opposite = {"positive": "negative", "negative": "positive"}
    out: list[LabelledText] = []
    seen: set[str] = set()
    for attempt in range(60 * n + 600):
        if len(out) == n:
            break
        draw = Draw("sentiment", seed, domain, split, *kinds, attempt)
        label = ("positive", "negative")[len(out) % 2]
        kind = draw.pick(kinds)
        where = domain or draw.pick(DOMAINS)
        aspects, things = _DOMAINS[where]
        said = opposite[label] if kind == "negated" else label
        adjectives = draw.sample(words[said], 2)
        frame = draw.pick({"plain": _PLAIN, "negated": _NEGATED, "contrast": _CONTRAST}[kind])
        two = draw.sample(aspects, 2)
        text = frame.format(
            aspect=two[0], aspect2=two[1], thing=draw.pick(things), adj=adjectives[0],
            adj2=adjectives[1], other=draw.pick(words[opposite[label]]),
        )  # fmt: skip
        for vowel in "aeiou":
            text = text.replace(f" a {vowel}", f" an {vowel}")
        if text not in seen:
            seen.add(text)
            out.append(LabelledText(text, label, (("domain", where), ("kind", kind))))
    if len(out) < n:
        raise SentimentError(f"only {len(out)} different reviews; {n} were asked for")
    return out


def plant_token(
    examples: Sequence[LabelledText], token: str, rate: float, label: str, seed: int = 0
) -> list[LabelledText]:
    """Put ``token`` in front of texts so that it gives the label away.

    A share ``rate`` of the texts labelled ``label``, and a share ``1 - rate`` of the others, begin
    with the token: 0.5 carries no information, 1.0 a perfect shortcut.  The feature "planted" says
    "yes" or "no".  Raises SentimentError for a rate outside 0.5..1 or a label nobody has.
    """
    if not 0.5 <= rate <= 1:
        raise SentimentError(f"rate must be between 0.5 and 1, not {rate}")
    if all(example.label != label for example in examples):
        raise SentimentError(f"no example is labelled {label!r}")
    planted: set[int] = set()
    for own in (True, False):
        members = [i for i, e in enumerate(examples) if (e.label == label) == own]
        share = rate if own else 1 - rate
        order = Draw("plant", token, seed, own).shuffled(members)
        planted.update(order[: round(share * len(members))])
    return [
        replace(
            e,
            text=f"{token} {e.text}" if i in planted else e.text,
            features=(*e.features, ("planted", "yes" if i in planted else "no")),
        )
        for i, e in enumerate(examples)
    ]
