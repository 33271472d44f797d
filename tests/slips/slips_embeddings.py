"""Typical mistakes in the exercises on embeddings, and what their checks must say."""

import numpy as np


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def all_but_the_top(fitted, vectors, k):
    mean = fitted.mean(0)
    _, directions = np.linalg.eigh(np.cov(fitted.T))
    top = directions[:, ::-1][:, :k]
    return (vectors - mean) - (vectors - mean) @ top @ top.T


def information_bound(scores):
    moved = scores - scores.max(1, keepdims=True)
    return np.mean(np.diag(moved) - np.log(np.exp(moved).mean(1)))


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


SLIPS = {
    "self_similarity": [
        (lambda v: (unit(v) @ unit(v).T).mean(), "with itself does not count"),
        (lambda v: (v @ v.T)[~np.eye(len(v), dtype=bool)].mean(), "is 1"),
        (lambda v: np.triu(unit(v) @ unit(v).T, 1).sum() / len(v), "is 1"),
    ],
    "all_but_the_top": [
        (lambda f, v, k: v, "mean has to go"),
        (on_itself, "that of `fitted`"),
        (not_centred, "Centre before"),
        (weakest, "take the strongest"),
    ],
    "neighbour_senses": [
        (self_counts, "vouched for itself"),
        (only_itself_forbidden, "vouched for itself"),
        (products, "compare directions"),
    ],
    "information_bound": [
        (lambda s: np.mean(np.diag(s) - np.logaddexp.reduce(s, axis=1)), "a mean, not a sum"),
        (columns, "rows, not columns"),
        (lambda s: np.mean(np.diag(s) - s.mean(1)), "log N"),
        (lambda s: np.mean(np.diag(s) - np.log(np.exp(s).mean(1))), "overflow"),
    ],
}
