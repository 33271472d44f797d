"""A small task for a small network: is a noun singular or plural, by its static vector alone?"""

from __future__ import annotations

import torch
from torch import Tensor

from ..encoder import BertologyError
from ..stimuli.lexicon import lexicon
from .vectors import WordTable


def noun_number(table: WordTable, split: str) -> tuple[Tensor, Tensor]:
    """Nouns of a split of the lexicon that the table knows in both forms.

    Args:
        table: static vectors.
        split: ``"train"`` or ``"test"``; they share no noun.

    Returns:
        [2 N, E] vectors, centred and scaled by the whole table's mean and spread, and [2 N]
        labels: 0.0 for the singular, 1.0 for the plural, in turn.

    Raises:
        BertologyError: the table knows fewer than ten such nouns.
        LexiconError: no such split.
    """
    known = [
        (noun.singular, noun.plural)
        for noun in lexicon(split).nouns
        if noun.plural and noun.singular in table and noun.plural in table
    ]
    if len(known) < 10:
        raise BertologyError(f"{table.name} knows only {len(known)} nouns of the {split} split")
    rows = (table.of([form for pair in known for form in pair]) - table.mean) / table.spread
    return torch.tensor(rows, dtype=torch.float32), torch.tensor([0.0, 1.0] * len(known))
