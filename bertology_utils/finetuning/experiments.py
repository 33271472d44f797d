"""Fine-tuning runs by their settings: the same one is trained once, here and in a sweep."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import numpy as np

from ..encoder import Encoder
from ..run_store import Record, RunStore
from .methods import prepare
from .runs import Run, fit
from .tasks import Part
from .tuned import Examples, Tuned, examples

#: encoded sets of texts that are held at once
_HELD = 24


@dataclass(frozen=True)
class Experiment:
    """Everything that a fine-tuned model and its score depend on, beside the pre-trained model.

    Attributes:
        train: labelled texts.
        test: those the model is judged on; None where only its weights are wanted.
        run: what is trained, how, by which seeds.
        watched: texts judged in between, see ``run.watch``.
        after: a task in between, fine-tuned first (STILTs; Phang et al. 2018). Its classifier is
            thrown away.
        classes: number of labels.
    """

    train: Part
    test: Part | None = None
    run: Run = Run()
    watched: Part | None = None
    after: Experiment | None = None
    classes: int = 2


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is kept of an experiment.

    Attributes:
        right: [N] True where a test text was judged rightly; empty without test texts.
        losses: of every training step, in nats.
        n_trained: numbers that were trained, those of the new layer left out.
        watched: epochs done -> [N] True where a watched text was judged rightly.
    """

    right: np.ndarray = field(repr=False)
    losses: tuple[float, ...] = field(repr=False)
    n_trained: int
    watched: dict[int, np.ndarray] = field(repr=False)

    @property
    def accuracy(self) -> float:
        """On the test texts."""
        return float(self.right.mean())


class Tuner:
    """Experiments on one encoder, each trained once.

    >>> tuner = Tuner(encoder)
    >>> tuner.outcome(Experiment(task.train, task.test)).accuracy

    Outcomes are kept in a :class:`~bertology_utils.run_store.RunStore`, in memory or in a folder.
    Weights are not kept: :meth:`tuned` trains again once nobody holds the model any more.

    Args:
        encoder: stays as it is, and must stay so while this object is used.
        store: of outcomes; in memory by default.
    """

    def __init__(self, encoder: Encoder, store: RunStore | None = None) -> None:
        self.encoder, self.store = encoder, store or RunStore()
        self._model = weights_digest(encoder)
        self._tuned: WeakValueDictionary[str, Tuned] = WeakValueDictionary()
        self._encoded: OrderedDict[tuple, Examples] = OrderedDict()

    def outcome(self, experiment: Experiment) -> Outcome:
        """What came of an experiment, which is run if it never was."""
        record = self.store.find(self._keyed(experiment))
        if record is None:
            self.tuned(experiment)
            record = self.store.find(self._keyed(experiment))
        return _read(record)

    def outcomes(self, experiments: Sequence[Experiment]) -> list[Outcome]:
        """Of several experiments, in order."""
        return [self.outcome(experiment) for experiment in experiments]

    def tuned(self, experiment: Experiment) -> Tuned:
        """The fine-tuned model; its outcome is kept, too.

        Raises:
            ValueError: as :func:`~bertology_utils.finetuning.fine_tune`.
        """
        keyed = self._keyed(experiment)
        digest = self.store.digest(keyed)
        found = self._tuned.get(digest)
        if found is None:
            # Held here, so that looking it up while training on top of it does not train it anew.
            between = None if experiment.after is None else self.tuned(experiment.after)
            found = self._train(experiment, self.encoder if between is None else between.encoder)
            self._tuned[digest] = found
            if self.store.find(keyed) is None:
                self.store.keep(keyed, _record(found, self._judge(experiment, found)))
        return found

    def _train(self, experiment: Experiment, start: Encoder) -> Tuned:
        run, before = experiment.run, experiment.after
        prepared, watched = prepare(start, run.method, seed=run.head_seed), experiment.watched
        return fit(
            prepared, self._given(experiment.train, prepared.layer, before), run,
            classes=experiment.classes,
            watched=None if watched is None else self._given(watched, prepared.layer, before),
        )  # fmt: skip

    def _judge(self, experiment: Experiment, tuned: Tuned) -> np.ndarray:
        if experiment.test is None:
            return np.zeros(0, bool)
        return tuned.right(self._given(experiment.test, tuned.layer, experiment.after))

    def _given(self, part: Part, layer: int | None, before: Experiment | None) -> Examples:
        """Texts encoded up to the lowest trained layer; training changes nothing below it."""
        while layer is not None and before is not None:
            lowest = self.tuned(before).layer
            if lowest is None or lowest < layer:
                break
            before = before.after  # the task in between left these layers alone, too
        key = (part, layer, before)
        if key not in self._encoded:
            start = self.encoder if before is None else self.tuned(before).encoder
            self._encoded[key] = examples(start, part, layer)
            if len(self._encoded) > _HELD:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(key)
        return self._encoded[key]

    def _keyed(self, experiment: Experiment) -> _OnModel:
        return _OnModel(experiment, self._model)


@dataclass(frozen=True)
class _OnModel:
    """An experiment and the digest of the weights it starts from."""

    experiment: Experiment
    model: str


def weights_digest(encoder: Encoder) -> str:
    """Names the weights of an encoder: equal for equal names, shapes and numbers."""
    digest = hashlib.sha256()
    for name, weight in encoder.base.state_dict().items():
        digest.update(f"{name}{tuple(weight.shape)}{weight.dtype}".encode())
        digest.update(weight.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:24]


def _record(tuned: Tuned, right: np.ndarray) -> Record:
    return {
        "right": right.astype(int).tolist(),
        "losses": list(tuned.losses),
        "n_trained": tuned.n_trained,
        "watched": {str(epoch): hits.astype(int).tolist()
                    for epoch, hits in tuned.watched.items()},
    }  # fmt: skip


def _read(record: Record) -> Outcome:
    return Outcome(
        np.array(record["right"], bool), tuple(record["losses"]), record["n_trained"],
        {int(epoch): np.array(hits, bool) for epoch, hits in record["watched"].items()},
    )  # fmt: skip
