"""Things, triples, gaps and scenes against planted vectors, planted models and scikit-learn."""

import numpy as np
import pytest
import torch
from planted import planted_encoder
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from tiny import tiny_encoder

from bertology_utils import knowledge as k
from bertology_utils.activations import collect
from bertology_utils.knowledge.features import fit_logistic
from bertology_utils.stimuli import commonsense, everyday, things
from bertology_utils.words import WordList

THINGS = things.things()


def vectors_that_hold(features, noise, width=24, seed=0):
    """[1, N, D] directions for every feature a thing has, plus noise."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(len(features), width))
    has = np.array([[t.has(f) for f in features] for t in THINGS], dtype=float)
    return (has @ directions + noise * rng.normal(size=(len(THINGS), width)))[None]


# -- probes on things --------------------------------------------------------------------------


def test_planted_features_are_read_and_noise_is_not():
    features = things.features("taxonomic")
    planted = vectors_that_hold(features, noise=0.05)
    rng = np.random.default_rng(1)
    noise = rng.normal(size=planted.shape)
    found = k.probe_features(np.concatenate([planted, noise]), THINGS, features)
    assert found.f1()[0].mean() > 0.9
    # On noise, "yes" and "no" fall as if drawn: the mean of both F1 stays near one half.
    assert found.two_sided(1, "taxonomic").value == pytest.approx(0.5, abs=0.06)
    assert found.best_layer() == 0
    assert found.by_kind(0, "taxonomic").value == pytest.approx(found.f1()[0].mean())


def test_f1_equals_scikit_learn():
    features = things.features("perceptual", "affordance")
    found = k.probe_features(vectors_that_hold(features, noise=2.0), THINGS, features)
    for i in range(len(features)):
        wanted = f1_score(found.gold[:, i], found.predicted[0, :, i], zero_division=0)
        assert found.f1()[0, i] == pytest.approx(wanted)
    kinds = np.array([f.kind for f in features]) == "affordance"
    gold, said = found.gold[:, kinds].ravel(), found.predicted[0][:, kinds].ravel()
    both = f1_score(gold, said, average="macro")
    own = found.two_sided(0, "affordance")
    assert own.value == pytest.approx(both) and own.interval[0] < both < own.interval[1]
    usual = np.broadcast_to(found.gold[:, kinds].mean(0) > 0.5, found.gold[:, kinds].shape).ravel()
    assert own.baselines["majority"] == pytest.approx(f1_score(gold, usual, average="macro"))
    everything = f1_score(found.gold[:, 0], np.ones(len(THINGS)))
    assert found._always_yes()[0] == pytest.approx(everything)


def test_logistic_equals_scikit_learn():
    rng = np.random.default_rng(0)
    x, y = rng.normal(2, 3, size=(2, 60, 8)), rng.integers(0, 2, (60, 3))
    weights = rng.integers(1, 4, (60, 3)).astype(float)
    score = fit_logistic(*(torch.tensor(a, dtype=torch.float32) for a in (x, y, weights)))
    own = score(torch.tensor(x, dtype=torch.float32)).numpy()
    for layer in range(2):
        scaled = (x[layer] - x[layer].mean(0)) / x[layer].std(0)
        for i in range(3):
            model = LogisticRegression(C=1.0, tol=1e-8, max_iter=2000)
            model.fit(scaled, y[:, i], sample_weight=weights[:, i])
            wanted = model.decision_function(scaled)
            assert own[layer, :, i] == pytest.approx(wanted, abs=1e-2)


def test_the_gap_between_kinds_is_planted():
    features = things.FEATURES
    known = vectors_that_hold(things.features("taxonomic"), noise=0.05)
    found = k.probe_features(known, THINGS, features)
    gap = found.gap(0, ("taxonomic",), ("perceptual", "abstract"))
    kinds = np.array([f.kind for f in features])
    by_hand = found.f1()[0][kinds == "taxonomic"].mean()
    by_hand -= found.f1()[0][np.isin(kinds, ("perceptual", "abstract"))].mean()
    assert gap.value == pytest.approx(by_hand) and gap.interval[0] > 0
    assert gap.n == len(things.features("taxonomic", "perceptual", "abstract"))
    with pytest.raises(k.KnowledgeError, match="'?sound"):
        found.by_kind(0, "sound")


def test_probe_inputs_are_checked():
    features = things.features("taxonomic")
    with pytest.raises(k.UnmatchedError, match="things"):
        k.probe_features(np.zeros((1, 5, 4)), THINGS, features)
    with pytest.raises(k.KnowledgeError, match="no features"):
        k.probe_features(np.zeros((1, len(THINGS), 4)), THINGS, ())
    with pytest.raises(k.KnowledgeError, match="cannot fill 7 parts"):
        k.probe_features(np.zeros((1, 3, 4)), THINGS[:3], features, folds=7)


def test_vectors_of_things_are_means_over_carriers(tiny_bert):
    found = k.thing_vectors(tiny_bert, THINGS[:2])
    assert found.shape == (tiny_bert.n_layers + 1, 2, tiny_bert.d_model)
    one = [collect(tiny_bert, [WordList(("This", "is", "a", "cat", "."))]),
           collect(tiny_bert, [WordList(("They", "saw", "a", "cat", "."))]),
           collect(tiny_bert, [WordList(("We", "talked", "about", "a", "cat", "."))])]  # fmt: skip
    rows = [c.arrays["hidden_states"][:, -2] for c in one]
    assert np.allclose(found[:, 0], np.mean(rows, axis=0), atol=1e-5)


# -- from property to affordance ---------------------------------------------------------------


SIX = ["cat dog mat key table bank".split(), "sleep bark sat said money city".split()]
GIVEN = tuple(things.Feature(f"p{i}", "perceptual", f"it {v}") for i, v in enumerate(SIX[0]))
WANTED = tuple(things.Feature(f"a{i}", "affordance", f"you {v}") for i, v in enumerate(SIX[1]))
#: property i implies affordance i and no other
PAIRED = [things.Thing(f"t{n}", frozenset({f"p{n % 6}", f"a{n % 6}"})) for n in range(60)]


def test_seen_pairs_can_be_memorised_and_unseen_ones_cannot():
    vectors = np.random.default_rng(0).normal(size=(36, 200))
    found = k.infer_features(vectors, PAIRED, GIVEN, WANTED)
    assert found.table.value == found.seen.value == 1.0
    assert found.unseen.value < 0.6
    # Five in six answers are "no": F1 of "no" is 10/11, of "yes" 0.
    assert found.table.baselines["majority"] == pytest.approx(0.5 * 10 / 11)
    assert found.table.n == 60


def test_a_model_that_infers_is_recognised_on_pairs_it_never_met():
    rng = np.random.default_rng(1)
    fits = np.eye(6).ravel()
    vectors = np.concatenate([fits[:, None] + 0.1 * rng.normal(size=(36, 3)),
                              0.1 * rng.normal(size=(36, 5))], axis=1)  # fmt: skip
    found = k.infer_features(vectors, PAIRED, GIVEN, WANTED)
    assert found.unseen.value > 0.95 and found.seen.value > 0.95


def test_unrelated_properties_stay_at_the_majority():
    rng = np.random.default_rng(0)
    made = [
        things.Thing(f"t{n}", frozenset(
            [f"p{i}" for i in range(6) if rng.random() < 0.3]
            + [f"a{i}" for i in range(6) if rng.random() < 0.15]
        ))
        for n in range(400)
    ]  # fmt: skip
    found = k.infer_features(rng.normal(size=(36, 30)), made, GIVEN, WANTED)
    for own in (found.unseen, found.seen, found.table):
        assert own.value == pytest.approx(own.baselines["majority"], abs=0.02)


def test_pairs_are_read_as_they_are_written(tiny_bert):
    found = k.pair_vectors(tiny_bert, GIVEN, WANTED)
    assert found.shape == (tiny_bert.n_layers + 1, 36, tiny_bert.d_model)
    assert k.pair_text(GIVEN[1], WANTED[2]) == "It dog. You sat."
    alone = collect(tiny_bert, ["It dog. You sat."], reduce="text_mean")
    assert np.allclose(found[:, 8], alone.arrays["hidden_states"][:, 0], atol=1e-5)
    with pytest.raises(k.KnowledgeError, match="no property"):
        k.pair_vectors(tiny_bert, (), WANTED)
    with pytest.raises(k.UnmatchedError, match="for 36 pairs"):
        k.infer_features(np.zeros((5, 3)), PAIRED, GIVEN, WANTED)


# -- triples -----------------------------------------------------------------------------------


def test_pmi_takes_away_how_common_a_tail_is():
    found = [
        commonsense.Triple("a robin", "is a kind of", "bird", "tool", "[X] is a kind of [Y]."),
        commonsense.Triple("a saw", "is a kind of", "tool", "bird", "[X] is a kind of [Y]."),
    ]
    texts = [t.query for t in found] + ["bird tool"]
    # "tool" is far more probable everywhere; only the difference that the head makes is right.
    rules = {"": {"tool": 6.0}, "robin": {"bird": 2.0}, "saw": {"tool": 2.0}}
    encoder = planted_encoder(texts, rules)
    scores = k.pmi_scores(encoder, found)
    assert k.completion(found, scores, "m").accuracy.value == 1.0
    assert scores[0, 0] - scores[0, 1] == pytest.approx(2.0, abs=0.01)
    deaf = planted_encoder(texts, {"": {"tool": 6.0}})
    assert k.pmi_scores(deaf, found) == pytest.approx(np.zeros((2, 2)), abs=0.02)


def test_pmi_reads_the_mask_of_the_tail(tiny_bert):
    after = commonsense.Triple("the cat", "r", "mat", "dog", "[X] sat on the [Y].")
    before = commonsense.Triple("the cat", "r", "mat", "dog", "The [Y] is near [X].")
    assert after.tail_comes_last and not before.tail_comes_last
    scores = k.pmi_scores(tiny_bert, [after, before])
    tokenizer = tiny_bert.tokenizer
    for triple, own in zip((after, before), scores, strict=True):
        found = []
        for text, place in ((triple.query, 0), (triple.headless, -1 if triple is after else 0)):
            inputs = tokenizer(text, return_tensors="pt")
            masks = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
            with torch.no_grad():
                logits = tiny_bert.model(**inputs).prediction_logits[0, masks[place]]
            ids = tokenizer.convert_tokens_to_ids(["mat", "dog"])
            found.append(logits.log_softmax(0)[ids].numpy())
        assert own == pytest.approx(found[0] - found[1], abs=1e-4)
    with pytest.raises(k.KnowledgeError, match="no triples"):
        k.pmi_scores(tiny_bert, [])


def clustered_triples(n=120, groups=4):
    """Heads of four kinds, each with its own tail; the tails of the others are the wrong ones."""
    tails = ["mat", "key", "bank", "city"]
    pairs = [(tails[i % groups], tails[(i + 1) % groups]) for i in range(n)]
    return [
        commonsense.Triple(f"h{i}", "is a", tail, wrong, "[X] is [Y].")
        for i, (tail, wrong) in enumerate(pairs)
    ]


class _Vectors:
    """An encoder's name, tokenizer and embedding table, with planted rows."""

    def __init__(self, found, planted):
        rng = np.random.default_rng(0)
        self.encoder = planted_encoder([w for t in found for w in (t.head, t.tail)], {})
        size = len(self.encoder.tokenizer)
        table = rng.normal(size=(size, 16))
        if planted:
            for triple in found:
                ids = self.encoder.tokenizer.convert_tokens_to_ids([triple.head, triple.tail])
                table[ids[0]] = 0.3 * rng.normal(size=16) + 2 * table[ids[1]]
        self.encoder.embeddings.token.weight.data = torch.tensor(table, dtype=torch.float32)


