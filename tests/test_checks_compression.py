"""The checks of the chapter on compression: right answers pass, stubs and typical slips do not."""

import numpy as np
import pytest

from bertology_utils.checks import compression as check


def log_softmax(z):
    z = z - z.max()
    return z - np.log(np.exp(z).sum())


def right_loss(student, teacher, temperature):
    told, said = log_softmax(teacher / temperature), log_softmax(student / temperature)
    return temperature**2 * (np.exp(told) * (told - said)).sum()


def right_int8(weight):
    scale = np.abs(weight).max(axis=1) / 127
    return np.round(weight / scale[:, None]).astype(int), scale


def top(score, keep):
    chosen = np.zeros(len(score), dtype=bool)
    chosen[np.argsort(score)[len(score) - keep :]] = True
    return chosen


def right_movement(weights, gradients, keep):
    return top(-(weights * gradients).sum(axis=0), keep)


def right_speedup(full, small):
    return np.median(full / small)


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.soft_target_loss, right_loss),
    (check.to_int8, right_int8),
    (check.moved_away, right_movement),
    (check.speedup, right_speedup),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(10):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def cross_entropy(student, teacher, temperature):
    told, said = np.exp(log_softmax(teacher / temperature)), log_softmax(student / temperature)
    return -(temperature**2) * (told * said).sum()


def unscaled(student, teacher, temperature):
    return right_loss(student, teacher, temperature) / temperature**2


def reversed_loss(student, teacher, temperature):
    return right_loss(teacher, student, temperature)


def overflowing(student, teacher, temperature):
    with np.errstate(all="ignore"):
        p, q = (np.exp(z / temperature) for z in (teacher, student))
        p, q = p / p.sum(), q / q.sum()
        return temperature**2 * (p * np.log(p / q)).sum()


def one_scale(weight):
    scale = np.abs(weight).max() / 127
    return np.round(weight / scale).astype(int), np.full(len(weight), scale)


def cut_off(weight):
    scale = np.abs(weight).max(axis=1) / 127
    return (weight / scale[:, None] * (1 + 1e-12)).astype(int), scale


def shifted(weight):
    low = weight.min(axis=1)
    scale = (weight.max(axis=1) - low) / 254
    return np.round((weight - low[:, None]) / scale[:, None]).astype(int) - 127, scale


def by_size(weights, gradients, keep):
    return top(np.abs(weights).sum(axis=0), keep)


def wrong_way(weights, gradients, keep):
    return top((weights * gradients).sum(axis=0), keep)


def no_sign(weights, gradients, keep):
    return top(-gradients.sum(axis=0), keep)


def last_step(weights, gradients, keep):
    return top(-(weights * gradients)[-1], keep)


WRONG = [
    (check.soft_target_loss, cross_entropy, "loss of 0"),
    (check.soft_target_loss, unscaled, "squared temperature"),
    (check.soft_target_loss, reversed_loss, "wrong way round"),
    (check.soft_target_loss, overflowing, "infinite or not numbers"),
    (check.to_int8, one_scale, "each row"),
    (check.to_int8, cut_off, "do not cut off"),
    (check.to_int8, shifted, "code 0"),
    (check.moved_away, by_size, "size does not matter"),
    (check.moved_away, wrong_way, "towards zero"),
    (check.moved_away, no_sign, "sign of the weight"),
    (check.moved_away, last_step, "all steps"),
    (check.speedup, lambda full, small: np.median(small / full), "above 1"),
    (check.speedup, lambda full, small: np.median(full) / np.median(small), "within"),
    (check.speedup, lambda full, small: np.mean(full / small), "mean"),
]


@pytest.mark.parametrize(("judge", "answer", "message"), WRONG)
def test_typical_slips_are_named(judge, answer, message):
    for _ in range(5):
        found = judge(answer)
        assert not found and message in found.message, found.message
