"""What a prediction rests on: planted tokens, single words, parts of speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..encoder import Encoder, evaluating
from ..finetuning import embed
from ..heads import TunedEncoder
from ..probes import Erasure, MaskedWord, amnesic_probe
from ..resampling import Estimate, percentile_interval, rank_correlation, resampled_means
from ..words import Batch, Text, align_all, token_batches
from .learning import probabilities


def planted_effect(tuned: TunedEncoder, token: str, texts: Sequence[str], label: int) -> np.ndarray:
    """[N] how much a token in front of each text adds to the probability of a label."""
    without = probabilities(tuned, texts)[:, label]
    return probabilities(tuned, [f"{token} {text}" for text in texts])[:, label] - without


def rank_correlation_of_runs(
    x: Sequence[float], y: Sequence[float], model: str, *, seed: int = 0
) -> Estimate:
    """Spearman's correlation over runs, with a bootstrap over runs.

    Raises:
        ValueError: fewer than 3 runs, or one side does not vary.
    """
    a, b = np.asarray(x, float), np.asarray(y, float)
    if len(a) != len(b) or len(a) < 3:
        raise ValueError(f"need pairs of at least 3 numbers, got {len(a)} and {len(b)}")
    value = float(rank_correlation(a, b))
    if not np.isfinite(value):
        raise ValueError("a correlation needs numbers that differ")
    rows = np.random.default_rng(seed).integers(0, len(a), (1000, len(a)))
    return Estimate(
        value=value, unit="correlation", n=len(a), model=model, seed=seed,
        interval=percentile_interval(rank_correlation(a[rows], b[rows]), value),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class WordReliance:
    """Ratings of words, and what happens to the prediction without each.

    Attributes:
        words: of every text.
        ratings: one array a text: integrated gradients, summed over a word's pieces; positive
            where the word speaks for the predicted class.
        gradients: one array a text: size of gradient times input, summed over a word's pieces.
        drops: one array a text: probability of the predicted class with all words minus without
            that word.
        model: the model's name.
    """

    words: tuple[tuple[str, ...], ...]
    ratings: tuple[np.ndarray, ...]
    gradients: tuple[np.ndarray, ...]
    drops: tuple[np.ndarray, ...]
    model: str

    def advantage(self, ratings: Sequence[np.ndarray] | None = None, seed: int = 0) -> Estimate:
        """Drop without the top-rated word minus without a random one (their mean), over texts."""
        rated = self.ratings if ratings is None else ratings
        gaps = np.array([d[int(np.argmax(r))] - d.mean()
                         for d, r in zip(self.drops, rated, strict=True)])  # fmt: skip
        value = float(gaps.mean())
        draws = resampled_means(gaps, np.ones(len(gaps)), seed=seed)
        return Estimate(
            value=value, unit="share difference", n=len(gaps), model=self.model, seed=seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip


def word_reliance(tuned: TunedEncoder, texts: Sequence[str], *, steps: int = 8) -> WordReliance:
    """Rate every word by integrated gradients, and take every word out, one at a time.

    Integrated gradients (Sundararajan et al. 2017) of the probability of the predicted class, along
    the straight line to the text from the same text with all words masked, at the output of the
    embeddings: like DeepLIFT (Arkhangelskaia and Dutta 2019, arXiv 1910.06431) they compare with a
    reference, so that a saturated prediction does not hide what it rests on. Gradient times input
    has no reference. A word is taken out by deleting it.

    Args:
        tuned: the classifier.
        texts: of two words or more.
        steps: points on the line.

    Raises:
        ValueError: a text of fewer than two words, or no step.
    """
    if steps < 1:
        raise ValueError(f"steps must be 1 or more, got {steps}")
    encoder = tuned.encoder
    rows = align_all(encoder, list(texts))
    ratings: list[np.ndarray | None] = [None] * len(texts)
    gradients: list[np.ndarray | None] = [None] * len(texts)
    for batch in token_batches(encoder, list(texts)):
        with evaluating(encoder):
            hidden = _embedded(encoder, batch)
            reference = _embedded(encoder, _masked(encoder, batch))
            said = tuned.predict(encoder, batch).argmax(-1)
            total = torch.zeros_like(hidden)
            for step in range(steps):
                share = (step + 0.5) / steps
                total += _slope(tuned, reference + share * (hidden - reference), batch, said)
            found = {
                "ratings": (total / steps * (hidden - reference)).sum(-1),
                "gradients": (_slope(tuned, hidden, batch, said) * hidden).sum(-1).abs(),
            }
        for out, rated in ((ratings, found["ratings"]), (gradients, found["gradients"])):
            numbers = rated.cpu().numpy()
            for place, number in enumerate(batch.index):
                spans = batch.rows[place].spans
                out[number] = np.array([numbers[place, a:b].sum() for a, b in spans])
    words, without, owners = [], [], []
    for number, row in enumerate(rows):
        own = tuple(word.text for word in row.words)
        if len(own) < 2:
            raise ValueError(f"text {number} has fewer than two words: {texts[number]!r}")
        words.append(own)
        for word in row.words:
            cut = texts[number][: word.chars[0]].rstrip() + texts[number][word.chars[1] :]
            without.append(cut.strip())
            owners.append(number)
    whole = probabilities(tuned, texts)
    said = whole.argmax(1)
    owners_array = np.array(owners)
    left = probabilities(tuned, without)[np.arange(len(without)), said[owners_array]]
    lost = whole[owners_array, said[owners_array]] - left
    drops = tuple(lost[owners_array == number] for number in range(len(texts)))
    return WordReliance(
        tuple(words), tuple(ratings), tuple(gradients), drops, encoder.name  # type: ignore[arg-type]
    )


def _embedded(encoder: Encoder, batch: Batch) -> torch.Tensor:
    """[B, T, D] output of the embeddings, without a graph."""
    return embed(encoder, batch).detach()


def _masked(encoder: Encoder, batch: Batch) -> Batch:
    """The batch with the mask token in place of every piece that is not special."""
    special = torch.zeros_like(batch.input_ids, dtype=torch.bool)
    for place, row in enumerate(batch.rows):
        special[place, : len(row.input_ids)] = torch.as_tensor(np.array(row.is_special, bool))
    keep = special | (batch.attention_mask == 0)
    return batch.with_ids(batch.input_ids.where(keep, encoder.tokenizer.mask_token_id))


def _slope(
    tuned: TunedEncoder, hidden: torch.Tensor, batch: Batch, said: torch.Tensor
) -> torch.Tensor:
    """[B, T, D] slope of the probability of the classes ``said`` [B] at ``hidden``."""
    with torch.enable_grad():
        point = hidden.detach().requires_grad_(True)
        last = tuned.encoder.encode_from(point, batch.attention_mask, 0)
        chosen = tuned.head(last[:, 0]).softmax(-1).gather(1, said[:, None])
        (slope,) = torch.autograd.grad(chosen.sum(), point)
    return slope


def amnesic_divergence(
    encoder: Encoder,
    texts: Sequence[Text],
    words: Sequence[MaskedWord],
    layer: int,
    erasure: Erasure,
    *,
    folds: int = 8,
    controls: int = 2,
    seed: int = 0,
) -> Estimate:
    """Divergence of masked-word predictions after an erasure minus after random directions, nats.

    Amnesic probing (Elazar et al. 2021) with an interval: texts are dealt to folds, which are
    resampled.

    Raises:
        ValueError: fewer than two folds hold words. Further errors as ``probes.amnesic_probe``.
    """
    gaps, sizes, random = [], [], []
    for fold in range(folds):
        own = [word for word in words if word.text % folds == fold]
        if own:
            found = amnesic_probe(encoder, texts, own, layer, erasure, controls=controls, seed=seed)
            gaps.append((found.kl - found.random_kl) * len(own))
            random.append(found.random_kl * len(own))
            sizes.append(len(own))
    if len(gaps) < 2:
        raise ValueError(f"{len(words)} words fill {len(gaps)} of {folds} folds; two are needed")
    value = float(np.sum(gaps) / np.sum(sizes))
    draws = resampled_means(np.array(gaps), np.array(sizes), seed=seed)
    return Estimate(
        value=value, unit="nats", n=int(np.sum(sizes)), model=encoder.name, seed=seed,
        baselines={"random directions": float(np.sum(random) / np.sum(sizes))},
        interval=percentile_interval(draws, value),
    )  # fmt: skip