def test_supervised_completion_generalises_where_vectors_allow():
    found = clustered_triples()
    scores = k.supervised_scores(_Vectors(found, planted=True).encoder, found, steps=60)
    right = k.completion(found, scores, "m")
    assert right.accuracy.value > 0.95
    assert right.accuracy.baselines == {"chance": 0.5} and right.accuracy.n == 120


def test_supervised_completion_is_at_chance_on_noise():
    # The corrupted tails are true elsewhere as often as the true ones: nothing to exploit, and
    # nothing that would push unseen heads below chance either.
    found = clustered_triples(240)
    encoder = _Vectors(found, planted=False).encoder
    scores = [k.supervised_scores(encoder, found, seed=seed, steps=30) for seed in range(3)]
    shares = [k.completion(found, own, "m").accuracy.value for own in scores]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.08)
    state = torch.random.get_rng_state()
    k.supervised_scores(encoder, found[:40], steps=2)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_completion_inputs_are_checked():
    found = clustered_triples(4)
    with pytest.raises(k.KnowledgeError, match="for 4 triples"):
        k.completion(found, np.zeros((3, 2)), "m")
    with pytest.raises(k.KnowledgeError, match="4 heads cannot fill 5"):
        k.supervised_scores(_Vectors(found, planted=False).encoder, found)
    with pytest.raises(k.KnowledgeError, match="no triple"):
        unknown = commonsense.Triple("a", "b", "zzz", "qqq", "[X] [Y]")
        k.usable_triples(tiny_encoder("bert"), [unknown])


