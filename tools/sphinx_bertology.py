"""What this book adds to Sphinx.

* MathJax from the book itself, so that no page asks another host for anything.
* Pages whose chapter was run again are read again, although their source did not change; and so
  are those whose source or translation changed, whatever the clock says.
* ``{run-cost}``: a sentence with the measured time and memory of the page's chapter.
* Numbers that a model could not be asked for, ``nan`` in the kernels, read "not tested".
* Checks that fail the build: a figure without alt text, a widget without a static form.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from tools import run_cost

LOGGER = logging.getLogger(__name__)

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# The component that draws TeX, its fonts, what it loads on demand, and its screen-reader speech.
_MATHJAX_PARTS = (
    "tex-chtml.js",
    "output/chtml/fonts/",
    "input/tex/extensions/",
    "a11y/",
    "ui/",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
)


class RunCost(SphinxDirective):
    """Say what running the page's chapter cost when the book was built."""

    def run(self) -> list[nodes.Node]:
        cost = _executions(self.env).get(self.env.docname)
        sentence = run_cost.measured_cost(cost, self.env.config.language)
        # Made anew at every build, and in the page's language: nothing for translators.
        return [nodes.paragraph(sentence, sentence, classes=["run-cost"], translatable=False)]


def _executions(env: BuildEnvironment) -> dict[str, dict]:
    """Read what the build wrote about its runs; empty when Sphinx was started some other way."""
    path = Path(env.config.nb_execution_cache_path or ".").parent / "executions.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def reread_changed_pages(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Name the pages whose outputs, source or translation are not those that were read last.

    Sphinx itself goes by times, and a clock that is set back hides what was changed since.
    """
    before = getattr(env, "bertology_read", {})
    runs = {name: cost["run_id"] for name, cost in _executions(env).items()}
    # The environment is pickled after the pages are read, so this is remembered with them.
    env.bertology_read = {
        name: (runs.get(name), _digest(env.doc2path(name)), _digest(_catalogue(app, name)))
        for name in env.found_docs
    }
    return [name for name, now in env.bertology_read.items() if now != before.get(name)]


def drop_stale_translations(app: Sphinx) -> None:
    """Have the catalogues compiled again that are not those that were compiled last."""
    before = getattr(app.env, "bertology_read", {})
    folder = _catalogue(app, "x").parent
    for path in folder.rglob("*.po"):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if name not in before or before[name][2] != _digest(path):
            path.with_suffix(".mo").unlink(missing_ok=True)


def _catalogue(app: Sphinx, docname: str) -> Path:
    return Path(app.srcdir, "locale", app.config.language or "en", "LC_MESSAGES", f"{docname}.po")


def _digest(path: str | Path) -> str:
    """Of a file's content; empty where there is none."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


#: How a page says that a number was not measured, by language.
_NOT_TESTED = {"en": "not tested", "zh": "未测"}


def name_what_was_not_tested(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write words where a sentence would show ``nan``."""
    words = _NOT_TESTED.get((app.config.language or "en")[:2], _NOT_TESTED["en"])
    for pasted in list(doctree.findall(nodes.inline)):
        if "pasted-text" in pasted["classes"] and pasted.astext().strip("+-%'") == "nan":
            pasted.children = []
            pasted += nodes.Text(words)


def check_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Warn about figures nobody can hear and widgets nobody can use."""
    for number, image in enumerate(doctree.findall(nodes.image), start=1):
        if not image.get("alt", "").strip():
            LOGGER.warning(
                "image %d of this page has no alt text; give its cell "
                "`mystnb: {image: {alt: ...}}`, or the directive an alt option",
                number,
                location=docname,
                type="bertology",
                subtype="alt",
            )
    for raw in doctree.findall(nodes.raw):
        if WIDGET_VIEW in raw.astext():
            LOGGER.warning(
                "a widget without a static form (text/html) would be an empty box on this page",
                location=docname,
                type="bertology",
                subtype="widget",
            )


def switch_off_live_cells(app: Sphinx) -> None:
    """Silence the extension for live cells, which Jupyter Book always loads.

    It puts a loader for code on another host, and the address of somebody else's repository,
    into every page, even where no page has live cells.
    """
    for listeners in app.events.listeners.values():
        listeners[:] = [item for item in listeners if item.handler.__module__ != "sphinx_thebe"]
    styles = app.registry.css_files
    styles[:] = [(name, options) for name, options in styles if name != "sphinx-thebe.css"]


def name_references_as_list_items(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Let screen readers count the bibliography: docutils gives its list no list items.

    The role that docutils writes is deprecated, and no longer counts as an item of a list.
    """
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Put MathJax beside the pages.

    Raises:
        FileNotFoundError: the installed MathJax package lacks the parts the pages ask for.
    """
    if exception is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "mathjax"
    # An edition in another language takes it from the pages it lies among.
    if target.is_dir() or app.config.mathjax_path.startswith("../"):
        return
    marker = "static/mathjax/"
    partial = target.with_name("mathjax.new")
    shutil.rmtree(partial, ignore_errors=True)
    for file in importlib.metadata.files("sphinx-mathjax-offline") or []:
        _, _, inside = PurePosixPath(file).as_posix().partition(marker)
        if inside.startswith(_MATHJAX_PARTS):
            destination = partial / inside
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), destination)
    if not (partial / "tex-chtml.js").is_file():
        raise FileNotFoundError("the package sphinx-mathjax-offline holds no tex-chtml.js")
    partial.rename(target)


def write_entrance(app: Sphinx, exception: Exception | None) -> None:
    """Let the folder itself open on the first page."""
    if exception is None and app.builder.format == "html":
        first = app.builder.get_target_uri(app.config.root_doc)
        chinese = app.config.language == "zh_CN"
        language, title, word = (
            ("zh-CN", "BERTology, live（中文版）", "打开")
            if chinese
            else ("en", "BERTology, live", "Open")
        )
        (Path(app.outdir) / "index.html").write_text(
            f'<!doctype html>\n<html lang="{language}">\n<meta charset=utf-8>\n'
            f"<title>{title}</title>\n"
            f'<meta http-equiv="refresh" content="0; url={first}">\n'
            f'<a href="{first}">{word}</a>\n</html>\n',
            encoding="utf-8",
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    switch_off_live_cells(app)
    # A change of these files makes every page anew.
    files = (Path(file).read_bytes() for file in (__file__, run_cost.__file__))
    digest = hashlib.sha256(b"".join(files)).hexdigest()
    app.add_config_value("bertology_pages", digest, "env", [str])
    app.add_directive("run-cost", RunCost)
    app.connect("builder-inited", drop_stale_translations)
    app.connect("env-get-outdated", reread_changed_pages)
    app.connect("doctree-resolved", name_what_was_not_tested)
    app.connect("doctree-resolved", check_page)
    app.connect("html-page-context", name_references_as_list_items)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", write_entrance)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
