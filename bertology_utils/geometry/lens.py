"""Reading layers in words: the logit lens, recovery of tokens, words and their contexts.

nostalgebraist 2020 (logit lens); Voita et al. 2019 (arXiv 1909.01380, token identity lost and
rebuilt); Kong et al. 2019 (arXiv 1910.08350, mutual information of word and context).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..activations import run_with_cache
from ..encoder import Encoder, MissingHeadError, evaluating
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Aligned, Text, token_batches
from .rows import TooFewError, unit_rows
from .scores import LayerScores

#: What stands in the input where the token is to be recovered.
INPUTS = ("kept", "masked", "replaced")


@dataclass(frozen=True, eq=False)
class LogitLens:
    """Predictions of hidden pieces, read from every layer with the model's own output head.

    Attributes:
        accuracy: share of hidden pieces that rank first; control ``most_frequent``, the
            commonest hidden piece.
        log_prob: mean log-probability of the hidden piece, in nats.
        top: top[s][t][m] is the (vocabulary number, probability) of the best guess for the m-th
            hidden piece of text t in layer s.
        positions: positions[t] are the hidden positions of text t.
    """

    accuracy: LayerScores
    log_prob: LayerScores
    top: tuple[tuple[tuple[tuple[int, float], ...], ...], ...]
    positions: tuple[tuple[int, ...], ...]


def logit_lens(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    rate: float = 0.15,
    seed: int = 0,
    max_tokens: int = 4096,
) -> LogitLens:
    """Hide some pieces of each text, and let the MLM head read every layer at those places.

    The head was trained on the last layer only: what it reads lower down is a lower bound.

    Args:
        encoder: an encoder with a trained MLM head.
        texts: N texts.
        rate: share of the pieces to hide, at least one a text.
        seed: of the choice.
        max_tokens: padded pieces per batch.

    Raises:
        MissingHeadError: no trained MLM head.
        ValueError: ``rate`` outside (0, 1].
        TooFewError: no texts.
    """
    _check(encoder, texts, rate)
    n, s = len(texts), encoder.n_layers + 1
    right, logs, counts = np.zeros((n, s)), np.zeros((n, s)), np.zeros(n)
    top: list[list] = [[None] * n for _ in range(s)]
    places: list[tuple[int, ...]] = [()] * n
    gold_of: list[np.ndarray] = [np.zeros(0, int)] * n
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        chosen = [hidden_positions(row, rate, seed) for row in batch.rows]
        owner, where = _flat(chosen)
        gold = batch.input_ids[owner, where]
        ids = batch.input_ids.clone()
        ids[owner, where] = encoder.tokenizer.mask_token_id
        states = run_with_cache(encoder, batch.with_ids(ids), ["hidden_states"])
        for layer, hidden in enumerate(states.layers["hidden_states"]):
            with evaluating(encoder):
                logits = encoder.mlm_logits(hidden[owner, where])
            log_probs = torch.log_softmax(logits.float(), -1).cpu()
            best = log_probs.max(-1)
            hit = (best.indices == gold).numpy()
            value = log_probs.gather(1, gold[:, None])[:, 0].numpy()
            for b, index in enumerate(batch.index):
                mine = (owner == b).numpy()
                right[index, layer], logs[index, layer] = hit[mine].sum(), value[mine].sum()
                pairs = zip(best.indices[mine].tolist(), best.values[mine].exp().tolist(),
                            strict=True)  # fmt: skip
                top[layer][index] = tuple(pairs)
        for b, index in enumerate(batch.index):
            counts[index], places[index] = len(chosen[b]), tuple(int(p) for p in chosen[b])
            gold_of[index] = gold[owner == b].numpy()
    everything = np.concatenate(gold_of)
    usual = np.bincount(everything).max() / len(everything)
    return LogitLens(
        LayerScores("logit lens accuracy", "share", right, counts, encoder.name, seed,
                    {"most_frequent": np.full(s, usual)}),
        LayerScores("logit lens log-probability", "nats", logs, counts, encoder.name, seed),
        tuple(tuple(layer) for layer in top),
        tuple(places),
    )  # fmt: skip


def token_recovery(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    decoder: str = "input",
    rate: float = 0.15,
    min_count: int = 3,
    seed: int = 0,
    max_tokens: int = 4096,
) -> dict[str, LayerScores]:
    """Can the original piece be told from its vector, by layer: kept, masked, or replaced?

    Each vector is compared, by cosine and after centring, with one prototype for each piece that
    occurs ``min_count`` times in the first half of the texts; vectors come from the second half.
    Decoder ``"input"`` takes the mean embedding-layer vector of each piece as its prototype, so
    that it follows the token along the residual stream; ``"centroid"`` takes the mean vector in
    the layer at hand, so that it sees identity in whatever directions the layer keeps it.

    Returns:
        "kept", "masked", "replaced" -> accuracy per layer; control ``most_frequent``. Items are
        texts. Masked and replaced pieces can only be told from their context.

    Raises:
        ValueError: unknown decoder, ``rate`` outside (0, 1].
        TooFewError: fewer than two texts, or pieces too rare.
    """
    if decoder not in ("input", "centroid"):
        raise ValueError(f"decoder is {decoder!r}, must be 'input' or 'centroid'")
    _check_rate(texts, rate)
    order = np.random.default_rng(seed).permutation(len(texts))
    half = len(texts) // 2
    prototypes, known = _prototypes(
        encoder, [texts[i] for i in order[:half]], min_count, decoder, max_tokens
    )
    test = [texts[i] for i in order[half:]]
    s = encoder.n_layers + 1
    hits = {kind: np.zeros((len(test), s)) for kind in INPUTS}
    counts = np.zeros(len(test))
    frequency = np.zeros(len(known))
    for batch in token_batches(encoder, test, max_tokens=max_tokens):
        chosen = []
        for row in batch.rows:
            usable = np.flatnonzero(np.isin(row.input_ids, known) & ~np.array(row.is_special))
            chosen.append(hidden_positions(row, rate, seed, usable))
        owner, where = _flat(chosen)
        if not len(owner):
            continue
        gold = batch.input_ids[owner, where].numpy()
        places = np.searchsorted(known, gold)
        frequency += np.bincount(places, minlength=len(known))
        for b, index in enumerate(batch.index):
            counts[index] = len(chosen[b])
        draw = np.random.default_rng([seed, *batch.index])
        # Another known piece: a shift by 1 .. K - 1 never returns to the same one.
        other = known[(places + draw.integers(1, len(known), len(places))) % len(known)]
        mask = np.full(len(gold), encoder.tokenizer.mask_token_id)
        for kind, pieces in zip(INPUTS, (gold, mask, other), strict=True):
            ids = batch.input_ids.clone()
            ids[owner, where] = torch.from_numpy(pieces)
            cache = run_with_cache(encoder, batch.with_ids(ids), ["hidden_states"])
            for layer, states in enumerate(cache.layers["hidden_states"]):
                vectors = states[owner, where].cpu().numpy().astype(float)
                centre = states[batch.is_text.to(states.device)].mean(0).cpu().numpy()
                guess = (unit_rows(vectors - centre) @ prototypes[layer].T).argmax(1)
                right = np.bincount(owner, weights=guess == places, minlength=len(batch))
                hits[kind][list(batch.index), layer] = right
    usual = np.full(s, frequency.max() / max(frequency.sum(), 1))
    return {
        kind: LayerScores(
            f"recovery of a {kind} token", "share", hits[kind], counts, encoder.name, seed,
            {"most_frequent": usual},
        )
        for kind in INPUTS
    }  # fmt: skip


def context_information(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    seed: int = 0,
    max_tokens: int = 4096,
) -> Estimate:
    """InfoNCE lower bound, in nats, on the information between a hidden piece and its context.

    One piece is hidden in each of N texts. With f(c, w) the MLM probability of piece w in context
    c, the bound is mean_i log(f(c_i, w_i) / mean_j f(c_i, w_j)); it cannot exceed log N. The
    baseline ``shuffled`` pairs contexts with other texts' pieces.

    Raises:
        MissingHeadError: no trained MLM head.
        TooFewError: fewer than two texts.
    """
    _check(encoder, texts, 1.0)
    if len(texts) < 2:
        raise TooFewError("needs two texts or more")
    rows: list[torch.Tensor | None] = [None] * len(texts)
    gold = np.zeros(len(texts), int)
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        chosen = [hidden_positions(row, 0.0, seed) for row in batch.rows]
        owner, where = _flat(chosen)
        gold[list(batch.index)] = batch.input_ids[owner, where].numpy()
        ids = batch.input_ids.clone()
        ids[owner, where] = encoder.tokenizer.mask_token_id
        with evaluating(encoder):
            hidden = encoder.encode(batch.with_ids(ids))
            found = torch.log_softmax(encoder.mlm_logits(hidden[owner, where]).float(), -1)
        for b, index in enumerate(batch.index):
            rows[index] = found[b].cpu()
    scores = torch.stack(rows).numpy()[:, gold].astype(float)  # [contexts, pieces]
    level = np.logaddexp.reduce(scores, axis=1) - np.log(len(texts))
    gains = scores.diagonal() - level
    shift = np.roll(np.arange(len(texts)), 1)
    control = float((scores[np.arange(len(texts)), shift] - level).mean())
    value = float(gains.mean())
    draws = resampled_means(gains, np.ones(len(gains)), seed=seed)
    return Estimate(
        value=value, unit="nats", n=len(texts), model=encoder.name,
        baselines={"shuffled": control}, seed=seed, interval=percentile_interval(draws, value),
    )  # fmt: skip


def hidden_positions(
    row: Aligned, rate: float, seed: int, usable: np.ndarray | None = None
) -> np.ndarray:
    """Positions to hide: ``rate`` of the usable ones, at least one; by the text and seed alone.

    By default every piece of the text is usable. None usable, none hidden.
    """
    if usable is None:
        usable = np.flatnonzero(~np.array(row.is_special))
    if not len(usable):
        return usable
    draw = np.random.default_rng([seed, *row.input_ids])
    return np.sort(draw.choice(usable, max(1, round(rate * len(usable))), replace=False))


def _prototypes(
    encoder: Encoder, texts: list[Text], min_count: int, decoder: str, max_tokens: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """([K, D] unit prototypes of every layer, [K] their vocabulary numbers, ascending)."""
    size = encoder.config.vocab_size
    counts = np.zeros(size, int)
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        counts += np.bincount(batch.input_ids[batch.is_text].numpy(), minlength=size)
    known = np.flatnonzero(counts >= min_count)
    if len(known) < 2:
        raise TooFewError(f"{len(known)} pieces occur {min_count} times or more")
    layers = range(encoder.n_layers + 1) if decoder == "centroid" else [0]
    totals = [np.zeros((len(known), encoder.d_model)) for _ in layers]
    means, n = [np.zeros(encoder.d_model) for _ in layers], 0
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        cache = run_with_cache(encoder, batch, ["hidden_states"])
        pieces = batch.input_ids[batch.is_text].numpy()
        keep = counts[pieces] >= min_count
        place = np.searchsorted(known, pieces[keep])
        n += len(pieces)
        for k, layer in enumerate(layers):
            states = cache.layers["hidden_states"][layer]
            vectors = states[batch.is_text.to(states.device)].cpu().numpy().astype(float)
            np.add.at(totals[k], place, vectors[keep])
            means[k] += vectors.sum(0)
    made = [
        unit_rows(total / counts[known][:, None] - mean / n)
        for total, mean in zip(totals, means, strict=True)
    ]
    return (made if decoder == "centroid" else made * (encoder.n_layers + 1)), known


def _flat(chosen: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    owner = np.repeat(np.arange(len(chosen)), [len(c) for c in chosen])
    return torch.from_numpy(owner), torch.from_numpy(np.concatenate(chosen).astype(np.int64))


def _check(encoder: Encoder, texts: Sequence[Text], rate: float) -> None:
    if not encoder.has_mlm:
        raise MissingHeadError(f"{encoder.name!r} has no trained 'mlm' head")
    _check_rate(texts, rate)


def _check_rate(texts: Sequence[Text], rate: float) -> None:
    if not 0 < rate <= 1:
        raise ValueError(f"rate must lie in (0, 1], got {rate}")
    if not len(texts):
        raise TooFewError("no texts")
