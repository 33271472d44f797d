"""A head whose weights we set to attend to the previous piece must be found by every method."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import FAMILIES, tiny_encoder

from bertology_utils.attention import (
    attention_entropy,
    attention_to,
    classify_heads,
    relation_scores,
    train_pattern_classifier,
    tree_scores,
)
from bertology_utils.encoder import Encoder
from bertology_utils.stimuli import Sentence, Treebank

PLANTED = (0, 2)
#: Four rotations a piece; together they tell 64 positions apart.
SPEEDS = (1.0, 0.53, 0.29, 0.11)
SIZE = 2 * len(SPEEDS)


def plant_previous_head(family: str) -> Encoder:
    """Layer 0, head 2: queries are the position's rotations turned back by one piece.

    q_i . k_j is then a sum of cosines of (i - 1 - j) * speed, largest at j = i - 1.
    """
    encoder = tiny_encoder(family)
    parts, layer = encoder.embeddings, encoder.layers[PLANTED[0]]
    positions = torch.arange(parts.position.num_embeddings)
    angles = positions[:, None] * torch.tensor(SPEEDS)
    rotations = torch.stack([angles.cos(), angles.sin()], -1).flatten(1)
    turn = torch.zeros(SIZE, SIZE)
    for k, speed in enumerate(SPEEDS):
        c, s = math.cos(speed), math.sin(speed)
        turn[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = torch.tensor([[c, s], [-s, c]])
    rows = slice(PLANTED[1] * encoder.d_head, (PLANTED[1] + 1) * encoder.d_head)
    with torch.no_grad():
        for table in (parts.token, parts.segment):
            if table is not None:
                table.weight[:, :SIZE] = 0
        parts.position.weight.zero_()
        parts.position.weight[:, :SIZE] = 2 * rotations
        parts.norm.weight.fill_(1)
        parts.norm.bias.zero_()
        if parts.projection is not None:  # ELECTRA: carry the rotations through
            parts.projection.weight[:SIZE] = torch.eye(SIZE, parts.projection.in_features)
            parts.projection.bias[:SIZE] = 0
        for linear, matrix in ((layer.query, turn), (layer.key, torch.eye(SIZE))):
            linear.weight[rows] = 0
            linear.bias[rows] = 0
            linear.weight[rows, :SIZE] = 4 * matrix
    return encoder


def chain_sentences(n: int = 12) -> list[Sentence]:
    """One-piece words, each governed by the word before it: a treebank for the planted head."""
    words = "the old cat sat near the dogs and they bark".split()
    made = []
    for k in range(n):
        chosen = [w for w in words[k % 5 :] + words[: k % 5] if w != "and"][: 5 + k % 4]
        size = len(chosen)
        made.append(
            Sentence(
                tuple(chosen), ("X",) * size, tuple(range(size)), ("root", *["dep"] * (size - 1)),
                tuple(chosen), ("_",) * size, " ".join(chosen),
            )
        )  # fmt: skip
    return made


@pytest.fixture(scope="module", params=FAMILIES)
def planted(request):
    return plant_previous_head(request.param)


def test_ranked_first_by_attention_to_the_previous_piece(planted, texts):
    scores = attention_to(planted, texts, targets=["previous"])["previous"]
    assert scores.ranking()[0] == PLANTED
    assert (scores.best.layer, scores.best.head) == PLANTED
    assert scores.value > 0.9
    assert scores.baselines["uniform"] < 0.25
    second = scores.ranking()[1]
    assert scores.scores[second] < 0.6


def test_classified_as_diagonal_by_rule_and_by_classifier(planted, texts):
    by_rule = classify_heads(planted, texts)
    layer, head = PLANTED
    assert by_rule.labels[layer][head] == "diagonal"
    assert by_rule.shares[layer, head, 1] == 1.0
    trained = train_pattern_classifier(n_train=600, n_test=100)
    by_classifier = classify_heads(planted, texts, method=trained.predict)
    assert by_classifier.labels[layer][head] == "diagonal"
    assert by_classifier.method == "classifier"


def test_the_unplanted_model_has_no_such_head(texts):
    encoder = tiny_encoder("bert")
    assert attention_to(encoder, texts, targets=["previous"])["previous"].value < 0.6
    assert classify_heads(encoder, texts).labels[0][2] != "diagonal"


def test_ranked_first_for_the_relation_it_encodes(planted):
    sentences = chain_sentences()
    table = relation_scores(planted, sentences)
    scores = table.scores("dep", "dependent")
    assert scores.ranking()[0] == PLANTED
    assert scores.value == 1.0
    assert scores.baselines["fixed_offset"] == 1.0
    assert table.scores("dep", "head").scores[PLANTED] < 0.5
    trees = tree_scores(planted, sentences)
    assert trees.scores[PLANTED] == 1.0 == trees.baselines["right_branching"]


def test_it_holds_every_chain(planted):
    """The trees in which every word hangs on the one before it: the head finds all governors."""
    free = Treebank("free", tuple(replace(s, heads=star(len(s))) for s in chain_sentences()))
    assert relation_scores(planted, free).scores("all").value < 0.9
    found = relation_scores(planted, free.chained()).scores("all")
    assert found.value == 1.0 and found.ranking()[0] == PLANTED
    unplanted = relation_scores(tiny_encoder("bert"), free.chained()).scores("all")
    assert unplanted.value < 0.8


def star(n):
    """The last word governs all others."""
    return (*[n] * (n - 1), 0)


def test_it_is_sharp(planted, texts):
    entropy = attention_entropy(planted, texts)
    assert np.unravel_index(entropy.scores.argmin(), entropy.scores.shape) == PLANTED
