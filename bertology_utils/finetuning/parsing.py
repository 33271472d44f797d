"""Fine-tuning on parsing: every word points at its governor (head selection, Zhang et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder import Encoder, additive_mask, evaluating
from ..stimuli import Sentence
from ..words import WordList, make_batch
from .loop import Recipe, train
from .methods import Method, prepare
from .tasks import Part
from .tuned import Examples, Tuned, states

#: width of the vectors whose product says how well a governor fits
WIDTH = 64
#: pieces that point nowhere: special tokens, later pieces of words, punctuation
_NOWHERE = -100


@dataclass(frozen=True, eq=False)
class Parser:
    """An encoder that points words at governors.

    Attributes:
        encoder: the fine-tuned copy.
        scorer: two maps, of dependents and of governors.
        losses: of every training step, in nats.
    """

    encoder: Encoder
    scorer: nn.ModuleDict = field(repr=False)
    losses: tuple[float, ...] = field(repr=False)

    def uas(self, sentences: Sequence[Sentence]) -> float:
        """Share of words, punctuation left out, that point at their governor."""
        given, gold = _encoded(self.encoder, sentences, governors(sentences), 0)
        with evaluating(self.encoder):
            guess = _scores(self.encoder, self.scorer, given.hidden, given.ids.attention_mask)
        asked = gold != _NOWHERE
        return float((guess.argmax(-1)[asked] == gold[asked]).float().mean())


def governors(sentences: Sequence[Sentence]) -> list[list[int]]:
    """Governor of every word, counted from 1; 0 for the root and -1 for punctuation."""
    return [
        [-1 if relation == "punct" else head
         for head, relation in zip(s.heads, s.deprels, strict=True)]
        for s in sentences
    ]  # fmt: skip


def shuffled_governors(sentences: Sequence[Sentence], seed: int = 0) -> list[list[int]]:
    """A control: the governors of every sentence dealt to its words anew.

    As many arrows, to the same words, but no grammar in them. Punctuation keeps none.
    """
    draw = np.random.default_rng(seed)
    found = []
    for row in governors(sentences):
        words = [i for i, head in enumerate(row) if head >= 0]
        dealt = draw.permutation([row[i] for i in words]).tolist()
        new = list(row)
        for word, head in zip(words, dealt, strict=True):
            # A word cannot govern itself; such a word points at the root instead.
            new[word] = 0 if head == word + 1 else head
        found.append(new)
    return found


def tune_parser(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    heads: Sequence[Sequence[int]],
    *,
    recipe: Recipe | None = None,
    seed: int = 0,
) -> Parser:
    """Train all layers of a copy, and two linear maps, to point first pieces at first pieces.

    [CLS] stands for the root. Embeddings stay as they are.

    Args:
        encoder: stays as it is.
        sentences: training sentences.
        heads: what to point at, see :func:`governors`.
        recipe, seed: as usual.

    Raises:
        ValueError: heads that do not fit the words.
    """
    for sentence, row in zip(sentences, heads, strict=True):
        if len(row) != len(sentence):
            raise ValueError(f"{len(row)} governors for {len(sentence)} words: {sentence.text!r}")
    recipe = recipe or Recipe()
    prepared = prepare(encoder, Method("top", encoder.n_layers))
    own = prepared.encoder
    given, gold = _encoded(own, sentences, heads, 0)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        scorer = nn.ModuleDict({name: nn.Linear(encoder.d_model, WIDTH)
                                for name in ("dependent", "governor")})  # fmt: skip
    scorer.to(encoder.device)
    tuned = Tuned(own, nn.Linear(1, 1), 0)

    def loss(chosen: list[int]) -> Tensor:
        hidden, mask = tuned.inputs(given, chosen)
        scores = _scores(own, scorer, hidden, mask)
        target = gold[chosen, : scores.shape[1]]
        return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten(),
                                           ignore_index=_NOWHERE)  # fmt: skip

    losses = train([*prepared.parameters, *scorer.parameters()], len(given), loss, recipe,
                   draw=torch.Generator().manual_seed(seed))  # fmt: skip
    own.model.requires_grad_(False)
    return Parser(own, scorer, losses)


def _encoded(
    encoder: Encoder, sentences: Sequence[Sentence], heads: Sequence[Sequence[int]], layer: int
) -> tuple[Examples, Tensor]:
    """Sentences up to a layer, and [N, T] piece that every piece should point at."""
    texts = [WordList(s.words, s.text) for s in sentences]
    batch = make_batch(encoder, texts)
    gold = torch.full(batch.input_ids.shape, _NOWHERE, device=encoder.device)
    for number, (row, goals) in enumerate(zip(batch.rows, heads, strict=True)):
        for (start, _), goal in zip(row.spans, goals, strict=True):
            if goal >= 0:
                gold[number, start] = 0 if goal == 0 else row.spans[goal - 1][0]
    part = Part(tuple(texts), (0,) * len(texts))
    hidden = states(encoder, part.texts, (layer,))[0]
    return Examples(batch, torch.zeros(len(texts), dtype=torch.long), hidden, layer), gold


def _scores(encoder: Encoder, scorer: nn.ModuleDict, hidden: Tensor, mask: Tensor) -> Tensor:
    """[B, T, T] how well column governs row."""
    last = encoder.encode_from(hidden, mask, 0)
    product = scorer["dependent"](last) @ scorer["governor"](last).transpose(-1, -2)
    return product / WIDTH**0.5 + additive_mask(mask.to(last.device), last.dtype)[:, 0]
