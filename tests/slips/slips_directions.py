"""Typical mistakes in the exercises of the chapter on directions."""

import numpy as np

from bertology_utils.behaviour import fill, inv, mft


def right_leaving(predict, words):
    whole = predict(words)
    said = int(np.argmax(whole))
    return np.array(
        [whole[said] - predict(words[:i] + words[i + 1 :])[said] for i in range(len(words))]
    )


def with_capitals(premise, hypothesis):
    return set(hypothesis.strip(".").split()) <= set(premise.strip(".").split())


def substrings(premise, hypothesis):
    return all(word in premise.lower() for word in hypothesis.lower().strip(".").split())


def of_all(has_cue, labels):
    applicable = has_cue[:, 0] != has_cue[:, 1]
    right = has_cue[np.arange(len(labels)), labels]
    return (right & applicable).mean(), applicable.mean()


def both_count(has_cue, labels):
    right = has_cue[np.arange(len(labels)), labels]
    return (right.mean() if has_cue.any() else 0.0), has_cue.any(1).mean()


def one_sided():
    return mft("x", {1: fill("The {a} was better than {b}.", a=list("abcd"), b=list("efg"))})


def wrong_type():
    return inv("x", [(f"It was better, {n}.", f"It was worse, {n}.") for n in range(12)])


def every_occurrence(predict, words):
    whole = predict(words)
    said = int(np.argmax(whole))
    return np.array([whole[said] - predict([v for v in words if v != w])[said] for w in words])


def turned(predict, words):
    return -right_leaving(predict, words)


SLIPS = {
    "overlap_rule": [
        (with_capitals, "capital"),
        (substrings, "whole words"),
    ],
    "cue_strength": [
        (of_all, "share of the applicable"),
        (both_count, "not applicable"),
    ],
    "comparison_test": [
        (one_sided, "negative and"),
        (wrong_type, "type INV"),
    ],
    "leave_one_out": [
        (every_occurrence, "twice"),
        (turned, "sign"),
    ],
}
