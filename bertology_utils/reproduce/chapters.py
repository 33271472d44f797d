"""Which chapters there are, and what their outputs depend on."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from sphinx_external_toc.parsing import parse_toc_yaml

# Raise this when a change of the build itself makes earlier outputs unusable.
EXECUTION_FORMAT = 2

_SKIPPED_FOLDERS = {"__pycache__", ".ipynb_checkpoints"}


@dataclass(frozen=True)
class Chapter:
    """One page of the table of contents that holds code.

    Attributes:
        docname: path without suffix, as Sphinx names the page.
        path: the MyST source.
        code_digest: hash of the code cells, equal for two sources that run the same code.
        runs_last: whether the page reports on the runs of the other chapters.
    """

    docname: str
    path: Path
    code_digest: str
    runs_last: bool

    def notebook(self, book: Book) -> nbformat.NotebookNode:
        """Read the source again, as a notebook without outputs."""
        return read_notebook(self.path, book.myst_extensions)


@dataclass(frozen=True)
class Book:
    """The sources of the book: its folder, settings and chapters in reading order."""

    root: Path
    pages: tuple[str, ...]
    chapters: tuple[Chapter, ...]
    cell_timeout: int
    myst_extensions: frozenset[str]


def read_notebook(path: Path, myst_extensions: frozenset[str]) -> nbformat.NotebookNode:
    """Read a MyST notebook exactly as Sphinx will: the syntax switched on decides what a cell is.

    Raises:
        ValueError: the file is not a MyST notebook.
    """
    text = path.read_text(encoding="utf-8")
    if not is_myst_markdown_notebook(text):
        raise ValueError(f"{path} has no front matter that makes it a MyST notebook")
    config = MdParserConfig(enable_extensions=set(myst_extensions))
    return read_myst_markdown_notebook(text, config=config, add_source_map=True, path=path)


def read_book(root: Path) -> Book:
    """Read the table of contents and every page in it.

    Raises:
        FileNotFoundError: a page of the table of contents has no source.
    """
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    extensions = frozenset(settings["parse"]["myst_enable_extensions"])
    pages, chapters = [], []
    for name in parse_toc_yaml(root / "_toc.yml"):
        docname = name.removesuffix(".md")
        path = root / f"{docname}.md"
        if not path.is_file():
            raise FileNotFoundError(f"_toc.yml names {name}, but there is no {docname}.md")
        pages.append(docname)
        if is_myst_markdown_notebook(path.read_text(encoding="utf-8")):
            notebook = read_notebook(path, extensions)
            chapters.append(
                Chapter(
                    docname=docname,
                    path=path,
                    code_digest=_code_digest(notebook),
                    runs_last=notebook.metadata.get("bertology", {}).get("runs_after") == "all",
                )
            )
    return Book(
        root=root,
        pages=tuple(pages),
        chapters=tuple(chapters),
        cell_timeout=int(settings["execute"]["timeout"]),
        myst_extensions=extensions,
    )


def _code_digest(notebook: nbformat.NotebookNode) -> str:
    digest = hashlib.sha256(notebook.metadata.get("kernelspec", {}).get("name", "").encode())
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # An expected error is the one cell setting that changes what a run does.
            may_fail = "raises-exception" in cell.metadata.get("tags", [])
            digest.update(f"\0cell {may_fail}\0{cell.source}".encode())
    return digest.hexdigest()


def environment_digest(root: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Return what all outputs depend on: package, pins, Python, and the BERTOLOGY_* settings.

    A model given as a folder counts with its files, so that training it further is noticed,
    whatever their times say.
    """
    digest = hashlib.sha256(f"{EXECUTION_FORMAT} {sys.version_info[:2]}".encode())
    for path in package_files(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        _add_content(digest, path)
    digest.update((root / "requirements.txt").read_bytes())
    for name in sorted(environ):
        if name.startswith("BERTOLOGY_"):
            digest.update(f"{name}={environ[name]}\0".encode())
    model = Path(environ.get("BERTOLOGY_MODEL") or os.devnull)
    if model.is_dir():
        for path in sorted(p for p in model.rglob("*") if p.is_file()):
            digest.update(path.as_posix().encode("utf-8", "surrogateescape") + b"\0")
            _add_content(digest, path)
    return digest.hexdigest()


def _add_content(digest: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as handle:
        digest.update(hashlib.file_digest(handle, "sha256").digest())


def package_files(root: Path) -> Iterator[Path]:
    """The files of ``bertology_utils`` in a book's folder, without caches, in order."""
    package = root / "bertology_utils"
    for path in sorted(package.rglob("*")):
        if path.is_file() and not _SKIPPED_FOLDERS.intersection(path.parts):
            yield path
