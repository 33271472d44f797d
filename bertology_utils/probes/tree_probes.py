"""Structural probes scored on trees: one call from features and a treebank to results by layer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..stimuli import Sentence
from .data import Split, as_features
from .errors import ProbeError
from .results import ratio_interval
from .structural import fit_structural, word_starts
from .tree_metrics import (
    chain,
    edge_hits,
    mean_spearman,
    root_hits,
    spanning_trees,
    spearman_by_length,
)


@dataclass(frozen=True, kw_only=True)
class TreeProbeResult:
    """What probes of distances and of depths share.

    Attributes:
        layer: number of the layer; rank: R.
        n_train, n_test: sentences.
        seed: of the probe's start and batches.
        interval: 95 % bootstrap interval of the value over test sentences.
        model: name of the probed model.
    """

    layer: int
    rank: int
    n_train: int
    n_test: int
    seed: int
    interval: tuple[float, float]
    model: str

    unit = "share"

    @property
    def n(self) -> int:
        """Test sentences."""
        return self.n_test


@dataclass(frozen=True, kw_only=True)
class DistanceResult(TreeProbeResult):
    """A distance probe of one layer; scores as defined in ``tree_metrics``.

    Attributes:
        uuas: undirected unlabelled attachment score, punctuation excluded.
        dspr: Spearman correlation of distances, averaged over lengths 5 to 50; None if no test
            sentence is that long.
        chain_uuas: UUAS of tying every word to the next (right- and left-branching alike).
        dspr_by_length: length -> correlation.
    """

    uuas: float
    dspr: float | None
    chain_uuas: float
    dspr_by_length: dict[int, float] = field(repr=False)

    @property
    def value(self) -> float:
        """The UUAS."""
        return self.uuas

    @property
    def baselines(self) -> dict[str, float]:
        return {"right-branching": self.chain_uuas}


@dataclass(frozen=True, kw_only=True)
class DepthResult(TreeProbeResult):
    """A depth probe of one layer; scores as defined in ``tree_metrics``.

    Attributes:
        root_accuracy: share of sentences whose least deep word is the root.
        nspr: Spearman correlation of depths, averaged over lengths 5 to 50; None if no test
            sentence is that long.
        first_word: root accuracy of always naming the first word.
        nspr_by_length: length -> correlation.
    """

    root_accuracy: float
    nspr: float | None
    first_word: float
    nspr_by_length: dict[int, float] = field(repr=False)

    @property
    def value(self) -> float:
        """The root accuracy."""
        return self.root_accuracy

    @property
    def baselines(self) -> dict[str, float]:
        return {"first word": self.first_word}


def distance_probe(
    features: np.ndarray | Tensor,
    sentences: Sequence[Sentence],
    split: Split,
    *,
    model: str = "features",
    **options,
) -> list[DistanceResult]:
    """Train distance probes on every layer and score their trees on the test sentences.

    Args:
        features: [S, words, D], such as ``collect(encoder, [WordList(s.words, s.text) ...])``.
        sentences: a treebank or a list of sentences, words in the order of the features.
        split: over sentences.
        model: name for the results.
        options: ``rank``, ``epochs``, ``seed``... of :func:`fit_structural`.

    Raises:
        ProbeError: test sentences without a single edge; as :func:`fit_structural`.
        NonFiniteError: NaN features.
    """
    data, listed = as_features(features), list(sentences)
    probes = fit_structural(data, listed, split, "distance", **options)
    test, words = _test_part(data, listed, split)
    seed = options.get("seed", 0)
    gold = [np.array(sentence.distances(), dtype=float) for sentence in test]
    chain_hits, totals = edge_hits([chain(sentence) for sentence in test], test)
    if not totals.sum():
        raise ProbeError("the test sentences hold no edge between two words")
    results = []
    for layer, said in enumerate(probes.predict(words, [len(s) for s in test])):
        hits, _ = edge_hits(spanning_trees(said, test), test)
        by_length = spearman_by_length(said, gold)
        results.append(
            DistanceResult(
                uuas=float(hits.sum() / totals.sum()),
                dspr=mean_spearman(by_length),
                chain_uuas=float(chain_hits.sum() / totals.sum()),
                dspr_by_length=by_length,
                interval=ratio_interval(hits, totals, seed),
                **_about(layer, probes, split, test, seed, model),
            )
        )
    return results


def depth_probe(
    features: np.ndarray | Tensor,
    sentences: Sequence[Sentence],
    split: Split,
    *,
    model: str = "features",
    **options,
) -> list[DepthResult]:
    """Train depth probes on every layer and score roots and depths on the test sentences.

    Arguments and errors as :func:`distance_probe`.
    """
    data, listed = as_features(features), list(sentences)
    probes = fit_structural(data, listed, split, "depth", **options)
    test, words = _test_part(data, listed, split)
    seed = options.get("seed", 0)
    gold = [np.array(sentence.depths(), dtype=float) for sentence in test]
    first = root_hits([np.arange(len(sentence)) for sentence in test], test)
    results = []
    for layer, said in enumerate(probes.predict(words, [len(s) for s in test])):
        hits = root_hits(said, test)
        by_length = spearman_by_length(said, gold)
        results.append(
            DepthResult(
                root_accuracy=float(hits.mean()),
                nspr=mean_spearman(by_length),
                first_word=float(first.mean()),
                nspr_by_length=by_length,
                interval=ratio_interval(hits.astype(float), np.ones(len(hits)), seed),
                **_about(layer, probes, split, test, seed, model),
            )
        )
    return results


def _about(layer: int, probes, split: Split, test: Sequence, seed: int, model: str) -> dict:
    """The fields that both kinds of result share, but for the interval."""
    return {
        "layer": layer, "rank": probes.maps.shape[2], "n_train": len(split.train),
        "n_test": len(test), "seed": seed, "model": model,
    }  # fmt: skip


def _test_part(
    data: Tensor, sentences: Sequence[Sentence], split: Split
) -> tuple[list[Sentence], Tensor]:
    starts = word_starts(data, sentences)
    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in split.test])
    return [sentences[i] for i in split.test], data[:, torch.as_tensor(rows, device=data.device)]
