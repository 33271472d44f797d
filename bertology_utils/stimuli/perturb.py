"""Spoilt versions of sentences: nonsense, shuffled, truncated, without subject or object."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._phrases import article
from bertology_utils.stimuli.lexicon import Lexicon, Verb, lexicon
from bertology_utils.stimuli.trees import Sentence, join_words


class PerturbError(ValueError):
    """A sentence that cannot be perturbed as asked."""


def verb_slot(feats: str) -> str:
    """The attribute of :class:`Verb` that a word with these features shows."""
    if "VerbForm=Inf" in feats:
        return "base"
    if "VerbForm=Part" in feats:
        return "participle"
    if "VerbForm=Ger" in feats:
        return "gerund"
    if "Tense=Past" in feats:
        return "past"
    third = "Number=Sing" in feats and "Person=3" in feats
    return "third" if third else "base"


def substitute(
    lemma: str, upos: str, feats: str, draw: Draw, words: Lexicon, keep_gender: bool
) -> tuple[str, str] | None:
    """(form, lemma) of a random word of the same part of speech and form; None for others.

    ``keep_gender`` restricts people to people of the same gender, for anaphors.
    """
    if upos == "NOUN":
        old = next((n for n in words.nouns if n.lemma == lemma), None)
        number = "plur" if "Number=Plur" in feats else "sing"
        options = [n for n in words.nouns if n.lemma != lemma and (number == "sing" or n.plural)]
        options = [n for n in options if n.plural or (old is not None and old.plural is None)]
        if keep_gender and old is not None and old.kind == "person":
            options = [n for n in options if n.kind == "person" and n.gender == old.gender]
        noun = draw.pick(options)
        return noun.form(number), noun.lemma
    if upos == "VERB":
        if lemma == "be":
            return None
        slot = verb_slot(feats)
        verbs = {v.base: v for v in words.verbs if v.base != lemma}
        usable: list[Verb] = [v for v in verbs.values() if getattr(v, slot)]
        verb = draw.pick(usable)
        return getattr(verb, slot), verb.base
    if upos == "ADJ":
        choices = [a for a in words.adjectives if a.lemma != lemma]
        adjective = draw.pick(choices)
        return adjective.lemma, adjective.lemma
    if upos == "PROPN":
        old_name = next((n for n in words.names if n.lemma == lemma), None)
        if old_name is None:
            return None
        name = draw.pick([n for n in words.names_of(old_name.gender) if n.lemma != lemma])
        return name.lemma.capitalize(), name.lemma
    return None


def nonsense(sentence: Sentence, seed: int | str = 0, words: Lexicon | None = None) -> Sentence:
    """The "colourless green ideas" version: same structure and function words, other content.

    Every noun, verb, adjective and name is replaced by a random one with the same grammatical
    features (Gulordava et al. 2018).  The trees and gold positions are unchanged, except that
    ``gold.kinds`` and ``gold.roles`` are emptied: nothing is meant any more.
    """
    words = words or lexicon("all")
    draw = Draw("nonsense", seed, sentence.text)
    gendered = any("Reflex=Yes" in feats for feats in sentence.feats)
    forms = list(sentence.words)
    lemmas = list(sentence.lemmas)
    for i, (lemma, upos, feats) in enumerate(
        zip(sentence.lemmas, sentence.upos, sentence.feats, strict=True)
    ):
        new = substitute(lemma, upos, feats, draw, words, gendered)
        if new is not None:
            forms[i], lemmas[i] = new
    fix_articles(forms, lemmas)
    forms[0] = forms[0][0].upper() + forms[0][1:]
    gold = sentence.gold
    if gold is not None:
        gold = replace(gold, kinds=("",) * len(forms), roles=())
    return replace(
        sentence, words=tuple(forms), lemmas=tuple(lemmas), text=join_words(forms), gold=gold
    )


def fix_articles(forms: list[str], lemmas: Sequence[str]) -> None:
    """Set "a" or "an" in place to suit the word that follows."""
    for i, lemma in enumerate(lemmas[:-1]):
        if lemma == "a" and forms[i].lower() in ("a", "an"):
            new = article(forms[i + 1].lower())
            forms[i] = new.capitalize() if forms[i][0].isupper() else new


def shuffle_words(
    words: Sequence[str], share: float = 1.0, seed: int | str = 0, keep: Collection[int] = ()
) -> tuple[str, ...]:
    """Words with a share of them moved; positions in ``keep`` and final punctuation stay.

    ``share`` is the fraction of movable words that take part (at least two when share > 0).  The
    moved words change places among themselves so that each lands on another's position when
    there are two or more.  Raises PerturbError for a share outside 0..1.
    """
    if not 0 <= share <= 1:
        raise PerturbError(f"share must be between 0 and 1, not {share}")
    fixed = set(keep)
    movable = [i for i, w in enumerate(words) if i not in fixed and w not in (".", "?", "!")]
    k = min(len(movable), max(2, round(share * len(movable)))) if share > 0 else 0
    if k < 2:
        return tuple(words)
    draw = Draw("shuffle", seed, " ".join(words))
    chosen = draw.sample(movable, k)  # already in random order: a cycle moves every one of them
    out = list(words)
    for here, there in zip(chosen, chosen[1:] + chosen[:1], strict=True):
        out[there] = words[here]
    return tuple(out)


def truncate(words: Sequence[str], target: int, n: int) -> tuple[tuple[str, ...], int]:
    """The target and at most ``n`` words before it: (words, new index of the target)."""
    if not 0 <= target < len(words):
        raise PerturbError(f"target {target} is outside a sentence of {len(words)} words")
    if n < 0:
        raise PerturbError(f"cannot keep {n} words")
    start = max(0, target - n)
    return tuple(words[start : target + 1]), target - start


def drop_argument(sentence: Sentence, role: str) -> tuple[str, ...]:
    """The words without the whole main-clause "subject" or "object" phrase.

    Raises PerturbError when the sentence has no such argument or carries no gold structure.
    """
    if sentence.gold is None:
        raise PerturbError("only grammar sentences know their arguments")
    if role not in ("subject", "object"):
        raise PerturbError(f"role must be 'subject' or 'object', not {role!r}")
    head = sentence.gold.subject if role == "subject" else sentence.gold.object
    if head is None:
        raise PerturbError(f"no object in {sentence.text!r}")
    inside = {head}
    grew = True
    while grew:
        more = {d for h, d, _ in sentence.edges() if h in inside} - inside
        inside |= more
        grew = bool(more)
    return tuple(word for i, word in enumerate(sentence.words) if i not in inside)
