"""The lab's language: the grammar's sentences over some 130 words, as ready tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from ..stimuli import Grammar, GrammarConfig, Lexicon, Sentence, core_lexicon

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(5)
#: words of a sentence, at most; so short that little of a batch is padding
MAX_WORDS = 8
LENGTH = MAX_WORDS + 2
PAIR_LENGTH = 2 * MAX_WORDS + 3
#: different sentences for training, and for everything that is measured
POOL, HELD_OUT = 4000, 600
#: entries of each kind of noun and frame of verb
NOUNS = {"person": 6, "animal": 2, "object": 3, "building": 2, "place": 2, "furniture": 2}
VERBS = {"transitive": 4, "intransitive": 2}
KINDS = ("simple", "attractor")

_GRAMMAR = GrammarConfig(
    adjective=0.15, noun_pp=0.3, verb_pp=0.1, adverb=0.02, name=0.06, genitive=0.0, own=0.0,
    np_coordination=0.0, negation=0.05, embedding=(1.0,),
    constructions=(
        ("intransitive", 0.5), ("transitive", 1.2), ("copular", 2.0), ("locative", 1.5),
        ("passive", 0.8),
    ),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Text:
    """Encoded sentences or pairs.

    Attributes:
        ids: [N, T] with [CLS], [SEP] and padding.
        segments: [N, T] 0 for the first sentence, 1 for the second.
        labels: [N] what [CLS] is asked, 0 where it is asked nothing.
        wholes: [N, T] number of the unit that a piece belongs to within its row.
    """

    ids: np.ndarray
    segments: np.ndarray
    labels: np.ndarray
    wholes: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def maskable(self) -> np.ndarray:
        """[N, T] True where a piece may be hidden."""
        return self.ids > MASK


@lru_cache(maxsize=1)
def vocabulary() -> dict[str, int]:
    """Word -> id for all words of the grammar's language, special symbols first."""
    found = {word for sentence in training_sentences() for word in _words(sentence)}
    return {word: i for i, word in enumerate((*SPECIAL, *sorted(found)))}


def _words(sentence: Sentence) -> list[str]:
    return [word.lower() for word in sentence.words]


@lru_cache(maxsize=1)
def training_sentences() -> tuple[Sentence, ...]:
    """The pool of different sentences with gold trees from which all runs take theirs."""
    return tuple(_grammar().treebank(POOL, 0, min_words=3, max_words=MAX_WORDS))


@lru_cache(maxsize=1)
def held_out_sentences() -> tuple[Sentence, ...]:
    """Sentences none of which is in the pool."""
    known = {sentence.text for sentence in training_sentences()}
    return tuple(
        _grammar().treebank(HELD_OUT, 1, min_words=3, max_words=MAX_WORDS, exclude=known)
    )


def _grammar() -> Grammar:
    return Grammar(_lexicon(), _GRAMMAR)


@lru_cache(maxsize=1)
def _lexicon() -> Lexicon:
    """The core lexicon, thinned out: the first few entries of every class."""
    core = core_lexicon(600)
    kept: list = []
    for entries, by, most in (
        (core.nouns, "kind", NOUNS), (core.verbs, "frame", VERBS), (core.adjectives, "", 8),
        (core.adverbs, "role", 2), (core.names, "", 4),
    ):  # fmt: skip
        counts: dict[str, int] = {}
        for entry in entries:
            group = getattr(entry, by) if by else ""
            if isinstance(most, dict) and group not in most:
                continue
            counts[group] = counts.get(group, 0) + 1
            if counts[group] <= (most[group] if isinstance(most, dict) else most):
                kept.append(entry)
    return Lexicon(kept, core.relational, "core")


#: finite verbs whose number shows: form -> (form, the same in the other number)
_NUMBERS = {"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has"}


@dataclass(frozen=True)
class AgreementPair:
    """A sentence with a finite verb, and the verb in the other number."""

    words: tuple[str, ...]
    place: int
    bad: str

    @property
    def good(self) -> str:
        return self.words[self.place]


@lru_cache(maxsize=4)
def agreement_pairs(kind: str, n: int = 100) -> tuple[AgreementPair, ...]:
    """``n`` pairs that differ in the number of the main verb, none of them in the pool.

    As many singular as plural verbs. Between subject and verb stands no noun (``"simple"``) or one
    of the other number (``"attractor"``).

    Raises:
        KeyError: another kind.
    """
    if kind not in KINDS:
        raise KeyError(f"kind is {kind!r}, must be one of {', '.join(KINDS)}")
    known = {sentence.text for sentence in training_sentences()}
    options = {"noun_pp": 0.02} if kind == "simple" else {"noun_pp": 0.98}
    grammar = Grammar(_lexicon(), replace(_GRAMMAR, adverb=0.0, **options))
    found: list[AgreementPair] = []
    counts = {"sing": 0, "plur": 0}
    for index in range(200 * n):
        sentence = grammar.sentence(f"agreement {index}")
        gold = sentence.gold
        main = [a for a in gold.agreements if a.subject == gold.subject]
        if (len(sentence) > MAX_WORDS or sentence.text in known or not main
                or gold.attractors != (kind == "attractor")
                or (kind == "simple" and main[0].verb - main[0].subject != 1)):  # fmt: skip
            continue
        verb = sentence.words[main[0].verb].lower()
        if verb in _NUMBERS and counts[main[0].number] < (n + 1) // 2:
            counts[main[0].number] += 1
            found.append(AgreementPair(tuple(_words(sentence)), main[0].verb, _NUMBERS[verb]))
            if len(found) == n:
                return tuple(found)
    raise ValueError(f"only {len(found)} pairs of kind {kind!r}, not {n}")


def encode(sentences: Sequence[Sequence[str]], length: int = LENGTH) -> np.ndarray:
    """Ids [N, length] of lists of words; unknown words become [UNK].

    Raises:
        ValueError: a sentence is longer than ``length`` less two.
    """
    known = vocabulary()
    ids = np.full((len(sentences), length), PAD)
    for row, words in zip(ids, sentences, strict=True):
        if len(words) > length - 2:
            raise ValueError(f"{len(words)} words do not fit into {length}: {' '.join(words)!r}")
        row[: len(words) + 2] = [CLS, *(known.get(w.lower(), UNK) for w in words), SEP]
    return ids


def plain(sentences: Sequence[Sentence]) -> Text:
    """Single sentences, every word a unit of its own."""
    ids = encode([sentence.words for sentence in sentences])
    nothing = np.zeros_like(ids)
    return Text(ids, nothing, nothing[:, 0], np.broadcast_to(np.arange(ids.shape[1]), ids.shape))


def frequencies() -> np.ndarray:
    """[V] how often each word occurs in the training text, plus one."""
    ids = plain(training_sentences()).ids
    return np.bincount(ids.ravel(), minlength=len(vocabulary())) + 1


def word_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer with exactly this vocabulary, so that a trained model works in every room."""
    ids = dict(vocabulary())
    core = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=PAIR_LENGTH,
    )  # fmt: skip
