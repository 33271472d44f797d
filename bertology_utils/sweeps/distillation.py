"""Students of several shapes, taught by labels or by the full model (chapter 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .. import compression as cp
from ..encoder import Encoder
from ..run_store import Record
from .sweep import Compute, Sweep

STUDENTS = ("1-layer", "2-layers", "3-layers", "4-layers", "48-wide", "96-wide", "192-wide", "lstm")
LESSONS = {"labels": None, "scores": cp.Copying(), "states": cp.Copying(hidden=3.0)}
#: layers that were never trained, and a recurrent network, start from little and learn faster
_RATES = {"layer": 5e-4, "wide": 1e-3, "lstm": 3e-3}
TEACHER = cp.Recipe(steps=30, batch_size=16, lr=5e-4)


@dataclass(frozen=True)
class StudentConfig:
    """A student.

    Attributes:
        student: its shape, one of :data:`STUDENTS`.
        lesson: what it learns from, one of :data:`LESSONS`.
        size: labelled reviews; five times as many come without a label.
        steps: updates.
        seed: of the reviews, the student's new weights and the order.
    """

    student: str
    lesson: str
    size: int
    steps: int
    seed: int

    def __post_init__(self) -> None:
        if self.size < 4 or self.steps < 1:
            raise ValueError("a student needs four labelled reviews and one step at least")


def _config(
    encoder: Encoder, student: str, lesson: str, size: int, steps: int, seed: int
) -> StudentConfig | None:
    number, _, kind = student.partition("-")
    impossible = (
        (kind.startswith("layer") and int(number) > encoder.n_layers)
        or (kind == "wide" and int(number) > encoder.d_model)
        or (student == "lstm" and lesson == "states")
    )
    return None if impossible else StudentConfig(student, lesson, size, steps, seed)


def _work(encoder: Encoder) -> Compute:
    @lru_cache(maxsize=1)
    def taught(size: int, seed: int) -> tuple[cp.Task, cp.Lessons, float]:
        task = cp.review_task(encoder, labelled_texts=size, unlabelled_texts=5 * size,
                              seed=11 + seed)  # fmt: skip
        teacher = cp.trained(cp.compact(encoder, 2), task.labelled, TEACHER)
        return task, cp.lessons(teacher, task.lessons), cp.score("", teacher, task.test).value

    def one(config: StudentConfig) -> Record:
        task, lessons, best = taught(config.size, config.seed)
        number, _, kind = config.student.partition("-")
        known = set(lessons.data.ids.flatten().tolist())
        if kind == "wide":
            made = cp.narrow_student(encoder, 2, width=int(number), n_layers=encoder.n_layers,
                                     keep=known, seed=config.seed)  # fmt: skip
        elif kind:
            made = cp.student_of(encoder, 2, int(number), seed=config.seed)
        else:
            made = cp.recurrent_student(encoder, 2, width=48, size=48, keep=known,
                                        seed=config.seed)  # fmt: skip
        rate = _RATES[kind.rstrip("s") or "lstm"]
        recipe = cp.Recipe(steps=config.steps, batch_size=16, lr=rate, seed=config.seed)
        copying = LESSONS[config.lesson]
        if copying is None:
            losses = cp.train(made, task.labelled, recipe)
        else:
            losses = cp.distil(made, lessons, recipe, copying)
        found = cp.score("", made, task.test)
        return {"values": {"accuracy": found.value, "teacher": best,
                           "megabytes": cp.file_bytes(made) / 1e6},
                "curves": {"loss": losses}}  # fmt: skip

    def compute(configs: Sequence[StudentConfig]) -> list[Record]:
        return [one(config) for config in configs]

    return compute


DISTILLATION = Sweep(
    "distillation", "11", "students of several shapes, taught by labels, scores or states",
    {"size": (64, 256), "seed": tuple(range(5)), "student": STUDENTS, "lesson": tuple(LESSONS),
     "steps": (30, 120)},
    _config, _work, {"accuracy": "share", "teacher": "share", "megabytes": "MB"},
)  # fmt: skip
