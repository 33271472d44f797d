"""The lexicon and the grammar: determinism, valid trees, agreement, disjoint splits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertology_utils import stimuli
from bertology_utils.stimuli import CONSTRUCTIONS, Grammar, GrammarError, lexicon, treebank
from bertology_utils.stimuli.lexicon import LexiconError, core_lexicon

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def bank():
    return treebank(1200, seed=11)


def run_elsewhere(code: str, hash_seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_same_sentences_in_every_process():
    code = (
        "from bertology_utils import stimuli as s\n"
        "print(s.treebank(40, 3).texts)\n"
        "print(s.treebank(20, 3, 'test', depth=2).texts)\n"
        "for p in s.PHENOMENA:\n"
        "    print([(x.good, x.bad) for x in s.minimal_pairs(p, 4, 5)])\n"
    )
    first = run_elsewhere(code, "0")
    assert first == run_elsewhere(code, "12345")
    assert len(first) > 3000


def test_seeds_differ_and_larger_extends_smaller():
    assert treebank(20, 1).texts != treebank(20, 2).texts
    assert treebank(40, 1).texts[:20] == treebank(20, 1).texts


def test_stimuli_import_no_torch():
    code = "import sys, bertology_utils.stimuli; print('torch' in sys.modules)"
    assert run_elsewhere(code, "0").strip() == "False"


def test_splits_share_no_content_form():
    train, test = lexicon("train"), lexicon("test")
    assert not train.content_forms() & test.content_forms()
    assert train.content_forms() | test.content_forms() == lexicon("all").content_forms()
    share = len(test.entries) / len(lexicon("all").entries)
    assert 0.2 < share < 0.4


def test_train_and_test_treebanks_share_no_content_word_and_no_sentence():
    train, test = treebank(400, 0, "train"), treebank(400, 0, "test")
    content = {"NOUN", "VERB", "ADJ", "PROPN"}

    def lemmas(bank):
        return {
            lemma
            for s in bank
            for lemma, upos in zip(s.lemmas, s.upos, strict=True)
            if upos in content and lemma not in ("be", "many", "several")
        }

    assert not lemmas(train) & lemmas(test)
    assert not set(train.texts) & set(test.texts)


def test_exclude_keeps_sentences_apart():
    first = treebank(200, 0, construction="copular", depth=0)
    second = treebank(200, 1, construction="copular", depth=0, exclude=first.texts)
    assert not set(first.texts) & set(second.texts)


def test_sizes(bank):
    assert len(lexicon().vocabulary()) > 900
    assert 500 < len(core_lexicon(600).vocabulary()) <= 600
    assert len(bank) == 1200 == len(set(bank.texts))
    assert len(Grammar(core_lexicon()).treebank(500, 0)) == 500


def test_trees_are_valid_and_projective(bank):
    for s in bank:
        assert s.heads.count(0) == 1
        assert s.deprels[s.root] == "root"
        assert s.projective(), s.text
        depths = s.depths()
        assert all(depths[dependent] == depths[head] + 1 for head, dependent, _ in s.edges())
        for i, row in enumerate(s.distances()):
            assert row[i] == 0
            assert row[s.root] == depths[i]
        tree = s.gold.tree
        assert (tree.start, tree.end) == (0, len(s))
        assert [t.label for t in tree.subtrees() if not t.children] == list(s.upos)
        for node in tree.subtrees():
            if node.children:
                assert node.children[0].start == node.start
                assert node.children[-1].end == node.end
                for left, right in zip(node.children, node.children[1:], strict=False):
                    assert left.end == right.start


def test_constituents_have_one_head_outside(bank):
    """Every constituent but a clause's predicate percolates one head: one arc leaves it."""
    for s in bank.sentences[:500]:
        for label, start, end in s.gold.tree.spans():
            out = [i for i in range(start, end) if not start < s.heads[i] <= end]
            assert len(out) == 1, (s.text, label, s.words[start:end])


SINGULAR_FORMS = {"is", "was", "has", "does", "am"}
PLURAL_FORMS = {"are", "were", "have", "do"}


def test_agreement_follows_the_features(bank):
    verbs = {v.base: v for v in lexicon().verbs}
    checked = 0
    for s in bank:
        for a in s.gold.agreements:
            subject, verb = s.words[a.subject].lower(), s.words[a.verb].lower()
            first_person = subject == "i"
            if s.upos[a.verb] == "AUX" or s.lemmas[a.verb] == "be":
                if first_person:
                    assert verb not in ("is", "are", "were", "has", "does"), s.text
                elif verb in SINGULAR_FORMS:
                    assert a.number == "sing", s.text
                elif verb in PLURAL_FORMS:
                    assert a.number == "plur", s.text
            elif "Tense=Pres" in s.feats[a.verb]:
                entry = verbs[s.lemmas[a.verb]]
                third = a.number == "sing" and not first_person
                assert verb == (entry.third if third else entry.base), s.text
            else:
                continue
            checked += 1
            if s.upos[a.subject] == "NOUN" and "np_coordination" not in s.gold.features:
                expected = "Number=Plur" if a.number == "plur" else "Number=Sing"
                assert expected in s.feats[a.subject], s.text
    assert checked > 1200


