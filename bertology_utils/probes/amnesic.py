"""Amnesic probing: does the model *use* what a probe can read?

Elazar et al. 2021 (arXiv 2006.00995). Take the property out of the vectors at one layer, let the
model go on, and see how much worse it predicts masked words, compared with losing as many random
directions. One word is masked at a time, and layers below the intervention are run only once.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..activations import capture
from ..encoder import Encoder, evaluating
from ..interventions import NoEffectError
from ..words import Aligned, Text, align_all
from .erasure import Erasure, random_erasure
from .errors import ProbeError, TooFewExamplesError
from .results import ratio_interval


@dataclass(frozen=True)
class MaskedWord:
    """A word that is one piece, to be masked in its text.

    Attributes:
        text: number of the text; word: number of the word in it.
        piece: its position among the pieces, special tokens counted.
        target: its vocabulary number.
    """

    text: int
    word: int
    piece: int
    target: int


def masked_words(
    encoder: Encoder, texts: Sequence[Text], *, per_text: int | None = None, seed: int = 0
) -> list[MaskedWord]:
    """Words to mask, one at a time: all that are one known piece, or some of them per text.

    Args:
        encoder: with a mask token.
        texts: strings, lists of words or ``WordList``.
        per_text: most words of one text, chosen at random; None takes all.
        seed: of the choice.

    Raises:
        TooFewExamplesError: no text has a word of one piece; bad texts as in ``words``.
    """
    rng = np.random.default_rng(seed)
    unknown = encoder.tokenizer.unk_token_id
    found = []
    for number, row in enumerate(align_all(encoder, list(texts))):
        single = [
            MaskedWord(number, i, start, row.input_ids[start])
            for i, (start, end) in enumerate(row.spans)
            if end - start == 1 and row.input_ids[start] != unknown
        ]
        if per_text is not None and len(single) > per_text:
            chosen = sorted(rng.choice(len(single), per_text, replace=False).tolist())
            single = [single[i] for i in chosen]
        found += single
    if not found:
        raise TooFewExamplesError("no text has a word that is one piece of the vocabulary")
    return found


def masked_vectors(
    encoder: Encoder,
    texts: Sequence[Text],
    words: Sequence[MaskedWord],
    *,
    max_tokens: int = 4096,
) -> np.ndarray:
    """Hidden states at the masked places: what amnesic probing learns a property from.

    Args:
        encoder: any encoder with a mask token.
        texts: as given to :func:`masked_words`.
        words: words to mask, each in a copy of its own.
        max_tokens: padded pieces per batch.

    Returns:
        [L + 1, len(words), D] in the order of ``words``.
    """
    out = np.empty((encoder.n_layers + 1, len(words), encoder.d_model), dtype=np.float32)
    for places, batch, reads in _batches(encoder, texts, words, max_tokens):
        with evaluating(encoder), capture(encoder, ["hidden_states"]) as cache:
            encoder.encode(batch)
        every = torch.arange(len(places), device=encoder.device)
        for layer, hidden in enumerate(cache.layers["hidden_states"]):
            out[layer, places] = hidden[every, reads].float().cpu().numpy()
    return out


@dataclass(frozen=True)
class AmnesicResult:
    """Masked-word prediction before and after an erasure at one layer.

    Attributes:
        layer: 0 .. L, where the vectors were changed; method and rank of the erasure.
        accuracy_before, accuracy: share of masked words guessed right.
        log_prob_before, log_prob: mean natural log-probability of the masked word.
        kl: mean KL divergence, in nats, from the model's own prediction to that after the erasure.
        random_accuracy, random_log_prob, random_kl: the same after removing as many random
            directions, mean over the controls.
        random_drops: drop in accuracy of every control.
        n: masked words.
        seed: of the controls.
        interval: 95 % bootstrap interval of the drop in accuracy over texts.
        model: the encoder's name.
    """

    layer: int
    method: str
    rank: int
    accuracy_before: float
    accuracy: float
    log_prob_before: float
    log_prob: float
    kl: float
    random_accuracy: float
    random_log_prob: float
    random_kl: float
    random_drops: tuple[float, ...]
    n: int
    seed: int
    interval: tuple[float, float]
    model: str
    correct: np.ndarray = field(repr=False, compare=False)

    unit = "share difference"

    @property
    def drop(self) -> float:
        """Accuracy lost by the erasure."""
        return self.accuracy_before - self.accuracy

    @property
    def value(self) -> float:
        """The drop in accuracy."""
        return self.drop

    @property
    def baselines(self) -> dict[str, float]:
        return {"random directions": self.accuracy_before - self.random_accuracy}


def amnesic_probe(
    encoder: Encoder,
    texts: Sequence[Text],
    words: Sequence[MaskedWord],
    layer: int,
    erasure: Erasure,
    *,
    controls: int = 3,
    seed: int = 0,
    max_tokens: int = 4096,
) -> AmnesicResult:
    """Mask words one at a time, erase at a layer at every position, and predict.

    Args:
        encoder: with a trained MLM head.
        texts, words: as for :func:`masked_vectors`; other texts than the erasure was learnt on.
        layer: 0 .. L, numbered as hidden states.
        erasure: what to remove; its vectors must have been those of the same layer.
        controls: random erasures of the same rank and centre.
        seed: of the controls.
        max_tokens: padded pieces per batch.

    Raises:
        LayerIndexError: no such layer. MissingHeadError: no trained MLM head.
        ProbeError: an erasure of another width, or one that removes nothing.
        ValueError: no control.
        NoEffectError: the erasure left every prediction as it was.
    """
    encoder.check_layer(layer, last=encoder.n_layers)
    if erasure.projection.shape != (encoder.d_model, encoder.d_model):
        raise ProbeError(
            f"the erasure is {tuple(erasure.projection.shape)}, {encoder.name!r} is "
            f"{encoder.d_model} wide"
        )
    if erasure.rank < 1:
        raise ProbeError("the erasure removes no direction: there is nothing to measure")
    if controls < 1:
        raise ValueError(f"controls must be 1 or more, got {controls}")
    erasures = [erasure] + [
        random_erasure(encoder.d_model, erasure.rank, seed=seed + k, centre=erasure.centre)
        for k in range(controls)
    ]
    # One row a variant; the first is the model as it is.
    right = np.zeros((len(erasures) + 1, len(words)))
    log_prob, kl = np.zeros_like(right), np.zeros_like(right)
    for places, batch, reads in _batches(encoder, texts, words, max_tokens):
        targets = torch.tensor([words[i].target for i in places], device=encoder.device)
        every = torch.arange(len(places), device=encoder.device)
        with evaluating(encoder), capture(encoder, ["hidden_states"]) as cache:
            last = encoder.encode(batch)
        with evaluating(encoder):
            hidden = cache.layers["hidden_states"][layer]
            own = encoder.mlm_logits(last[every, reads]).float().log_softmax(1)
            for k, variant in enumerate([None, *erasures]):
                said = own
                if variant is not None:
                    changed = variant.apply(hidden)
                    final = encoder.encode_from(changed, batch.attention_mask, layer)
                    said = encoder.mlm_logits(final[every, reads]).float().log_softmax(1)
                right[k, places] = (said.argmax(1) == targets).cpu().numpy()
                log_prob[k, places] = said[every, targets].cpu().numpy()
                kl[k, places] = (own.exp() * (own - said)).sum(1).clamp_min(0).cpu().numpy()
    if np.abs(log_prob[1] - log_prob[0]).max() == 0:
        raise NoEffectError(f"the erasure at layer {layer} of {encoder.name!r} changed nothing")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(word.text, len(numbers)) for word in words])
    lost = np.bincount(codes, weights=right[0] - right[1])
    return AmnesicResult(
        layer,
        erasure.method,
        erasure.rank,
        float(right[0].mean()),
        float(right[1].mean()),
        float(log_prob[0].mean()),
        float(log_prob[1].mean()),
        float(kl[1].mean()),
        float(right[2:].mean()),
        float(log_prob[2:].mean()),
        float(kl[2:].mean()),
        tuple((right[0].mean() - right[2:].mean(1)).tolist()),
        len(words),
        seed,
        ratio_interval(lost, np.bincount(codes).astype(float), seed),
        encoder.name,
        right[1].astype(bool),
    )


@dataclass(frozen=True, eq=False)
class _Inputs:
    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor


def _batches(encoder: Encoder, texts: Sequence[Text], words: Sequence[MaskedWord], max_tokens: int):
    """(numbers of the words, inputs with each masked, masked positions), similar lengths first."""
    if not words:
        raise TooFewExamplesError("no words to mask")
    tokenizer = encoder.tokenizer
    rows: list[Aligned] = align_all(encoder, list(texts))
    order = sorted(range(len(words)), key=lambda i: -len(rows[words[i].text].input_ids))
    start = 0
    while start < len(order):
        width = len(rows[words[order[start]].text].input_ids)
        part = order[start : start + max(1, max_tokens // width)]
        start += len(part)
        ids = torch.full((len(part), width), tokenizer.pad_token_id)
        types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for b, i in enumerate(part):
            row = rows[words[i].text]
            length = len(row.input_ids)
            ids[b, :length] = torch.tensor(row.input_ids)
            types[b, :length] = torch.tensor(row.token_type_ids)
            mask[b, :length] = 1
            ids[b, words[i].piece] = tokenizer.mask_token_id
        reads = torch.tensor([words[i].piece for i in part], device=encoder.device)
        yield part, _Inputs(ids, mask, types), reads
