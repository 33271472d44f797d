"""Results on disk: one JSON file for each model and claim, written atomically.

Chapters that run side by side never share a file, and a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from ..defaults import DEFAULT_MODEL, MODEL_VARIABLE
from ..writing import write_whole
from .claims import load_claims
from .errors import MeasurementError, MissingBaselineError, ResultFileError, WrongModeError
from .measurement import BrokenModel, Measured, Measurement, NotTestable, as_measurement, writable
from .verdicts import DOES_NOT, NOT_TESTABLE, Verdict

RESULTS_VARIABLE = "BERTOLOGY_RESULTS"
RESULTS_FOLDER = "_results"
FORMAT = 1
_PACKAGES = ("bertology_utils", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Record:
    """A claim, what a model did with it, and the verdict its rule gives.

    ``outcome`` is a :class:`Measurement`, :class:`NotTestable` or :class:`BrokenModel`.
    ``seconds`` is the run time of the experiment, None when it was not taken.
    """

    claim_id: str
    chapter: str
    outcome: Measurement | NotTestable | BrokenModel
    verdict: Verdict
    seconds: float | None
    versions: Mapping[str, str]
    recorded: str

    @property
    def model(self) -> str:
        return self.outcome.model

    @property
    def measurement(self) -> Measurement | None:
        return self.outcome if isinstance(self.outcome, Measurement) else None

    def __str__(self) -> str:
        return f"{self.claim_id} on {self.model}: {self.verdict.word} ({self.verdict.because})"

    def _repr_html_(self) -> str:
        return (
            f'<p class="ledger-record"><strong>{escape(self.claim_id)}</strong> on '
            f"{escape(self.model)}: <em>{escape(self.verdict.word)}</em> "
            f"({escape(self.verdict.because)})</p>"
        )


def results_root() -> Path:
    """The folder of results: ``$BERTOLOGY_RESULTS``, else ``_results`` at the root of the book.

    The root is the nearest folder upwards that holds ``_toc.yml``; outside a book, the working
    folder.
    """
    named = os.environ.get(RESULTS_VARIABLE)
    if named:
        return Path(named).expanduser()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "_toc.yml").is_file():
            return folder / RESULTS_FOLDER
    return here / RESULTS_FOLDER


def folder_name(model: str) -> str:
    """A file-system name for any model name; different models never share one.

    ``google/electra-small`` becomes ``google--electra-small``. Names that cannot be told apart in
    this way (or contain other characters, or differ in case only) also get a short hash.
    """
    plain = re.fullmatch(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)?", model)
    if plain and "--" not in model and len(model) <= 80 and not model.endswith("."):
        return model.replace("/", "--")
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", model.replace("/", "--")).strip(".-")[-60:]
    digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{readable.strip('.-') or 'model'}-{digest}"


def default_model() -> str:
    """The name of the encoder that ``load_encoder()`` gives when none is named."""
    chosen = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
    try:
        is_folder = (Path(chosen) / "config.json").is_file()
    except OSError:  # a name too long for any folder
        is_folder = False
    return Path(chosen).resolve().name if is_folder else chosen


def record(
    claim_id: str,
    result: Measured | NotTestable | BrokenModel,
    *,
    seconds: float | None = None,
    root: Path | None = None,
) -> Record:
    """Judge a result by its claim's rule and keep it; the only way to the scoreboard.

    An earlier result of the same claim and model is replaced.

    Args:
        claim_id: such as ``"SYN-13"``.
        result: a :class:`Measurement`, any method's result with the same attributes,
            :class:`NotTestable` or :class:`BrokenModel`.
        seconds: run time of the experiment.
        root: folder of results; :func:`results_root` by default.

    Raises:
        UnknownClaimError: no such claim.
        WrongModeError: the claim is only discussed.
        MissingBaselineError: a baseline that the claim declares was not measured.
        MeasurementError: a number is not finite or out of range, or the unit is not the claim's.
        NotWrittenError: the folder takes no file.
    """
    claim = load_claims()[claim_id]
    if claim.rule is None or claim.measure is None:
        raise WrongModeError(f"{claim_id} is discussed, not run: {claim.reason}")
    if isinstance(result, NotTestable | BrokenModel):
        outcome: Measurement | NotTestable | BrokenModel = result
        if not result.model.strip() or not result.reason.strip():
            raise MeasurementError(
                f"{claim_id}: a {type(result).__name__} needs a model and a reason"
            )
        for what, text in (("model", result.model), ("reason", result.reason)):
            writable(f"{claim_id}: the {what}", text)
    else:
        outcome = as_measurement(result, claim.measure.unit)
        _check_fit(claim_id, outcome)
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise ValueError(f"{claim_id}: a run of {seconds} seconds")
    entry = Record(
        claim_id=claim_id,
        chapter=claim.chapter,
        outcome=outcome,
        verdict=verdict(claim_id, outcome),
        seconds=None if seconds is None else round(float(seconds), 3),
        versions=dict(_versions()),
        recorded=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_whole(_path(entry.model, claim_id, root), _to_json(entry) + "\n")
    return entry


def verdict(claim_id: str, outcome: Measurement | NotTestable | BrokenModel) -> Verdict:
    """The verdict of the claim's declared rule on an outcome."""
    rule = load_claims()[claim_id].rule
    if rule is None:
        raise WrongModeError(f"{claim_id} is discussed and has no rule")
    if isinstance(outcome, NotTestable):
        return Verdict(NOT_TESTABLE, outcome.reason)
    if isinstance(outcome, BrokenModel):
        return Verdict(DOES_NOT, outcome.reason)
    return rule.judge(outcome)


