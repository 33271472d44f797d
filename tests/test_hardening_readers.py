"""Files of published formats, malformed in every way: the error names the file and the line."""

import json

import pytest
from hostile import NASTY, fuzz, json_values, texts, tried
from hypothesis import given
from hypothesis import strategies as st

from bertology_utils.stimuli import FORMATS, PerturbError, ReaderError, TreeError, load
from bertology_utils.stimuli.perturb import drop_argument, nonsense, shuffle_words, truncate
from bertology_utils.stimuli.readers import read_conllu
from bertology_utils.stimuli.trees import Sentence, Treebank, check_heads

SUFFIX = {"blimp": ".jsonl", "conllu": ".conllu", "lama": ".jsonl", "sst2": ".tsv", "cola": ".tsv",
          "wic": ".data.txt"}  # fmt: skip
GOOD = {
    "blimp": json.dumps({"sentence_good": "cats sleep", "sentence_bad": "cats sleeps", "UID": "x"}),
    "conllu": "1\tCats\tcat\tNOUN\t_\t_\t2\tnsubj\t_\t_\n"
    "2\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\t_\n",
    "lama": json.dumps({"sub_label": "Paris", "obj_label": "France", "template": "[X] is in [Y]."}),
    "sst2": "a fine film\t1",
    "cola": "gj04\t1\t\tThe cat sleeps.",
    "wic": "bank\tN\t1-1\tThe bank closed\tA bank shut",
}  # fmt: skip
cells = st.sampled_from(["1", "2", "0", "-1", "1-2", "8.1", "_", "\u00b2", "\u0663", "T", "N", "x",
                         "", "a b", "9" * 5000, "text = a"])  # fmt: skip
lines = st.one_of(
    texts,
    st.lists(cells | texts, min_size=1, max_size=11).map("\t".join),
    json_values.map(lambda value: json.dumps(value, ensure_ascii=True)),
    st.dictionaries(
        st.sampled_from(["sentence_good", "sentence_bad", "UID", "sub_label", "obj_label",
                         "template", "masked_sentences", "pattern", "relation"]),
        json_values | texts, max_size=6,
    ).map(json.dumps),
    st.sampled_from(sorted(GOOD.values())),
    st.just("[" * 100_000),
    st.just("# text = \u202e"),
)  # fmt: skip


def place_of(error: ReaderError, name: str) -> None:
    """The error must say where."""
    assert name in str(error)
    assert error.line or "no items" in str(error), str(error)


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_good_file_is_read(tmp_path, name, end):
    path = tmp_path / f"good{SUFFIX[name]}"
    path.write_bytes((GOOD[name].replace("\n", end or "\n") + end).encode())
    assert len(load(name, path)) == 1


@fuzz
@given(st.sampled_from(sorted(GOOD)), st.lists(lines, max_size=4), st.booleans())
def test_lines_of_anything(tmp_path_factory, name, given_lines, well_begun):
    path = tmp_path_factory.mktemp("lines") / f"fuzz{SUFFIX[name]}"
    start = [GOOD[name]] if well_begun else []
    content = "\n".join([*start, *given_lines]).encode("utf-8", "surrogatepass")
    path.write_bytes(content)
    _, error = tried(lambda: load(name, path), ReaderError)
    if error is not None:
        place_of(error, path.name)


