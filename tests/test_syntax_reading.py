"""Reading trees, labels and roles out of vectors, against planted truth."""

import numpy as np
import pytest

from bertology_utils import stimuli, syntax
from bertology_utils.activations import collect
from bertology_utils.probes import Split
from bertology_utils.words import WordList


@pytest.fixture(scope="module")
def sentences():
    return list(stimuli.treebank(90, seed=3, split="train", max_words=12))


@pytest.fixture(scope="module")
def encoder(sentences):
    return syntax.tiny_encoder([w for s in sentences for w in s.words], width=32)


@pytest.fixture
def split():
    return Split(np.arange(60), np.arange(60, 70), np.arange(70, 90), 0)


def planted(sentences, layers, first=None):
    """Vectors whose layers are functions of (sentence, word)."""
    words = np.stack(
        [np.concatenate([[layer(s, i) for i in range(len(s))] for s in sentences])
         for layer in layers]
    ).astype(np.float32)  # fmt: skip
    owner = np.repeat(np.arange(len(sentences)), [len(s) for s in sentences])
    if first is None:
        first = np.zeros((len(layers), len(sentences), words.shape[-1]), np.float32)
    return syntax.TreebankVectors(words, first, owner, "planted")


def in_the_tree(sentence, word):
    """A vector whose squared distances are distances in the tree: one axis an edge."""
    out = np.zeros(24)
    while (head := sentence.head_of(word)) is not None:
        out[word] = 1
        word = head
    return out


def noise(sentence, word):
    return np.random.default_rng([len(sentence.text), word, *map(ord, sentence.text)]).normal(
        size=24
    )


def test_vectors_are_those_of_collect(encoder, sentences):
    vectors = syntax.treebank_vectors(encoder, sentences[:5])
    texts = [WordList(s.words, s.text) for s in sentences[:5]]
    words = collect(encoder, texts)
    np.testing.assert_allclose(vectors.words, words.arrays["hidden_states"], atol=1e-5)
    assert vectors.sentence.tolist() == words.text_index.tolist()
    first = collect(encoder, texts, reduce="text_first").arrays["hidden_states"]
    np.testing.assert_allclose(vectors.first, first, atol=1e-5)
    assert vectors.lengths.tolist() == [len(s) for s in sentences[:5]]
    np.testing.assert_allclose(vectors.means()[:, 2], vectors.of(2).mean(1), atol=1e-5)
    with pytest.raises(ValueError, match="no sentences"):
        syntax.treebank_vectors(encoder, [])


def test_the_best_layer_is_chosen_and_scored_on_different_sentences():
    rng = np.random.default_rng(0)
    # Twenty useless layers: on the half that chooses, one of them looks good.
    hits = (rng.random((20, 60)) < 0.5).astype(float)
    useless = syntax.LayerScores(hits, np.ones(60), "m")
    assert useless.best.chosen_value > 0.55 > useless.best.value
    hits[7] = 1
    found = syntax.LayerScores(hits, np.ones(60), "m").best
    assert (found.layer, found.value, found.n, found.unit) == (7, 1.0, 30, "share")
    with pytest.raises(ValueError, match="no two sentences"):
        syntax.LayerScores(np.ones((2, 1)), np.ones(1), "m")
    with pytest.raises(IndexError, match="no layer 20"):
        useless.at(20)


def test_differences_are_paired():
    draw = np.random.default_rng(1)
    hard = draw.random(200) < 0.5  # sentences that both get wrong
    one = syntax.LayerScores(np.where(hard, 0.0, 1.0)[None], np.ones(200), "m")
    other = syntax.LayerScores(np.where(hard, 0.0, 0.9)[None], np.ones(200), "m")
    gap = syntax.difference(one, other)
    assert gap.value == pytest.approx(0.1 * (1 - hard[one.halves[1]].mean()))
    # Unpaired, half of the sentences being hard would drown a gap of 0.05.
    assert 0.03 < gap.interval[0] < gap.value < gap.interval[1] < 0.07
    with pytest.raises(ValueError, match="same sentences"):
        syntax.difference(one, syntax.LayerScores(np.ones((1, 5)), np.ones(5), "m"))


def test_gaps_between_independent_samples():
    gap = syntax.share_gap([True] * 90 + [False] * 10, [True] * 60 + [False] * 40, model="m")
    assert gap.value == pytest.approx(0.3) and gap.n == 200
    # The standard error of the difference is 0.057.
    assert gap.interval == pytest.approx((0.3 - 0.112, 0.3 + 0.112), abs=0.02)
    with pytest.raises(ValueError, match="not empty"):
        syntax.share_gap([], [True], model="m")


