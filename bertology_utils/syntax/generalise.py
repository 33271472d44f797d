"""Two rules fit the fine-tuning data: which one does the model pick?

After Warstadt and Bowman 2020 (arXiv 2007.06761). In training, the first finite verb of a sentence
is the main one, so that "the first verb is past" and "the main verb is past" give the same labels.
In the test sentences a clause inside the subject comes first, and the two rules say the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder import Encoder, evaluating
from ..probes.results import ratio_interval
from ..resampling import Estimate
from ..stimuli import Sentence, treebank
from .tuning import (
    FrozenStates,
    TunedClassifier,
    frozen_states,
    output_layer,
    train_top,
    tuned_copy,
)

#: What a finite verb may be asked for: sentence, place -> True, False, or None if neither.
Question = Callable[[Sentence, int], bool | None]


def is_past(sentence: Sentence, verb: int) -> bool | None:
    """Past against present tense."""
    feats = sentence.feats[verb]
    return True if "Tense=Past" in feats else False if "Tense=Pres" in feats else None


def is_plural(sentence: Sentence, verb: int) -> bool | None:
    """Number of the subject that a verb agrees with."""
    if sentence.gold is None:
        return None
    numbers = [a.number for a in sentence.gold.agreements if a.verb == verb]
    return numbers[0] == "plur" if numbers else None


def is_negated(sentence: Sentence, verb: int) -> bool | None:
    """A "not" right after the verb against none."""
    return verb + 1 < len(sentence) and sentence.words[verb + 1] == "not"


#: name -> question; each is one task.
QUESTIONS: dict[str, Question] = {
    "past tense": is_past,
    "plural subject": is_plural,
    "negation": is_negated,
}


@dataclass(frozen=True)
class RuleItem:
    """A sentence with the label that each rule gives it."""

    sentence: Sentence
    structural: bool
    linear: bool


def rule_items(
    question: Question, n: int, *, ambiguous: bool, split: str, seed: int = 0
) -> list[RuleItem]:
    """``n`` sentences of two clauses, the two labels taking turns.

    Args:
        question: asked of the main verb (structural rule) and of the first verb (linear rule).
        ambiguous: True for sentences whose main verb comes first, so that the rules agree; False
            for sentences where another verb comes first and the answers differ.
        split: of the lexicon.
        seed: of the sentences.

    Raises:
        ValueError: n below 2, or the grammar gives too few.
    """
    if n < 2:
        raise ValueError(f"n must be at least 2, not {n}")
    found: dict[bool, list[RuleItem]] = {True: [], False: []}
    seen: set[str] = set()
    for round_ in range(100):
        for sentence in treebank(300, 1000 * seed + round_, split, depth=1):
            item = _item(question, sentence, ambiguous)
            if item is not None and sentence.text not in seen:
                seen.add(sentence.text)
                found[item.structural].append(item)
        if min(map(len, found.values())) >= (n + 1) // 2:
            both = zip(found[True], found[False], strict=False)
            return [item for pair in both for item in pair][:n]
    raise ValueError(f"too few sentences: {len(found[True])} and {len(found[False])} of {n}")


def first_and_main(sentence: Sentence) -> tuple[int, int] | None:
    """Places of the first and of the main finite verb; None unless there are exactly two."""
    finite = [i for i, feats in enumerate(sentence.feats) if "VerbForm=Fin" in feats]
    gold = sentence.gold
    if gold is None or len(finite) != 2:
        return None
    main = gold.main_verb if gold.main_auxiliary is None else gold.main_auxiliary
    return (finite[0], main) if main in finite else None


def _item(question: Question, sentence: Sentence, ambiguous: bool) -> RuleItem | None:
    verbs = first_and_main(sentence)
    if verbs is None or (verbs[0] == verbs[1]) != ambiguous:
        return None
    linear, structural = (question(sentence, verb) for verb in verbs)
    if structural is None or linear is None or (not ambiguous and structural == linear):
        return None
    return RuleItem(sentence, structural, linear)


@dataclass(frozen=True, eq=False)
class Generalisation:
    """How test items were decided, by task and seed.

    Attributes:
        tasks: names; seeds: of the runs.
        structural: [tasks, seeds, M] True where a test item was decided by the structural rule.
        learned: [tasks, seeds] accuracy on fresh sentences of the training kind: has the task
            been learned at all?
        model: name of the encoder.
    """

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    structural: np.ndarray
    learned: np.ndarray
    model: str

    @property
    def runs(self) -> dict[str, list[float]]:
        """Task -> share decided by the structural rule, one number a seed."""
        return {
            task: shares.mean(-1).tolist()
            for task, shares in zip(self.tasks, self.structural, strict=True)
        }

    def share(self, task: str | None = None) -> Estimate:
        """Share over one task, or all; runs (task and seed) are what the interval resamples.

        Raises:
            KeyError: no such task.
        """
        if task is not None and task not in self.tasks:
            raise KeyError(f"no task {task!r}; there are {', '.join(self.tasks)}")
        chosen = self.structural if task is None else self.structural[[self.tasks.index(task)]]
        runs = chosen.reshape(-1, chosen.shape[-1])
        return Estimate(
            value=float(runs.mean()), unit="share", n=len(runs), model=self.model,
            seed=self.seeds[0], baselines={"chance": 0.5},
            interval=ratio_interval(runs.sum(1).astype(float), np.full(len(runs), runs.shape[1])),
        )  # fmt: skip


def generalisation(
    encoder: Encoder,
    *,
    layer: int | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    n_train: int = 240,
    n_test: int = 60,
    epochs: int = 3,
) -> Generalisation:
    """Fine-tune on ambiguous sentences and see which rule decides the others.

    One model learns the three :data:`QUESTIONS` side by side, each with an output of its own; every
    seed is a training of its own. Training and test sentences share no content word.

    Args:
        encoder: left as it is.
        layer: highest frozen hidden state; by default two layers are trained.
        seeds: of the outputs, the order of items and dropout.
        n_train: training sentences; n_test: test sentences of each question. Half as many fresh
            ambiguous sentences tell whether the question was learned at all.
        epochs: passes through the training sentences.

    Raises:
        ValueError: sizes for which there are too few sentences.
    """
    layer = max(0, encoder.n_layers - 2) if layer is None else layer
    # Negation is the rarest of the three; taking turns with it balances all of them.
    train = [i.sentence for i in rule_items(is_negated, n_train, ambiguous=True, split="train")]
    fresh = [rule_items(q, n_test // 2, ambiguous=True, split="test", seed=1)
             for q in QUESTIONS.values()]  # fmt: skip
    test = [rule_items(q, n_test, ambiguous=False, split="test", seed=2)
            for q in QUESTIONS.values()]  # fmt: skip
    groups = [train] + [[i.sentence for i in items] for items in (*fresh, *test)]
    states = frozen_states(encoder, [s.text for group in groups for s in group], layer)
    stops = np.cumsum([len(group) for group in groups])
    parts = np.split(np.arange(stops[-1]), stops[:-1])
    labels = torch.tensor([[_code(q, s) for q in QUESTIONS.values()] for s in train])
    runs = [
        _answers(encoder, states, parts, labels.to(encoder.device), epochs, seed)
        for seed in seeds
    ]
    gold = [np.array([item.structural for item in items]) for items in (*fresh, *test)]
    hits = [[said == true for said, true in zip(run, gold, strict=True)] for run in runs]
    k = len(QUESTIONS)
    return Generalisation(
        tuple(QUESTIONS), tuple(seeds),
        np.array([run[k:] for run in hits]).swapaxes(0, 1),
        np.array([[share.mean() for share in run[:k]] for run in hits]).T,
        encoder.name,
    )  # fmt: skip


def _code(question: Question, sentence: Sentence) -> int:
    answer = question(sentence, first_and_main(sentence)[1])
    return _UNKNOWN if answer is None else int(answer)


_UNKNOWN = -100  # cross-entropy's mark for "no label"


def _answers(
    encoder: Encoder, states: FrozenStates, parts: list[np.ndarray], labels: Tensor, epochs: int,
    seed: int,
) -> list[np.ndarray]:
    """One training; the answers (True, False) to every later part by its own question."""
    k = labels.shape[1]
    made = tuned_copy(encoder, states.layer)
    head = output_layer(encoder, 2 * k, seed)
    found = TunedClassifier(made, head, states.layer)
    train = states.rows(parts[0])

    def loss(batch: Tensor) -> Tensor:
        logits = found.logits(train.rows(batch)).view(len(batch), k, 2)
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), labels[batch].flatten(), ignore_index=_UNKNOWN
        )

    train_top(made, head, len(train), loss, epochs=epochs, batch_size=32, seed=seed)
    out = []
    for number, part in enumerate(parts[1:]):
        with evaluating(made):
            pair = found.logits(states.rows(part)).view(-1, k, 2)[:, number % k]
        out.append(pair.argmax(-1).bool().cpu().numpy())
    return out
