"""The runs of the chapter on training: each differs from the base in what its name says."""

from __future__ import annotations

from .config import LabConfig


def plan(steps: int = 100) -> dict[str, LabConfig]:
    """Name -> run. ``steps`` scales all of them.

    Runs that are compared read equally many sentences, but for those "stacked", which spend as
    many layer-steps (layers times steps) as "4 layers".

    Raises:
        ConfigError: too few steps to divide.
    """
    base = LabConfig(steps=steps)
    third = max(1, steps // 3)
    deep = base.but(layers=4)
    small = base.but(sentences=300)
    pairs = base.but(corpus="pairs", batch=24, steps=2 * steps)
    facts = base.but(corpus="facts", batch=32, mask_rate=0.2, steps=4 * steps)
    return {
        "base": base,
        "4 layers": deep,
        "4 heads": base.but(heads=4),
        "width 16": base.but(width=16),
        "width 64": base.but(width=64),
        "heads pushed apart": base.but(heads=4, disagreement=0.5),
        "sandwich": deep.but(blocks="aaafafff"),
        "stacked": deep.but(steps=4 * third, stack_after=2 * third),
        "batch 16": base.but(batch=16, steps=3 * steps, learning_rate=0.01 / 3**0.5),
        "batch 144": base.but(batch=144, steps=third, learning_rate=0.01 * 3**0.5),
        "15% hidden": base.but(mask_rate=0.15),
        "50% hidden": base.but(mask_rate=0.5),
        "always [MASK]": base.but(mask_share=1.0, random_share=0.0),
        "spans": base.but(unit="span"),
        "300 sentences, fixed gaps": small.but(dynamic=False),
        "300 sentences, new gaps": small,
        "[UNK] for [MASK]": base.but(gap="[UNK]"),
        "fewer gaps at frequent words": base.but(subsample=True),
        "replaced tokens": base.but(objective="rtd"),
        "pairs, no task": pairs,
        "pairs, next": pairs.but(sentence_task="next"),
        "facts, pieces hidden": facts,
        "facts, names hidden": facts.but(unit="whole"),
        "long": base.but(steps=8 * steps),
    }
