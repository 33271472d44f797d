"""Which auxiliary is the main one? A probe trained where the first one always is.

After the main-auxiliary task of Lin et al. 2019 (arXiv 1906.01698): the training sentences fit
"the first auxiliary" and "the auxiliary of the main clause" alike; the test sentences, longer and
with a clause inside the subject, fit only the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..probes import Split, fit_linear
from ..stimuli import Sentence, treebank
from .choose import LayerScores
from .vectors import TreebankVectors


@dataclass(frozen=True)
class AuxiliarySentence:
    """A sentence with its finite auxiliaries.

    Attributes:
        sentence: the sentence.
        auxiliaries: their places, from left to right, at least two.
        main: place of the main clause's.
    """

    sentence: Sentence
    auxiliaries: tuple[int, ...]
    main: int

    @property
    def main_is_first(self) -> bool:
        return self.main == self.auxiliaries[0]


def auxiliary_sentence(sentence: Sentence) -> AuxiliarySentence | None:
    """The sentence as an item of the task; None if it has no main or only one finite auxiliary."""
    places = tuple(
        i
        for i, (tag, feats) in enumerate(zip(sentence.upos, sentence.feats, strict=True))
        if tag == "AUX" and "VerbForm=Fin" in feats
    )
    main = None if sentence.gold is None else sentence.gold.main_auxiliary
    if len(places) < 2 or main not in places:
        return None
    return AuxiliarySentence(sentence, places, main)


def auxiliary_items(
    n: int, *, main_first: bool, split: str, seed: int = 0, depths: Sequence[int] = (1,)
) -> list[AuxiliarySentence]:
    """``n`` grammar sentences whose main auxiliary comes first, or does not.

    Args:
        split: of the lexicon, ``"train"`` or ``"test"``.
        depths: how deeply clauses are nested; the depths take turns.

    Raises:
        ValueError: n below 1.
        GrammarError: the grammar does not give that many.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    items: list[AuxiliarySentence] = []
    seen: set[str] = set()
    for round_ in range(200):
        for depth in depths:
            for sentence in treebank(400, 1000 * seed + round_, split, depth=depth):
                item = auxiliary_sentence(sentence)
                if item and item.main_is_first == main_first and sentence.text not in seen:
                    seen.add(sentence.text)
                    items.append(item)
        if len(items) >= n:
            return items[:n]
    raise ValueError(f"only {len(items)} of {n} sentences found; ask for fewer")


def auxiliary_scores(
    vectors: TreebankVectors,
    items: Sequence[AuxiliarySentence],
    split: Split,
    *,
    l2: float = 0.01,
    seed: int = 0,
) -> tuple[LayerScores, float]:
    """Train a linear probe on the auxiliaries of the training part, let it name the main one.

    In every test sentence the auxiliary with the highest score is the answer.

    Args:
        vectors: of the items' sentences.
        items: training and test items.
        split: over the items.
        l2: penalty of the probe.
        seed: of halves and bootstrap.

    Returns:
        (shares of test sentences answered right, chance = mean of 1 / number of auxiliaries).

    Raises:
        ValueError: vectors and items differ in number.
    """
    if vectors.first.shape[1] != len(items):
        raise ValueError(f"vectors of {vectors.first.shape[1]} sentences for {len(items)} items")
    starts = np.concatenate([[0], np.cumsum(vectors.lengths)])
    data = torch.from_numpy(vectors.words)

    def rows(part: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        places = [starts[i] + a for i in part for a in items[i].auxiliaries]
        mains = [int(a == items[i].main) for i in part for a in items[i].auxiliaries]
        return data[:, torch.as_tensor(np.array(places))], torch.tensor(mains)

    train, labels = rows(split.train)
    test, _ = rows(split.test)
    logits = fit_linear(train, labels, 2, l2=l2).logits(test)
    score = (logits[..., 1] - logits[..., 0]).numpy()
    sizes = np.array([len(items[i].auxiliaries) for i in split.test])
    hits = np.zeros((len(score), len(sizes)))
    for number, (stop, size, i) in enumerate(
        zip(np.cumsum(sizes), sizes, split.test, strict=True)
    ):
        right = items[i].auxiliaries.index(items[i].main)
        hits[:, number] = score[:, stop - size : stop].argmax(1) == right
    return LayerScores(hits, np.ones(len(sizes)), vectors.model, seed), float((1 / sizes).mean())
