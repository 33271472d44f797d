"""Texts of several lengths without their padding."""

from dataclasses import dataclass

from torch import Tensor

#: matrix libraries multiply fewer rows than this in other orders, and so to other last bits; and a
#: single row in yet another
FEW = 16


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the real pieces of B texts, padded to T pieces, lie among R rows.

    Maps of single pieces (most of a layer's arithmetic) need no padding; attention alone wants
    texts side by side again.

    Attributes:
        real: [R] numbers of the real pieces among the B * T, text by text, and some of them again
            where there are fewer than :data:`FEW`.
        back: [B, T] the row of every piece; of padding, which the mask takes out of every sum, any.
        mask: [B, 1, 1, T] added to the scores.
    """

    real: Tensor
    back: Tensor
    mask: Tensor

    @classmethod
    def of(cls, pieces: Tensor, mask: Tensor) -> "Packing":
        """From pieces [B, T], True for real ones, and the mask added to the scores."""
        flat = pieces.flatten()
        real = flat.nonzero()[:, 0]
        back = (flat.cumsum(0) - 1).clamp_(min=0).view(pieces.shape)
        if len(real) < FEW:
            real = real.repeat(FEW)[:FEW]
        return cls(real, back, mask)

    def pack(self, padded: Tensor) -> Tensor:
        """[R, D] of [B, T, D]."""
        return padded.flatten(0, 1).index_select(0, self.real)

    def spread(self, rows: Tensor) -> Tensor:
        """[B, T, D] of [R, D]."""
        padded = rows.index_select(0, self.back.flatten())
        return padded.unflatten(0, self.back.shape)

    def first(self, rows: Tensor) -> Tensor:
        """[B, D] the first piece of every text, of [R, D]."""
        return rows.index_select(0, self.back[:, 0])

    def at(self, rows: Tensor, places: Tensor) -> Tensor:
        """[B, D] one piece of every text, of [R, D] and places [B]."""
        return rows[self.back.gather(1, places[:, None])[:, 0]]
