"""Every head of a model silenced by itself: the same numbers as one run a head, much sooner.

Silencing a head leaves everything below its layer, and the layer's attention patterns, as they
were. So a sweep runs the lower layers once, changes z where it enters the output matrix, and runs
only what lies above, for several heads in one pass (importance by ablation as in Michel et al.
2019 and Voita et al. 2019).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..encoder import Encoder, Packing, Trunk, evaluating, is_plain, pick, pieces_at_once
from ..words import Batch, Text, token_batches
from .edits import NoEffectError
from .heads import ablate_heads, check_mode

#: (last hidden states, batch) -> one number a text [B]. The states are [B, T, D], or [B, D] at one
#: piece a text where the sweep was told which
Measure = Callable[[Tensor, Batch], Tensor]


@dataclass(frozen=True, eq=False)
class HeadSweep:
    """What a measure says of every text with one head silenced. N texts.

    Attributes:
        values: [L, H, N], the head of that layer being silenced.
        intact: [N], nothing being silenced.
        mode: ``"zero"`` or ``"mean"``.
        model: name of the model.
    """

    values: np.ndarray = field(repr=False)
    intact: np.ndarray = field(repr=False)
    mode: str
    model: str

    @property
    def effect(self) -> np.ndarray:
        """[L, H] mean over texts of the value without the head minus the value with it."""
        return (self.values - self.intact).mean(axis=-1)

    @property
    def n(self) -> int:
        """Number of texts."""
        return len(self.intact)


def sweep_heads(
    encoder: Encoder,
    texts: Sequence[Text],
    measure: Measure,
    *,
    places: Sequence[int] | None = None,
    mode: str = "zero",
    means: Tensor | None = None,
    max_tokens: int = 4096,
) -> HeadSweep:
    """Silence each head in turn and measure every text.

    Args:
        encoder: any encoder with H heads in every layer.
        texts: as everywhere.
        measure: called without gradients, once a batch and head, and once a batch on the intact
            model. It must treat texts one by one. Where it is given all pieces, those of padding
            are zeros.
        places: for every text the one piece (special tokens counted) that is measured. The last
            layer is then computed only there.
        mode, means: as for :func:`ablate_heads`.
        max_tokens: padded pieces a batch.

    Where the encoder is more than its layers (another intervention, hooks, replaced modules), and
    where the matrix library gives a row other bits in a taller matrix, heads are run one by one, so
    that values never depend on how they were computed.

    Raises:
        ValueError: no texts; layers that differ in their number of heads; not one place a text, or
            a place outside its text; a measure that returns another shape; bad mode or means.
        NoEffectError: no head changes anything.
        Errors of texts as everywhere.
    """
    means = check_mode(encoder, mode, means)
    heads = set(encoder.heads_per_layer)
    if len(heads) > 1:
        raise ValueError(f"layers of {encoder.name!r} differ in heads, so a sweep has no shape")
    listed = list(texts)
    if not listed:
        raise ValueError("no texts to sweep over")
    if places is not None and len(places) != len(listed):
        raise ValueError(f"{len(places)} places for {len(listed)} texts")
    values = np.empty((encoder.n_layers, heads.pop(), len(listed)))
    intact = np.empty(len(listed))
    for batch in token_batches(encoder, listed, max_tokens=max_tokens):
        index = list(batch.index)
        at = None if places is None else _places(batch, [places[i] for i in index])
        with evaluating(encoder):
            runs = _by_layers if is_plain(encoder) else _one_by_one
            for where, hidden in runs(encoder, batch, at, means, max_tokens):
                if at is None:
                    hidden = hidden * batch.attention_mask[..., None].to(hidden)
                found = measure(hidden, batch)
                if tuple(found.shape) != (len(batch),):
                    raise ValueError(
                        f"the measure returned shape {tuple(found.shape)} for {len(batch)} texts"
                    )
                if where is None:
                    intact[index] = found.cpu().numpy()
                else:
                    values[where][index] = found.cpu().numpy()
    if (values == intact).all():
        raise NoEffectError(f"no head of {encoder.name!r} changes what is measured")
    return HeadSweep(values, intact, mode, encoder.name)


#: None for the intact model, else (layer, head); and its last hidden states
_Run = tuple[tuple[int, int] | None, Tensor]


def _places(batch: Batch, places: Sequence[int]) -> Tensor:
    for row, place in zip(batch.rows, places, strict=True):
        if not 0 <= place < len(row.input_ids):
            raise ValueError(f"place {place} is not a piece of a text of {len(row.input_ids)}")
    return torch.tensor(places)


def _one_by_one(
    encoder: Encoder, batch: Batch, at: Tensor | None, means: Tensor | None, _max_tokens: int
) -> Iterator[_Run]:
    def last() -> Tensor:
        hidden = encoder.encode(batch)
        return hidden if at is None else pick(hidden, at.to(hidden.device))

    yield None, last()
    mode = "zero" if means is None else "mean"
    for layer, n_heads in enumerate(encoder.heads_per_layer):
        for head in range(n_heads):
            with ablate_heads(encoder, {layer: [head]}, mode, means=means):
                hidden = last()
            yield (layer, head), hidden


def _by_layers(
    encoder: Encoder, batch: Batch, at: Tensor | None, means: Tensor | None, max_tokens: int
) -> Iterator[_Run]:
    trunk = Trunk(encoder)
    hidden, mask = trunk.embed(batch)
    at = None if at is None else at.to(hidden.device)
    entering = [hidden]
    for layer in range(len(trunk.layers) - 1):
        entering.append(trunk.layer(layer, entering[-1], mask))
    top = len(trunk.layers) - 1
    whole = trunk.layer(top, entering[top], mask)
    yield None, whole if at is None else pick(whole, at)
    sweep = _Sweep.over(trunk, batch, mask, at, pieces_at_once(encoder, max_tokens))
    # The layer below the top comes first: there the check of stacked heads is cheap, and whole.
    for layer in sorted(range(len(trunk.layers)), key=lambda number: number != max(0, top - 1)):
        parts, x = trunk.layers[layer], entering[layer]
        z = trunk.attend(layer, x, mask)
        fill = z.new_zeros(parts.n_heads, parts.d_head) if means is None else means[layer].to(z)
        for head, last in enumerate(sweep.without_each(layer, x, z, fill)):
            yield (layer, head), last


@dataclass
class _Sweep:
    """One batch.

    Attributes:
        trunk: of a run of its own for every head.
        many: of passes for several heads.
        pieces: [B, T] True for pieces that are no padding.
        mask: added to the scores; None where no text is padded.
        at: [B] the pieces that are read; None for all.
        size: heads times texts that one pass may hold.
        stacked: None until the first heads have been run both together and one by one.
    """

    trunk: Trunk
    many: Trunk
    pieces: Tensor
    mask: Tensor | None
    at: Tensor | None
    size: int
    stacked: bool | None = None

    @classmethod
    def over(
        cls, trunk: Trunk, batch: Batch, mask: Tensor | None, at: Tensor | None, budget: int
    ) -> "_Sweep":
        """``budget``: pieces that one pass may hold."""
        pieces = batch.attention_mask.to(trunk.encoder.device).bool()
        many = trunk.stacked(*pieces.shape)
        least = 1 if many.together is None else many.together
        size = max(least, budget * len(pieces) // int(pieces.sum()))
        return cls(trunk, many, pieces, mask, at, size)

    def without_each(self, layer: int, x: Tensor, z: Tensor, fill: Tensor) -> Iterator[Tensor]:
        """Last hidden states with each head of the layer silenced in turn.

        x [B, T, D] enters the layer, z [B, T, H * K] is what its heads make of it, and fill [H, K]
        takes a head's place.
        """
        if self.stacked is not False:
            together = self._together(layer, x, z, fill)
            first = next(together)
            if self.stacked is None:
                alone = self._alone(layer, x, _silenced(z, fill, 0))
                real = ... if self.at is not None else self.pieces
                self.stacked = torch.equal(first[real], alone[real])
            if self.stacked:
                yield first
                yield from together
                return
        for head in range(len(fill)):
            yield self._alone(layer, x, _silenced(z, fill, head))

    def _alone(self, layer: int, x: Tensor, z: Tensor) -> Tensor:
        """As the model itself would: all texts and all their pieces in every layer."""
        x = self.trunk.finish(layer, z, x)
        for above in range(layer + 1, len(self.trunk.layers)):
            x = self.trunk.layer(above, x, self.mask)
        return x if self.at is None else pick(x, self.at)

    def _together(self, layer: int, x: Tensor, z: Tensor, fill: Tensor) -> Iterator[Tensor]:
        """Passes of ``size`` texts, which may belong to several heads."""
        texts, heads = len(x), len(fill)
        done: list[Tensor] = []
        every = torch.arange(texts * heads, device=x.device)
        parts = math.ceil(len(every) / self.size)
        if self.size >= texts:  # whole heads, so that passes find the memory of the last one
            every = every.view(heads, texts)
            parts = math.ceil(heads / (self.size // texts))
        # Passes of one size: a last one of a few rows could come out with other bits.
        for numbers in map(torch.flatten, every.tensor_split(parts)):
            done.append(self._pass(layer, x, z, fill, numbers // texts, numbers % texts))
            ready = sum(map(len, done)) // texts
            if ready:
                joined = torch.cat(done)
                yield from joined[: ready * texts].split(texts)
                done = [joined[ready * texts :]]

    def _pass(self, layer: int, x: Tensor, z: Tensor, fill: Tensor, head, text) -> Tensor:
        x, z = x[text], z[text].unflatten(-1, fill.shape)
        z[torch.arange(len(z), device=z.device), :, head] = fill[head][:, None]
        z = z.flatten(2)
        trunk, top = self.many, len(self.many.layers) - 1
        at = None if self.at is None else self.at[text]
        if layer == top and at is not None:
            return trunk.finish_few(layer, pick(z, at), pick(x, at))
        mask = None if self.mask is None else self.mask[text]
        if mask is not None and trunk.together is None:
            mask = Packing.of(self.pieces[text], mask)
            x, z = mask.pack(x), mask.pack(z)
        x = trunk.finish(layer, z, x)
        for above in range(layer + 1, top + (at is None)):
            x = trunk.layer(above, x, mask)
        if at is not None:
            return trunk.layer_at(top, x, mask, at)
        return mask.spread(x) if isinstance(mask, Packing) else x


def _silenced(z: Tensor, fill: Tensor, head: int) -> Tensor:
    z = z.clone().unflatten(-1, fill.shape)
    z[:, :, head] = fill[head]
    return z.flatten(2)
