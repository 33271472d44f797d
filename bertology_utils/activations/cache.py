"""Read the inside of an encoder: every layer, by name, in one forward pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..encoder import (
    BertologyError,
    Encoder,
    Trunk,
    evaluating,
    is_plain,
    pass_cost,
    pieces_at_once,
)
from ..words import Batch, Text, make_batch, token_batches
from .sites import UnknownSiteError, n_entries, place, site_of, split_heads

DEFAULT_NAMES = ("hidden_states", "pattern")


class MissingLayerError(BertologyError):
    """A forward pass that did not deliver every layer exactly once."""


@dataclass(frozen=True, eq=False)
class Cache(Mapping):
    """What one forward pass left behind. ``cache["pattern"]`` stacks the layers in front.

    Shapes are those of :mod:`~bertology_utils.activations.sites` with a layer dimension first:
    ``hidden_states`` [L + 1, B, T, D], ``pattern`` [L, B, H, T, T], ``q``, ``k``, ``v``, ``z``
    [L, B, H, T, K], the rest [L, B, T, D]. Values at padding (``batch.attention_mask == 0``) mean
    nothing.

    Attributes:
        layers: name -> one tensor per entry, without the layer dimension.
        batch: the texts; None inside a bare :func:`capture`.
        model: the encoder's name.
    """

    layers: dict[str, list[Tensor]]
    batch: Batch | None
    model: str
    _stacked: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Tensor:
        """All layers of a name in one tensor.

        Raises:
            UnknownSiteError: the name was not captured.
            MissingLayerError: nothing has been captured yet.
            ValueError: layers differ in shape, as in a pruned model; read ``layers[name]``.
        """
        if name not in self._stacked:
            tensors = self.layers.get(name)
            if tensors is None:
                raise UnknownSiteError(f"{name!r} was not captured; captured: {', '.join(self)}")
            if not tensors:
                raise MissingLayerError(f"{name!r}: no forward pass has been run yet")
            shapes = {tuple(tensor.shape) for tensor in tensors}
            if len(shapes) > 1:
                raise ValueError(f"{name!r} differs in shape between layers; use layers[{name!r}]")
            self._stacked[name] = torch.stack(tensors)
        return self._stacked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)


@contextmanager
def capture(encoder: Encoder, names: Iterable[str] = DEFAULT_NAMES) -> Iterator[Cache]:
    """Fill a :class:`Cache` from the one forward pass made inside the ``with`` block.

    Leaves mode and gradients alone, so tensors keep their graph: use it for attributions and
    inside training; :func:`run_with_cache` is the plain way to measure. Values are read after
    all interventions.

    Raises:
        UnknownSiteError: an unknown name.
        MissingLayerError: at the end of the block, if a layer was not visited exactly once.
    """
    names = list(dict.fromkeys([names] if isinstance(names, str) else names))
    layers: dict[str, list[Tensor]] = {name: [] for name in names}
    seen: dict[tuple[str, int], Tensor] = {}
    with ExitStack() as stack:
        for name in names:
            for entry in range(n_entries(encoder, name)):
                handle = _read(encoder, name, entry, seen)
                stack.callback(handle.remove)
        yield Cache(layers, None, encoder.name)
    for name in names:
        missing = [e for e in range(n_entries(encoder, name)) if (name, e) not in seen]
        if missing:
            raise MissingLayerError(f"no {name!r} from layers {missing} of {encoder.name!r}")
        layers[name].extend(seen[name, entry] for entry in range(n_entries(encoder, name)))


def _read(encoder: Encoder, name: str, entry: int, seen: dict[tuple[str, int], Tensor]):
    """Hook that stores one entry. Forward hooks see arguments as earlier hooks left them."""
    module, side = place(encoder, name, entry)
    site, d_head = site_of(name), encoder.d_head

    def hook(_module, args, output):
        if (name, entry) in seen:
            raise MissingLayerError(
                f"{name!r} of layer {entry} came twice: one forward pass per capture, "
                f"and no feed-forward chunking"
            )
        value = args[0] if side == "in" else output
        if name == "pattern":
            value = output[1]
            if value is None:
                raise MissingLayerError(
                    f"layer {entry} of {encoder.name!r} returned no attention pattern; "
                    f"load it with eager attention"
                )
        seen[name, entry] = split_heads(value, d_head) if site.by_head else value

    # Not prepended: interventions put theirs first, and a reading belongs after them.
    return module.register_forward_hook(hook)


def run_with_cache(
    encoder: Encoder,
    texts: Batch | Text | Sequence[Text],
    names: Iterable[str] = DEFAULT_NAMES,
) -> Cache:
    """Encode texts in one padded batch and return what the layers computed.

    Args:
        encoder: any encoder.
        texts: a batch, one text, or several texts (kept in their order).
        names: names from :data:`~bertology_utils.activations.SITES`.

    Returns:
        A :class:`Cache` on the encoder's device, without gradients; the model's mode is as before.

    Raises:
        UnknownSiteError: an unknown name.
        MissingLayerError: a layer did not deliver.
        EmptyTextError, TextTooLongError, TextTypeError: as for texts in general.
    """
    batch = texts if isinstance(texts, Batch) else make_batch(encoder, texts)
    names = list(dict.fromkeys([names] if isinstance(names, str) else names))
    with evaluating(encoder):
        # What every layer returns anyway needs no hooks, and no more than the layers.
        if set(names) <= set(DEFAULT_NAMES) and is_plain(encoder):
            trunk = Trunk(encoder)
            if not names:
                trunk.encode(batch)
                return Cache({}, batch, encoder.name)
            read = dict(zip(DEFAULT_NAMES, trunk.read(batch), strict=True))
            return Cache({name: read[name] for name in names}, batch, encoder.name)
        with capture(encoder, names) as cache:
            encoder.encode(batch)
    return Cache(cache.layers, batch, encoder.name)


def stream(
    encoder: Encoder,
    texts: Iterable[Text],
    names: Iterable[str] = DEFAULT_NAMES,
    *,
    max_tokens: int = 4096,
    window: int = 4096,
) -> Iterator[Cache]:
    """A :class:`Cache` per token-budget batch, for any number of texts in bounded memory.

    On a CPU a batch holds no more than stays in its caches, even where the budget allows more, and
    ends early where texts get shorter, so that little is padded.
    ``cache.batch.index`` tells the place of each text. Reduce each cache before the next one:
    what the caller keeps is what memory holds.

    Raises:
        As :func:`run_with_cache` and :func:`~bertology_utils.words.token_batches`.
    """
    names = list([names] if isinstance(names, str) else names)
    for name in names:
        site_of(name)
    # A budget below 1 is refused where batches are cut.
    budget = pieces_at_once(encoder, max_tokens)
    batches = token_batches(
        encoder, texts, max_tokens=budget, window=window, pass_cost=pass_cost(encoder)
    )
    return (run_with_cache(encoder, batch, names) for batch in batches)
