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

    Vectors come from one half of the texts, and stand for pieces that occur ``min_count`` times in
    the other half. Each is compared, by cosine and after centring, with prototypes. Decoder
    ``"input"`` takes the embedding-layer vector of every piece of the vocabulary (at a mean
    position), so that it follows the token along the residual stream. ``"centroid"`` takes, for
    the frequent pieces alone, the mean vector in the layer at hand over the other half, so that it
    sees identity in whatever directions the layer keeps it; with fewer candidates it is easier.

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
    other_half, test = [texts[i] for i in order[:half]], [texts[i] for i in order[half:]]
    known, means = _centroids(encoder, other_half, min_count, max_tokens)
    prototypes = means if decoder == "centroid" else [_vocabulary(encoder)] * len(means)
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
                answer = places if decoder == "centroid" else gold
                right = np.bincount(owner, weights=guess == answer, minlength=len(batch))
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

    One piece w_i is hidden in each of N texts with context c_i. With the MLM's probability p(w | c)
    and its mean p(w) over the contexts, f(c, w) = p(w | c) / p(w), and the bound is
    mean_i log(f(c_i, w_i) / mean_j f(c_i, w_j)); it cannot exceed log N. The baseline ``shuffled``
    pairs contexts with other texts' pieces.

    Raises:
        MissingHeadError: no trained MLM head.
        TooFewError: fewer than two texts.
    """
    _check(encoder, texts, 1.0)
    n = len(texts)
    if n < 2:
        raise TooFewError("needs two texts or more")
    gold = torch.zeros(n, dtype=torch.long)
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        owner, where = _flat([hidden_positions(row, 0.0, seed) for row in batch.rows])
        gold[list(batch.index)] = batch.input_ids[owner, where]
    scores = np.zeros((n, n))  # [contexts, pieces]
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        owner, where = _flat([hidden_positions(row, 0.0, seed) for row in batch.rows])
        ids = batch.input_ids.clone()
        ids[owner, where] = encoder.tokenizer.mask_token_id
        with evaluating(encoder):
            hidden = encoder.encode(batch.with_ids(ids))
            found = torch.log_softmax(encoder.mlm_logits(hidden[owner, where]).float(), -1)
        scores[list(batch.index)] = found[:, gold.to(found.device)].cpu().numpy()
    scores -= np.logaddexp.reduce(scores, axis=0) - np.log(n)
    level = np.logaddexp.reduce(scores, axis=1) - np.log(n)
    gains = scores.diagonal() - level
    control = float((scores[np.arange(n), np.roll(np.arange(n), 1)] - level).mean())
    value = float(gains.mean())
    draws = resampled_means(gains, np.ones(n), seed=seed)
    return Estimate(
        value=value, unit="nats", n=n, model=encoder.name,
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


def _centroids(
    encoder: Encoder, texts: list[Text], min_count: int, max_tokens: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """([K] numbers of the frequent pieces, ascending; [K, D] their unit means in every layer)."""
    size = encoder.config.vocab_size
    counts = np.zeros(size, int)
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        counts += np.bincount(batch.input_ids[batch.is_text].numpy(), minlength=size)
    known = np.flatnonzero(counts >= min_count)
    if len(known) < 2:
        raise TooFewError(f"{len(known)} pieces occur {min_count} times or more")
    totals = np.zeros((encoder.n_layers + 1, len(known), encoder.d_model))
    means, n = np.zeros((encoder.n_layers + 1, 1, encoder.d_model)), 0
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        cache = run_with_cache(encoder, batch, ["hidden_states"])
        pieces = batch.input_ids[batch.is_text].numpy()
        keep = counts[pieces] >= min_count
        place = np.searchsorted(known, pieces[keep])
        n += len(pieces)
        for layer, states in enumerate(cache.layers["hidden_states"]):
            vectors = states[batch.is_text.to(states.device)].cpu().numpy().astype(float)
            np.add.at(totals[layer], place, vectors[keep])
            means[layer] += vectors.sum(0)
    return known, list(unit_rows(totals / counts[known][:, None] - means / n))


#: The vocabulary's prototypes stand at the mean of this many positions.
_POSITIONS = 32


def _vocabulary(encoder: Encoder) -> np.ndarray:
    """[V, D] centred unit vectors of all pieces as they enter the first layer."""
    parts = encoder.embeddings
    with evaluating(encoder):
        first = 0 if parts.position.padding_idx is None else parts.position.padding_idx + 1
        total = parts.token.weight + parts.position.weight[first : first + _POSITIONS].mean(0)
        if parts.segment is not None:
            total = total + parts.segment.weight[0]
        vectors = parts.norm(total)
        vectors = vectors if parts.projection is None else parts.projection(vectors)
        found = vectors.float().cpu().numpy()
    return unit_rows(found - found.mean(0))


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
