"""Reference solutions pass; stubs and typical mistakes are told what is wrong."""

import numpy as np
import pytest

from bertology_utils.checks import probing_limits as check

# -- reference solutions -------------------------------------------------------------------------


def control_task(types, labels, rng):
    given = {word: labels[rng.integers(len(labels))] for word in dict.fromkeys(types)}
    return [given[word] for word in types]


def online_bits(n_first, n_classes, blocks):
    return n_first * np.log2(n_classes) - sum(np.log2(block).sum() for block in blocks)


def remove(vectors, directions):
    left, sizes, axes = np.linalg.svd(directions, full_matrices=False)
    axes = axes[sizes > 1e-9 * sizes.max()]
    return vectors - vectors @ axes.T @ axes


def honest_gap(table, choose, test):
    shares = table[:, choose].mean(axis=1)
    return table[shares.argmax(), test].mean() - table[shares.argmin(), test].mean()


GOOD = [
    (check.control_task, control_task),
    (check.online_bits, online_bits),
    (check.remove, remove),
    (check.honest_gap, honest_gap),
]


@pytest.mark.parametrize(("judge", "answer"), GOOD, ids=lambda x: getattr(x, "__name__", ""))
def test_reference_solutions_pass(judge, answer):
    for _ in range(3):
        feedback = judge(answer)
        assert feedback, str(feedback)


@pytest.mark.parametrize("judge", [judge for judge, _ in GOOD])
def test_stubs_fail(judge):
    def stub(*_):
        raise NotImplementedError

    feedback = judge(stub)
    assert not feedback
    assert "nothing is written yet" in feedback.message


# -- typical mistakes ----------------------------------------------------------------------------


def label_per_word(types, labels, rng):
    return [labels[rng.integers(len(labels))] for _ in types]


def fair_coin(types, labels, rng):
    classes = sorted(set(labels))
    given = {word: classes[rng.integers(len(classes))] for word in dict.fromkeys(types)}
    return [given[word] for word in types]


def own_generator(types, labels, _rng):
    return control_task(types, labels, np.random.default_rng(0))


def in_nats(n_first, n_classes, blocks):
    return n_first * np.log2(n_classes) - sum(np.log(block).sum() for block in blocks)


def averaged(n_first, n_classes, blocks):
    return n_first * np.log2(n_classes) - sum(np.log2(block).mean() for block in blocks)


def without_first(n_first, n_classes, blocks):
    return -sum(np.log2(block).sum() for block in blocks)


def not_unit(vectors, directions):
    return vectors - vectors @ directions.T @ directions


def one_by_one(vectors, directions):
    for row in directions:
        unit = row / np.linalg.norm(row)
        vectors = vectors - np.outer(vectors @ unit, unit)
    return vectors


def everything(vectors, directions):
    return np.zeros_like(vectors)


def flattering(table, choose, test):
    shares = table[:, test].mean(axis=1)
    return shares.max() - shares.min()


def never_negative(table, choose, test):
    return abs(honest_gap(table, choose, test))


@pytest.mark.parametrize(
    ("judge", "answer", "told"),
    [
        (check.control_task, label_per_word, "keep its label"),
        (check.control_task, fair_coin, "frequencies"),
        (check.control_task, own_generator, "another generator"),
        (check.online_bits, in_nats, "base of the logarithm"),
        (check.online_bits, averaged, "do not average"),
        (check.online_bits, without_first, "first block"),
        (check.remove, not_unit, "length 1"),
        (check.remove, one_by_one, "right angles"),
        (check.remove, everything, "stay as it is"),
        (check.honest_gap, flattering, "flatters"),
        (check.honest_gap, never_negative, "can be worse"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_mistakes_are_told_apart(judge, answer, told):
    feedback = judge(answer)
    assert not feedback
    assert told in feedback.message, feedback.message
