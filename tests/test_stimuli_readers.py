"""Readers for public formats on small samples of our own; errors name the file and the line."""

import json

import pytest

from bertology_utils import stimuli
from bertology_utils.stimuli import ReaderError, load


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


BLIMP = {
    "sentence_good": "The dogs sleep.", "sentence_bad": "The dogs sleeps.", "UID": "agreement_x",
    "linguistics_term": "agreement", "field": "morphology", "pairID": "7",
}  # fmt: skip


def test_blimp(tmp_path):
    one = write(tmp_path / "a.jsonl", jsonl(BLIMP, BLIMP))
    write(tmp_path / "b.jsonl", jsonl(BLIMP))
    (first, _) = load("blimp", one)
    assert first.good == "The dogs sleep." and first.paradigm == "agreement_x"
    assert first.pair_id == "7" and first.phenomenon == "agreement"
    assert len(load("blimp", tmp_path)) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"sentence_good": "a"}\n', r"a\.jsonl:1: missing or empty 'sentence_bad'"),
     (jsonl(BLIMP) + "\n{oops\n", r"a\.jsonl:3: not JSON"),
     ("[1]\n", r"a\.jsonl:1: expected an object"),
     ("\n", "no items")],
)  # fmt: skip
def test_blimp_malformed(tmp_path, text, message):
    with pytest.raises(ReaderError, match=message):
        load("blimp", write(tmp_path / "a.jsonl", text))


def row(i, form, upos, head, rel):
    return f"{i}\t{form}\t{form.lower()}\t{upos}\t_\t_\t{head}\t{rel}\t_\t_\n"


GOOD = (
    "# sent_id = s1\n# text = I don't know.\n"
    + row(1, "I", "PRON", 4, "nsubj") + "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    + row(2, "do", "AUX", 4, "aux") + row(3, "n't", "PART", 4, "advmod")
    + row(4, "know", "VERB", 0, "root") + row(5, ".", "PUNCT", 4, "punct")
    + "5.1\tit\tit\tPRON\t_\t_\t_\t_\t_\t_\n"
)  # fmt: skip


def test_conllu(tmp_path):
    bank = load(
        "conllu", write(tmp_path / "x.conllu", GOOD + "\n" + row(1, "Yes", "INTJ", 0, "root"))
    )
    assert len(bank) == 2 and isinstance(bank, stimuli.Treebank)
    s = bank[0]
    assert s.words == ("I", "do", "n't", "know", ".") and s.heads == (4, 4, 4, 0, 4)
    assert s.text == "I don't know." and s.sent_id == "s1" and s.gold is None
    assert s.root == 3 and s.depths() == (1, 1, 1, 0, 1) and bank[1].text == "Yes"
    assert s.distances()[0] == (0, 2, 2, 1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [("# c\n1\tI\ti\n", r"x\.conllu:2: expected 10 columns, found 3"),
     (row(1, "I", "PRON", "_", "root"), r"x\.conllu:1: head '_'"),
     (row(1, "I", "X", 0, "root") + row(3, "a", "X", 1, "dep"), r":2: expected word 2, found '3'"),
     (row(1, "I", "X", 2, "dep") + row(2, "a", "X", 1, "dep"), r":1: .*expected one root"),
     ("\n" + row(1, "I", "X", 0, "root") + row(2, "a", "X", 3, "d") + row(3, "b", "X", 2, "d"),
      r":2: .*cycle"),
     ("", "no items")],
)  # fmt: skip
def test_conllu_malformed(tmp_path, text, message):
    with pytest.raises(ReaderError, match=message):
        load("conllu", write(tmp_path / "x.conllu", text))


def test_round_trip_of_our_own_sentences(tmp_path):
    bank = stimuli.treebank(30, 1)
    text = ""
    for s in bank:
        text += f"# text = {s.text}\n"
        for i, cells in enumerate(
            zip(s.words, s.lemmas, s.upos, s.feats, s.heads, s.deprels, strict=True), 1
        ):
            form, lemma, upos, feats, head, rel = cells
            text += f"{i}\t{form}\t{lemma}\t{upos}\t_\t{feats}\t{head}\t{rel}\t_\t_\n"
        text += "\n"
    back = load("conllu", write(tmp_path / "own.conllu", text))
    assert [(s.words, s.heads, s.deprels, s.text) for s in back] == [
        (s.words, s.heads, s.deprels, s.text) for s in bank
    ]


def fact(subject, answer):
    return {"sub_label": subject, "obj_label": answer, "uuid": "u"}


def test_pararel(tmp_path):
    graphs = tmp_path / "pattern_data" / "graphs_json"
    write(graphs / "P1.jsonl", jsonl({"pattern": "[X] lies in [Y]."}, {"pattern": "[Y] has [X]."}))
    write(tmp_path / "trex_lms_vocab" / "P1.jsonl",
          jsonl(fact("Oslo", "Norway"), fact("Bergen", "Norway")))  # fmt: skip
    write(tmp_path / "trex_lms_vocab" / "P2.jsonl", jsonl(fact("a", "b")))
    found = load("pararel", tmp_path)
    assert [f.subject for f in found] == ["Oslo", "Bergen"]
    assert found[0].queries == ("Oslo lies in [MASK].", "[MASK] has Oslo.")
    assert found[0].cardinality == "N-1" and found[0].relation == "P1"
    write(graphs / "P1.jsonl", jsonl({"pattern": "[X] lies."}))
    with pytest.raises(ReaderError, match=r"P1\.jsonl:1: need one"):
        load("pararel", tmp_path)
    with pytest.raises(ReaderError, match="missing"):
        load("pararel", graphs)


