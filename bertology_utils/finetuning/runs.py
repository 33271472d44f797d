"""One fine-tuning run from a frozen configuration, judged, attacked, and run elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..encoder import Encoder, evaluating
from .loop import Recipe, train
from .methods import Method, Prepared, draw_layers_anew, prepare
from .objectives import Mixout, Objective, Smooth, adversarial, disturbed, plain
from .tasks import Part, Task
from .tuned import Examples, Tuned, examples, new_head, occurring_rows


@dataclass(frozen=True)
class Run:
    """Everything a run depends on beside the encoder and the task.

    Attributes:
        method: what is trained.
        recipe: how.
        head_seed: of the first weights of the new layer (and of adapters).
        order_seed: of the order of the data.
        adversarial: size of the disturbance in training; 0 for none.
        smooth: size of the neighbourhood that SMART asks to be calm; 0 for none.
        mixout: share of the weights that is put back in every step.
        fresh: layers, counted from 0, whose weights are drawn anew before training; the top ones
            in Zhang et al. (2021).
        watch: numbers of epochs after which the watched part is judged.
    """

    method: Method = Method()
    recipe: Recipe = Recipe()
    head_seed: int = 0
    order_seed: int = 0
    adversarial: float = 0.0
    smooth: float = 0.0
    mixout: float = 0.0
    fresh: tuple[int, ...] = ()
    watch: tuple[int, ...] = ()

    def objective(self) -> Objective:
        """The loss that is minimised.

        Raises:
            ValueError: two of the regularisers at once.
        """
        if self.adversarial and self.smooth:
            raise ValueError("adversarial and smooth training are not meant to be combined")
        if self.adversarial:
            return adversarial(self.adversarial)
        return Smooth(self.smooth, seed=self.order_seed) if self.smooth else plain


def fine_tune(
    encoder: Encoder,
    train_part: Part | Examples,
    run: Run | None = None,
    *,
    classes: int = 2,
    watched: Examples | None = None,
) -> Tuned:
    """Fine-tune a copy of an encoder; the same arguments give the same weights.

    Args:
        encoder: stays as it is. Dropout is off.
        train_part: training texts, or the same encoded up to the lowest trained layer, which saves
            encoding them again in a sweep.
        run: the configuration.
        classes: number of labels.
        watched: texts to be judged in between, see ``run.watch``.

    Raises:
        ValueError: all labels are the same; watched texts are missing or not needed.
    """
    run = run or Run()
    return fit(prepare(encoder, run.method, seed=run.head_seed), train_part, run,
               classes=classes, watched=watched)  # fmt: skip


def fit(
    prepared: Prepared,
    train_part: Part | Examples,
    run: Run,
    *,
    classes: int = 2,
    watched: Examples | None = None,
) -> Tuned:
    """Train a prepared copy in place; see :func:`fine_tune`.

    Raises:
        ValueError: as there, or layers that are drawn anew but not trained.
    """
    if bool(run.watch) != (watched is not None):
        raise ValueError("watched texts and run.watch come together")
    own = prepared.encoder
    if run.fresh:
        draw_layers_anew(prepared, run.fresh, seed=run.head_seed)
    given = train_part
    if isinstance(train_part, Part):
        given = examples(own, train_part, prepared.layer)
    if len(given.labels.unique()) < 2:
        raise ValueError(f"all labels are {int(given.labels[0])}")
    head = new_head(own, classes, run.head_seed)
    made = Tuned(own, head, prepared.layer, n_trained=prepared.n_trained)
    objective, seen = run.objective(), {}

    def loss(chosen: list[int]):
        hidden, mask = made.inputs(given, chosen)
        return objective(made, hidden, mask, given.labels[chosen])

    def after_epoch(done: int) -> None:
        if done in run.watch:
            seen[done] = made.right(watched)

    rows = occurring_rows(own, given.ids.input_ids) if prepared.layer is None else nullcontext()
    mixing = Mixout(prepared.parameters, run.mixout, seed=run.order_seed) if run.mixout else None
    with rows as table:
        groups = [{"params": [*prepared.parameters, *head.parameters()]}]
        if table is not None:
            groups.append(table)
        losses = train(
            groups,
            len(given),
            loss,
            run.recipe,
            draw=torch.Generator().manual_seed(run.order_seed),
            around=mixing.step if mixing else nullcontext,
            after_epoch=after_epoch,
        )
    own.model.requires_grad_(False)
    return replace(made, losses=losses, watched=seen)


def accuracy(tuned: Tuned, part: Part | Examples) -> np.ndarray:
    """[N] True where the label is found; parts are encoded by the tuned model itself."""
    if isinstance(part, Part):
        part = examples(tuned.encoder, part, tuned.layer)
    return tuned.right(part)


def attacked(tuned: Tuned, part: Part, sizes: Sequence[float]) -> dict[float, np.ndarray]:
    """size -> [N] True where a text is judged rightly although its input is disturbed.

    The input (embeddings, or what enters the lowest trained layer) is moved by ``size`` times its
    own length in the direction in which this model's loss rises.
    """
    given = examples(tuned.encoder, part, tuned.layer)
    with evaluating(tuned.encoder):
        hidden, mask = tuned.inputs(given, range(len(given)))
        away = disturbed(tuned, hidden, mask, given.labels, 1.0) - hidden
        found = {}
        for size in sizes:
            guess = tuned.score(hidden + size * away, mask).argmax(-1)
            found[size] = (guess == given.labels).cpu().numpy()
    return found


def environments(
    encoder: Encoder, task: Task, run: Run, test: Examples, *, classes: int = 2
) -> dict[str, np.ndarray]:
    """The same configuration with the same seeds, in circumstances that papers do not state.

    What changes is the order of sums and the rounding, not the formulas.

    Returns:
        circumstance -> [N] True where a test text is judged rightly. The first two are alike.

    Raises:
        ValueError: the run trains the embeddings, so that nothing can be encoded beforehand.
    """
    layer = prepare(encoder, run.method).layer
    if layer is None:
        raise ValueError("environments are compared on runs with frozen embeddings")
    given = examples(encoder, task.train, layer)
    run = replace(run, watch=())
    half = None if given.hidden is None else given.hidden.half().float()
    plain_kernel = replace(run, recipe=replace(run.recipe, optimizer="plain"))
    cases = {
        "as it was": (given, run, 1),
        "once more": (given, run, 1),
        "two threads": (given, run, 2),
        "another kernel of the optimizer": (given, plain_kernel, 1),
        "padded to one length": (replace(given, trim=False), run, 1),
        "frozen states kept in 16 bits": (replace(given, hidden=half), run, 1),
    }
    found, before = {}, torch.get_num_threads()
    for name, (part, how, threads) in cases.items():
        torch.set_num_threads(threads)
        try:
            found[name] = fine_tune(encoder, part, how, classes=classes).right(test)
        finally:
            torch.set_num_threads(before)
    return found