# -- gaps and scenes ---------------------------------------------------------------------------


def test_gaps_are_filled_by_what_the_sentence_is_about():
    gaps = everyday.everyday_gaps()
    words = [w for g in gaps for w in (g.text, g.bare, *g.accepted)]
    everything = planted_encoder(words, {})
    found = k.fill_gaps(everything, gaps, k=1)
    assert found.result.value < 0.2 and found.result.n == len(gaps)
    rules = {"cats": {"mice": 9.0}, "blood": {"red": 9.0}, "it": {"white": 4.0}}
    encoder = planted_encoder(words, rules)
    own = [g for g in gaps if g.text.startswith(("Cats", "Blood", "Snow"))]
    found = k.fill_gaps(encoder, own, k=1)
    assert dict(zip([g.text.split()[0] for g in own], found.found, strict=True)) == {
        "Cats": True, "Snow": False, "Blood": True}  # fmt: skip
    # "It is [MASK]." is filled with "white", which is right of snow alone.
    assert found.result.baselines == {"prompt_without_subject": pytest.approx(1 / 3)}
    with pytest.raises(k.KnowledgeError, match="no gaps"):
        k.fill_gaps(encoder, [])


def test_scenes_are_read_by_what_happens_in_them():
    scenes = everyday.scenes()
    words = [w for s in scenes for w in (s.text, s.expected, s.related)]
    rules = {"locked": {"window": 9.0}, "freezing": {"boots": 9.0, "gloves": 8.0}}
    found = k.read_scenes(planted_encoder(words, rules), scenes[:2])
    assert found.result.value == 0.5 and found.in_five.value == 1.0
    assert found.preferred.value == 0.5 and found.preferred.baselines == {"chance": 0.5}
    assert found.result.baselines == {"majority": 0.5}
    assert found.guesses[0][0] == "window" and found.guesses[1][:2] == ("boots", "gloves")
    with pytest.raises(k.KnowledgeError, match="no scene"):
        k.read_scenes(tiny_encoder("bert"), scenes)
