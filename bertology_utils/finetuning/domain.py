"""From one domain to another by filling gaps at pivots (PERL; Ben-David et al. 2020)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..activations import run_with_cache
from ..encoder import BertologyError, Encoder, additive_mask
from ..words import make_batch
from .loop import Recipe, train
from .methods import Method, prepare
from .tasks import Part


class NoGapsError(BertologyError, ValueError):
    """No text holds any of the words that should be hidden."""


def pivots(
    encoder: Encoder, source: Part, target: Sequence[str], n: int, *, min_count: int = 3
) -> tuple[str, ...]:
    """Words of both domains that tell most about the label in the first one.

    Words are single pieces of letters that occur ``min_count`` times in either domain, ranked by
    the mutual information of their presence with the label of the source texts.

    Raises:
        NoGapsError: no such word.
    """
    there = [_words(encoder, text) for text in source.texts]
    known = Counter(word for words in there for word in words)
    new = Counter(word for text in target for word in _words(encoder, text))
    both = sorted(w for w in known if known[w] >= min_count and new[w] >= min_count)
    if not both:
        raise NoGapsError("the domains share no word that is frequent in both")
    labels = np.array(source.labels)
    score = {w: _information(np.array([w in words for words in there]), labels) for w in both}
    return tuple(sorted(both, key=lambda w: (-score[w], w))[:n])


def other_words(
    encoder: Encoder, texts: Sequence[str], avoid: Collection[str], n_gaps: int, *, seed: int = 0
) -> tuple[str, ...]:
    """A control: words drawn at random until they make as many gaps as the pivots do."""
    counts = Counter(word for text in texts for word in _words(encoder, text) if word not in avoid)
    drawn = np.random.default_rng(seed).permutation(sorted(counts)).tolist()
    chosen, gaps = [], 0
    for word in drawn:
        if gaps >= n_gaps:
            break
        chosen.append(word)
        gaps += counts[word]
    return tuple(chosen)


def count_gaps(encoder: Encoder, texts: Sequence[str], words: Collection[str]) -> int:
    """How many gaps hiding these words makes."""
    return sum(word in words for text in texts for word in _pieces(encoder, text))


def fill_gaps(
    encoder: Encoder,
    texts: Sequence[str],
    words: Collection[str],
    *,
    method: Method | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
) -> Encoder:
    """Train a copy to guess the given words, each hidden wherever it occurs.

    Args:
        encoder: with a trained masked-language-model head; stays as it is.
        texts: without labels; those that hold none of the words are left out.
        words: what is hidden.
        method: ``top`` layers; the upper half by default.
        recipe, seed: as usual.

    Raises:
        NoGapsError: no text holds one of the words.
        MissingHeadError: no trained masked-language-model head.
        ValueError: another kind of method.
    """
    method = method or Method("top", max(1, encoder.n_layers // 2))
    if method.name != "top":
        raise ValueError(f"gaps are filled by the upper layers, not by method {method.name!r}")
    used = [text for text in texts if set(words) & set(_pieces(encoder, text))]
    if not used:
        raise NoGapsError(f"no text holds any of {', '.join(sorted(words)) or 'no words'}")
    prepared = prepare(encoder, method)
    own, layer = prepared.encoder, prepared.layer
    batch = make_batch(own, used)
    ids = torch.tensor(encoder.tokenizer.convert_tokens_to_ids(sorted(words)))
    gap = torch.isin(batch.input_ids, ids) & batch.is_text
    hidden_ids = batch.input_ids.masked_fill(gap, encoder.tokenizer.mask_token_id)
    cache = run_with_cache(own, batch.with_ids(hidden_ids), ["hidden_states"])
    states = cache["hidden_states"][layer].clone()

    def loss(chosen: list[int]) -> Tensor:
        mask = batch.attention_mask[chosen]
        width = int(mask.sum(1).max())
        hidden, where = states[chosen, :width], gap[chosen, :width]
        additive = additive_mask(mask[:, :width].to(hidden.device), hidden.dtype)
        for block in own.family.blocks(own.base)[layer:]:
            hidden = block(hidden, additive)
        logits = own.mlm_logits(hidden[where.to(hidden.device)])
        gold = batch.input_ids[chosen, :width][where].to(logits.device)
        return nn.functional.cross_entropy(logits, gold)

    draw = torch.Generator().manual_seed(seed)
    train(prepared.parameters, len(used), loss, recipe or Recipe(), draw=draw)
    own.model.requires_grad_(False)
    return own


def _pieces(encoder: Encoder, text: str) -> list[str]:
    return make_batch(encoder, [text]).rows[0].pieces


def _words(encoder: Encoder, text: str) -> set[str]:
    """Whole words of letters that are one piece."""
    row = make_batch(encoder, [text]).rows[0]
    return {row.pieces[start] for start, end in row.spans
            if end == start + 1 and row.pieces[start].isalpha()}  # fmt: skip


def _information(present: np.ndarray, labels: np.ndarray) -> float:
    """Mutual information, in nats, of two binary variables."""
    total = 0.0
    for a in (False, True):
        for b in np.unique(labels):
            joint = float(np.mean((present == a) & (labels == b)))
            if joint > 0:
                apart = float(np.mean(present == a) * np.mean(labels == b))
                total += joint * math.log(joint / apart)
    return total
