"""Bring the translators' catalogues up to date with the pages: ``make gettext``.

``locale/<language>/LC_MESSAGES/<page>.po`` holds the texts of one page and their translations.
Texts that are no longer on the page leave the catalogue; a text that changed counts as new, so
that no translation says what its page no longer says. The build compiles the catalogues itself.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError, read_po, write_po

from bertology_utils.reproduce.chapters import read_book
from bertology_utils.writing import NotWrittenError, write_whole

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("zh_CN",)
# Code cells of a page, with their settings.
_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n---\n(.*?)^---\n", re.MULTILINE | re.DOTALL)


class ExtractionFailed(Exception):
    """Sphinx could not read the pages."""


def extract(root: Path) -> dict[str, Catalog]:
    """Return the texts of every page, in the order of the page: docname -> catalogue.

    Chapters are not run. The captions of their figures, which Sphinx sees only after a run, are
    taken from the cells' settings. Every message has its lines in ``locations``.

    Raises:
        ExtractionFailed: Sphinx ended with an error.
    """
    from jupyter_book.sphinx import build_sphinx

    with tempfile.TemporaryDirectory(prefix="bertology-") as folder:
        templates = Path(folder, "gettext")
        status = build_sphinx(
            root,
            templates,
            noconfig=True,
            path_config=root / "_config.yml",
            builder="gettext",
            confoverrides={"nb_execution_mode": "off", "latex_individualpages": False},
            doctreedir=Path(folder, "doctrees"),
            # Nothing was run, so every number of a run is missed; the build itself will tell.
            really_quiet=True,
        )
        if status != 0:
            raise ExtractionFailed("Sphinx could not read the pages; `make book` says why")
        found = {}
        for docname in read_book(root).pages:
            with (templates / f"{docname}.pot").open("rb") as file:
                found[docname] = read_po(file, ignore_obsolete=True)
            for line, caption in captions((root / f"{docname}.md").read_text(encoding="utf-8")):
                found[docname].add(caption, locations=[(f"{docname}.md", line)])
        return found


def captions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every caption in the settings of a page's code cells."""
    for cell in _CELL.finditer(source):
        settings = yaml.safe_load(cell[1]) or {}
        caption = settings.get("mystnb", {}).get("figure", {}).get("caption")
        if caption:
            line = source.count("\n", 0, cell.start()) + 1
            yield line, " ".join(str(caption).split())


def path_of(root: Path, language: str, docname: str) -> Path:
    """Return where the catalogue of a page lies."""
    return root / "locale" / language / "LC_MESSAGES" / f"{docname}.po"


def load(path: Path, language: str) -> Catalog:
    """Return the catalogue of a page; an empty one when it has none.

    Raises:
        PoFileError: the file is no catalogue.
    """
    if not path.is_file():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


def merged(template: Catalog, known: Catalog, language: str) -> str:
    """Return the text of the catalogue that has the template's messages and known translations."""
    new = Catalog(locale=language)
    for message in template:
        if message.id:
            old = known.get(message.id)
            added = new.add(message.id, old.string if old else "")
            added.flags.clear()  # a brace or a per cent sign is no Python format here
    out = io.BytesIO()
    write_po(out, new, width=96, no_location=True, omit_header=True)
    # Babel's own header holds the time of day, which would change every file at every update.
    header = (
        'msgid ""\nmsgstr ""\n'
        '"Project-Id-Version: BERTology, live\\n"\n'
        f'"Language: {language}\\n"\n'
        '"MIME-Version: 1.0\\n"\n'
        '"Content-Type: text/plain; charset=utf-8\\n"\n'
        '"Content-Transfer-Encoding: 8bit\\n"\n\n'
    )
    return header + out.getvalue().decode("utf-8")


def update(root: Path, language: str, templates: dict[str, Catalog]) -> list[str]:
    """Write the catalogues of a language; return a line for every page: how much is translated."""
    lines = []
    for docname, template in templates.items():
        path = path_of(root, language, docname)
        text = merged(template, load(path, language), language)
        write_whole(path, text)  # a translator's work: never half of it
        messages = [message for message in load(path, language) if message.id]
        done = sum(bool(message.string) for message in messages)
        lines.append(f"{docname}: {done} of {len(messages)} texts translated")
    for path in sorted((root / "locale" / language).rglob("*.po")):
        docname = path.relative_to(path_of(root, language, "x").parent).with_suffix("").as_posix()
        if docname not in templates:
            lines.append(f"{docname}: not a page of the book; its catalogue can go")
    return lines


def main() -> int:
    """Update the catalogues of this checkout."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        templates = extract(ROOT)
        for language in LANGUAGES:
            print("\n".join([f"{language}:", *update(ROOT, language, templates)]))
    except (ExtractionFailed, PoFileError, NotWrittenError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
