"""Students of another shape than their teacher: narrow Transformers and a recurrent network."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ..encoder import Encoder
from .errors import CompressionError
from .model import MAPS, Compact, Layer, compact, new_head
from .tables import TrimmedEmbedding, low_rank

#: numbers per head of a narrow student
D_HEAD = 12
#: spread of new weights, as a share of what keeps the size of a vector; layers that start near
#: the identity can be stacked without warming up for long
SPREAD = 0.25


def _small_table(encoder: Encoder, keep: Iterable[int], width: int) -> TrimmedEmbedding:
    """The teacher's table, fewer rows and only its ``width`` strongest directions."""
    tokens = encoder.embeddings.token.weight.detach()
    kept = torch.tensor(sorted({*keep, *encoder.tokenizer.all_special_ids}), dtype=torch.long)
    left, _ = low_rank(tokens[kept], width)
    # Tables of fresh models have a small spread; the layers that follow expect one.
    left = left * (0.05 / left.std())
    inner = nn.Embedding.from_pretrained(left.contiguous(), freeze=False)
    return TrimmedEmbedding(inner, kept, len(tokens), encoder.tokenizer.unk_token_id)


def narrow_student(
    encoder: Encoder, n_classes: int, *, width: int, n_layers: int, keep: Iterable[int],
    reads: str = "first", seed: int = 0,
) -> Compact:  # fmt: skip
    """Few dimensions, a small vocabulary, layers never trained (Zhao et al. 2021).

    The token table starts as the teacher's, cut to ``keep`` and to its strongest directions: a
    stand-in for the dual training of the paper, in which both models learn one vocabulary.

    Args:
        encoder: gives the table.
        n_classes: classes.
        width: D, a multiple of :data:`D_HEAD`.
        n_layers: layers.
        keep: vocabulary numbers to keep.
        reads: as for :func:`compact`.
        seed: of all new weights.

    Raises:
        CompressionError: a width that heads cannot share, or no layers.
    """
    if width % D_HEAD or width < D_HEAD or n_layers < 1:
        raise CompressionError(f"{n_layers} layers {width} wide; widths are multiples of {D_HEAD}")
    draw = torch.Generator().manual_seed(seed)
    act = getattr(encoder.config, "hidden_act", None) or encoder.config.activation

    def linear(size_in: int, size_out: int) -> nn.Linear:
        made = nn.Linear(size_in, size_out)
        with torch.no_grad():
            drawn = torch.randn(size_out, size_in, generator=draw)
            made.weight.copy_(SPREAD * drawn / size_in**0.5)
            made.bias.zero_()
        return made

    blocks = []
    for _ in range(n_layers):
        sizes = dict.fromkeys(MAPS, (width, width)) | {
            "ffn_in": (width, 4 * width), "ffn_out": (4 * width, width)
        }  # fmt: skip
        parts: dict[str, nn.Module] = {name: linear(*size) for name, size in sizes.items()}
        parts |= {"attn_norm": nn.LayerNorm(width), "ffn_norm": nn.LayerNorm(width)}
        blocks.append(Layer(parts, D_HEAD, act))
    places = nn.Embedding(min(128, encoder.max_length), width)
    with torch.no_grad():
        places.weight.copy_(0.05 * torch.randn(places.weight.shape, generator=draw))
    return Compact(
        _small_table(encoder, keep, width), places, nn.LayerNorm(width), None, blocks,
        range(n_layers), new_head(width, n_classes, seed), reads,
    ).eval()  # fmt: skip


class Recurrent(nn.Module):
    """One bidirectional LSTM; the last state of each direction is classified (Tang et al. 2019)."""

    def __init__(self, token: nn.Module, width: int, size: int, n_classes: int):
        super().__init__()
        self.token, self.width, self.size = token, width, size
        self.lstm = nn.LSTM(width, size, batch_first=True, bidirectional=True)
        self.hidden = nn.Linear(2 * size, 2 * size)
        self.head = nn.Linear(2 * size, n_classes)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[B, T] ids and their mask -> logits [B, C]."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.token(ids), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)
        return self.head(self.hidden(torch.cat([last[0], last[1]], dim=-1)).relu())


def recurrent_student(
    encoder: Encoder, n_classes: int, *, width: int, size: int, keep: Iterable[int], seed: int = 0
) -> Recurrent:
    """A BiLSTM over the teacher's token vectors, cut like those of :func:`narrow_student`.

    Args:
        encoder: gives the table.
        n_classes: classes.
        width: of the token vectors.
        size: of the state in each direction.
        keep: vocabulary numbers to keep.
        seed: of all new weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Recurrent(_small_table(encoder, keep, width), width, size, n_classes).eval()


def fresh_layers(model: Compact, *, spread: float = 0.02, seed: int = 0) -> Compact:
    """A copy whose layers are as BERT's before any training: the control of pre-training.

    Tables and classifier are kept.
    """
    made = copy.deepcopy(model)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in made.blocks.named_parameters():
            if weight.ndim == 2:
                weight.copy_(spread * torch.randn(weight.shape, generator=draw))
            else:
                weight.fill_(float("norm" in name and name.endswith("weight")))
    return made


def tie_layers(model: Compact) -> Compact:
    """A copy in which one block, the mean of all, runs at every depth (ALBERT, Lan et al. 2020).

    Raises:
        CompressionError: blocks of different sizes have no mean.
    """
    made = copy.deepcopy(model)
    states = [layer.state_dict() for layer in made.layers]
    shapes = [{name: tuple(t.shape) for name, t in state.items()} for state in states]
    if any(shape != shapes[0] for shape in shapes):
        raise CompressionError("layers of different sizes cannot become one")
    mean = {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}
    block = made.blocks[0]
    block.load_state_dict(mean)
    made.blocks = nn.ModuleList([block])
    made.order = (0,) * len(states)
    return made


def student_of(
    encoder: Encoder, n_classes: int, n_layers: int, *, reads: str = "first", seed: int = 0
) -> Compact:
    """Some layers of an encoder, evenly spaced from the first (0, 2, 4 for half of six).

    Raises:
        CompressionError: more layers than there are, or none.
    """
    if not 1 <= n_layers <= encoder.n_layers:
        raise CompressionError(f"{n_layers} of {encoder.n_layers} layers")
    chosen = [place * encoder.n_layers // n_layers for place in range(n_layers)]
    return compact(encoder, n_classes, layers=chosen, reads=reads, seed=seed)
