"""Checks of the exercises of the chapter on pruning as analysis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("the right number of entries, by size and not by sign, in the shape of the matrix.")
def magnitude_mask(answer: Callable) -> None:
    """``answer(weights, share)``: False for the smallest entries."""
    draw = np.random.default_rng()
    for shape, share in (((4, 5), 0.3), ((7, 3), 0.5), ((6, 6), 0.0), ((3, 11), 0.9)):
        size = int(np.prod(shape))
        sizes = (1 + draw.permutation(size)) * 0.1
        weights = (sizes * draw.choice([-1, 1], size)).reshape(shape)
        reply = ask(answer, weights, share)
        mask = as_array("the mask", reply, shape)
        expect(bool(np.isin(mask, (0, 1)).all()), "a mask holds True and False only.")
        gone = int(share * size)
        expect(
            int((mask == 0).sum()) != size - gone or 2 * gone == size,
            "it is the other way round: True marks what stays, the given share is what goes.",
        )
        expect(
            int((mask == 0).sum()) == gone,
            f"{int((mask == 0).sum())} entries go; it should be int(share * size) = {gone}.",
        )
        if gone:
            lowest = np.sort(weights.ravel())[:gone]
            expect(
                set(weights[mask == 0]) != set(lowest)
                or set(np.abs(lowest)) == set(np.sort(np.abs(weights).ravel())[:gone]),
                "the most negative entries go; size has no sign.",
            )
            expect(
                np.abs(weights[mask == 0]).max() < np.abs(weights[mask == 1]).min(),
                "an entry goes that is larger than one that stays.",
            )


@check("chosen on the first half, judged on the second, gains and not accuracies.")
def gain_elsewhere(answer: Callable) -> None:
    """``answer(right, right_without)``: the head chosen on one half and its gain on the other."""
    draw = np.random.default_rng()
    for n, size in ((12, 4), (60, 9)):
        half = n // 2
        right = np.zeros(n, int)
        right[draw.permutation(half)[: half // 2]] = 1
        right[half + draw.permutation(half)[: half // 2]] = 1
        without = np.tile(right, (size, 1))
        lucky, steady = draw.choice(size, 2, replace=False)
        # Without the one head the first half is perfect and the second lost; without the other
        # the reverse.
        without[lucky, :half], without[lucky, half:] = 1, 0
        without[steady, :half], without[steady, half:] = 0, 1
        head, gain = _chosen(answer, right, without, size)
        expect(
            head != steady,
            "the head was chosen with the help of the second half, which must stay unseen.",
        )
        expect(head == lucky, "without another head the first half gains more.")
        expect(
            not np.isclose(gain, 1 - right[:half].mean()),
            "that is the gain on the half that chose the head; judge it on the other.",
        )
        expect(
            not np.isclose(gain, without[lucky, half:].mean()),
            "that is the accuracy without the head; a gain is the difference to the whole model.",
        )
        expect(
            not np.isclose(gain, right[half:].mean()),
            "the sign is the wrong way round: a gain is what is won *without* the head.",
        )
        expect(
            np.isclose(gain, -right[half:].mean()),
            "the gain should be the accuracy without the head minus with it, on the second half.",
        )


def _chosen(answer: Callable, right: np.ndarray, without: np.ndarray, size: int):
    reply = ask(answer, right, without)
    expect(
        isinstance(reply, (tuple, list)) and len(reply) == 2,
        "two things should come back: the head's number and its gain.",
    )
    head = float(as_array("the head", reply[0], ()))
    expect(head == int(head) and 0 <= head < size, f"the head should be one of 0 to {size - 1}.")
    gain = float(as_array("the gain", reply[1], ()))
    expect(-1 <= gain <= 1, "a gain in accuracy lies between -1 and 1.")
    return int(head), gain


@check("the most important heads of each run, shared over all.")
def overlap(answer: Callable) -> None:
    """``answer(one, other, k)``: Jaccard overlap of the k most important heads."""
    draw = np.random.default_rng()
    for shape, k in (((2, 3), 2), ((6, 12), 20), ((4, 4), 8)):
        size = int(np.prod(shape))
        one = draw.permutation(size).astype(float).reshape(shape)
        same = float(as_array("the overlap", ask(answer, one, 3 * one + 1, k), ()))
        expect(
            np.isclose(same, 1),
            "two runs that rank the heads alike have all survivors in common: the overlap is 1.",
        )
        order = np.argsort(one.ravel())
        shared = k // 2
        other = np.full(size, 0.0)
        # Half of the survivors are the same; the rest come from the bottom of the first run.
        chosen = [*order[-shared:], *order[: k - shared]] if shared else [*order[:k]]
        other[chosen] = 1 + draw.permutation(k)
        other[other == 0] = -1 - draw.permutation(size - k)
        found = float(as_array("the overlap", ask(answer, one, other.reshape(shape), k), ()))
        common = len(set(order[-k:]) & set(chosen))
        least = len(set(order[:k]) & set(np.argsort(other)[:k]))
        right = common / (2 * k - common)
        wrong_end = least / (2 * k - least)
        expect(
            not np.isclose(found, common / k) or np.isclose(common / k, right),
            "shared survivors were divided by k; the union is larger than that.",
        )
        expect(
            not np.isclose(found, wrong_end) or np.isclose(wrong_end, right),
            "these are the least important heads; survivors are the most important ones.",
        )
        expect(
            np.isclose(found, right),
            "the overlap should be shared survivors over all survivors of either run.",
        )


@check("rises over the whole model, all at once and one by one.")
def interaction(answer: Callable) -> None:
    """``answer(loss, parts)``: rise without all parts minus the sum of the single rises."""
    draw = np.random.default_rng()
    for n in (2, 3, 5):
        parts = [f"part {i}" for i in range(n)]
        base = float(draw.uniform(1, 3))
        own = dict(zip(parts, draw.uniform(0.1, 0.5, n), strict=True))

        def additive(gone, base=base, own=own):
            return base + sum(own[p] for p in gone)

        found = float(as_array("the number", ask(answer, additive, parts), ()))
        expect(
            not np.isclose(found, base - n * base),
            "take the whole model's loss off every term: these are rises, not losses.",
        )
        expect(
            np.isclose(found, 0),
            "where effects add up, all at once costs the sum of the parts: the answer is 0.",
        )

        def stored_twice(gone, base=base, parts=parts):
            return base + (2.5 if set(parts) <= set(gone) else 0.0)

        found = float(as_array("the number", ask(answer, stored_twice, parts), ()))
        expect(
            not np.isclose(found, -2.5),
            "the sign is the wrong way round: more harm together gives a positive number.",
        )
        expect(
            np.isclose(found, 2.5),
            "what is stored in every part alike is lost only with all of them together.",
        )
