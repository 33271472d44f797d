"""Roles at the mask, span probes, names exchanged and entities tagged, against planted truth."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bertology_utils import stimuli
from bertology_utils.knowledge import known_facts
from bertology_utils.semantics import (
    VERBS,
    NameQuestion,
    SemanticsError,
    coreference_task,
    entity_frame,
    entity_task,
    exchange_names,
    filler_order,
    held_out_subjects,
    link_entities,
    name_gap,
    name_questions,
    names,
    probing,
    relation_task,
    role_reversal,
    roles,
    semantic_probes,
    semantic_tasks,
    span_vectors,
)

# -- roles ---------------------------------------------------------------------------------------


def test_reversal_agrees_with_plain_comparison(embedded):
    from bertology_utils.cloze import target_log_probs

    pairs = stimuli.minimal_pairs("role_reversal", 12, seed=1)
    found = role_reversal(embedded, pairs)
    plain = [
        target_log_probs(embedded, [p.good_frame, p.bad_frame], [[p.good_word]] * 2) for p in pairs
    ]
    margins = [good[0] - bad[0] for good, bad in plain]
    assert np.allclose(found.margins, margins, atol=1e-4)
    assert found.result.value == pytest.approx(np.mean(np.array(margins) > 0))
    low, high = found.result.interval
    assert low <= found.result.value <= high
    assert found.events == tuple(p.good_word for p in pairs)


def test_interval_resamples_events_not_pairs():
    judged = SimpleNamespace(
        margins=[1.0] * 50 + [-1.0] * 50, accuracy=0.5, n=100, model="m", chance=0.5
    )
    many = roles._over_groups(judged, range(100), 0)
    two = roles._over_groups(judged, [0] * 50 + [1] * 50, 0)
    assert many.interval[1] - many.interval[0] < 0.25
    assert two.interval == (0.0, 1.0)


def test_reversal_rejects_pairs_of_words(embedded):
    pairs = stimuli.minimal_pairs("agreement_simple", 2, seed=1)
    with pytest.raises(SemanticsError, match="contrasts two words"):
        role_reversal(embedded, pairs)


def test_order_is_counted_and_unknown_words_are_left_out(monkeypatch, embedded):
    items = [
        stimuli.RoleFiller("He saw the [MASK].", *words)
        for words in (
            ("dog", "cat", "car"), ("cat", "dog", "car"), ("dog", "car", "cat"),
            ("dog", "cat", "qwertyzxcv"),
        )
    ]  # fmt: skip
    known = {"dog": -1.0, "cat": -2.0, "car": -3.0}
    monkeypatch.setattr(
        roles, "target_log_probs", lambda _, __, words: [[known[w] for w in row] for row in words]
    )
    monkeypatch.setattr(roles, "target_ranks", lambda *_: [1, 5, 6])
    found = filler_order(embedded, items)
    assert found.left_out == 1 and len(found.fillers) == 3
    assert found.ordered.value == pytest.approx(1 / 3)
    assert found.right_first.value == pytest.approx(2 / 3)
    assert found.related_first.value == pytest.approx(2 / 3)
    assert found.top.value == pytest.approx(2 / 3)
    assert found.ordered.baselines == {"chance": 1 / 6}
    with pytest.raises(SemanticsError, match="no frame"):
        filler_order(embedded, items[3:])


# -- span tasks and probes -----------------------------------------------------------------------


def test_parts_hold_back_what_they_say():
    entities, role, people, relation = semantic_tasks(60, seed=2)
    for task in (entities, role, people, relation):
        sides = [
            {s for s, t in zip(task.sentence_of, task.is_test, strict=True) if t == side}
            for side in (False, True)
        ]
        assert sides[0] and sides[1] and not sides[0] & sides[1]
        for sentence, spans in zip(task.sentence_of, task.spans, strict=True):
            assert all(0 <= a < b <= len(task.sentences[sentence]) for a, b in spans)
    assert set(people.labels) == {"same", "other"} and len(people) % 2 == 0
    train, test = held_out_subjects(20)
    assert not {f.subject for f in train} & {f.subject for f in test}


def test_spans_hold_the_right_words():
    sentence = stimuli.entities(1, 3)[0]
    other = next(s for s in stimuli.entities(20, 4) if s.words != sentence.words)
    task = entity_task([sentence], [other])
    start, end, kind = sentence.spans[0]
    assert task.spans[0] == ((start, end),) and task.labels[0] == kind
    facts = stimuli.facts("capital")[:2]
    relation = relation_task(facts[:1], facts[1:], train_templates=[0], test_templates=[4])
    for number, fact in enumerate(facts):
        words = relation.sentences[number]
        subject, answer = (" ".join(words[a:b]) for a, b in relation.spans[number])
        assert (subject, answer) == (fact.subject, fact.object)


def test_bad_parts_are_refused():
    facts, items = stimuli.facts("capital")[:3], stimuli.coreference(3, 0)
    with pytest.raises(SemanticsError, match="template 1"):
        relation_task(facts[:1], facts[1:], train_templates=[0, 1], test_templates=[1])
    with pytest.raises(SemanticsError, match="is in both parts"):
        relation_task(facts, facts[1:])
    with pytest.raises(SemanticsError, match="training and in the test part"):
        coreference_task(items[:2], items[1:])
    with pytest.raises(SemanticsError, match="no sentences"):
        coreference_task([], items)


def test_span_vectors_are_means_of_words(embedded):
    from bertology_utils.activations import collect
    from bertology_utils.words import WordList

    sentences = stimuli.entities(6, 1)
    task = entity_task(sentences[:3], sentences[3:])
    vectors = span_vectors(embedded, task)
    assert vectors.shape == (embedded.n_layers + 1, len(task), embedded.d_model)
    for row in (0, len(task) - 1):
        words = task.sentences[task.sentence_of[row]]
        ((start, end),) = task.spans[row]
        alone = collect(embedded, [WordList(words)]).arrays["hidden_states"][:, start:end]
        assert np.allclose(vectors[:, row], alone.mean(1), atol=1e-5)


def planted(task, signal, rng):
    """Vectors [2, N, D * spans]: noise in entry 0, and the label planted by ``signal`` in 1."""
    size, spans = 12, len(task.spans[0])
    out = rng.normal(size=(2, len(task), size * spans))
    for row, label in enumerate(task.labels):
        signal(out[1, row], label, size)
    return out


def test_probe_finds_what_only_a_pair_shows(monkeypatch, tiny_bert):
    task = coreference_task(stimuli.coreference(200, 1), stimuli.coreference(100, 2)[50:])
    rng = np.random.default_rng(0)

    def agree(vector, label, size):
        sign = rng.choice([-1.0, 1.0])
        # Neither side alone tells the label; whether the two signs agree does.
        vector[0], vector[size] = 4 * sign, 4 * sign * (1 if label == "same" else -1)

    vectors = planted(task, agree, rng)
    monkeypatch.setattr(probing, "span_vectors", lambda *_: vectors)
    found = semantic_probes(tiny_bert, [task], width=12)
    noise, signal = found.layers["coreference"]
    assert signal.accuracy > 0.95 and signal.layer == 1
    assert abs(noise.accuracy - 0.5) < 0.2
    layer, best = found.best()
    assert layer == 1 and best.value > 0.95
    assert best.baselines["embedding_layer"] < 0.75
    assert best.baselines["majority"] == pytest.approx(0.5, abs=0.1)
    with pytest.raises(SemanticsError, match="names of their own"):
        semantic_probes(tiny_bert, [task, task])


def test_components_whiten_the_training_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1, 50, 3)) @ rng.normal(size=(3, 8)) + 5
    train = np.arange(30)
    out = probing.components(rows, train, 6)
    assert out.shape == (1, 50, 6)
    assert np.allclose(out[0, train, :3].T @ out[0, train, :3] / 30, np.eye(3), atol=1e-4)
    assert not out[:, :, 3:].any()


# -- names ---------------------------------------------------------------------------------------


def test_gap_is_zero_by_kind_and_large_by_heart(monkeypatch, tiny_bert):
    known = stimuli.entities(150, seed=1, split="train")
    new = stimuli.entities(150, seed=2, split="test")
    rng = np.random.default_rng(0)
    kinds, by_heart = {}, {}

    def vectors(_, task):
        out = np.zeros((3, len(task), 64))
        for row, (sentence, spans, label) in enumerate(
            zip(task.sentence_of, task.spans, task.labels, strict=True)
        ):
            name = task.sentences[sentence][slice(*spans[0])]
            out[1, row] = kinds.setdefault(label, rng.normal(size=64))
            out[2, row] = by_heart.setdefault(name, rng.normal(size=64))
        return out + 0.01 * rng.normal(size=out.shape)

    monkeypatch.setattr(names, "span_vectors", vectors)
    found = name_gap(tiny_bert, known, new, width=64)
    assert abs(found.gaps[1]) < 0.02
    assert found.gaps[2] > 0.2
    assert found.result.value == pytest.approx(found.gaps[1:].mean())
    assert found.result.interval[0] > 0
    assert len(found.frames) == 5


def test_gap_needs_other_names(tiny_bert):
    known = stimuli.entities(60, seed=1, split="train")
    with pytest.raises(SemanticsError, match="among the known and the new"):
        name_gap(tiny_bert, known, known)
    with pytest.raises(SemanticsError, match="hold out"):
        name_gap(tiny_bert, known, stimuli.entities(9, split="test"), held_out=99)


def test_frames_forget_the_names():
    sentence = stimuli.EntitySentence(
        ("Anna", "Bell", "left", "Rome", "."), ((0, 2, "PERSON"), (3, 4, "PLACE"))
    )
    assert entity_frame(sentence) == "person left place ."


MEN, WOMEN = ["John", "Paul", "Henry", "Peter"], ["Mary", "Anna", "Laura", "Kate"]


def ask_with(monkeypatch, choose):
    """Answer every question by ``choose(text, people)``: 0 or 1."""

    def scores(_, texts, people):
        picked = [choose(text, pair) for text, pair in zip(texts, people, strict=True)]
        return [(-float(p), -1.0 + p) for p in picked]

    monkeypatch.setattr(names, "target_log_probs", scores)


def questions():
    return [
        NameQuestion((a, b), ("f", "m"), "met", "before", "left", i % 2)
        for i, (a, b) in enumerate((a, b) for a in WOMEN for b in MEN)
    ]


def test_a_reader_of_pronouns_is_never_moved(monkeypatch, tiny_bert):
    ask_with(monkeypatch, lambda text, _: 0 if " she " in text else 1)
    found = exchange_names(tiny_bert, questions(), MEN, WOMEN, swaps=3)
    assert found.result.value == 0 and found.result.baselines == {"other_word_swap": 0.0}
    assert found.accuracy.value == 1 and found.any_change.value == 0


def test_a_lover_of_names_is_moved_by_names_alone(monkeypatch, tiny_bert):
    ask_with(monkeypatch, lambda _, people: int(min(people) == people[1]))
    found = exchange_names(tiny_bert, questions(), MEN, WOMEN, swaps=3)
    assert found.result.value > 0.1 and found.verbs.value == 0
    assert found.after_names.shape == (16, 3)
    assert found.after_verbs.shape == (16, len(VERBS) - 1)
    moved = (found.after_names != found.chosen[:, None]).mean()
    assert found.result.value == pytest.approx(moved)


def test_a_reader_of_verbs_is_moved_by_verbs_alone(monkeypatch, tiny_bert):
    ask_with(monkeypatch, lambda text, _: int(" met " in text))
    found = exchange_names(tiny_bert, questions(), MEN, WOMEN, swaps=3)
    assert found.result.value == 0 and found.verbs.value == 1


def test_questions_keep_the_answer():
    found = name_questions(stimuli.coreference(800, seed=1), MEN, WOMEN)
    assert found
    for question in found:
        pronoun = " he " if question.genders[question.answer] == "m" else " she "
        assert pronoun in question.text("[MASK]").split(".")[0]
        assert question.text("[MASK]").count("[MASK]") == 1
    one = found[0].with_name(1, "Zoe")
    assert one.people == (found[0].people[0], "Zoe") and one.answer == found[0].answer


def test_exchanges_need_questions_and_names(tiny_bert):
    with pytest.raises(SemanticsError, match="no questions"):
        exchange_names(tiny_bert, [], MEN, WOMEN)
    with pytest.raises(SemanticsError, match="at least 11 names"):
        exchange_names(tiny_bert, questions(), MEN, WOMEN)


# -- tagging entities ----------------------------------------------------------------------------


def test_tagging_learns_and_leaves_the_original_alone(embedded):
    facts = known_facts(embedded, ["capital"], per_relation=4, seed=1)
    before = {k: v.clone() for k, v in embedded.model.state_dict().items()}
    found = link_entities(embedded, facts, epochs=12, lr=3e-4, batch_size=8)
    assert len(found.entities) == 4
    assert np.mean(found.losses[-2:]) < 0.6 * np.mean(found.losses[:2])
    assert found.accuracy > 0.5
    after = embedded.model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    table = "get_input_embeddings"
    same = getattr(found.encoder.model, table)().weight
    assert torch.equal(same, getattr(embedded.model, table)().weight)
    moved = [not torch.equal(v, before[k]) for k, v in found.encoder.model.state_dict().items()]
    assert any(moved)
    assert not found.encoder.model.training


def test_tagging_needs_two_entities_and_known_wordings(embedded):
    facts = known_facts(embedded, ["capital"], per_relation=2, seed=1)
    with pytest.raises(SemanticsError, match="two are needed"):
        link_entities(embedded, facts[:1])
    with pytest.raises(SemanticsError, match="no template 9"):
        link_entities(embedded, facts, templates=[9])
