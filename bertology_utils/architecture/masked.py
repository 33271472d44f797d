"""Masked prediction on texts: which pieces are hidden, how they are shown, how well they are found.

Devlin et al. 2019 (arXiv 1810.04805), section 3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ..encoder import Encoder, evaluating
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text, TextTypeError, token_batches

#: how a position to be predicted appears in the input
Shown = Literal["mask", "random", "same"]
SHOWN: tuple[Shown, ...] = ("mask", "random", "same")


@dataclass(frozen=True, eq=False)
class MaskedScores:
    """Predictions at n chosen positions, ordered by text.

    Attributes:
        text: [n] number of the text of every position.
        target: [n] vocabulary number of the piece that stands there.
        log_prob: [n] natural log-probability the model gives to that piece.
        right: [n] True where no other piece is more probable.
        majority: the most frequent piece at the positions that were not chosen.
        model: name of the model.
        seed: seed of the choice of positions.
    """

    text: np.ndarray
    target: np.ndarray
    log_prob: np.ndarray
    right: np.ndarray
    majority: int
    model: str
    seed: int

    def __len__(self) -> int:
        return len(self.target)

    @property
    def loss(self) -> float:
        """Mean negative log-probability, in nats."""
        return float(-self.log_prob.mean())

    @property
    def accuracy(self) -> Estimate:
        """Share of pieces found, with an interval over texts and the majority baseline."""
        return self.mean(
            self.right, "share", majority=float((self.target == self.majority).mean())
        )

    def mean(self, values: np.ndarray, unit: str, **baselines: float) -> Estimate:
        """Mean of one number a position [n], with a bootstrap interval over texts."""
        numbers = np.unique(self.text)
        sums = np.array([values[self.text == i].sum() for i in numbers], dtype=float)
        counts = np.array([(self.text == i).sum() for i in numbers])
        value = float(np.mean(values))
        draws = resampled_means(sums, counts, seed=self.seed)
        return Estimate(
            value=value,
            unit=unit,
            n=len(self),
            model=self.model,
            baselines=baselines,
            seed=self.seed,
            interval=percentile_interval(draws, value),
        )


def score_masked(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    shown: Shown = "mask",
    rate: float = 0.15,
    seed: int = 0,
    max_tokens: int = 4096,
) -> MaskedScores:
    """Predict a share of the pieces of every text, all of a text's at once.

    The positions and the random pieces depend on the texts, the tokenizer and the seed alone, so
    that two models, or a model with and without an intervention, are asked the same.

    Args:
        encoder: a model with a trained MLM head.
        texts: at least one; special tokens are never chosen, and every text has one position or
            more that is.
        shown: ``"mask"`` hides the chosen pieces, ``"random"`` puts other pieces in their place,
            ``"same"`` leaves them as they are.
        rate: share of the pieces to predict.
        seed: of the choice.
        max_tokens: padded pieces a batch.

    Raises:
        ValueError: an unknown ``shown``, a rate outside (0, 1), no texts.
        MissingHeadError: no trained MLM head.
    """
    if shown not in SHOWN:
        raise ValueError(f"shown is {shown!r}, must be one of {', '.join(SHOWN)}")
    if not 0 < rate < 1:
        raise ValueError(f"rate must lie between 0 and 1, got {rate}")
    if isinstance(texts, str):
        raise TextTypeError("expected a sequence of texts, got one text")
    found: list[tuple[int, list[int], torch.Tensor, torch.Tensor]] = []
    rest: Counter[int] = Counter()
    with evaluating(encoder):
        for batch in token_batches(encoder, texts, max_tokens=max_tokens):
            ids = batch.input_ids.clone()
            places = []
            for row, number in enumerate(batch.index):
                own = torch.nonzero(batch.is_text[row]).flatten()
                draw = np.random.default_rng([seed, number])
                size = max(1, round(rate * len(own)))
                chosen = own[np.sort(draw.choice(len(own), size=size, replace=False))]
                rest.update(ids[row, own].tolist())
                rest.subtract(ids[row, chosen].tolist())
                if shown == "mask":
                    ids[row, chosen] = encoder.tokenizer.mask_token_id
                elif shown == "random":
                    other = draw.integers(0, len(encoder.tokenizer), size=size)
                    ids[row, chosen] = torch.from_numpy(other)
                places.append(chosen)
            rows = torch.repeat_interleave(
                torch.arange(len(batch)), torch.tensor([len(p) for p in places])
            )
            flat = torch.cat(places)
            hidden = encoder.encode(batch.with_ids(ids))
            logits = encoder.mlm_logits(hidden[rows, flat]).float().cpu()
            target = batch.input_ids[rows, flat]
            own_logit = logits.gather(1, target[:, None])[:, 0]
            log_prob = own_logit - logits.logsumexp(dim=1)
            right = own_logit >= logits.max(dim=1).values
            for row, number in enumerate(batch.index):
                mine = rows == row
                found.append((number, target[mine].tolist(), log_prob[mine], right[mine]))
    if not found:
        raise ValueError("no texts to predict pieces of")
    found.sort(key=lambda item: item[0])
    return MaskedScores(
        text=np.array([number for number, targets, *_ in found for _ in targets]),
        target=np.array([t for _, targets, *_ in found for t in targets]),
        log_prob=torch.cat([item[2] for item in found]).double().numpy(),
        right=torch.cat([item[3] for item in found]).numpy(),
        majority=rest.most_common(1)[0][0],
        model=encoder.name,
        seed=seed,
    )


def positions_in_common(scores: Iterable[MaskedScores]) -> None:
    """Refuse scores that were not asked the same, as a comparison of pairs needs.

    Raises:
        ValueError: texts or targets differ.
    """
    first, *others = scores
    for other in others:
        if not (
            np.array_equal(first.text, other.text) and np.array_equal(first.target, other.target)
        ):
            raise ValueError(f"{first.model!r} and {other.model!r} were not asked the same")
