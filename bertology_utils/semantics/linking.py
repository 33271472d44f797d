"""Train a copy of the model to say which entity a text is about, and see what facts it gains."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..encoder import Encoder
from ..stimuli import Fact
from ..words import align_all
from ..words.batches import pad
from .errors import SemanticsError


@dataclass(frozen=True, eq=False)
class Linked:
    """A copy of a model after training to tag entities.

    Attributes:
        encoder: the trained copy; the original is left alone.
        losses: [steps] cross-entropy in nats over the entities.
        accuracy: share of the last pass's mentions tagged rightly while training.
        entities: the classes.
    """

    encoder: Encoder
    losses: tuple[float, ...]
    accuracy: float
    entities: tuple[str, ...]


# The new layer and dropout draw from the process's random stream, which is put back afterwards.
@torch.random.fork_rng()
def link_entities(
    encoder: Encoder,
    facts: Sequence[Fact],
    *,
    templates: Sequence[int] = (1, 2),
    epochs: int = 4,
    lr: float = 1e-4,
    batch_size: int = 32,
    shuffled: bool = False,
    seed: int = 0,
) -> Linked:
    """Train the layers of a copy to tag mentions with their entity (after Broscheit 2019, small).

    The texts are the facts in the given wordings. In half of the passes over a text the name is
    replaced by one mask, so that the entity has to be told from what is said of it.

    Args:
        facts: their subjects are the entities, one class each.
        templates: wordings used as texts; keep out the one that will be asked.
        shuffled: the control: the same texts, each with the entity of another text.

    Raises:
        SemanticsError: fewer than two entities, or a template that some relation lacks.
    """
    entities = tuple(dict.fromkeys(fact.subject for fact in facts))
    if len(entities) < 2:
        raise SemanticsError(f"{len(entities)} entities cannot be told apart; two are needed")
    texts, spans, classes = _mentions(facts, templates, encoder.tokenizer.mask_token, entities)
    rng = np.random.default_rng(seed)
    gold = np.array(classes)
    if shuffled:
        # Whole texts keep one label, so that it can be learnt by heart but means nothing.
        gold = np.repeat(rng.permutation(gold[::2]), 2)
    rows = align_all(encoder, texts)
    places = [_pieces(row, span) for row, span in zip(rows, spans, strict=True)]
    model = copy.deepcopy(encoder.model)
    trained = replace(encoder, model=model, name=f"{encoder.name} (tagging entities)")
    torch.manual_seed(seed)
    head = torch.nn.Linear(encoder.d_model, len(entities)).to(encoder.device)
    # The word table serves the masked-word head too: if it moved, facts would be asked of
    # another head than before.
    blocks = [p for block in trained.family.blocks(trained.base) for p in block.parameters()]
    model.requires_grad_(False)
    for parameter in blocks:
        parameter.requires_grad_(True)
    optimiser = torch.optim.AdamW(
        [{"params": blocks, "lr": lr}, {"params": head.parameters(), "lr": 10 * lr}]
    )
    losses, right, count = [], 0, 0
    model.train()
    for epoch in range(epochs):
        order = 2 * rng.permutation(len(texts) // 2)
        # Pass by pass, the named and the masked version of a text take turns.
        order += (np.arange(len(order)) + epoch) % 2
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            batch = pad([rows[i] for i in chosen], chosen, encoder.tokenizer.pad_token_id)
            with torch.enable_grad():
                hidden = trained.encode(batch)
                pooled = torch.stack([hidden[k, places[i]].mean(0) for k, i in enumerate(chosen)])
                logits = head(pooled)
                target = torch.as_tensor(gold[chosen], device=logits.device)
                loss = cross_entropy(logits, target)
                optimiser.zero_grad()
                loss.backward()
            torch.nn.utils.clip_grad_norm_(blocks, 1.0)
            optimiser.step()
            losses.append(loss.item())
            if epoch == epochs - 1:
                right += int((logits.argmax(1) == target).sum())
                count += len(chosen)
    model.eval()
    return Linked(trained, tuple(losses), right / count, entities)


def _mentions(
    facts: Sequence[Fact], templates: Sequence[int], mask: str, entities: Sequence[str]
) -> tuple[list[str], list[tuple[int, int]], list[int]]:
    """Texts, the span of the mention in characters, and its class; named and masked in turn."""
    texts, spans, classes = [], [], []
    for fact in facts:
        for number in templates:
            if number >= len(fact.templates):
                raise SemanticsError(f"the relation {fact.relation!r} has no template {number}")
            before, after = fact.templates[number].replace("[Y]", fact.object).split("[X]")
            for name in (fact.subject, mask):
                texts.append(before + name + after)
                spans.append((len(before), len(before) + len(name)))
                classes.append(entities.index(fact.subject))
    return texts, spans, classes


def _pieces(row, span: tuple[int, int]) -> torch.Tensor:
    start, end = span
    offsets = zip(row.encoding.offsets, row.input_ids, strict=True)
    found = [i for i, ((a, b), _) in enumerate(offsets) if a < end and b > start]
    if not found:
        raise SemanticsError(f"no piece of {row.text!r} lies at characters {start} to {end}")
    return torch.tensor(found)
