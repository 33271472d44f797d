"""What a prediction leans on: single heads, and directions of the last layer.

Heads are ranked by the gradient of the loss at a gate (Michel et al. 2019, arXiv 1905.10650).
Directions are removed as in amnesic probing (Elazar et al. 2021, doi:10.1162/tacl_a_00359).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..attention import masked_loss
from ..encoder import Encoder, evaluating
from ..interventions import ablate_heads, scale_heads
from ..probes import MaskedWord
from ..probes.erasure import Erasure, random_erasure
from ..resampling import Estimate
from ..words import Text, token_batches
from .estimates import paired


def head_importance(encoder: Encoder, texts: Sequence[Text], *, seed: int = 0) -> np.ndarray:
    """Mean over texts of |d masked-token loss / d gate|, [L, H], in nats.

    Raises:
        ValueError: no texts. MissingHeadError: no trained MLM head.
    """
    if not texts:
        raise ValueError("no texts to rank heads on")
    loss, total = masked_loss(seed=seed), np.zeros((encoder.n_layers, encoder.n_heads))
    for batch in token_batches(encoder, texts, max_tokens=1024):
        gates = torch.ones(
            len(batch), encoder.n_layers, encoder.n_heads, device=encoder.device,
            requires_grad=True,
        )  # fmt: skip
        with evaluating(encoder), torch.enable_grad(), scale_heads(encoder, gates):
            (slope,) = torch.autograd.grad(loss(encoder, batch).sum(), gates)
        total += slope.abs().sum(0).cpu().numpy()
    return total / len(texts)


def text_losses(encoder: Encoder, texts: Sequence[Text], *, seed: int = 0) -> np.ndarray:
    """[N] masked-token loss of every text in nats; the same pieces are hidden at every call."""
    loss, found = masked_loss(seed=seed), np.empty(len(texts))
    for batch in token_batches(encoder, texts):
        with evaluating(encoder):
            found[list(batch.index)] = loss(encoder, batch).cpu().numpy()
    return found


@dataclass(frozen=True, eq=False)
class HeadReliance:
    """Losses of N texts on which no head was chosen.

    Attributes:
        intact: [N] nats; without: [N] without the most important head.
        without_random: [R, N] without each of R other heads.
        head: the most important one; others: the R heads.
        model: name of the encoder; seed: of masks, of the R heads and of the bootstrap.
    """

    intact: np.ndarray
    without: np.ndarray
    without_random: np.ndarray
    head: tuple[int, int]
    others: tuple[tuple[int, int], ...]
    model: str
    seed: int

    def _gap(self, first: np.ndarray, second: np.ndarray) -> Estimate:
        return paired(
            first, second, range(len(first)), unit="nats", model=self.model, seed=self.seed
        )

    @property
    def rise(self) -> Estimate:
        """Loss without the most important head minus the intact loss."""
        return self._gap(self.without, self.intact)

    @property
    def random_rise(self) -> Estimate:
        """The same for a random head."""
        return self._gap(self.without_random.mean(0), self.intact)

    @property
    def excess(self) -> Estimate:
        """What the most important head is worth more than a random one."""
        found = self._gap(self.without, self.without_random.mean(0))
        return found.with_baselines(random_head=0.0)


def head_reliance(
    encoder: Encoder,
    choose: Sequence[Text],
    test: Sequence[Text],
    *,
    controls: int = 6,
    seed: int = 0,
) -> HeadReliance:
    """Find the most important head on some texts and silence it on others.

    Raises:
        ValueError: no texts, or fewer than two heads.
        MissingHeadError: no trained MLM head.
    """
    importance = head_importance(encoder, choose, seed=seed)
    places = [(int(i), int(j)) for i, j in np.ndindex(*importance.shape)]
    if len(places) < 2:
        raise ValueError("there is no other head to compare with")
    top = places[int(importance.argmax())]
    rest = [place for place in places if place != top]
    drawn = np.random.default_rng(seed).permutation(len(rest))[:controls]
    others = tuple(rest[i] for i in drawn)

    def silenced(place: tuple[int, int]) -> np.ndarray:
        with ablate_heads(encoder, {place[0]: [place[1]]}):
            return text_losses(encoder, test, seed=seed)

    return HeadReliance(
        text_losses(encoder, test, seed=seed), silenced(top),
        np.stack([silenced(place) for place in others]), top, others, encoder.name, seed,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Removal:
    """Predictions of N masked words with directions of the last layer projected out.

    Attributes:
        name: the property whose directions were removed.
        erasure: what was removed.
        intact, without: [N] loss in nats.
        without_random: [R, N] after removing as many random directions.
        right, right_without: [N] whether the first guess is the word.
        right_random: [R, N].
        groups: [N] text of every word.
        model: name of the encoder; seed: of random directions and bootstrap.
    """

    name: str
    erasure: Erasure
    intact: np.ndarray
    without: np.ndarray
    without_random: np.ndarray
    right: np.ndarray
    right_without: np.ndarray
    right_random: np.ndarray
    groups: tuple[int, ...]
    model: str
    seed: int

    def _gap(self, first: np.ndarray, second: np.ndarray, unit: str = "nats") -> Estimate:
        return paired(first, second, self.groups, unit=unit, model=self.model, seed=self.seed)

    @property
    def excess(self) -> Estimate:
        """Loss without the property minus loss without as many random directions."""
        return self._gap(self.without, self.without_random.mean(0))

    @property
    def rise(self) -> Estimate:
        """Loss without the property minus the intact loss."""
        return self._gap(self.without, self.intact)

    @property
    def random_rise(self) -> Estimate:
        """Loss without random directions minus the intact loss."""
        return self._gap(self.without_random.mean(0), self.intact)

    @property
    def readable(self) -> float:
        """How far the first probe lay above the majority class, as a share of what is left."""
        top = self.erasure.majority
        return (self.erasure.accuracies[0] - top) / max(1 - top, 1e-9)

    @property
    def accuracy(self) -> dict[str, float]:
        """Share of words guessed: intact, without the property, without random directions."""
        return {
            "intact": float(self.right.mean()),
            "without": float(self.right_without.mean()),
            "random": float(self.right_random.mean()),
        }


def removal(
    encoder: Encoder,
    name: str,
    erasure: Erasure,
    vectors: np.ndarray,
    words: Sequence[MaskedWord],
    *,
    controls: int = 5,
    seed: int = 0,
) -> Removal:
    """Predict masked words from last-layer vectors with and without some directions.

    Args:
        encoder: with a trained MLM head.
        name: of the property.
        erasure: learnt on the last layer's vectors of other texts.
        vectors: [N, D] last hidden states at the masked places.
        words: the N masked words.
        controls: number of random erasures of equal rank and centre.
        seed: of these and of the bootstrap.

    Raises:
        ValueError: vectors that do not fit the words, an erasure of rank 0, or no controls.
        MissingHeadError: no trained MLM head.
    """
    if len(vectors) != len(words):
        raise ValueError(f"{len(vectors)} vectors for {len(words)} words")
    if erasure.rank < 1 or controls < 1:
        raise ValueError("there is nothing to remove, or nothing to compare with")
    data = torch.as_tensor(vectors).to(encoder.device)
    targets = torch.tensor([word.target for word in words], device=encoder.device)
    width, rank = data.shape[1], erasure.rank
    random = [
        random_erasure(width, rank, seed=seed + k, centre=erasure.centre) for k in range(controls)
    ]
    losses, right = [], []
    with evaluating(encoder):
        for variant in (None, erasure, *random):
            changed = data if variant is None else variant.apply(data)
            logits = encoder.mlm_logits(changed).float()
            losses.append(torch.nn.functional.cross_entropy(logits, targets, reduction="none"))
            right.append(logits.argmax(1) == targets)
    lost, hits = torch.stack(losses).cpu().numpy(), torch.stack(right).cpu().numpy()
    if not np.abs(lost[1] - lost[0]).max() > 0:
        raise ValueError(f"removing {name!r} changed no prediction of {encoder.name!r}")
    return Removal(
        name, erasure, lost[0], lost[1], lost[2:], hits[0], hits[1], hits[2:],
        tuple(word.text for word in words), encoder.name, seed,
    )  # fmt: skip


def top_words(
    encoder: Encoder, vector: np.ndarray, erasure: Erasure | None = None, *, k: int = 6
) -> dict[str, float]:
    """The most probable pieces at a last-layer vector [D], as piece -> probability.

    Args:
        encoder: with a trained MLM head.
        vector: [D].
        erasure: applied first, if any.
        k: number of pieces.

    Raises:
        ValueError: a vector of another shape. MissingHeadError: no trained MLM head.
    """
    if np.shape(vector) != (encoder.d_model,):
        raise ValueError(f"vector of shape {np.shape(vector)}, expected ({encoder.d_model},)")
    data = torch.as_tensor(vector)[None].to(encoder.device)
    with evaluating(encoder):
        changed = data if erasure is None else erasure.apply(data)
        values, pieces = encoder.mlm_logits(changed).float().softmax(1)[0].topk(k)
    names = encoder.tokenizer.convert_ids_to_tokens(pieces.tolist())
    return dict(zip(names, values.tolist(), strict=True))
