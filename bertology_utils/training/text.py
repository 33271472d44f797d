"""Plain text on disk -> tokenised sources -> pretraining examples -> batches.

Everything here is a pure function of (files, tokenizer, seed): the batches of an epoch
are fixed before training starts, so a resumed run needs to remember one number, the step.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..writing import NotWrittenError, whole_file

SENTENCE_END = (".", "!", "?", "…")
CLOSING = ('"', "'", ")", "]", "”", "’")


class CorpusError(ValueError):
    """A text folder that cannot be read, or that holds no usable text."""


@dataclass(frozen=True)
class SourceSpec:
    """How one file enters the mix.

    ``weight`` is the share of the file's examples that an epoch shows (0.4 = a fresh 40 %
    each epoch, 2.0 = twice). ``ordered`` says whether neighbouring lines belong together:
    only then does the file serve next-sentence prediction and long windows.
    """

    weight: float = 1.0
    ordered: bool = True


@dataclass(frozen=True)
class Source:
    """One tokenised file: all pieces in a row and where lines and sentences start.

    ``ids`` is uint16 [n_pieces]; ``lines`` int64 [n_lines + 1] are offsets into it;
    ``sentences`` int64 [n_sentences] are the offsets at which a sentence starts.
    """

    name: str
    spec: SourceSpec
    ids: np.ndarray
    lines: np.ndarray
    sentences: np.ndarray


def normalise(sentence: str) -> str:
    """Lower-cased letters and digits only: the key under which sentences count as equal."""
    return "".join(c for c in sentence.lower() if c.isalnum())


def text_files(folder: str | Path) -> list[Path]:
    """The ``.txt`` and ``.txt.xz`` files of a folder, sorted by name.

    Raises
    ------
    CorpusError
        When the folder does not exist or holds no such file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CorpusError(f"text folder {str(folder)!r} does not exist")
    files = sorted(p for p in folder.iterdir() if p.name.endswith((".txt", ".txt.xz")))
    if not files:
        raise CorpusError(f"no .txt or .txt.xz file in {str(folder)!r}")
    return files


def read_lines(path: Path) -> list[str]:
    """Non-empty lines of a UTF-8 text file, ``.xz`` or plain."""
    opener = lzma.open if path.suffix == ".xz" else open
    lines, number = [], 0
    try:
        with opener(path, "rb") as handle:
            # Decoded line by line: a text stream decodes ahead, and would blame an earlier line.
            for number, raw in enumerate(handle, 1):
                if line := raw.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    lines.append(line)
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path.name}:{number}: not UTF-8 text ({error.reason})") from error
    except (lzma.LZMAError, EOFError) as error:
        raise CorpusError(f"{path.name}: damaged after line {number} ({error})") from error
    return lines


def split_sentences(line: str) -> list[str]:
    """A rough split at sentence-final punctuation; enough for decontamination."""
    sentences, start = [], 0
    for i, char in enumerate(line):
        if char in SENTENCE_END and (i + 1 == len(line) or line[i + 1] in " \"'”’)"):
            sentences.append(line[start : i + 1])
            start = i + 1
    return [s for s in (*sentences, line[start:]) if s.strip()]


def is_contaminated(line: str, excluded: frozenset[str], min_words: int = 5) -> bool:
    """Whether a line holds a sentence of ``min_words`` words or more that is excluded."""
    if not excluded:
        return False
    if normalise(line) in excluded:
        return True
    return any(
        len(s.split()) >= min_words and normalise(s) in excluded for s in split_sentences(line)
    )


