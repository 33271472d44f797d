"""Each check accepts a right answer, rejects an empty one, and says what is wrong with others."""

import numpy as np
import pytest

from bertology_utils.checks import embeddings as check


def empty(*_):
    raise NotImplementedError


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def self_similarity(vectors):
    cosines = unit(vectors) @ unit(vectors).T
    return cosines[~np.eye(len(vectors), dtype=bool)].mean()


def all_but_the_top(fitted, vectors, k):
    mean = fitted.mean(0)
    _, directions = np.linalg.eigh(np.cov(fitted.T))
    top = directions[:, ::-1][:, :k]
    return (vectors - mean) - (vectors - mean) @ top @ top.T


def neighbour_senses(vectors, senses, contexts):
    found = []
    for i in range(len(vectors)):
        others = [j for j in range(len(vectors)) if contexts[j] != contexts[i]]
        best = max(others, key=lambda j: unit(vectors)[i] @ unit(vectors)[j])
        found.append(senses[best])
    return found


def information_bound(scores):
    moved = scores - scores.max(1, keepdims=True)
    return np.mean(np.diag(moved) - np.log(np.exp(moved).mean(1)))


RIGHT = {
    check.self_similarity: self_similarity,
    check.all_but_the_top: all_but_the_top,
    check.neighbour_senses: neighbour_senses,
    check.information_bound: information_bound,
}


@pytest.mark.parametrize("judge", RIGHT, ids=lambda judge: judge.__name__)
def test_right_passes_and_empty_fails(judge):
    for _ in range(20):
        assert judge(RIGHT[judge]), str(judge(RIGHT[judge]))
    assert "nothing is written" in judge(empty).message


def not_centred(fitted, vectors, k):
    directions = np.linalg.svd(fitted, full_matrices=False)[2][:k]
    centred = vectors - fitted.mean(0)
    return centred - centred @ directions.T @ directions


def on_itself(fitted, vectors, k):
    return all_but_the_top(vectors, vectors, k)


def weakest(fitted, vectors, k):
    mean = fitted.mean(0)
    directions = np.linalg.svd(fitted - mean, full_matrices=False)[2][::-1][:k]
    return (vectors - mean) - (vectors - mean) @ directions.T @ directions


def self_counts(vectors, senses, contexts):
    return [senses[i] for i in (unit(vectors) @ unit(vectors).T).argmax(1)]


def only_itself_forbidden(vectors, senses, contexts):
    cosines = unit(vectors) @ unit(vectors).T
    np.fill_diagonal(cosines, -np.inf)
    return [senses[i] for i in cosines.argmax(1)]


def products(vectors, senses, contexts):
    scores = vectors @ vectors.T
    scores[contexts[:, None] == contexts[None]] = -np.inf
    return [senses[i] for i in scores.argmax(1)]


def columns(scores):
    return information_bound(scores.T)


WRONG = [
    (check.self_similarity, lambda v: (unit(v) @ unit(v).T).mean(), "with itself does not count"),
    (check.self_similarity, lambda v: (v @ v.T)[~np.eye(len(v), dtype=bool)].mean(), "is 1"),
    (check.self_similarity, lambda v: np.triu(unit(v) @ unit(v).T, 1).sum() / len(v), "is 1"),
    (check.all_but_the_top, lambda f, v, k: v, "mean has to go"),
    (check.all_but_the_top, on_itself, "that of `fitted`"),
    (check.all_but_the_top, not_centred, "Centre before"),
    (check.all_but_the_top, weakest, "take the strongest"),
    (check.neighbour_senses, self_counts, "vouched for itself"),
    (check.neighbour_senses, only_itself_forbidden, "vouched for itself"),
    (check.neighbour_senses, products, "compare directions"),
    (check.information_bound, lambda s: np.mean(np.diag(s) - np.logaddexp.reduce(s, axis=1)),
     "a mean, not a sum"),
    (check.information_bound, columns, "rows, not columns"),
    (check.information_bound, lambda s: np.mean(np.diag(s) - s.mean(1)), "log N"),
    (check.information_bound, lambda s: np.mean(np.diag(s) - np.log(np.exp(s).mean(1))),
     "overflow"),
]  # fmt: skip


@pytest.mark.parametrize(("judge", "answer", "message"), WRONG)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_typical_mistakes_are_named(judge, answer, message):
    for _ in range(5):
        verdict = judge(answer)
        assert not verdict and message in verdict.message, verdict.message
