"""Does the small model still say what the whole one says?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from ..cloze import wilson_interval
from ..encoder import Encoder, evaluating
from .exporting import SmallModel


@dataclass(frozen=True)
class Case:
    """A text as pieces, and the place of the mask that is filled."""

    input_ids: tuple[int, ...]
    place: int


@dataclass(frozen=True)
class Agreement:
    """How often the small model's best k pieces for a mask are the whole model's.

    Attributes:
        model: name of the model.
        n: masks filled.
        k: pieces compared at each.
        same: share of masks with the same k pieces, in any order.
        interval: 95 % Wilson interval of ``same``.
        same_first: share with the same most probable piece.
        same_order: share with the same k pieces in the same order.
        probability_gap: mean difference, over all masks and k pieces, in probability.
    """

    model: str
    n: int
    k: int
    same: float
    interval: tuple[float, float]
    same_first: float
    same_order: float
    probability_gap: float


def mask_cases(encoder: Encoder, texts: Iterable[str], per_text: int = 2) -> list[Case]:
    """Hide pieces of each text in turn, evenly spread over it.

    Raises:
        ValueError: ``per_text`` is below 1.
    """
    if per_text < 1:
        raise ValueError(f"per_text must be at least 1, not {per_text}")
    cases = []
    for text in texts:
        ids = encoder.tokenizer(text)["input_ids"]
        inner = len(ids) - 2
        places = sorted({1 + (2 * i + 1) * inner // (2 * per_text) for i in range(per_text)})
        for place in places if inner > 0 else ():
            hidden = [*ids[:place], encoder.tokenizer.mask_token_id, *ids[place + 1 :]]
            cases.append(Case(tuple(hidden), place))
    return cases


def best_pieces(encoder: Encoder, cases: Sequence[Case], k: int = 5) -> list[dict[int, float]]:
    """PyTorch's answer: for each case the k most probable pieces, best first, in float32."""
    found = []
    with evaluating(encoder):
        for case in cases:
            hidden = encoder.base(torch.tensor([case.input_ids], device=encoder.device))
            at_mask = hidden.last_hidden_state[:, case.place]
            scores = encoder.mlm_logits(at_mask)[0].softmax(-1).topk(k)
            found.append(dict(zip(scores.indices.tolist(), scores.values.tolist(), strict=True)))
    return found


def small_best_pieces(
    small: SmallModel, cases: Sequence[Case], n_layers: int, k: int = 5
) -> list[dict[int, float]]:
    """The same answer from the small model."""
    found = []
    for case in cases:
        logits = small.run(case.input_ids, [(n_layers, case.place)]).logits[0]
        scores = torch.from_numpy(logits).softmax(-1).topk(k)
        found.append(dict(zip(scores.indices.tolist(), scores.values.tolist(), strict=True)))
    return found


def compare(
    model: str, whole: Sequence[dict[int, float]], small: Sequence[dict[int, float]]
) -> Agreement:
    """Compare the answers of two models to the same cases.

    Raises:
        ValueError: no cases, or not the same number of answers.
    """
    if not whole or len(whole) != len(small):
        raise ValueError(f"cannot compare {len(whole)} answers with {len(small)}")
    pairs = list(zip(whole, small, strict=True))
    n, k = len(pairs), len(whole[0])
    same = sum(a.keys() == b.keys() for a, b in pairs)
    gaps = [abs(a[piece] - b[piece]) for a, b in pairs for piece in a.keys() & b.keys()]
    return Agreement(
        model=model,
        n=n,
        k=k,
        same=same / n,
        interval=wilson_interval(same, n),
        same_first=sum(next(iter(a)) == next(iter(b)) for a, b in pairs) / n,
        same_order=sum(list(a) == list(b) for a, b in pairs) / n,
        probability_gap=sum(gaps) / len(gaps) if gaps else float("nan"),
    )
