"""What fixes a run of the pretraining lab, written down; nothing else changes its curve."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace

from .language import POOL

#: raised with every change that alters what a configuration computes; old results then stay unused
VERSION = 2

CORPORA = ("grammar", "pairs", "facts")
OBJECTIVES = ("mlm", "rtd")
SENTENCE_TASKS = ("none", "next", "order", "three-way")
UNITS = ("token", "whole", "span")
GAP_SYMBOLS = ("[MASK]", "[UNK]")


class ConfigError(ValueError):
    """A run that makes no sense; the message names the field."""


def _check_kind(name: str, kind: str, value: object) -> None:
    """Raise ConfigError unless a field's value is of its kind; whole numbers count as numbers."""
    wanted = {"int": int, "float": (int, float), "bool": bool, "str": str}[kind]
    right = isinstance(value, wanted) and (kind == "bool" or not isinstance(value, bool))
    if not right:
        raise ConfigError(f"{name} is of type {type(value).__name__}, must be {kind}")
    # Also true of NaN.
    if isinstance(value, int | float) and not abs(value) < 2**53:
        raise ConfigError(f"{name} is no number that a run can use")


@dataclass(frozen=True)
class LabConfig:
    """One run.

    Attributes:
        corpus: ``"grammar"`` (single sentences), ``"pairs"`` (two sentences, the second of which
            may follow) or ``"facts"`` (who lives where, in names of two pieces).
        objective: ``"mlm"`` fills gaps (Devlin et al. 2019); ``"rtd"`` spots tokens replaced by a
            small generator that is trained alongside (Clark et al. 2020).
        sentence_task: what [CLS] has to tell about a pair: ``"none"``, ``"next"`` (or a stranger),
            ``"order"`` (or swapped; Lan et al. 2020), ``"three-way"`` (next, previous, stranger;
            Wang et al. 2020).
        mask_rate: share of tokens that are predicted.
        mask_share, random_share: of those, shares shown as the gap symbol and as a random word;
            the rest is shown as it is.
        unit: what is hidden as one: a ``"token"``, a ``"whole"`` name of several pieces, or a
            ``"span"`` of up to ``max_span`` tokens (Joshi et al. 2020).
        max_span: longest span; lengths are drawn evenly.
        gap: the symbol that hides a word (``"[UNK]"``: Clinchant et al. 2019).
        dynamic: draw new gaps whenever a sentence comes round; else it keeps its first ones.
        subsample: weigh the choice of gaps by frequency to the power of minus a half (Lample and
            Conneau 2019).
        layers, heads, width: of the model; the feed-forward layer is four times as wide.
        blocks: order of attention (a) and feed-forward (f) blocks; "" alternates. Must hold
            ``layers`` of each.
        disagreement: weight of a penalty on the cosine between outputs of heads (Li et al. 2018).
        stack_after: steps with half of the layers, whose copies are then stacked (Gong et al.
            2019); 0 trains all layers from the start.
        sentences: different training sentences; fewer than a run reads are repeated.
        batch: sentences (or pairs) a step.
        steps: of training.
        learning_rate: highest, reached after a tenth of the steps, then falling linearly to 0.
        seed: of weights, order of the text, and gaps.
    """

    corpus: str = "grammar"
    objective: str = "mlm"
    sentence_task: str = "none"
    mask_rate: float = 0.3
    mask_share: float = 0.8
    random_share: float = 0.1
    unit: str = "token"
    max_span: int = 3
    gap: str = "[MASK]"
    dynamic: bool = True
    subsample: bool = False
    layers: int = 2
    heads: int = 2
    width: int = 32
    blocks: str = ""
    disagreement: float = 0.0
    stack_after: int = 0
    sentences: int = 4000
    batch: int = 48
    steps: int = 150
    learning_rate: float = 1e-2
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_kind(field.name, field.type, getattr(self, field.name))
        for name, allowed in (("corpus", CORPORA), ("objective", OBJECTIVES), ("unit", UNITS),
                              ("sentence_task", SENTENCE_TASKS), ("gap", GAP_SYMBOLS)):  # fmt: skip
            value = getattr(self, name)
            if value not in allowed:
                raise ConfigError(f"{name} is {value[:60]!r}; known: {', '.join(allowed)}")
        for name in ("layers", "heads", "width", "sentences", "batch", "steps", "max_span"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.sentences > POOL:
            raise ConfigError(f"sentences is {self.sentences}; the pool has {POOL}")
        if self.width % self.heads:
            raise ConfigError(f"width {self.width} does not divide among {self.heads} heads")
        if not 0 < self.mask_rate < 1:
            raise ConfigError(f"mask_rate is {self.mask_rate}, must lie between 0 and 1")
        if min(self.mask_share, self.random_share) < 0 or self.mask_share + self.random_share > 1:
            raise ConfigError(
                f"mask_share {self.mask_share} and random_share {self.random_share} are no shares"
            )
        if self.learning_rate <= 0 or self.disagreement < 0:
            raise ConfigError("learning_rate must be positive and disagreement not negative")
        if self.sentence_task != "none" and self.corpus != "pairs":
            raise ConfigError(f"sentence_task {self.sentence_task!r} takes the corpus 'pairs'")
        if self.unit == "whole" and self.corpus != "facts":
            raise ConfigError("unit 'whole' takes the corpus 'facts', whose names have two pieces")
        if self.blocks and sorted(self.blocks) != sorted(self.layers * "af"):
            raise ConfigError(
                f"blocks {self.blocks[:60]!r} are not {self.layers} of 'a' and {self.layers} of 'f'"
            )
        if self.stack_after and (self.layers % 2 or self.blocks):
            raise ConfigError("stacking takes an even number of layers in the usual order")
        if not 0 <= self.stack_after < self.steps:
            raise ConfigError(f"stack_after {self.stack_after} is not within {self.steps} steps")
        if self.objective == "rtd" and (self.corpus != "grammar" or self.stack_after):
            raise ConfigError("objective 'rtd' takes the corpus 'grammar' and no stacking")

    @property
    def order(self) -> str:
        """The blocks from the input upwards, such as ``"afaf"``."""
        return self.blocks or self.layers * "af"

    @property
    def digest(self) -> str:
        """Names the run: equal for equal settings, on any machine."""
        text = json.dumps({**asdict(self), "version": VERSION}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def family(self) -> tuple:
        """Runs of one family have tensors of equal shapes and can be trained side by side."""
        own = ("corpus", "objective", "sentence_task", "layers", "heads", "width", "blocks",
               "stack_after", "batch", "steps", "mask_rate")  # fmt: skip
        return tuple(getattr(self, name) for name in own) + (self.disagreement > 0,)

    def but(self, **changes) -> LabConfig:
        """The same run with some fields changed.

        Raises:
            ConfigError: no such field, or the new run makes no sense.
        """
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise ConfigError(f"no field {name[:60]!r}; fields: {', '.join(sorted(known))}")
        return replace(self, **changes)

    def seeds(self, n: int) -> list[LabConfig]:
        """This run with the seeds 0 to ``n`` - 1."""
        return [self.but(seed=seed) for seed in range(n)]
