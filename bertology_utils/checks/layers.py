"""Checks of the exercises of the chapter on layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("gains are counted as they are, and the layers are weighted by them.")
def expected_layer(answer: Callable) -> None:
    """``answer(cumulative)``: mean of the layers 1 .. L, weighted by what each adds."""
    draw = np.random.default_rng()
    for depth in (3, 6, 12):
        layer = int(draw.integers(1, depth + 1))
        step = np.where(np.arange(depth + 1) >= layer, 0.9, 0.4)
        found = float(as_array("the layer", ask(answer, step), ()))
        expect(
            not np.isclose(found, layer - 1),
            "the first gain is that of layer 1 over layer 0; your layers seem to count from 0.",
        )
        expect(
            np.isclose(found, layer),
            "if all is gained at one layer, that layer should come out.",
        )
        even = np.linspace(0.2, 0.8, depth + 1)
        found = float(as_array("the layer", ask(answer, even), ()))
        expect(
            np.isclose(found, (depth + 1) / 2),
            "if every layer adds the same, the middle of 1 .. L should come out; weight by gains, "
            "not by scores.",
        )
        bumpy = np.concatenate([[0.3], 0.3 + draw.permutation(depth) / depth * 0.2, [0.9]])
        found = float(as_array("the layer", ask(answer, bumpy), ()))
        gains = np.diff(bumpy)
        numbers = np.arange(1, depth + 2)
        clipped = (numbers * gains.clip(0)).sum() / gains.clip(0).sum()
        right = (numbers * gains).sum() / gains.sum()
        expect(
            np.isclose(clipped, right) or not np.isclose(found, clipped),
            "a layer that lowers the score has a negative gain; keep it as it is.",
        )
        expect(np.isclose(found, right), "the weights should be the gains divided by their sum.")
        shifted = float(as_array("the layer", ask(answer, bumpy - 0.2), ()))
        expect(
            np.isclose(shifted, found),
            "lowering all scores alike changes no gain, so the layer should stay.",
        )


@check("the layer comes from the other tasks, the score from the task itself.")
def spared_choice(answer: Callable) -> None:
    """``answer(scores, task)``: (layer best on the other tasks, score of ``task`` there)."""
    draw = np.random.default_rng()
    for tasks, layers in ((3, 4), (8, 13)):
        task = int(draw.integers(tasks))
        scores = draw.uniform(0.3, 0.6, size=(tasks, layers))
        own, others = draw.choice(layers, 2, replace=False)
        scores[:, others] += 0.31  # above all others, whatever was drawn
        scores[task, own], scores[task, others] = 0.99, 0.31
        layer, found = _pair(ask(answer, scores, task), layers)
        expect(
            layer != own,
            "the layer was chosen with the help of the task itself, which must be left out.",
        )
        expect(layer == others, "another layer has the higher mean over the other tasks.")
        expect(
            np.isclose(found, 0.31),
            "the score should be that of the task that was left out, at the chosen layer.",
        )
        # One task with wild scores must not decide alone when ranks are not asked for.
        last = (task + 1) % tasks
        again = scores.copy()
        again[last, own] = 0.05
        layer, _ = _pair(ask(answer, again, task), layers)
        expect(layer == others, "the mean should be taken over all other tasks.")


def _pair(reply, size: int) -> tuple[int, float]:
    expect(
        isinstance(reply, (tuple, list)) and len(reply) == 2,
        "two things should come back: the layer and the score.",
    )
    layer = float(as_array("the layer", reply[0], ()))
    inside = layer == int(layer) and 0 <= layer < size
    expect(inside, f"the layer should be one of 0 to {size - 1}.")
    return int(layer), float(as_array("the score", reply[1], ()))


@check("named layers are the original's, the others the tuned model's, and nothing was spoilt.")
def put_back(answer: Callable) -> None:
    """``answer(tuned, original, layers)``: weights with some layers put back."""
    draw = np.random.default_rng()
    for depth in (2, 5):
        def weights(depth=depth):
            return {k: {"query": draw.normal(size=(3, 3)), "bias": draw.normal(size=3)}
                    for k in range(1, depth + 1)}  # fmt: skip

        tuned, original = weights(), weights()
        for layers in ([], [1], list(range(1, depth + 1)), [depth]):
            made = ask(answer, tuned, original, layers)
            expect(isinstance(made, dict), "a dictionary of layers should come back.")
            expect(
                sorted(made) == sorted(tuned), "every layer of the model should be in the result."
            )
            for layer in tuned:
                source = original if layer in layers else tuned
                other = tuned if layer in layers else original
                for name in tuned[layer]:
                    expect(name in made[layer], f"the weight {name!r} of a layer is missing.")
                    found = as_array("a weight", made[layer][name], tuned[layer][name].shape)
                    expect(
                        not np.allclose(found, other[layer][name]),
                        "a layer that is named keeps its tuned weights."
                        if layer in layers else "a layer that is not named was put back, too.",
                    )  # fmt: skip
                    expect(
                        np.allclose(found, source[layer][name]),
                        "weights should be taken over as they are, not mixed.",
                    )
        # `ask` hands out copies; to see what the result shares, they are handed back with it.
        made, ours, theirs = ask(
            lambda *given: (answer(*given), *given[:2]), tuned, original, [1]
        )
        shared = any(
            np.shares_memory(made[k][name], source[k][name])
            for source in (ours, theirs) for k in made for name in made[k]
        )  # fmt: skip
        expect(
            not shared,
            "changing the result would change the models it was made from; hand back copies.",
        )


@check("centred, normed, and blind to rotation and scale.")
def linear_cka(answer: Callable) -> None:
    """``answer(x, y)``: linear centred kernel alignment of [N, D] and [N, E]."""
    draw = np.random.default_rng()
    for n, wide, other in ((30, 5, 4), (60, 3, 8)):
        x, y = draw.normal(size=(n, wide)), draw.normal(size=(n, other))
        own = float(as_array("the similarity", ask(answer, x, x), ()))
        expect(np.isclose(own, 1), "a set of vectors should have a similarity of 1 with itself.")
        turn = np.linalg.qr(draw.normal(size=(wide, wide)))[0]
        base = float(as_array("the similarity", ask(answer, x, y), ()))
        far = float(as_array("the similarity", ask(answer, x + 10, y), ()))
        expect(
            np.isclose(far, base),
            "adding the same vector to all rows should not matter: take the mean off first.",
        )
        turned = float(as_array("the similarity", ask(answer, 3 * x @ turn, y), ()))
        expect(np.isclose(turned, base), "a rotation and a common scale should not matter.")
        expect(0 <= base <= 1, "the similarity should lie between 0 and 1.")
        back = float(as_array("the similarity", ask(answer, y, x), ()))
        expect(np.isclose(back, base), "the two sides should be interchangeable.")
        # Two uncorrelated columns of y, one of them a column of x: known in closed form.
        basis = np.linalg.qr(np.column_stack([np.ones(n), draw.normal(size=(n, 3))]))[0][:, 1:]
        known = float(as_array("the similarity", ask(answer, basis[:, :2], basis[:, 1:]), ()))
        expect(
            not np.isclose(known, np.sqrt(0.5)),
            "this looks like the square root; the numerator is a sum of squares.",
        )
        expect(
            np.isclose(known, 0.5),
            "two sets of two directions that share one of them should have a similarity of 1/2.",
        )
