"""How agreement grows with training: a tiny BERT, from nothing, on a tiny language.

The question of van Schijndel et al. 2019 (arXiv 1909.00111) is whether more data go on buying
syntax. Nobody repeats that at a desk; a one-layer model that meets a language of thirty words for
the first time shows the shape of the curve.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import BertConfig, PreTrainedTokenizerFast

from ..cloze import compare_at_mask
from ..encoder import Encoder, new_encoder
from ..resampling import Estimate, student_reach
from ..stimuli import MASK, lexicon
from ..words import align_all

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: share of pieces that are masked
MASKED = 0.3
#: spread of the first weights: at this width the usual 0.02 leaves attention even for very long
SPREAD = 0.25


@dataclass(frozen=True)
class TinyPair:
    """A sentence with its finite verb hidden.

    Attributes:
        frame: the sentence with [MASK] for the verb.
        good, bad: the verb in the subject's number, and in the other.
        attractor: another noun of the other number stands before the verb.
    """

    frame: str
    good: str
    bad: str
    attractor: bool

    @property
    def sentence(self) -> str:
        return self.frame.replace(MASK, self.good)


def tiny_language(n: int, seed: int = 0, exclude: Collection[str] = ()) -> list[TinyPair]:
    """``n`` different sentences such as "the keys near the cabinet are old ."

    Numbers of both nouns are drawn independently; half of the sentences have one noun only.

    Args:
        n: how many; seed: of the draw.
        exclude: sentences that must not be among them.

    Raises:
        ValueError: more than there are.
    """
    words = lexicon("all")
    nouns = [noun for noun in words.nouns_of("object") if noun.plural][:N_NOUNS]
    adjectives = [adjective.lemma for adjective in words.adjectives][:N_ADJECTIVES]
    rng = np.random.default_rng(seed)
    seen, out, misses = set(exclude), [], 0
    while len(out) < n:
        if misses > 500:
            raise ValueError(f"only {len(out)} different sentences of the tiny language, not {n}")
        first, second = rng.choice(len(nouns), 2, replace=False)
        plural, other = rng.random(2) < 0.5
        form = nouns[first].plural if plural else nouns[first].singular
        subject, attractor = f"the {form}", False
        if rng.random() < 0.5:
            near = nouns[second].plural if other else nouns[second].singular
            subject += f" {rng.choice(PREPOSITIONS)} the {near}"
            attractor = bool(plural != other)
        good, bad = VERBS[rng.integers(len(VERBS))][:: 1 if plural else -1]
        pair = TinyPair(f"{subject} {MASK} {rng.choice(adjectives)} .", good, bad, attractor)
        misses += 1
        if pair.sentence not in seen:
            misses = 0
            seen.add(pair.sentence)
            out.append(pair)
    return out


#: (plural, singular)
VERBS = (("are", "is"), ("were", "was"))
PREPOSITIONS = ("near", "behind", "under")
N_NOUNS, N_ADJECTIVES = 8, 8


def word_tokenizer(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose pieces are exactly these words, lower-cased.

    Raises:
        ValueError: no words.
    """
    if not words:
        raise ValueError("a vocabulary takes words")
    ids = {piece: i for i, piece in enumerate(_SPECIAL)}
    for word in sorted({word.lower() for word in words}):
        ids.setdefault(word, len(ids))
    core = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=64,
    )  # fmt: skip