def test_lama(tmp_path):
    single = write(
        tmp_path / "one" / "squad.jsonl",
        jsonl({"obj_label": "blue", "masked_sentences": ["The sky is [MASK]."], "sub": "sky"}),
    )
    (item,) = load("lama", single)
    assert item.queries == ("The sky is [MASK].",) and item.object == "blue"
    folder = tmp_path / "two"
    write(folder / "relations.jsonl", jsonl({"relation": "P19", "template": "[X] is from [Y] ."}))
    write(folder / "TREx" / "P19.jsonl", jsonl(fact("Ann", "Peru"), fact("Ann", "Chile")))
    (item,) = load("lama", folder)
    assert item.objects == ("Peru", "Chile") and item.cardinality == "N-M"
    write(folder / "TREx" / "P20.jsonl", jsonl(fact("Ann", "Peru")))
    with pytest.raises(ReaderError, match="no template for 'P20'"):
        load("lama", folder)
    bad = write(tmp_path / "bad.jsonl", jsonl({"obj_label": "x", "masked_sentences": ["none"]}))
    with pytest.raises(ReaderError, match=r"bad\.jsonl:1: need one \[MASK\]"):
        load("lama", bad)


def test_sst2_and_cola(tmp_path):
    plain = load("sst2", write(tmp_path / "a.tsv", "a fine film\t1\ndull .\t0\n"))
    assert [(x.text, x.label) for x in plain] == [
        ("a fine film", "positive"), ("dull .", "negative")
    ]  # fmt: skip
    headed = load("sst2", write(tmp_path / "b.tsv", "sentence\tlabel\na fine film \t1\n"))
    assert [x.text for x in headed] == ["a fine film"]
    judged = load("cola", write(tmp_path / "c.tsv", "ab12\t1\t\tShe left.\ncd\t0\t*\tLeft she.\n"))
    assert [(x.label, x.feature("source")) for x in judged] == [
        ("acceptable", "ab12"), ("unacceptable", "cd")
    ]  # fmt: skip
    with pytest.raises(ReaderError, match=r"d\.tsv:2: expected 2 columns, found 3"):
        load("sst2", write(tmp_path / "d.tsv", "ok\t1\nbad\t1\t2\n"))
    with pytest.raises(ReaderError, match=r"e\.tsv:1: label '5'"):
        load("sst2", write(tmp_path / "e.tsv", "ok\t5\n"))
    with pytest.raises(ReaderError, match=r"f\.tsv:1: expected 4 columns"):
        load("cola", write(tmp_path / "f.tsv", "ok\t1\n"))


def test_wic(tmp_path):
    data = "bank\tN\t1-3\tThe bank closed .\tWe sat on banks .\n"
    write(tmp_path / "dev.data.txt", data + "run\tV\t0-0\tRun !\tRun .\n")
    unlabelled = load("wic", tmp_path)
    assert unlabelled[0].same is None and unlabelled[0].sentences[0][1] == "bank"
    write(tmp_path / "dev.gold.txt", "F\nT\n")
    assert [x.same for x in load("wic", tmp_path)] == [False, True]
    assert load("wic", tmp_path / "dev.data.txt")[0].targets == (1, 3)
    for gold, message in (("F\n", "only 1 labels"), ("F\nT\nT\n", "3 labels for 2"),
                          ("F\nX\n", r"dev\.gold\.txt:2: label 'X'")):  # fmt: skip
        write(tmp_path / "dev.gold.txt", gold)
        with pytest.raises(ReaderError, match=message):
            load("wic", tmp_path)
    (tmp_path / "dev.gold.txt").unlink()
    for line, message in (("a\tN\t0-0\tb\n", "5 columns"), ("a\tN\tx-0\ta\ta\n", "two numbers"),
                          ("a\tN\t0-4\ta\ta\n", "no word 4")):  # fmt: skip
        write(tmp_path / "dev.data.txt", line)
        with pytest.raises(ReaderError, match=message):
            load("wic", tmp_path)


def test_what_cannot_be_found(tmp_path):
    with pytest.raises(ReaderError, match="'glue'"):
        load("glue", tmp_path)
    with pytest.raises(ReaderError, match="no such file"):
        load("sst2", tmp_path / "none.tsv")
    with pytest.raises(ReaderError, match="no such file"):
        load("blimp", "data/none.jsonl")
    with pytest.raises(ReaderError, match="from a path only"):
        load("conllu", "someone/treebank")
    with pytest.raises(ReaderError, match="no \\*.jsonl"):
        load("blimp", tmp_path)
    bad = tmp_path / "latin.tsv"
    bad.write_bytes(b"caf\xe9\t1\n")
    with pytest.raises(ReaderError, match="not UTF-8"):
        load("sst2", bad)


def test_hub_needs_datasets():
    try:
        import datasets  # noqa: F401
    except ImportError:
        with pytest.raises(ReaderError, match="needs the package 'datasets'"):
            load("blimp", "nyu-mll/blimp", config="npi_present_1")
    else:
        with pytest.raises(ReaderError, match="config="):
            load("blimp", "nyu-mll/blimp")


def test_hub_rows_become_the_same_objects():
    from bertology_utils.stimuli import readers

    made = readers._HUB["wic"][1](
        {"word": "bank", "sentence1": "The bank closed.", "sentence2": "We sat on banks.",
         "start1": 4, "end1": 8, "start2": 10, "end2": 15, "label": 0}
    )  # fmt: skip
    assert made.sentences[0][made.targets[0]] == "bank" and made.same is False
    assert made.sentences[1][made.targets[1]] == "banks"
    assert readers._HUB["cola"][1]({"sentence": "Left she.", "label": 0}).label == "unacceptable"
    assert readers._HUB["blimp"][1](BLIMP).paradigm == "agreement_x"
    with pytest.raises(ReaderError, match="label -1"):
        readers._HUB["sst2"][1]({"sentence": "a", "label": -1})