def result(claim_id: str, model: str, root: Path | None = None) -> Record | None:
    """The stored record of a claim on a model, or None when there is none.

    Raises:
        ResultFileError: the file is damaged or belongs to another claim or model.
    """
    load_claims()[claim_id]
    path = _path(model, claim_id, root)
    try:
        text = _text(path)
    except FileNotFoundError:
        return None
    return _from_json(text, path, claim_id, model)


def record_text(claim_id: str, model: str, root: Path | None = None) -> str:
    """The stored record as text that :func:`adopt` takes, there or on another machine.

    Raises:
        FileNotFoundError: nothing is recorded.
    """
    load_claims()[claim_id]
    return _path(model, claim_id, root).read_text(encoding="utf-8")


def adopt(text: str, root: Path | None = None) -> Record:
    """Keep a record that another process made; the claim's rule judges it again.

    Raises:
        ResultFileError: the text is no record.
    """
    try:
        raw = json.loads(text)
        claim_id, model = raw["claim"], raw["model"]
        load_claims()[claim_id]
        if not isinstance(model, str):
            raise ValueError("no model name")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultFileError(f"this is no record: {str(error)[:200]}") from error
    path = _path(model, claim_id, root)
    entry = _from_json(text, path, claim_id, model)
    write_whole(path, _to_json(entry) + "\n")
    return entry


def results(model: str, root: Path | None = None) -> dict[str, Record]:
    """All stored records of a model by claim id, in the order of the ledger."""
    found = ((claim_id, result(claim_id, model, root)) for claim_id in load_claims())
    return {claim_id: entry for claim_id, entry in found if entry is not None}


def models(root: Path | None = None) -> tuple[str, ...]:
    """Names of all models with stored results, sorted."""
    root = results_root() if root is None else Path(root)
    names = set()
    for folder in root.glob("*/") if root.is_dir() else ():
        first = next(iter(sorted(folder.glob("*.json"))), None)
        if first is not None:
            names.add(_load(_text(first), first)["model"])
    return tuple(sorted(names))


def missing(
    model: str, claim_ids: Iterable[str] | None = None, root: Path | None = None
) -> tuple[str, ...]:
    """Run and proxy claims (all, or those given) without a stored record for a model."""
    ledger = load_claims()
    wanted = list(ledger) if claim_ids is None else list(claim_ids)
    return tuple(
        claim_id
        for claim_id in wanted
        if ledger[claim_id].rule is not None and result(claim_id, model, root) is None
    )


def _check_fit(claim_id: str, measurement: Measurement) -> None:
    measure = load_claims()[claim_id].measure
    if measurement.unit != measure.unit:
        raise MeasurementError(
            f"{claim_id} is measured in {measure.unit!r}, the result is in {measurement.unit!r}"
        )
    absent = [name for name in measure.baselines if name not in measurement.baselines]
    if absent:
        have = ", ".join(sorted(measurement.baselines)) or "none"
        raise MissingBaselineError(
            f"{claim_id} needs the baseline(s) {', '.join(absent)}; measured: {have}"
        )


def _path(model: str, claim_id: str, root: Path | None) -> Path:
    root = results_root() if root is None else Path(root)
    return root / folder_name(model) / f"{claim_id}.json"


@lru_cache(maxsize=1)
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # the book can run from a checkout that is not installed
    return found


def _to_json(entry: Record) -> str:
    outcome = entry.outcome
    if isinstance(outcome, Measurement):
        kind, content = "measurement", _plain(outcome)
    else:
        kind = "not testable" if isinstance(outcome, NotTestable) else "broken model"
        content = asdict(outcome)
    return json.dumps(
        {
            "format": FORMAT,
            "claim": entry.claim_id,
            "model": entry.model,
            "chapter": entry.chapter,
            # For people who read the file; on loading, the rule judges the numbers again.
            "verdict": {"word": entry.verdict.word, "because": entry.verdict.because},
            "kind": kind,
            "outcome": content,
            "seconds": entry.seconds,
            "versions": dict(entry.versions),
            "recorded": entry.recorded,
        },
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def _plain(measurement: Measurement) -> dict[str, Any]:
    return {
        "value": measurement.value,
        "unit": measurement.unit,
        "n": measurement.n,
        "model": measurement.model,
        "baselines": dict(measurement.baselines),
        "seed": measurement.seed,
        "interval": None if measurement.interval is None else list(measurement.interval),
        "details": dict(measurement.details),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        message = f"{path.parent.name}/{path.name} is not a result: {error}"
        raise ResultFileError(message) from error


def _load(text: str, path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(text)
        if raw["format"] != FORMAT:
            raise ValueError(f"format {raw['format']}, this version reads {FORMAT}")
        if not isinstance(raw["model"], str):
            raise ValueError("no model name")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{path.parent.name}/{path.name} is not a result: {str(error)[:200]}"
        raise ResultFileError(message) from error
    return raw


def _from_json(text: str, path: Path, claim_id: str, model: str) -> Record:
    raw = _load(text, path)
    if (raw.get("claim"), raw["model"]) != (claim_id, model):
        raise ResultFileError(
            f"{path.parent.name}/{path.name} holds {str(raw.get('claim'))[:20]!r} on "
            f"{raw['model'][:80]!r}"
        )
    kinds = {"measurement": Measurement, "not testable": NotTestable, "broken model": BrokenModel}
    try:
        outcome = kinds[raw["kind"]](**raw["outcome"])
        if outcome.model != model or not isinstance(raw["versions"], dict):
            raise ValueError("its parts do not belong together")
        return Record(
            claim_id=claim_id,
            chapter=load_claims()[claim_id].chapter,
            outcome=outcome,
            verdict=verdict(claim_id, outcome),
            seconds=raw["seconds"],
            versions=raw["versions"],
            recorded=raw["recorded"],
        )
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path.parent.name}/{path.name}: {str(error)[:200]}"
        raise ResultFileError(message) from error
