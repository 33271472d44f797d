"""How deep is the tree, asked of the vector of [CLS]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import stream
from ..encoder import Encoder
from ..probes import ProbeResult, Split, probe_layers, random_split
from ..resampling import Estimate
from ..stimuli import Sentence


@dataclass(frozen=True, kw_only=True)
class DepthProbe(Estimate):
    """Accuracy of the probe at the layer that was best on other sentences.

    ``baselines``: ``majority``, the most frequent depth, and ``length``, the most frequent
    depth among training sentences of the same number of words (of the nearest number, if none).

    Attributes:
        layer: which hidden state was chosen; 0 is the embedding output.
        by_layer: the probe at every hidden state.
    """

    layer: int
    by_layer: tuple[ProbeResult, ...]


def cls_depth_probe(
    encoder: Encoder, sentences: Sequence[Sentence], *, seed: int = 0
) -> DepthProbe:
    """Read the depth of the dependency tree (edges below the root) off the first piece.

    Raises:
        ProbeError: too few sentences, or all of one depth.
    """
    listed = list(sentences)
    labels = [max(sentence.depths()) for sentence in listed]
    vectors: list[np.ndarray | None] = [None] * len(listed)
    for cache in stream(encoder, [s.text for s in listed], ["hidden_states"]):
        first = cache["hidden_states"][:, :, 0].float().cpu().numpy()
        for place, index in enumerate(cache.batch.index):
            vectors[index] = first[:, place]
    features = np.stack([v for v in vectors if v is not None], axis=1)
    split = random_split(len(listed), dev=0.2, test=0.3, seed=seed)
    # The layer is chosen on other sentences than those that count: penalty on one half of the
    # development part, layer on the other.
    half = len(split.dev) // 2
    trial = probe_layers(features, labels, Split(split.train, split.dev[:half], split.dev[half:]))
    layer = max(range(len(trial)), key=lambda k: trial[k].accuracy)
    found = probe_layers(features, labels, split, seed=seed, model=encoder.name)
    best = found[layer]
    return DepthProbe(
        value=best.accuracy,
        unit="share",
        n=best.n_test,
        model=encoder.name,
        seed=seed,
        interval=best.interval,
        baselines={"majority": best.majority, "length": _by_length(listed, labels, split)},
        layer=layer,
        by_layer=tuple(found),
    )


def _by_length(sentences: Sequence[Sentence], labels: Sequence[int], split: Split) -> float:
    seen: dict[int, Counter[int]] = {}
    for i in split.train:
        seen.setdefault(len(sentences[i]), Counter())[labels[i]] += 1
    right = 0
    for i in split.test:
        nearest = min(seen, key=lambda size: (abs(size - len(sentences[i])), size))
        right += seen[nearest].most_common(1)[0][0] == labels[i]
    return right / len(split.test)
