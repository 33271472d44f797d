"""Copy a model through its answers to nonsense (Krishna et al. 2020, arXiv 1910.12366)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..encoder import Encoder
from ..heads import TunedEncoder
from ..resampling import Estimate
from ..stimuli import word_counts
from ..words import Text
from .learning import learn, probabilities, share


@dataclass(frozen=True, eq=False)
class Theft:
    """A copy and how well it agrees with its victim.

    Attributes:
        agreement: share of real texts on which both say the same, with the baseline ``majority``:
            always saying what the victim says most often.
        copy: the stolen model.
        answers: [Q] share of queries for which the victim chose each class.
    """

    agreement: Estimate
    copy: TunedEncoder
    answers: np.ndarray


def nonsense(n: int, seed: int = 0, *, length: int = 8, per_million: float = 20.0) -> list[str]:
    """Strings of frequent words in no order.

    Args:
        n: how many; length: words of each; per_million: rarest word used.

    Raises:
        ValueError: nothing asked for, or no word is so frequent.
    """
    counts = word_counts()
    words = [word for word in counts.counts if counts.per_million(word) >= per_million]
    if n < 1 or length < 1 or not words:
        raise ValueError(f"{n} strings of {length} out of {len(words)} words")
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(words, length)).capitalize() + "." for _ in range(n)]


def steal(
    victim: TunedEncoder,
    start: Encoder,
    queries: Sequence[str],
    texts: Sequence[Text],
    *,
    epochs: int = 3,
    frozen: int = 0,
    seed: int = 0,
) -> Theft:
    """Fine-tune ``start`` on the victim's answers to queries; compare on real texts.

    Epochs, frozen layers and seed as :func:`learn`. Only the victim's probabilities are used,
    never a label or a weight.

    Raises:
        ValueError: no queries or texts.
    """
    answers = probabilities(victim, queries)
    copy = learn(start, list(queries), answers, epochs=epochs, frozen=frozen, seed=seed)
    theirs, ours = (probabilities(m, texts).argmax(1) for m in (victim, copy))
    majority = float(np.bincount(theirs).max() / len(theirs))
    found = share(theirs == ours, copy.encoder.name, seed=seed).with_baselines(majority=majority)
    chosen = np.bincount(answers.argmax(1), minlength=answers.shape[1]) / len(answers)
    return Theft(found, copy, chosen)
