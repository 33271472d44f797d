"""The places inside a layer that can be read and edited, by name.

Shapes without the layer dimension: B texts, T pieces, D = d_model, H heads, K = d_head, F = FFN
width. A layer with input x computes (evaluation mode)::

    q, k, v        = query(x), key(x), value(x)            [B, H, T, K] each
    pattern        = softmax(q k^T / sqrt(K) + mask)       [B, H, T, T], rows sum to 1
    z              = pattern v                             [B, H, T, K]
    attn_out       = output(z)                             [B, T, D]
    resid_mid_sum  = attn_out + x                          [B, T, D], before LayerNorm
    resid_mid      = attn_norm(resid_mid_sum)              [B, T, D], what the FFN reads
    mlp_act        = gelu(ffn_in(resid_mid))               [B, T, F]
    mlp_out        = ffn_out(mlp_act)                      [B, T, D]
    resid_post_sum = mlp_out + resid_mid                   [B, T, D], before LayerNorm
    hidden_states  = ffn_norm(resid_post_sum)              [B, T, D], the next layer's x

``hidden_states`` has L + 1 entries: entry 0 is the embedding output, entry l + 1 leaves layer l.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from ..encoder import BertologyError, Encoder


class UnknownSiteError(BertologyError, KeyError):
    """A name that is none of :data:`SITES`."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


@dataclass(frozen=True)
class Site:
    """One kind of place.

    Attributes:
        name: the public name.
        part: attribute of ``LayerParts`` that the value flows through.
        side: ``"in"`` (argument of the part) or ``"out"`` (its result).
        by_head: True if the last dimension H * K is split into heads: [B, H, T, K].
        shape: the shape for one layer, in words.
    """

    name: str
    part: str
    side: str
    by_head: bool
    shape: str


SITES: dict[str, Site] = {
    site.name: site
    for site in (
        Site("hidden_states", "block", "out", False, "[B, T, D]"),
        Site("pattern", "attention", "out", False, "[B, H, T, T]"),
        Site("q", "query", "out", True, "[B, H, T, K]"),
        Site("k", "key", "out", True, "[B, H, T, K]"),
        Site("v", "value", "out", True, "[B, H, T, K]"),
        Site("z", "output", "in", True, "[B, H, T, K]"),
        Site("attn_out", "output", "out", False, "[B, T, D]"),
        Site("resid_mid_sum", "attn_norm", "in", False, "[B, T, D]"),
        Site("resid_mid", "attn_norm", "out", False, "[B, T, D]"),
        Site("mlp_act", "ffn_out", "in", False, "[B, T, F]"),
        Site("mlp_out", "ffn_out", "out", False, "[B, T, D]"),
        Site("resid_post_sum", "ffn_norm", "in", False, "[B, T, D]"),
    )
}


def site_of(name: str) -> Site:
    """The site of a name.

    Raises:
        UnknownSiteError: no such name.
    """
    if name not in SITES:
        raise UnknownSiteError(f"unknown activation {name!r}; known: {', '.join(SITES)}")
    return SITES[name]


def n_entries(encoder: Encoder, name: str) -> int:
    """How many entries a name has: L + 1 for hidden states, L for everything else."""
    return encoder.n_layers + (site_of(name).name == "hidden_states")


def place(encoder: Encoder, name: str, layer: int) -> tuple[nn.Module, str]:
    """The module and side where entry ``layer`` of a name passes.

    Raises:
        UnknownSiteError: no such name.
        LayerIndexError: no such entry.
    """
    site = site_of(name)
    encoder.check_layer(layer, last=n_entries(encoder, name) - 1)
    layers = encoder.layers
    if name == "hidden_states":
        # The embedding output is read where it enters the first layer, since families differ in
        # what stands between the embedding module and the layers.
        return (layers[0].block, "in") if layer == 0 else (layers[layer - 1].block, "out")
    return getattr(layers[layer], site.part), site.side


def split_heads(flat: Tensor, d_head: int) -> Tensor:
    """[B, T, H * K] -> [B, H, T, K]"""
    return flat.unflatten(-1, (flat.shape[-1] // d_head, d_head)).transpose(1, 2)


def merge_heads(split: Tensor) -> Tensor:
    """[B, H, T, K] -> [B, T, H * K]"""
    return split.transpose(1, 2).flatten(-2)