def test_the_structural_probe_finds_planted_trees(sentences, split):
    vectors = planted(sentences, [in_the_tree, noise])
    found = syntax.structural_scores(vectors, sentences, split, rank=24, epochs=40)
    tree, chance = found.uuas.by_layer()
    assert tree.value > 0.95 and found.dspr[0] > 0.8 > found.dspr[1] + 0.2
    assert chance.value < 0.6 and found.uuas.best.layer == 0
    assert 0.2 < found.chain.at(0).value < 0.8
    assert len(found.distances[0]) == len(split.test)
    # The order in which test sentences are named does not matter.
    turned = Split(split.train, split.dev, split.test[::-1], 0)
    again = syntax.structural_scores(vectors, sentences, turned, rank=24, epochs=40)
    np.testing.assert_array_equal(again.uuas.hits[:, ::-1], found.uuas.hits)


def test_brackets_are_cut_at_the_largest_gap():
    assert syntax.brackets([1, 3, 2]) == {(0, 4), (0, 2), (2, 4)}
    assert syntax.brackets([0, 0, 0]) == {(0, 4), (1, 4), (2, 4)}  # right-branching
    assert syntax.brackets([]) == set()
    with pytest.raises(ValueError, match="after word 1"):
        syntax.brackets([1, float("nan")])


def test_gold_brackets_leave_out_what_every_tree_has(sentences):
    for sentence in sentences[:20]:
        kept, spans = syntax.gold_brackets(sentence)
        assert "." not in [sentence.words[i] for i in kept]
        assert all(1 < end - start < len(kept) for start, end in spans)


def test_gaps_that_know_the_constituents_score_one(sentences):
    def common(tree, word):
        """Constituents that hold both a word and the next."""
        return sum(s <= word and word + 1 < e for _, s, e in tree.spans())

    binary = [s for s in sentences if _nearly_binary(s)]
    assert len(binary) >= 5

    def cumulated(sentence, word):
        """Neighbours lie far apart where few constituents hold both."""
        out, tree = np.zeros(24), sentence.gold.tree
        out[0] = sum(1.0 / (1 + common(tree, i)) for i in range(word))
        out[1] = 1.0
        return out

    vectors = planted(binary, [noise, cumulated])
    found = syntax.bracket_scores(vectors, binary, range(len(binary)))
    place = found.names.index((1, "euclidean"))
    assert found.f1.at(place).value > 0.9 > found.random_gaps.at(0).value
    assert set(kind for _, kind in found.names) == set(syntax.GAPS)


def _nearly_binary(sentence):
    kept, spans = syntax.gold_brackets(sentence)
    return len(kept) >= 4 and len(spans) >= len(kept) - 3


def test_labels_follow_the_tree(sentences):
    tags = syntax.word_labels(sentences, "upos")
    assert tags == [t for s in sentences for t in s.upos]
    parents = syntax.word_labels(sentences[:1], "parent")
    assert parents == [sentences[0].gold.tree.ancestors(i)[0] for i in range(len(sentences[0]))]
    above = syntax.word_labels(sentences, "great_grandparent")
    shallow = sum(len(s.gold.tree.ancestors(i)) < 3 for s in sentences for i in range(len(s)))
    assert sum(label is None for label in above) == shallow > 0
    with pytest.raises(KeyError, match="unknown label 'colour'"):
        syntax.word_labels(sentences, "colour")


def test_words_are_probed_where_they_have_a_label(sentences, split):
    tags = syntax.word_labels(sentences, "upos")
    names = sorted(set(tags))

    def tagged(sentence, word):
        out = np.zeros(24)
        out[names.index(sentence.upos[word])] = 1
        return out + 0.01 * noise(sentence, word)

    vectors = planted(sentences, [noise, tagged])
    results, scores = syntax.probe_words(vectors, tags, split)
    assert results[1].accuracy > 0.99 > 0.6 > results[0].accuracy
    assert scores.best.layer == 1 and scores.at(1).value == pytest.approx(results[1].accuracy)
    nouns = [tag if tag in ("NOUN", "VERB") else None for tag in tags]
    few, _ = syntax.probe_words(vectors, nouns, split)
    rows = np.flatnonzero(np.isin(vectors.sentence, split.test))
    tested = sum(nouns[i] is not None for i in rows)
    assert few[0].n_test == tested


def test_properties_are_read_where_they_are_planted(sentences, split):
    numbers = syntax.sentence_properties(sentences)
    assert numbers["length"] == tuple(len(s) for s in sentences)
    assert max(numbers["subordinate clauses"]) >= 1 > min(numbers["subordinate clauses"])

    rng = np.random.default_rng(0)
    pooled = rng.normal(size=(2, len(sentences), 12)).astype(np.float32)
    for k, values in enumerate(numbers.values()):
        pooled[1, :, k] = values
    found = syntax.property_scores(pooled, numbers, split, model="planted")
    # Small whole numbers are full of ties, which a prediction breaks in no particular order.
    assert found.chosen == 1 and found.best.value > 0.7
    assert min(found.by_layer(name)[1] for name in found.names) > 0.6
    assert found.by_layer("length")[1] > 0.95 > 0.6 > found.by_layer("length")[0]
    assert found.best.interval[0] <= found.best.value <= found.best.interval[1]
    with pytest.raises(KeyError, match="no property"):
        found.by_layer("colour")
    with pytest.raises(ValueError, match="'flat' is the same"):
        syntax.property_scores(pooled, {"flat": [1.0] * 90}, split, model="m")


