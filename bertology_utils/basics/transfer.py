"""Fine-tuning from pre-trained or from random weights, with the same head and the same data.

The division of labour of Devlin et al. 2019 (arXiv 1810.04805): all weights are trained, and the
new classifier reads the last hidden state of the first piece ([CLS]).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from ..encoder import Encoder, evaluating, random_encoder
from ..finetuning import Recipe as Steps
from ..finetuning import train as take_steps
from ..resampling import Estimate, mean_over_runs
from ..stimuli.sentiment import LabelledText
from ..words import make_batch

#: share of the steps over which the learning rate rises, see :class:`Recipe`
WARM = 1 / 3


@dataclass(frozen=True)
class Recipe:
    """How to fine-tune: AdamW with a linear warm-up over the first third and a linear decay.

    The long warm-up is for random weights: their texts all look alike at first, so that early
    steps add up and overshoot.
    """

    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 3e-4
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or self.learning_rate <= 0:
            raise ValueError(f"epochs, batch size and learning rate must be positive: {self}")


@dataclass(frozen=True, eq=False)
class FineTuned:
    """One run: ``losses`` of every step in nats, ``right`` for every test text."""

    losses: tuple[float, ...]
    right: np.ndarray
    seed: int

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())


@dataclass(frozen=True, eq=False)
class Transfer:
    """Runs from two starting points, paired by training set and classifier.

    Attributes:
        pretrained, random: mean test accuracy over the runs, with the baselines ``majority`` and
            ``bag_of_words``.
        difference: mean of the paired differences, for the ledger.
        losses: starting point -> [runs, steps] training losses in nats.
        n_test: number of test texts.
    """

    pretrained: Estimate
    random: Estimate
    difference: Estimate
    losses: dict[str, np.ndarray]
    n_test: int


def fine_tune(
    encoder: Encoder,
    train: Sequence[LabelledText],
    test: Sequence[LabelledText],
    *,
    seed: int = 0,
    recipe: Recipe | None = None,
) -> FineTuned:
    """Train a copy of the encoder and a linear classifier on it; ``encoder`` stays as it is.

    Dropout is off: runs are short, and two starting points should differ in nothing else.

    Raises:
        ValueError: no texts, a single label, or a test label that was not trained.
    """
    recipe = recipe or Recipe()
    labels = _labels(train, test)
    own = replace(encoder, model=copy.deepcopy(encoder.model).eval())
    rows = _trained_rows(own, [*train, *test])
    draw = torch.Generator().manual_seed(seed)
    head = nn.Linear(encoder.d_model, len(labels), device=encoder.device)
    with torch.no_grad():
        head.weight.copy_(0.02 * torch.randn(head.weight.shape, generator=draw))
        head.bias.zero_()
    trained = [p for p in own.base.parameters() if p.requires_grad]

    def loss(chosen: list[int]) -> Tensor:
        texts = [train[i] for i in chosen]
        scores = head(_first(own, texts))
        return nn.functional.cross_entropy(scores, _targets(texts, labels, encoder.device))

    how = Steps(
        recipe.epochs, recipe.batch_size, recipe.learning_rate, recipe.weight_decay, warm=WARM
    )
    losses = take_steps([*trained, rows, *head.parameters()], len(train), loss, how, draw=draw)
    with evaluating(own):
        answers = head(_first(own, test)).argmax(dim=1)
    right = (answers == _targets(test, labels, encoder.device)).cpu().numpy()
    return FineTuned(losses, right, seed)


def pretrained_or_random(
    encoder: Encoder,
    trains: Sequence[Sequence[LabelledText]],
    test: Sequence[LabelledText],
    *,
    recipe: Recipe | None = None,
) -> Transfer:
    """Fine-tune once per training set from the encoder's weights and once from random ones.

    The interval over runs (Student's t) covers the choice of the training texts, of the
    classifier's first weights and of the random encoder.

    Args:
        encoder: any encoder.
        trains: training sets of one size, at least two.
        test: texts of the same labels.
        recipe: how to fine-tune.

    Raises:
        ValueError: fewer than two training sets, or as :func:`fine_tune`.
    """
    if len(trains) < 2:
        raise ValueError("an interval over runs needs two training sets or more")
    runs: dict[str, list[FineTuned]] = {"pre-trained": [], "random": []}
    for seed, train in enumerate(trains):
        for start, model in (
            ("pre-trained", encoder),
            ("random", random_encoder(encoder, seed)),
        ):
            runs[start].append(fine_tune(model, train, test, seed=seed, recipe=recipe))
    labels = [text.label for text in test]
    baselines = {
        "majority": max(map(labels.count, set(labels))) / len(labels),
        "bag_of_words": float(np.mean([bag_of_words(train, test) for train in trains])),
    }
    scores = {name: np.array([run.accuracy for run in done]) for name, done in runs.items()}
    return Transfer(
        pretrained=mean_over_runs(
            scores["pre-trained"], unit="share", model=encoder.name, baselines=baselines
        ),
        random=mean_over_runs(
            scores["random"], unit="share", model=f"{encoder.name} (random)", baselines=baselines
        ),
        difference=mean_over_runs(
            scores["pre-trained"] - scores["random"], unit="share difference", model=encoder.name
        ),
        losses={name: np.array([run.losses for run in done]) for name, done in runs.items()},
        n_test=len(test),
    )


def bag_of_words(train: Sequence[LabelledText], test: Sequence[LabelledText]) -> float:
    """Test accuracy of logistic regression on word counts: what spotting known words can do."""
    counter = CountVectorizer()
    seen = counter.fit_transform([text.text for text in train])
    model = LogisticRegression(max_iter=1000).fit(seen, [text.label for text in train])
    unseen = counter.transform([text.text for text in test])
    return float(model.score(unseen, [text.label for text in test]))


def _labels(train: Sequence[LabelledText], test: Sequence[LabelledText]) -> list[str]:
    if not train or not test:
        raise ValueError("fine-tuning needs training and test texts")
    labels = sorted({text.label for text in train})
    if len(labels) < 2:
        raise ValueError(f"all training texts are labelled {labels[0]!r}")
    odd = next((text.label for text in test if text.label not in labels), None)
    if odd is not None:
        raise ValueError(f"test label {odd!r} does not occur in training: {', '.join(labels)}")
    return labels


def _trained_rows(encoder: Encoder, texts: Sequence[LabelledText]) -> nn.Parameter:
    """The rows of the token table that the texts use, put in the table's place for training.

    The other rows get no gradient, and nobody reads them; without them a step takes a quarter less
    time, and the result is the same.
    """
    table = encoder.embeddings.token
    table.weight.requires_grad_(False)
    used = make_batch(encoder, [text.text for text in texts]).input_ids.unique()
    rows = nn.Parameter(table.weight[used].clone())
    place = torch.zeros(table.num_embeddings, dtype=torch.long, device=encoder.device)
    place[used] = torch.arange(len(used), device=encoder.device)
    table.register_forward_hook(lambda _module, args, _output: rows[place[args[0]]])
    return rows


def _first(encoder: Encoder, texts: Sequence[LabelledText]) -> Tensor:
    """[n, D] last hidden state of the first piece."""
    return encoder.encode(make_batch(encoder, [text.text for text in texts]))[:, 0]


def _targets(texts: Sequence[LabelledText], labels: list[str], device) -> Tensor:
    return torch.tensor([labels.index(text.label) for text in texts], device=device)
