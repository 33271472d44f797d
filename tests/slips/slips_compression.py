"""Typical mistakes in the exercises on compression, and what their checks must say."""

import numpy as np


def log_softmax(z):
    z = z - z.max()
    return z - np.log(np.exp(z).sum())


def right_loss(student, teacher, temperature):
    told, said = log_softmax(teacher / temperature), log_softmax(student / temperature)
    return temperature**2 * (np.exp(told) * (told - said)).sum()


def top(score, keep):
    chosen = np.zeros(len(score), dtype=bool)
    chosen[np.argsort(score)[len(score) - keep :]] = True
    return chosen


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


SLIPS = {
    "soft_target_loss": [
        (cross_entropy, "loss of 0"),
        (unscaled, "squared temperature"),
        (reversed_loss, "wrong way round"),
        (overflowing, "infinite or not numbers"),
    ],
    "to_int8": [
        (one_scale, "each row"),
        (cut_off, "do not cut off"),
        (shifted, "code 0"),
    ],
    "moved_away": [
        (by_size, "size does not matter"),
        (wrong_way, "towards zero"),
        (no_sign, "sign of the weight"),
        (last_step, "all steps"),
    ],
    "speedup": [
        (lambda full, small: np.median(small / full), "above 1"),
        (lambda full, small: np.median(full) / np.median(small), "within"),
        (lambda full, small: np.mean(full / small), "mean"),
    ],
}
