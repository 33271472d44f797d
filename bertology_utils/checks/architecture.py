"""Checks of the exercises of the chapter on the architecture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from transformers import BertConfig

from .judging import as_array, ask, check, expect


@check("rows sum to 1, padding gets nothing, and the scores are scaled.")
def attend(answer: Callable) -> None:
    """``answer(q, k, v, real)``: one attention head over T pieces, (pattern, z)."""
    draw = np.random.default_rng()
    for length, size in ((4, 3), (9, 16)):
        q, k, v = draw.normal(size=(3, length, size))
        everything = np.ones(length, dtype=bool)
        pattern, z = _head_reply(answer, q, k, v, everything)
        expect(
            np.allclose(pattern.sum(axis=1), 1),
            "what a piece gives to all the others should sum to 1, row by row.",
        )
        expect((pattern >= 0).all(), "weights should not be negative.")
        expect(np.allclose(z, pattern @ v), "z should be the values mixed by the pattern.")
        flat, _ = _head_reply(answer, np.zeros_like(q), k, v, everything)
        expect(np.allclose(flat, 1 / length), "a query of zeros should attend evenly.")
        expect((pattern > 0).all(), "a softmax gives everything that is real a little.")
        # The ratio of two weights in a row tells the difference of their scores.
        scores = np.log(pattern[:, 1:] / pattern[:, :1])
        products = q @ k.T
        wanted = products[:, 1:] - products[:, :1]
        # Without variation there is no correlation, and no warning is wanted on the page.
        with np.errstate(all="ignore"):
            alike = np.corrcoef(scores.ravel(), wanted.ravel())[0, 1]
        expect(
            alike > 0.9999,
            "weights should grow with the products of queries (rows) and keys (columns).",
        )
        slope = float((scores * wanted).sum() / (wanted**2).sum())
        expect(
            np.isclose(slope * np.sqrt(size), 1, rtol=1e-3),
            "the products have to be scaled; mind what the paper divides by.",
        )
        real = everything.copy()
        real[draw.integers(1, length) :] = False
        padded, mixed = _head_reply(answer, q, k, v, real)
        expect((padded[:, ~real] < 1e-6).all(), "nothing should be given to padding.")
        n = int(real.sum())
        alone, apart = _head_reply(answer, q[:n], k[:n], v[:n], everything[:n])
        expect(
            np.allclose(padded[:n, :n], alone) and np.allclose(mixed[:n], apart),
            "a text should be read the same with and without padding behind it.",
        )


def _head_reply(answer, q, k, v, real) -> tuple[np.ndarray, np.ndarray]:
    reply = ask(answer, q, k, v, real)
    expect(
        isinstance(reply, tuple) and len(reply) == 2, "two arrays should come back: pattern and z."
    )
    pattern = as_array("the pattern", reply[0], (len(q), len(q)))
    return pattern, as_array("z", reply[1], v.shape)


@check("longest piece first, marks inside words, and [UNK] for what cannot be cut.")
def wordpiece(answer: Callable) -> None:
    """``answer(word, vocabulary)`` cuts a word into pieces, greedily from the left."""
    draw = np.random.default_rng()
    letters = list("abcde")
    for _ in range(200):
        word = "".join(draw.choice(letters, size=draw.integers(1, 9)))
        vocabulary = set()
        for _ in range(int(draw.integers(2, 40))):
            start = int(draw.integers(len(word)))
            end = int(draw.integers(start + 1, len(word) + 1))
            vocabulary.add(word[start:end] if start == 0 else "##" + word[start:end])
        pieces = ask(answer, word, vocabulary)
        expect(isinstance(pieces, (list, tuple)), "a list of pieces should come back.")
        pieces = list(pieces)
        bare = [piece.removeprefix("##") for piece in pieces]
        if pieces != ["[UNK]"]:
            expect(
                "".join(bare) == word, "the pieces put together again should be the word."
            )
            expect(
                not pieces[0].startswith("##") and all(p.startswith("##") for p in pieces[1:]),
                "every piece but the first should carry the mark of a word's inside.",
            )
            expect(set(pieces) <= vocabulary, "every piece should be in the vocabulary.")
        place = 0
        for piece in bare if pieces != ["[UNK]"] else ():
            longer = {word[place:end] for end in range(place + len(piece) + 1, len(word) + 1)}
            mark = "##" if place else ""
            expect(
                not any(mark + part in vocabulary for part in longer),
                "at every place the longest piece that fits should be taken.",
            )
            place += len(piece)
        expect(
            (pieces == ["[UNK]"]) == _stuck(word, vocabulary),
            "a word gets [UNK], and nothing else, exactly when no piece fits at some place.",
        )


def _stuck(word: str, vocabulary: set[str]) -> bool:
    """Whether greedy cutting comes to a place where no piece fits."""
    place = 0
    while place < len(word):
        mark = "##" if place else ""
        fits = [n for n in range(1, len(word) - place + 1)
                if mark + word[place : place + n] in vocabulary]  # fmt: skip
        if not fits:
            return True
        place += max(fits)
    return False


@check("the shares are right, special tokens are spared, and the targets fit.")
def mask_pieces(answer: Callable) -> None:
    """``answer(ids, special, mask_id, size, draw)``: new ids and what is to be predicted."""
    draw = np.random.default_rng()
    size = int(draw.integers(5000, 9000))
    mask_id = int(draw.integers(100, 200))
    ids = draw.integers(1000, size, size=60_000)
    special = draw.uniform(size=len(ids)) < 0.1
    ids[special] = draw.choice([mask_id + 1, mask_id + 2], size=int(special.sum()))
    reply = ask(answer, ids, special, mask_id, size, np.random.default_rng())
    expect(
        isinstance(reply, tuple) and len(reply) == 2,
        "two arrays should come back: the new ids and the chosen positions.",
    )
    shown = as_array("the new ids", reply[0], ids.shape).astype(int)
    chosen = np.asarray(reply[1])
    expect(
        chosen.shape == ids.shape and chosen.dtype == bool,
        "the chosen positions should be an array of True and False, one for every piece.",
    )
    expect(not (chosen & special).any(), "special tokens are never chosen.")
    expect((shown == ids)[~chosen].all(), "a position that is not chosen should stay as it is.")
    expect(((shown >= 0) & (shown < size)).all(), "every id should be in the vocabulary.")
    _near(chosen[~special].mean(), 0.15, "of the pieces of the text are to be predicted")
    _near((shown == mask_id)[chosen].mean(), 0.8, "of the chosen ones should show the mask")
    _near((shown == ids)[chosen].mean(), 0.1, "of the chosen ones should stay as they are")
    other = shown[chosen & (shown != ids) & (shown != mask_id)]
    _near(len(other) / max(1, chosen.sum()), 0.1, "of the chosen ones should show another piece")
    expect(
        len(set(other.tolist())) > 0.6 * min(len(other), size) ** 0.9,
        "the other pieces should be drawn from the whole vocabulary.",
    )
    again = ask(answer, ids, special, mask_id, size, np.random.default_rng())
    expect((np.asarray(again[1]) != chosen).any(), "another draw should choose other positions.")


def _near(found: float, wanted: float, what: str) -> None:
    # Three in a thousand chosen ones may differ by chance; ten times as many do not.
    expect(abs(found - wanted) < 0.02, f"{found:.1%} {what}: that is not the share of the paper.")


@check("biases, layer norms and pooler are all there.")
def count_parameters(answer: Callable) -> None:
    """``answer(...)`` counts the parameters of an encoder from six numbers of its configuration."""
    # Imported here: the other checks need no model.
    from ..architecture import count_parameters as counted

    draw = np.random.default_rng()
    for _ in range(4):
        heads = int(draw.integers(1, 5))
        sizes = {
            "vocab_size": int(draw.integers(50, 5000)),
            # Even, so that the pooler is never as large as the layer norms.
            "hidden_size": heads * 2 * int(draw.integers(1, 20)),
            "num_hidden_layers": int(draw.integers(1, 5)),
            "intermediate_size": int(draw.integers(5, 300)),
            "max_position_embeddings": int(draw.integers(8, 600)),
            "type_vocab_size": int(draw.integers(1, 4)),
        }
        config = BertConfig(**sizes, num_attention_heads=heads)
        wanted = counted(config).total
        found = float(as_array("the count", ask(answer, *sizes.values()), ()))
        width, layers = sizes["hidden_size"], sizes["num_hidden_layers"]
        expect(found > 0 and found == int(found), "a number of parameters should come back.")
        without = {
            wanted - width * (width + 1): "the pooler on top of [CLS] is missing.",
            wanted - 2 * width: "the layer norm behind the embeddings is missing.",
            wanted - 4 * width * layers: "the two layer norms of every layer are missing.",
        }
        expect(found not in without, without.get(found, ""))
        expect(
            abs(found - wanted) < 0.5,
            "there are more parameters than that; go through a layer piece by piece."
            if found < wanted
            else "there are fewer parameters than that; is something counted twice?",
        )