def test_auxiliary_items_have_the_main_one_where_asked():
    first = syntax.auxiliary_items(12, main_first=True, split="train")
    later = syntax.auxiliary_items(12, main_first=False, split="test", depths=(1, 2))
    for item in (*first, *later):
        tags = {item.sentence.upos[i] for i in item.auxiliaries}
        assert tags == {"AUX"} and len(item.auxiliaries) > 1 and item.main in item.auxiliaries
    assert all(item.main_is_first for item in first)
    assert not any(item.main_is_first for item in later)
    shared = {i.sentence.text for i in first} & {i.sentence.text for i in later}
    assert len({i.sentence.text for i in first}) == 12 and not shared
    with pytest.raises(ValueError, match="at least 1"):
        syntax.auxiliary_items(0, main_first=True, split="train")


def test_an_auxiliary_probe_shows_which_rule_it_learned():
    items = [
        *syntax.auxiliary_items(40, main_first=True, split="train"),
        *syntax.auxiliary_items(20, main_first=False, split="test"),
    ]
    main = {i.sentence.text: i.main for i in items}

    def hierarchy(sentence, word):
        flag = float(word == main[sentence.text])
        return np.array([flag, 0.0]) + 0.01 * noise(sentence, word)[:2]

    def position(sentence, word):
        return np.array([float(word), 0.0]) + 0.01 * noise(sentence, word)[:2]

    vectors = planted([i.sentence for i in items], [hierarchy, position])
    split = Split(np.arange(40), [], np.arange(40, 60))
    scores, chance = syntax.auxiliary_scores(vectors, items, split)
    assert [round(e.value, 2) for e in scores.by_layer()] == [1.0, 0.0]
    assert 0.4 < chance <= 0.5
    with pytest.raises(ValueError, match="60 sentences for 3 items"):
        syntax.auxiliary_scores(vectors, items[:3], split)


def test_roles_are_told_apart_by_what_they_explain(sentences, split):
    rng = np.random.default_rng(0)
    maps = {}

    def target(scheme):
        total = np.zeros((len(sentences), 24), np.float32)
        for number, sentence in enumerate(sentences):
            for word, role in enumerate(scheme(sentence)):
                turn = maps.setdefault(role, rng.normal(size=(24, 24)))
                total[number] += turn @ lexical(sentence, word)
        return total

    def lexical(sentence, word):
        rng = np.random.default_rng(list(map(ord, sentence.lemmas[word])))
        return 0.3 * rng.normal(size=24) * (np.arange(24) < 3)

    def fits(scheme):
        first = target(scheme)[None]
        vectors = planted(sentences, [lexical], first=first)
        found = syntax.role_fits(vectors, sentences, split)
        return {name: fit.explained.value for name, fit in found.items()}, found

    bag, _ = fits(syntax.SCHEMES["bag of words"])
    assert bag["bag of words"] > 0.95
    tree, found = fits(syntax.SCHEMES["tree"])
    assert tree["tree"] == max(tree.values()) and tree["tree"] > tree["bag of words"] + 0.1
    gain = found["tree"].minus(found["bag of words"])
    assert gain.value == pytest.approx(tree["tree"] - tree["bag of words"], abs=1e-9)
    assert found["bag of words"].n_roles == 1
    with pytest.raises(ValueError, match="development"):
        vectors = planted(sentences, [lexical])
        syntax.role_fits(vectors, sentences, Split(split.train, [], split.test))


def test_kernel_of_roles_is_the_product_of_tensor_sums(sentences):
    from bertology_utils.syntax.roles import _products

    few = sentences[:6]
    owner = np.repeat(np.arange(6), [len(s) for s in few])
    fillers = np.random.default_rng(0).normal(size=(len(owner), 5))
    for scheme in syntax.SCHEMES.values():
        roles = [role for s in few for role in scheme(s)]
        names = sorted(set(roles), key=str)
        tensors = np.zeros((6, len(names), 5))
        for word, role in enumerate(roles):
            tensors[owner[word], names.index(role)] += fillers[word]
        flat = tensors.reshape(6, -1)
        np.testing.assert_allclose(_products(roles, fillers, owner, 6), flat @ flat.T, atol=1e-9)


def test_tree_roles_walk_down_from_the_root(sentences):
    for sentence in sentences[:10]:
        roles = syntax.SCHEMES["tree"](sentence)
        assert roles[sentence.root] == ()
        assert [len(role) for role in roles] == list(sentence.depths())
        assert len(set(roles)) > 1