def tiny_encoder(
    words: Sequence[str], *, layers: int = 1, width: int = 32, heads: int = 4, seed: int = 0
) -> Encoder:
    """An untrained BERT whose vocabulary is these words.

    Raises:
        ValueError: no words, or a width that the heads do not divide.
    """
    tokenizer = word_tokenizer(words)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * width, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=SPREAD,
    )  # fmt: skip
    return new_encoder(config, tokenizer, seed=seed, name=f"tiny BERT (seed {seed})", device="cpu")


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Agreement at moments of training, one row a seed.

    Attributes:
        steps: moments, from 0 on.
        simple, attractor: [seeds, moments] share of pairs won without and across an attractor.
        loss: [seeds, moments - 1] mean masked-word loss since the moment before, in nats.
        n_pairs: pairs of both kinds together.
        seeds: of weights, order and masks.
        sentences: different sentences in the training data.
    """

    steps: tuple[int, ...]
    simple: np.ndarray
    attractor: np.ndarray
    loss: np.ndarray
    n_pairs: int
    seeds: tuple[int, ...]
    sentences: int

    @property
    def accuracy(self) -> np.ndarray:
        """[seeds, moments] the two kinds averaged, so that neither counts more."""
        return (self.simple + self.attractor) / 2

    @property
    def halves(self) -> Estimate:
        """Accuracy gained in the second half of training minus in the first.

        The interval is Student's t over seeds; with one seed there is none.
        """
        middle = int(np.argmin(np.abs(np.array(self.steps) - self.steps[-1] / 2)))
        first = self.accuracy[:, middle] - self.accuracy[:, 0]
        second = self.accuracy[:, -1] - self.accuracy[:, middle]
        gaps = second - first
        value, n, interval = float(gaps.mean()), len(gaps), None
        if n > 1:
            half = student_reach(gaps)
            interval = (max(-1.0, value - half), min(1.0, value + half))
        return Estimate(
            value=value, unit="share difference", n=n, model="tiny BERT", seed=self.seeds[0],
            interval=interval,
        )  # fmt: skip

    def by_step(self, kind: str) -> list[Estimate]:
        """Mean over seeds at every moment, with the range of the seeds as interval.

        Args:
            kind: ``"simple"`` or ``"attractor"``.

        Raises:
            KeyError: another kind.
        """
        if kind not in ("simple", "attractor"):
            raise KeyError(f"kind is {kind!r}, must be 'simple' or 'attractor'")
        return [
            Estimate(
                value=float(column.mean()), unit="share", n=self.n_pairs, model="tiny BERT",
                seed=self.seeds[0], interval=(float(column.min()), float(column.max())),
            )
            for column in getattr(self, kind).T
        ]  # fmt: skip


def learning_curve(
    *,
    sentences: int = 1000,
    pairs: int = 120,
    steps: int = 400,
    moments: int = 8,
    batch_size: int = 64,
    lr: float = 3e-3,
    seeds: Sequence[int] = (0, 1, 2),
    **shape: int,
) -> LearningCurve:
    """Train tiny BERTs on masked words and judge agreement on the way.

    Args:
        sentences: different training sentences of :func:`tiny_language`.
        pairs: other sentences of it, on which agreement is judged at one mask.
        steps: of training; moments: equally spaced looks at agreement, besides the one at step 0.
        batch_size: sentences a step; lr: highest learning rate, reached after a tenth of the steps
            and kept.
        seeds: one training each.
        shape: ``layers``, ``width``, ``heads`` of :func:`tiny_encoder`.

    Raises:
        ValueError: no seeds, or moments that do not divide the steps.
    """
    if not seeds:
        raise ValueError("a learning curve takes at least one seed")
    if moments < 2 or steps % moments:
        raise ValueError(f"{moments} moments do not divide {steps} steps")
    train = [pair.sentence for pair in tiny_language(sentences, 0)]
    judged = tiny_language(pairs, 1, exclude=train)
    words = {word for pair in judged for word in (pair.good, pair.bad)}
    words |= {word for sentence in train for word in sentence.split()}
    curves, losses = [], []
    for seed in seeds:
        encoder = tiny_encoder(sorted(words), seed=seed, **shape)
        ids = sorted((row.input_ids for row in align_all(encoder, train)), key=len)
        training = _Training(encoder, ids, batch_size, lr, steps, seed)
        curve, loss = [_won(encoder, judged)], []
        for _ in range(moments):
            loss.append(training.run(steps // moments))
            curve.append(_won(encoder, judged))
        curves.append(curve)
        losses.append(loss)
    looks = tuple(range(0, steps + 1, steps // moments))
    simple, attractor = np.moveaxis(np.array(curves), 2, 0)
    return LearningCurve(
        looks, simple, attractor, np.array(losses), len(judged), tuple(seeds), sentences
    )


def _won(encoder: Encoder, pairs: Sequence[TinyPair]) -> tuple[float, float]:
    """Shares of pairs won: (without an attractor, across one)."""
    found = compare_at_mask(
        encoder, [p.frame for p in pairs], [p.good for p in pairs], [p.bad for p in pairs]
    )
    won = np.array(found.margins) > 0
    across = np.array([p.attractor for p in pairs])
    return float(won[~across].mean()), float(won[across].mean())


class _Training:
    """Masked-word training that can be continued. Sentences of similar length share a batch."""

    def __init__(
        self, encoder: Encoder, ids: list[list[int]], size: int, lr: float, steps: int, seed: int
    ):
        self.encoder, self.rng = encoder, np.random.default_rng(seed)
        pad = encoder.tokenizer.pad_token_id
        self.batches = []
        for start in range(0, len(ids), size):
            part = ids[start : start + size]
            table = np.full((len(part), len(part[-1])), pad)
            for row, pieces in zip(table, part, strict=True):
                row[: len(pieces)] = pieces
            self.batches.append(table)
        self.optimiser = torch.optim.AdamW(
            encoder.model.parameters(), lr=lr, weight_decay=0.01, fused=True
        )
        warm = max(1, steps // 10)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda s: min(1.0, (s + 1) / warm)
        )
        self.queue: list[int] = []

    def run(self, steps: int) -> float:
        """Go on for some steps; the mean loss in nats."""
        losses = []
        tokenizer, special = self.encoder.tokenizer, len(_SPECIAL)
        for _ in range(steps):
            if not self.queue:
                self.queue = self.rng.permutation(len(self.batches)).tolist()
            gold = self.batches[self.queue.pop()]
            chosen = (self.rng.random(gold.shape) < MASKED) & (gold >= special)
            chosen[0, 1] = True  # at least one
            shown = np.where(chosen, tokenizer.mask_token_id, gold)
            hidden = self.encoder.base(
                input_ids=torch.from_numpy(shown),
                attention_mask=torch.from_numpy((gold != tokenizer.pad_token_id).astype(np.int64)),
            ).last_hidden_state
            where = torch.from_numpy(chosen)
            loss = nn.functional.cross_entropy(
                self.encoder.mlm_logits(hidden[where]), torch.from_numpy(gold)[where]
            )
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.encoder.model.parameters(), 1.0)
            self.optimiser.step()
            self.schedule.step()
            losses.append(loss.item())
        return float(np.mean(losses))
