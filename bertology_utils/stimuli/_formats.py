"""Parsers of the published file formats; every error names the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology_utils.stimuli.facts import Fact
from bertology_utils.stimuli.sentiment import LabelledText
from bertology_utils.stimuli.trees import Sentence, Treebank, TreeError, join_words


class ReaderError(ValueError):
    """Input that is not in the expected format, or cannot be found."""

    def __init__(self, message: str, path: Path | None = None, line: int | None = None):
        shown = "" if path is None else _printable(str(path))
        place = "" if path is None else f"{shown}:{line}: " if line else f"{shown}: "
        super().__init__(place + message)
        self.path = path
        self.line = line


def _printable(path: str) -> str:
    """A path for an error message: one that no file system takes may be long or unwritable."""
    short = path if len(path) <= 300 else f"{path[:20]}...{path[-260:]}"
    return short.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class AcceptabilityPair:
    """An acceptable and an unacceptable sentence with their paradigm (BLiMP's UID)."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str
    field: str
    pair_id: str


@dataclass(frozen=True)
class WordInContext:
    """A word in two tokenised sentences; ``same`` is None when the file has no gold labels."""

    word: str
    pos: str
    sentences: tuple[tuple[str, ...], tuple[str, ...]]
    targets: tuple[int, int]
    same: bool | None


# -- reading lines -------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(line number, line without its end) of a UTF-8 file; a byte order mark is left out."""
    # Decoded line by line: a text stream decodes ahead, and would blame an earlier line.
    try:
        stream = path.open("rb")
    except OSError as error:
        raise ReaderError(f"cannot be read: {error.strerror}", path) from error
    with stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ReaderError(f"not UTF-8: {error.reason}", path, number) from error
            yield number, line.rstrip("\r\n")


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ReaderError(f"not JSON: {error.msg}", path, number) from error
        except (ValueError, RecursionError) as error:
            # Numbers of thousands of digits, brackets nested thousands of times.
            raise ReaderError(f"not JSON that can be read: {error}", path, number) from error
        if not isinstance(row, dict):
            raise ReaderError(f"expected an object, found {type(row).__name__}", path, number)
        yield number, row


def text_of(row: dict[str, Any], key: str, path: Path | None, line: int | None) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise ReaderError(f"missing or empty {key!r}", path, line)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        message = f"half of a surrogate pair in {key!r}, at character {error.start}"
        raise ReaderError(message, path, line) from None
    return value


def _is_place(text: str) -> bool:
    """Whether this numbers a word: ASCII digits, and not more of them than sentences need."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def _shown(value: object) -> str:
    """The start of what a file says, quoted, for an error message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _files(path: Path, pattern: str) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(path.glob(pattern))
    if not found:
        raise ReaderError(f"no {pattern} in this folder", path)
    return found


def _some(items: list, path: Path) -> list:
    if not items:
        raise ReaderError("no items in this file", path)
    return items


# -- BLiMP ---------------------------------------------------------------------------------------


def blimp_row(row: dict[str, Any], path: Path | None, line: int | None) -> AcceptabilityPair:
    return AcceptabilityPair(
        text_of(row, "sentence_good", path, line),
        text_of(row, "sentence_bad", path, line),
        text_of(row, "UID", path, line),
        str(row.get("linguistics_term", "")),
        str(row.get("field", "")),
        str(row.get("pairID", row.get("pair_id", ""))),
    )


def read_blimp(path: Path) -> list[AcceptabilityPair]:
    """BLiMP jsonl (Warstadt et al. 2020): one file or a folder of them."""
    out = []
    for file in _files(Path(path), "*.jsonl"):
        out += _some([blimp_row(row, file, line) for line, row in _json_lines(file)], file)
    return out


# -- CoNLL-U -------------------------------------------------------------------------------------


def read_conllu(path: Path) -> Treebank:
    """CoNLL-U: syntactic words with UPOS, heads and relations.

    Ranges ("1-2") and empty nodes ("8.1") are left out, as the basic tree does not contain them.
    ``text`` comes from the comment, or is joined from the words.
    """
    sentences: list[Sentence] = []
    path = Path(path)
    for file in _files(path, "*.conllu"):
        block: list[tuple[int, list[str]]] = []
        comments: dict[str, str] = {}
        start = 1
        for number, line in [*_lines(file), (0, "")]:
            if line.startswith("#"):
                if not block and not comments:
                    start = number
                key, _, value = line[1:].partition("=")
                comments[key.strip()] = value.strip()
            elif line.strip():
                if not block and not comments:
                    start = number
                cells = line.split("\t")
                if len(cells) != 10:
                    raise ReaderError(f"expected 10 columns, found {len(cells)}", file, number)
                block.append((number, cells))
            else:
                if block:
                    sentences.append(_conllu_sentence(block, comments, file, start))
                block, comments = [], {}
    return Treebank(path.stem, tuple(_some(sentences, path)))


def _conllu_sentence(
    block: list[tuple[int, list[str]]], comments: dict[str, str], file: Path, start: int
) -> Sentence:
    rows = [(n, c) for n, c in block if "-" not in c[0] and "." not in c[0]]
    heads = []
    for position, (number, cells) in enumerate(rows, 1):
        if cells[0] != str(position):
            raise ReaderError(f"expected word {position}, found {_shown(cells[0])}", file, number)
        if not cells[1]:
            raise ReaderError(f"word {position} is empty", file, number)
        if not _is_place(cells[6]):
            raise ReaderError(f"head {_shown(cells[6])} is not a number", file, number)
        heads.append(int(cells[6]))
    columns = [tuple(cells[i] for _, cells in rows) for i in (1, 2, 3, 5, 7)]
    words, lemmas, upos, feats, deprels = columns
    try:
        return Sentence(
            words, upos, tuple(heads), deprels, lemmas, feats,
            comments.get("text") or join_words(words), comments.get("sent_id", ""),
        )  # fmt: skip
    except TreeError as error:
        raise ReaderError(str(error), file, start) from error


# -- LAMA and ParaRel ----------------------------------------------------------------------------


def _templates(file: Path) -> tuple[str, ...]:
    """The patterns of one ParaRel graph file, checked for [X] and [Y]."""
    out = []
    for line, row in _json_lines(file):
        pattern = text_of(row, "pattern", file, line)
        if pattern.count("[X]") != 1 or pattern.count("[Y]") != 1:
            raise ReaderError(f"need one [X] and one [Y] in {_shown(pattern)}", file, line)
        out.append(pattern)
    return tuple(_some(out, file))


def _grouped(file: Path, relation: str, templates: tuple[str, ...]) -> list[Fact]:
    """Facts of a file, one per subject, with all the answers the file gives."""
    answers: dict[str, list[str]] = {}
    for line, row in _json_lines(file):
        subject = text_of(row, "sub_label", file, line)
        answer = text_of(row, "obj_label", file, line)
        if answer not in answers.setdefault(subject, []):
            answers[subject].append(answer)
    many = any(len(found) > 1 for found in answers.values())
    values = [found[0] for found in answers.values()]
    cardinality = "N-M" if many else "1-1" if len(set(values)) == len(values) else "N-1"
    return [
        Fact(subject, relation, found[0], tuple(found), cardinality, templates, ())
        for subject, found in answers.items()
    ]


def read_pararel(path: Path) -> list[Fact]:
    """ParaRel (Elazar et al. 2021): the folder with ``pattern_data/graphs_json`` and facts.

    Facts are in ``trex_lms_vocab`` beside it.  Each fact carries all paraphrases of its relation;
    relations without patterns are left out.
    """
    path = Path(path)
    graphs = path / "pattern_data" / "graphs_json"
    vocab = path / "trex_lms_vocab"
    for folder in (graphs, vocab):
        if not folder.is_dir():
            raise ReaderError("this folder of ParaRel is missing", folder)
    out: list[Fact] = []
    for file in _files(vocab, "*.jsonl"):
        patterns = graphs / file.name
        if patterns.exists():
            out += _some(_grouped(file, file.stem, _templates(patterns)), file)
    return _some(out, path)


def read_lama(path: Path) -> list[Fact]:
    """LAMA (Petroni et al. 2019): jsonl with ``sub_label`` and ``obj_label``.

    A folder may hold ``relations.jsonl`` (``relation`` and ``template``) beside the fact files, as
    the published archive does; files of relations it does not name are refused.  A single file
    needs its own ``masked_sentences`` or ``template`` on every line.
    """
    path = Path(path)
    if path.is_file():
        return _some([_lama_row(row, path, line) for line, row in _json_lines(path)], path)
    table = path / "relations.jsonl"
    templates: dict[str, str] = {}
    if table.exists():
        for line, row in _json_lines(table):
            template = text_of(row, "template", table, line)
            if template.count("[X]") != 1 or template.count("[Y]") != 1:
                raise ReaderError(f"need one [X] and one [Y] in {_shown(template)}", table, line)
            templates[text_of(row, "relation", table, line)] = template
    out: list[Fact] = []
    files = [f for f in sorted(path.rglob("*.jsonl")) if f != table]
    for file in files:
        if file.stem in templates:
            out += _some(_grouped(file, file.stem, (templates[file.stem],)), file)
        elif templates:
            raise ReaderError(f"relations.jsonl has no template for {file.stem!r}", file)
        else:
            out += _some([_lama_row(row, file, line) for line, row in _json_lines(file)], file)
    return _some(out, path)


def _lama_row(row: dict[str, Any], path: Path, line: int) -> Fact:
    answer = text_of(row, "obj_label", path, line)
    subject = str(row.get("sub_label") or row.get("sub") or "")
    relation = str(row.get("predicate_id") or row.get("pred") or path.stem)
    masked = row.get("masked_sentences")
    if isinstance(masked, list) and masked and all(isinstance(m, str) for m in masked):
        text = " ".join(masked)
        if text.count("[MASK]") != 1:
            raise ReaderError(f"need one [MASK] in {_shown(text)}", path, line)
        template = text.replace("[MASK]", "[Y]")
    else:
        template = text_of(row, "template", path, line)
        if template.count("[Y]") != 1:
            raise ReaderError(f"need one [Y] in {_shown(template)}", path, line)
    return Fact(subject, relation, answer, (answer,), "unknown", (template,), ())


# -- tables --------------------------------------------------------------------------------------


SENTIMENT_LABELS = {"0": "negative", "1": "positive"}
ACCEPTABILITY_LABELS = {"0": "unacceptable", "1": "acceptable"}


def label_of(value: object, names: dict[str, str], path: Path | None, line: int | None) -> str:
    if str(value) not in names:
        raise ReaderError(f"label {_shown(value)} is not one of {', '.join(names)}", path, line)
    return names[str(value)]


def read_sst2(path: Path) -> list[LabelledText]:
    """SST-2 tsv: sentence, label; with or without the header "sentence<TAB>label" of GLUE."""
    path = Path(path)
    out = []
    for number, line in _lines(path):
        cells = line.split("\t")
        if (number == 1 and cells == ["sentence", "label"]) or not line:
            continue
        if len(cells) != 2:
            raise ReaderError(f"expected 2 columns, found {len(cells)}", path, number)
        label = label_of(cells[1].strip(), SENTIMENT_LABELS, path, number)
        out.append(LabelledText(cells[0].strip(), label))
    return _some(out, path)


def read_cola(path: Path) -> list[LabelledText]:
    """CoLA tsv: source, label, the author's mark, sentence (Warstadt et al. 2019)."""
    path = Path(path)
    out = []
    for number, line in _lines(path):
        if not line:
            continue
        cells = line.split("\t")
        if len(cells) != 4:
            raise ReaderError(f"expected 4 columns, found {len(cells)}", path, number)
        label = label_of(cells[1], ACCEPTABILITY_LABELS, path, number)
        out.append(LabelledText(cells[3].strip(), label, (("source", cells[0]),)))
    return _some(out, path)


def read_wic(path: Path) -> list[WordInContext]:
    """WiC (Pilehvar and Camacho-Collados 2019): ``*.data.txt`` with ``*.gold.txt`` beside it.

    ``path`` is the data file or the folder of one split.  Without a gold file ``same`` is None.
    """
    path = Path(path)
    data = path if path.is_file() else _files(path, "*.data.txt")[0]
    gold_path = data.with_name(data.name.replace(".data.", ".gold."))
    gold: list[str] | None = None
    if gold_path != data and gold_path.exists():
        gold = []
        for number, line in _lines(gold_path):
            if line not in ("T", "F"):
                raise ReaderError(f"label {_shown(line)} is not T or F", gold_path, number)
            gold.append(line)
    out = []
    for number, line in _lines(data):
        cells = line.split("\t")
        if len(cells) != 5:
            raise ReaderError(f"expected 5 columns, found {len(cells)}", data, number)
        word, pos, places, first, second = cells
        sentences = (tuple(first.split()), tuple(second.split()))
        left, _, right = places.partition("-")
        if not (_is_place(left) and _is_place(right)):
            raise ReaderError(f"positions {_shown(places)} are not two numbers", data, number)
        targets = (int(left), int(right))
        for target, sentence in zip(targets, sentences, strict=True):
            if target >= len(sentence):
                raise ReaderError(f"no word {target} in {_shown(' '.join(sentence))}", data, number)
        if gold is not None and number > len(gold):
            raise ReaderError(f"{gold_path.name} has only {len(gold)} labels", data, number)
        same = None if gold is None else gold[number - 1] == "T"
        out.append(WordInContext(word, pos, sentences, targets, same))
    if gold is not None and len(gold) != len(out):
        raise ReaderError(f"{len(gold)} labels for {len(out)} items", gold_path, len(out) + 1)
    return _some(out, data)
