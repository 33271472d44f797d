"""Gold labels of words and numbers of sentences, as a treebank holds them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..probes import ProbeResult, Split, probe_layers, words_split
from ..stimuli import Sentence
from .choose import LayerScores
from .vectors import TreebankVectors

#: Labels a word can have, besides its ancestors: see :func:`word_labels`.
WORD_LABELS = ("upos", "deprel", "parent", "grandparent", "great_grandparent")
_ANCESTORS = WORD_LABELS[2:]
#: relations that hang a clause into another one
_CLAUSES = frozenset({"acl", "acl:relcl", "advcl", "ccomp", "xcomp", "csubj"})


def word_labels(sentences: Sequence[Sentence], what: str) -> list[str | None]:
    """One label per word, of all sentences one after the other.

    Args:
        what: ``"upos"`` or ``"deprel"``; ``"parent"``, ``"grandparent"`` or
            ``"great_grandparent"``: the label of the constituent one, two or three steps above
            the word (Liu et al. 2019, arXiv 1903.08855), None where the tree ends before.

    Raises:
        KeyError: another ``what``.
        ValueError: ancestors of a sentence that has no constituents.
    """
    if what not in WORD_LABELS:
        raise KeyError(f"unknown label {what!r}; known: {', '.join(WORD_LABELS)}")
    if what not in _ANCESTORS:
        return [label for sentence in sentences for label in getattr(sentence, _FIELDS[what])]
    step = _ANCESTORS.index(what)
    labels: list[str | None] = []
    for sentence in sentences:
        if sentence.gold is None:
            raise ValueError(f"no constituents in {sentence.text!r}: it comes without a tree")
        for word in range(len(sentence)):
            above = sentence.gold.tree.ancestors(word)
            labels.append(above[step] if step < len(above) else None)
    return labels


_FIELDS = {"upos": "upos", "deprel": "deprels"}


def probe_words(
    vectors: TreebankVectors,
    labels: Sequence[Hashable | None],
    split: Split,
    *,
    keep: Sequence[bool] | None = None,
    kind: str = "ridge",
    seed: int = 0,
) -> tuple[list[ProbeResult], LayerScores]:
    """Probe every layer for a label of words.

    Args:
        vectors: of the sentences.
        labels: one per word; words without one (None) take no part.
        split: over sentences.
        keep: [N] True for the words that take part; all by default.
        kind: of probe, see :func:`bertology_utils.probes.probe_layers`.
        seed: of halves and bootstrap.

    Returns:
        (a result for every layer, their scores sentence by sentence).

    Raises:
        UnequalLengthError: labels or split do not fit the words.
    """
    used = np.array([label is not None for label in labels])
    if keep is not None:
        used &= np.asarray(keep, bool)
    rows = words_split(split, vectors.lengths.tolist())
    parts = [part[used[part]] for part in (rows.train, rows.dev, rows.test)]
    groups = vectors.sentence.tolist()
    results = probe_layers(
        vectors.words, labels, Split(*parts, seed), kind=kind, seed=seed, groups=groups,
        model=vectors.model,
    )  # fmt: skip
    return results, LayerScores.of(results, [groups[i] for i in parts[2]], seed)


def sentence_properties(sentences: Sequence[Sentence]) -> Mapping[str, tuple[float, ...]]:
    """Length in words, depth of the dependency tree, number of subordinate clauses.

    Three of the raw, morphosyntactic and syntactic properties that Miaschi and Dell'Orletta 2020
    (doi:10.18653/v1/2020.repl4nlp-1.15) predict.
    """
    return {
        "length": tuple(float(len(s)) for s in sentences),
        "depth of the tree": tuple(float(max(s.depths())) for s in sentences),
        "subordinate clauses": tuple(
            float(sum(rel in _CLAUSES for rel in s.deprels)) for s in sentences
        ),
    }
