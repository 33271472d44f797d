"""The one engine behind every masked score: copies of a text with pieces hidden, read in batches.

A *query* hides some pieces of a tokenised text and reads the model's prediction at one of them.
Fillings, minimal pairs, pseudo-log-likelihood and surprisal are all lists of queries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from ..encoder import Encoder, Trunk, evaluating, is_plain, pass_cost, pieces_at_once
from ..words import Aligned, cut

Result = TypeVar("Result")

#: queries read ahead, sorted by length and searched for repetitions; bounds the memory
WINDOW = 8192


@dataclass(frozen=True, eq=False)
class Query:
    """Hide the pieces ``hidden`` of ``row`` and read the prediction at piece ``read``.

    Piece numbers count special tokens. ``hidden`` may be empty when the text already holds
    mask tokens. ``number`` is the caller's, to find what belongs to the question.
    """

    row: Aligned
    hidden: tuple[int, ...]
    read: int
    number: int = 0


@dataclass(frozen=True)
class _Inputs:
    """[B, T] tensors; the shape of batch that an :class:`Encoder` reads."""

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor


def read_queries(
    encoder: Encoder,
    queries: Iterable[Query],
    reduce: Callable[[Tensor, Sequence[Query]], Sequence[Result]],
    *,
    max_tokens: int = 4096,
) -> Iterator[Result]:
    """Answer queries in their order.

    Args:
        encoder: a model with a trained MLM head.
        queries: read lazily, :data:`WINDOW` at a time, so memory does not grow with their number.
        reduce: from logits [n, V] (float32, on the model's device) and their n queries to n
            results; called once a batch.
        max_tokens: budget of padded pieces a batch.

    Identical inputs read at the same place are computed once in a window. The MLM head and the
    last layer (but for its keys and values) see only the read positions. On a CPU the budget is cut
    to what stays in the caches.

    Raises:
        MissingHeadError: the encoder has no trained MLM head.
        ValueError: a budget below 1.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens starts at 1, got {max_tokens}")
    mask_id, pad_id = encoder.tokenizer.mask_token_id, encoder.tokenizer.pad_token_id
    budget = pieces_at_once(encoder, max_tokens)
    stream = iter(queries)
    while chunk := list(islice(stream, WINDOW)):
        # Same masked pieces, segments and place to read = the same computation.
        groups: dict[tuple, list[int]] = {}
        for i, query in enumerate(chunk):
            ids = list(query.row.input_ids)
            for position in query.hidden:
                ids[position] = mask_id
            key = (query.read, tuple(query.row.token_type_ids), tuple(ids))
            groups.setdefault(key, []).append(i)
        keys = sorted(groups, key=lambda key: -len(key[2]))
        results: list[Result | None] = [None] * len(chunk)
        with evaluating(encoder):
            hidden_at = Trunk(encoder).encode_at if is_plain(encoder) else partial(_all_at, encoder)
            for cut_out in cut([len(ids) for _, _, ids in keys], budget, pass_cost(encoder)):
                part = keys[cut_out]
                hidden = hidden_at(_inputs(part, pad_id), torch.tensor([key[0] for key in part]))
                logits = encoder.mlm_logits(hidden).float()
                owners = [(i, j) for i, key in enumerate(part) for j in groups[key]]
                if len(owners) != len(part):
                    logits = logits[torch.tensor([i for i, _ in owners], device=logits.device)]
                answered = reduce(logits, [chunk[j] for _, j in owners])
                for (_, j), result in zip(owners, answered, strict=True):
                    results[j] = result
        yield from results


def _all_at(encoder: Encoder, inputs: _Inputs, reads: Tensor) -> Tensor:
    """[n, D] the model's own last hidden states at the read positions."""
    hidden = encoder.encode(inputs)
    return hidden[torch.arange(len(reads), device=hidden.device), reads.to(hidden.device)]


def _inputs(keys: Sequence[tuple], pad_id: int) -> _Inputs:
    width = len(keys[0][2])
    ids = np.full((len(keys), width), pad_id, dtype=np.int64)
    types, mask = np.zeros_like(ids), np.zeros_like(ids)
    for i, (_, row_types, row_ids) in enumerate(keys):
        ids[i, : len(row_ids)] = row_ids
        types[i, : len(row_ids)] = row_types
        mask[i, : len(row_ids)] = 1
    return _Inputs(*(torch.from_numpy(array) for array in (ids, mask, types)))


def log_prob_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Log-probability [n] in nats of one target [n] a row of logits [n, V]."""
    chosen = logits.gather(1, targets[:, None].to(logits.device))[:, 0]
    return chosen - logits.logsumexp(dim=1)