def hold_out(lines: Sequence[str], every: int = 100) -> tuple[list[str], list[str]]:
    """Split lines into (train, held-out): one whole block of lines in ``every``.

    Whole blocks, not single lines, so that a held-out paragraph's neighbours are unseen too;
    50 lines a block, fewer in a short file.
    """
    block = min(50, max(1, len(lines) // every))
    train: list[str] = []
    held: list[str] = []
    for i, line in enumerate(lines):
        (held if (i // block) % every == every // 2 else train).append(line)
    return train, held


def tokenise(name: str, spec: SourceSpec, lines: Sequence[str], tokenizer) -> Source:
    """Tokenise lines into one row of pieces with line and sentence starts."""
    ends = {tokenizer.convert_tokens_to_ids(t) for t in SENTENCE_END}
    closing = {tokenizer.convert_tokens_to_ids(t) for t in CLOSING}
    ids: list[np.ndarray] = []
    for i in range(0, len(lines), 4096):
        chunk = tokenizer(
            list(lines[i : i + 4096]),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        ids += [np.asarray(x, dtype=np.uint16) for x in chunk["input_ids"] if x]
    if not ids:
        raise CorpusError(f"{name}: no text left after tokenisation")
    row = np.concatenate(ids)
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in ids])]).astype(np.int64)
    is_end = np.isin(row, list(ends))
    is_closing = np.isin(row, list(closing))
    # A sentence starts after ". ", after '." ', and at every line.
    after_end = np.zeros(len(row) + 1, dtype=bool)
    after_end[1:] = is_end
    after_end[2:] |= is_closing[1:] & is_end[:-1]
    starts = after_end[:-1] & ~is_closing & ~is_end
    starts[offsets[:-1]] = True
    return Source(name, spec, row, offsets, np.flatnonzero(starts).astype(np.int64))


def load_corpus(
    folder: str | Path,
    tokenizer,
    *,
    specs: dict[str, SourceSpec] | None = None,
    exclude: frozenset[str] = frozenset(),
    cache: str | Path | None = None,
) -> tuple[list[Source], list[Source]]:
    """Read, decontaminate, split and tokenise a folder: (training sources, held-out sources).

    ``exclude`` holds sentences under :func:`normalise`; any line with one of them is dropped.
    With ``cache`` the tokenised arrays are kept there under a hash of all inputs; a warning says
    when they cannot be.
    """
    specs = specs or {}
    train: list[Source] = []
    held: list[Source] = []
    excluded_hash = hashlib.sha256("\n".join(sorted(exclude)).encode()).hexdigest()
    for path in text_files(folder):
        name = path.name.split(".txt")[0]
        spec = specs.get(name, SourceSpec())
        if spec.weight <= 0:
            continue
        digest = hashlib.sha256(path.read_bytes() + excluded_hash.encode())
        digest.update(tokenizer.backend_tokenizer.to_str().encode())
        whole = digest.hexdigest()
        entry = Path(cache) / f"{name}-{whole[:16]}.npz" if cache else None
        pair = _cached(entry, whole, name, spec) if entry else None
        if pair is None:
            lines = [x for x in read_lines(path) if not is_contaminated(x, exclude)]
            if not lines:
                raise CorpusError(f"{path.name}: no text left")
            pair = [tokenise(name, spec, part, tokenizer) for part in hold_out(lines) if part]
            if entry and len(pair) == 2:
                _keep(entry, whole, pair)
        train.append(pair[0])
        held += pair[1:]
    if not train:
        raise CorpusError(f"every source in {str(folder)!r} has weight 0")
    return train, held


#: names of a source's arrays in a file
_ARRAYS = {"ids": "ids", "lines": "lines", "sents": "sentences"}


def _keep(path: Path, digest: str, pair: Sequence[Source]) -> None:
    arrays = {
        f"{part}_{key}": getattr(source, attribute)
        for part, source in zip(("train", "held"), pair, strict=True)
        for key, attribute in _ARRAYS.items()
    }
    try:
        with whole_file(path) as scratch, scratch.open("wb") as file:
            np.savez(file, made_from=np.array(digest), **arrays)
    except NotWrittenError as error:  # a cache costs time, not results
        warnings.warn(f"the tokenised text is not kept: {error}", stacklevel=3)


def _cached(path: Path, digest: str, name: str, spec: SourceSpec) -> list[Source] | None:
    """The two sources kept in a file; None where there is none, or it is damaged or another's."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if str(arrays["made_from"]) != digest:
                return None
            return [
                Source(name, spec, *(arrays[f"{part}_{key}"] for key in _ARRAYS))
                for part in ("train", "held")
            ]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, AttributeError, TypeError):
        return None  # made again and replaced: a cache costs time, not results


def load_specs(path: str | Path | None) -> dict[str, SourceSpec]:
    """Read ``{"file": {"weight": 0.4, "ordered": false}}`` from JSON.

    Raises:
        CorpusError: no such file, no JSON of this shape, an unknown key, or no finite weight.
    """
    if path is None:
        return {}
    path = Path(path)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return {name: _spec(name, given) for name, given in raw.items()}
    except OSError as error:
        raise CorpusError(f"{path.name} cannot be read: {error.strerror}") from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorpusError(f"{path.name} is no JSON of sources: {str(error)[:300]}") from error


def _spec(name: str, given: dict) -> SourceSpec:
    if not isinstance(given, dict) or set(given) - {"weight", "ordered"}:
        raise ValueError(f"{name[:60]!r} takes 'weight' and 'ordered', and nothing else")
    spec = replace(SourceSpec(), **given)
    number = isinstance(spec.weight, int | float) and not isinstance(spec.weight, bool)
    if not number or not 0 <= spec.weight < 1e6 or not isinstance(spec.ordered, bool):
        raise ValueError(f"{name[:60]!r} needs a weight from 0 up, and true or false for 'ordered'")
    return spec


def describe(sources: Sequence[Source]) -> list[dict]:
    """Name, weight and number of pieces of each source, for logs and model cards."""
    return [{"name": s.name, **asdict(s.spec), "pieces": int(len(s.ids))} for s in sources]


def piece_counts(sources: Sequence[Source], vocab_size: int) -> np.ndarray:
    """How often each piece occurs, int64 [vocab_size], sources taken at their weight."""
    total = np.zeros(vocab_size)
    for source in sources:
        total += source.spec.weight * np.bincount(source.ids, minlength=vocab_size)
    return np.round(total).astype(np.int64)


# --- examples ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Examples:
    """Spans of pieces to train on: int64 arrays source, start, length, all [n]."""

    source: np.ndarray
    start: np.ndarray
    length: np.ndarray

    def __len__(self) -> int:
        return len(self.source)


def window_examples(source: Source, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of a source's spans of at most ``size`` pieces.

    Ordered text gives windows of exactly ``size`` pieces that all open with a sentence; the
    next window starts at the last sentence start inside the present one, so nothing is padded.
    Unordered text gives one span a line.
    """
    if not source.spec.ordered:
        starts = source.lines[:-1]
        lengths = np.minimum(np.diff(source.lines), size)
        keep = lengths >= 5
        return starts[keep], lengths[keep]
    starts, position, total = [], 0, len(source.ids)
    while position + size <= total:
        starts.append(position)
        after = source.sentences[np.searchsorted(source.sentences, position + size, "right") - 1]
        # A sentence longer than half a window would make windows overlap too much: cut it.
        position = int(after) if after > position + size // 2 else position + size
    if not starts:
        return np.array([0]), np.array([total])
    return np.array(starts, dtype=np.int64), np.full(len(starts), size, dtype=np.int64)


def epoch_examples(sources: Sequence[Source], size: int, seed: int, epoch: int) -> Examples:
    """The examples of one epoch, source weights applied; fixed by (seed, epoch)."""
    columns = []
    for index, source in enumerate(sources):
        starts, lengths = window_examples(source, size)
        n = len(starts)
        # Walk one long row of permutations, so that fractional weights see every example
        # before any of them comes a second time.
        first = int(round(n * source.spec.weight * epoch))
        last = int(round(n * source.spec.weight * (epoch + 1)))
        picks = np.concatenate(
            [
                np.random.default_rng([seed, index, lap]).permutation(n)
                for lap in range(first // n, (last - 1) // n + 1)
            ]
        )[first - first // n * n :][: last - first]
        columns.append((np.full(len(picks), index), starts[picks], lengths[picks]))
    return Examples(*(np.concatenate(c).astype(np.int64) for c in zip(*columns, strict=True)))


def plan_batches(
    examples: Examples, max_tokens: int, seed: int, epoch: int, special: int = 3
) -> list[np.ndarray]:
    """Shuffle, group by similar length, cut at a padded-token budget, shuffle the batches."""
    rng = np.random.default_rng([seed, 7, epoch])
    order = rng.permutation(len(examples))
    batches: list[np.ndarray] = []
    group = 4096
    for at in range(0, len(order), group):
        chunk = order[at : at + group]
        # Ties stay shuffled: the sort is stable.
        chunk = chunk[np.argsort(-examples.length[chunk], kind="stable")]
        i = 0
        while i < len(chunk):
            rows = max(1, max_tokens // int(examples.length[chunk[i]] + special))
            batches.append(chunk[i : i + rows])
            i += rows
    return [batches[i] for i in rng.permutation(len(batches))]


@dataclass(frozen=True)
class PairBatch:
    """Unmasked inputs: ids, token types and mask int64 [B, T]; NSP labels [B].

    NSP follows the library: 0 = B really follows A, 1 = B comes from elsewhere,
    -100 = a single segment, no label.
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    attention_mask: np.ndarray
    nsp_labels: np.ndarray


def build_batch(
    sources: Sequence[Source], examples: Examples, rows: np.ndarray, tokenizer, rng
) -> PairBatch:
    """Turn example rows into [CLS] A [SEP] (B [SEP]) inputs, with random B half of the time."""
    cls, sep, pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
    built: list[tuple[np.ndarray, int]] = []
    labels = np.full(len(rows), -100, dtype=np.int64)
    for i, row in enumerate(rows):
        source = sources[examples.source[row]]
        start, length = int(examples.start[row]), int(examples.length[row])
        window = source.ids[start : start + length].astype(np.int64)
        split = _segment_split(source, start, length, rng) if source.spec.ordered else None
        if split is None:
            built.append((np.concatenate([[cls], window, [sep]]), length + 2))
            continue
        a, b = window[:split], window[split:]
        labels[i] = int(rng.random() < 0.5)
        if labels[i]:
            b = _random_segment(source, len(b), rng)
        built.append((np.concatenate([[cls], a, [sep], b, [sep]]), split + 2))
    width = max(len(ids) for ids, _ in built)
    ids = np.full((len(built), width), pad, dtype=np.int64)
    types = np.zeros_like(ids)
    mask = np.zeros_like(ids)
    for i, (row_ids, first) in enumerate(built):
        ids[i, : len(row_ids)] = row_ids
        types[i, first : len(row_ids)] = 1
        mask[i, : len(row_ids)] = 1
    return PairBatch(ids, types, mask, labels)


def _segment_split(source: Source, start: int, length: int, rng) -> int | None:
    """A sentence start in the middle 70 % of the window, or None when there is none."""
    low, high = start + int(0.15 * length), start + int(0.85 * length)
    first, last = np.searchsorted(source.sentences, [low, high])
    if first == last:
        return None
    return int(source.sentences[rng.integers(first, last)]) - start


def _random_segment(source: Source, length: int, rng) -> np.ndarray:
    """``length`` pieces from a random sentence start of the same source.

    The same source on purpose: telling a novel from a health page would be too easy.
    """
    usable = np.searchsorted(source.sentences, len(source.ids) - length, "right")
    start = int(source.sentences[rng.integers(0, max(1, usable))])
    return source.ids[start : start + length].astype(np.int64)


def iterate_batches(
    sources: Sequence[Source], *, size: int, max_tokens: int, seed: int, first: int, step: int = 1
) -> Iterator[tuple[int, Examples, np.ndarray]]:
    """Endless (batch number, examples, rows) from batch ``first``, every ``step``-th one.

    The number indexes one fixed sequence, so starting at n equals skipping n batches.
    """
    number, epoch = first, 0
    done = 0
    while True:
        examples = epoch_examples(sources, size, seed, epoch)
        plan = plan_batches(examples, max_tokens, seed, epoch)
        while number < done + len(plan):
            yield number, examples, plan[number - done]
            number += step
        done += len(plan)
        epoch += 1