@fuzz
@given(st.sampled_from(sorted(GOOD)), st.binary(max_size=80), st.integers(0, 3))
def test_bytes_of_anything(tmp_path_factory, name, content, before):
    path = tmp_path_factory.mktemp("bytes") / f"fuzz{SUFFIX[name]}"
    path.write_bytes((GOOD[name] + "\n").encode() * before + content)
    _, error = tried(lambda: load(name, path), ReaderError)
    if error is not None:
        place_of(error, path.name)


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp1252"])
def test_another_encoding_is_named_with_its_line(tmp_path, name, encoding):
    path = tmp_path / f"wrong{SUFFIX[name]}"
    good = GOOD[name] + "\n"
    many = 50
    path.write_bytes(good.encode() * many + good.replace("a", "\u00e9").encode(encoding))
    with pytest.raises(ReaderError) as caught:
        load(name, path)
    assert caught.value.line == many * good.count("\n") + 1


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path, name):
    path = tmp_path / f"mark{SUFFIX[name]}"
    path.write_text(GOOD[name] + "\n", encoding="utf-8-sig")
    (tmp_path / "plain").mkdir()
    plain = tmp_path / "plain" / path.name
    plain.write_text(GOOD[name] + "\n", encoding="utf-8")
    assert list(load(name, path)) == list(load(name, plain))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_file_is_said(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.txt").write_text("")
    for path in ("", "no/such/file.jsonl", tmp_path / "empty", tmp_path / "nothing.txt",
                 "x" * 5000, "a\x00b", "\ud800/b", None, 3):  # fmt: skip
        tried(lambda path=path: pytest.fail(str(load(name, path))), ReaderError)


@fuzz
@given(st.lists(lines, max_size=3), st.lists(lines, max_size=3))
def test_folders_of_anything(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("folder")
    encoded = [
        ("\n".join(part) + "\n").encode("utf-8", "surrogatepass") for part in (first, second)
    ]
    for place in ("relations.jsonl", "trex_lms_vocab/P1.jsonl", "pattern_data/graphs_json/P1.jsonl",
                  "a.data.txt", "a.gold.txt", "x.conllu"):  # fmt: skip
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(encoded[len(place) % 2])
    for name in FORMATS:
        tried(lambda name=name: load(name, folder), ReaderError)


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("conllu", "1\tx\tx\tX\t_\t_\t\u00b2\troot\t_\t_", "head '\u00b2' is not a number"),
        ("conllu", "1\tx\tx\tX\t_\t_\t" + "9" * 5000 + "\troot\t_\t_", "is not a number"),
        ("conllu", "1\t\tx\tX\t_\t_\t0\troot\t_\t_", "word 1 is empty"),
        ("blimp", "[" * 100_000, "not JSON"),
        ("blimp", "9" * 5000, "not JSON"),
        ("blimp", '{"sentence_good": "\\ud800", "sentence_bad": "x", "UID": "y"}', "surrogate"),
        ("blimp", '{"sentence_good": NaN, "sentence_bad": "x", "UID": "y"}', "sentence_good"),
        ("wic", "bank\tN\t\u00b9-1\tThe bank closed\tA bank shut", "not two numbers"),
        ("sst2", "fine\t2" + "x" * 9000, "is not one of 0, 1"),
        ("cola", "fine\t1", "expected 4 columns, found 2"),
    ],
)
def test_what_parsers_trip_over_is_named_with_its_line(tmp_path, name, line, said):
    path = tmp_path / f"one{SUFFIX[name]}"
    path.write_bytes((GOOD[name] + "\n\n" * (name != "wic") + "\n" * (name == "wic")
                      + line + "\n").encode())  # fmt: skip
    _, error = tried(lambda: load(name, path), ReaderError)
    assert error is not None and said in str(error)
    assert error.line == path.read_text().count("\n")


@st.composite
def trees(draw, max_words=7):
    """Heads of a tree, 1-based, 0 for its root."""
    n = draw(st.integers(1, max_words))
    order = draw(st.permutations(range(n)))
    found = [0] * n
    for place in range(1, n):
        found[order[place]] = order[draw(st.integers(0, place - 1))] + 1
    return found


heads = trees() | st.lists(
    st.integers(-2, 6) | st.none() | st.floats() | st.text(max_size=2) | st.booleans(), max_size=6
)


@fuzz
@given(heads)
def test_heads_are_one_tree_or_an_error(given_heads):
    _, error = tried(lambda: check_heads(given_heads, "s"), TreeError)
    if error is None:
        assert given_heads.count(0) == 1
        for start in range(len(given_heads)):
            steps, node = 0, start
            while given_heads[node] != 0:
                node, steps = given_heads[node] - 1, steps + 1
                assert steps <= len(given_heads)


@fuzz
@given(heads, st.lists(texts, max_size=6), st.lists(st.sampled_from(["NOUN", "VERB", "ADJ", "?"]),
                                                    max_size=6))  # fmt: skip
def test_sentences_of_anything(given_heads, words, tags):
    n = len(given_heads)
    words = (words * n)[:n] or ["x"] * n
    tags = (tags * n)[:n] or ["NOUN"] * n
    parts = (tuple(words), tuple(tags), tuple(given_heads), ("dep",) * n, tuple(words), ("_",) * n)
    sentence, error = tried(lambda: Sentence(*parts, text=" ".join(words)), TreeError)
    if error is None:
        assert len(sentence.distances()) == n == len(sentence.depths())
        sentence.projective()
        tried(lambda: nonsense(sentence), PerturbError)
        tried(lambda: drop_argument(sentence, "subject"), PerturbError)


@fuzz
@given(st.lists(texts, max_size=6), st.floats() | st.integers(-3, 3), st.integers(-3, 8))
def test_perturbed_words_are_the_same_words(words, share, place):
    found, _ = tried(lambda: shuffle_words(words, share), PerturbError)
    assert found is None or sorted(found) == sorted(words)
    cut, _ = tried(lambda: truncate(words, place, place), PerturbError)
    assert cut is None or cut[0][cut[1]] == words[place]


def test_a_treebank_of_long_chains_is_read_in_time(tmp_path):
    n = 3000
    rows = "".join(f"{i}\tw\tw\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i in range(1, n + 1))
    path = tmp_path / "chain.conllu"
    path.write_text(rows)
    bank, _ = tried(lambda: read_conllu(path), ReaderError, seconds=30)
    assert isinstance(bank, Treebank) and bank[0].heads[-1] == n - 1


@pytest.mark.parametrize("text", NASTY)
def test_nasty_cells_of_a_treebank_come_back_unchanged(tmp_path, text):
    path = tmp_path / "cell.conllu"
    word = text.replace("\t", " ").replace("\n", " ")
    path.write_bytes(f"1\t{word}\tx\tX\t_\t_\t0\troot\t_\t_\n".encode("utf-8", "surrogatepass"))
    bank, error = tried(lambda: read_conllu(path), ReaderError)
    if error is None:
        assert bank[0].words == (word,)
    else:
        place_of(error, path.name)
