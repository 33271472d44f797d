"""Occurrences of a word of one's choice: gathered, grouped, and described by what could replace it.

Groups by clustering as in word-sense induction; substitutes as in Amrami and Goldberg 2018
(arXiv 1808.08518).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import silhouette_score

from ..activations import collect
from ..encoder import BertologyError, Encoder, MissingHeadError, evaluating
from ..geometry import layer_rows, rows_at, unit_rows
from ..words import Text, WordList, align, align_all, make_batch

#: Fewer occurrences are not worth grouping.
MIN_OCCURRENCES = 4
MAX_GROUPS = 4


class OccurrenceError(BertologyError, ValueError):
    """Too few sentences with the word."""


@dataclass(frozen=True, eq=False)
class Occurrences:
    """A word in N sentences.

    Attributes:
        word: as asked for, in lower case.
        texts: the sentences.
        places: [N] number of the word in each.
        vectors: [S, N, D] in every layer.
        model: the encoder's name.
    """

    word: str
    texts: tuple[Text, ...]
    places: tuple[int, ...]
    vectors: np.ndarray
    model: str

    def __len__(self) -> int:
        return len(self.texts)

    def spelling(self, index: int) -> str:
        """One of the sentences as a string."""
        return _spelling(self.texts[index])


def parse_request(request: str) -> tuple[str, tuple[str, ...]]:
    """"word", or "word: a sentence | another | ..." -> (word, sentences).

    Raises:
        OccurrenceError: no word.
    """
    word, colon, rest = request.partition(":")
    word = word.strip().lower()
    if not word or " " in word:
        raise OccurrenceError(f"begin with one word, and then a colon, not with {request[:40]!r}")
    own = tuple(part.strip() for part in rest.split("|") if part.strip()) if colon else ()
    return word, own


def find_occurrences(
    encoder: Encoder, word: str, texts: Sequence[Text], *, most: int = 24
) -> Occurrences:
    """Encode the sentences in which a word occurs; in each, its first occurrence counts.

    Raises:
        OccurrenceError: fewer than :data:`MIN_OCCURRENCES` sentences have it.
    """
    asked = word.lower()
    near = [t for t in texts if asked in _spelling(t).lower()]
    found, places = [], []
    for text, row in zip(near, align_all(encoder, near) if near else (), strict=True):
        spelt = [w.text.lower() for w in row.words]
        if asked in spelt and len(found) < most:
            found.append(text)
            places.append(spelt.index(asked))
    if len(found) < MIN_OCCURRENCES:
        raise OccurrenceError(
            f"{word!r} occurs in {len(found)} of these sentences; {MIN_OCCURRENCES} are needed. "
            f"Type your own: {word}: first sentence | second sentence | ..."
        )
    collected = collect(encoder, found)
    rows = rows_at(collected, list(enumerate(places)))
    layers = range(encoder.n_layers + 1)
    vectors = np.stack([layer_rows(collected, layer, rows) for layer in layers])
    return Occurrences(asked, tuple(found), tuple(places), vectors, encoder.name)


@dataclass(frozen=True, eq=False)
class Groups:
    """Occurrences in groups.

    Attributes:
        label: [N] number of each occurrence's group, from 0, the largest group first.
        silhouette: mean silhouette of the grouping, by cosine distance.
    """

    label: np.ndarray
    silhouette: float


def group_occurrences(vectors: np.ndarray, *, most: int = MAX_GROUPS) -> Groups:
    """Two to ``most`` groups by average linkage of cosine distances; as many as give the best
    silhouette. There is always a grouping, also where nothing is there to group: read the
    silhouette beside that of a random model.

    Args:
        vectors: [N, D] of one layer.
        most: groups at most.

    Raises:
        OccurrenceError: fewer than :data:`MIN_OCCURRENCES` vectors.
    """
    n = len(vectors)
    if n < MIN_OCCURRENCES:
        raise OccurrenceError(f"{n} occurrences are too few to group")
    unit = unit_rows(vectors)
    distance = np.clip(1 - unit @ unit.T, 0, None)
    np.fill_diagonal(distance, 0)
    tree = linkage(distance[np.triu_indices(n, 1)], "average")
    best = Groups(np.zeros(n, int), -1.0)
    for k in range(2, min(most, n - 1) + 1):
        label = fcluster(tree, k, "maxclust")
        if len(set(label.tolist())) < 2:
            continue
        score = float(silhouette_score(distance, label, metric="precomputed"))
        if score > best.silhouette:
            best = Groups(label, score)
    _, first, number, sizes = np.unique(
        best.label, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    return Groups(rank[number.ravel()], best.silhouette)


def substitutes(encoder: Encoder, found: Occurrences) -> np.ndarray:
    """[N, V] log-probability of every piece in place of the word, hidden in each sentence.

    Raises:
        MissingHeadError: no trained MLM head.
    """
    if not encoder.has_mlm:
        raise MissingHeadError(f"{encoder.name!r} has no trained 'mlm' head")
    mask = encoder.tokenizer.mask_token
    hidden: list[Text] = []
    for text, place in zip(found.texts, found.places, strict=True):
        words = [word.text for word in align(encoder, text).words]
        words[place] = mask
        hidden.append(tuple(words))
    batch = make_batch(encoder, hidden)
    with evaluating(encoder):
        states = encoder.encode(batch)
        at = torch.nonzero(batch.input_ids == encoder.tokenizer.mask_token_id)
        logits = encoder.mlm_logits(states[at[:, 0], at[:, 1]])
    return torch.log_softmax(logits.float(), -1).cpu().numpy()


def likely_words(
    encoder: Encoder, log_probs: np.ndarray, *, without: str = "", k: int = 5
) -> tuple[str, ...]:
    """The ``k`` words of letters that are likeliest on average over [N, V] log-probabilities."""
    order = np.argsort(-log_probs.mean(0), kind="stable")
    found = []
    for piece in order:
        word = encoder.tokenizer.decode([int(piece)]).strip()
        if word.isalpha() and len(word) > 1 and word.lower() != without.lower():
            found.append(word)
        if len(found) == k:
            break
    return tuple(found)


def _spelling(text: Text) -> str:
    if isinstance(text, str):
        return text
    return text.text if isinstance(text, WordList) and text.text else " ".join(_words(text))


def _words(text: Text) -> Sequence[str]:
    return text.words if isinstance(text, WordList) else text