def test_main_facts_point_at_the_right_words(bank):
    for s in bank:
        g = s.gold
        assert s.upos[g.subject] in ("NOUN", "PROPN", "PRON")
        assert s.upos[g.main_verb] in ("VERB", "AUX")
        if g.main_auxiliary is not None:
            assert s.upos[g.main_auxiliary] == "AUX"
        if g.object is not None:
            assert s.deprels[g.object] in ("obj", "conj"), s.text
        subject_relation = s.deprels[g.subject]
        assert subject_relation in ("nsubj", "nsubj:pass"), s.text
        assert (g.voice == "passive") == (subject_relation == "nsubj:pass")
        for cue, scope in ((n.cue, n.scope) for n in g.negations):
            assert s.words[cue].lower() in ("not", "no", "never")
            assert cue not in scope and scope
        for role in g.roles:
            assert s.upos[role.predicate] == "VERB"


def test_coreference_agrees(bank):
    gender = {n.lemma: n.gender for n in lexicon().nouns}
    gender.update({n.lemma: n.gender for n in lexicon().names})
    links = 0
    for s in bank:
        for anaphor, antecedent in s.gold.coreference:
            word = s.words[anaphor].lower()
            links += 1
            known = gender.get(s.lemmas[antecedent])
            if word in ("he", "him", "his", "himself"):
                assert known in ("m", None), s.text
            if word in ("she", "her", "herself"):
                assert known in ("f", None), s.text
            if word in ("himself", "herself", "itself"):
                assert "Number=Sing" in s.feats[antecedent], s.text
    assert links > 60


def test_every_construction_and_depth():
    for construction in CONSTRUCTIONS:
        made = treebank(5, 2, construction=construction)
        assert {s.gold.construction for s in made} == {construction}
        assert all(s.text.endswith("?" if "question" in construction else ".") for s in made)
    for depth in range(5):
        deep = treebank(10, 2, depth=depth)
        assert {s.gold.embedding for s in deep} == {depth}
    lengths = [treebank(60, 2, depth=d).n_words for d in range(4)]
    assert lengths == sorted(lengths)


def test_probe_variety(bank):
    seen = {f for s in bank for f in s.gold.features}
    assert {
        "pp", "subject_rc", "object_rc", "object_zero_rc", "np_coordination", "vp_coordination",
        "complement", "passive", "adverb", "question", "negation", "possessive", "reflexive",
        "pronoun", "name", "existential", "infinitive", "adverbial",
    } <= seen  # fmt: skip
    assert {rel for s in bank for rel in s.deprels} >= {
        "nsubj", "obj", "iobj", "obl", "obl:agent", "nmod", "nmod:poss", "amod", "det", "case",
        "acl:relcl", "ccomp", "xcomp", "mark", "aux", "aux:pass", "cop", "conj", "cc", "advmod",
        "advcl", "expl", "nummod", "punct", "nsubj:pass", "root",
    }  # fmt: skip
    assert {s.gold.tense for s in bank} == {"past", "pres", "fut"}


def test_bad_requests_are_refused():
    with pytest.raises(LexiconError, match="'dev'"):
        lexicon("dev")
    with pytest.raises(LexiconError, match="'unicorn'"):
        lexicon().noun("unicorn")
    with pytest.raises(LexiconError, match="'mineral'"):
        lexicon().nouns_of("mineral")
    with pytest.raises(GrammarError, match="'sonnet'"):
        Grammar().sentence(0, construction="sonnet")
    with pytest.raises(GrammarError, match="depth"):
        Grammar().sentence(0, depth=-1)
    with pytest.raises(GrammarError, match="no sentence"):
        Grammar().sentence(0, construction="wh_question", depth=2)
    with pytest.raises(GrammarError, match="found only"):
        treebank(10, max_words=2)
    with pytest.raises(GrammarError, match="at least one"):
        treebank(0)
    with pytest.raises(ValueError, match="negation"):
        stimuli.GrammarConfig(negation=1.5)


@pytest.mark.parametrize(
    ("heads", "message"),
    [((2, 1), "expected one root"), ((0, 0), "expected one root"), ((0, 3, 2), "cycle"),
     ((0, 9), "outside"), ((2, 0, 2, 5, 4), "cycle")],
)  # fmt: skip
def test_bad_trees_are_refused(heads, message):
    n = len(heads)
    with pytest.raises(stimuli.TreeError, match=message):
        stimuli.Sentence(("w",) * n, ("X",) * n, heads, ("dep",) * n, ("w",) * n, ("_",) * n, "w")


def test_unequal_parts_are_refused():
    with pytest.raises(stimuli.TreeError, match="2 words but 1 upos"):
        stimuli.Sentence(("a", "b"), ("X",), (0, 1), ("root", "dep"), ("a", "b"), ("_",) * 2, "a b")
