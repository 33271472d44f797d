"""What a page offers to whoever wants to run it.

* Behind the measured time and memory of a chapter, its notebook; a download button for it, too.
* ``{launch-links}``: every chapter's notebook, what it costs, and where it can be launched.
* Launch buttons, and ``{with-address}`` texts, where the repository has an address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError
from sphinx.util.docutils import SphinxDirective

from bertology_utils.reproduce.chapters import Chapter, read_book
from tools import run_cost
from tools.export_notebooks import file_name, last_costs, make_notebook, write_notebook
from tools.repository import Repository, read_repository

_DOWNLOADS = "_sources"  # where the theme's download button looks
_WORDS = {
    "en": {
        "download": "Download it as a notebook.",
        "heads": ("Notebook", "One core's time", "Memory", "Run it elsewhere"),
        "unknown": "not measured",
        "launch": "Run this chapter elsewhere",
        "launch-on": "Run this chapter on {}",
    },
    "zh_CN": {
        "download": "下载本章的笔记本（.ipynb）。",
        "heads": ("笔记本", "单核用时", "内存", "在别处运行"),
        "unknown": "未测量",
        "launch": "在别处运行本章",
        "launch-on": "在 {} 上运行本章",
    },
}


def _words(config: Config) -> dict:
    return _WORDS.get(config.language, _WORDS["en"])


def notebook_path(chapter: Chapter) -> str:
    """Return where a chapter's notebook lies among the pages."""
    return f"{Path(chapter.docname).parent}/{file_name(chapter)}".removeprefix("./")


def _link(env: BuildEnvironment, chapter: Chapter, text: str) -> nodes.reference:
    upwards = "../" * env.docname.count("/")
    address = f"{upwards}{_DOWNLOADS}/{notebook_path(chapter)}"
    return nodes.reference("", text, refuri=address, internal=True)


class LaunchLinks(SphinxDirective):
    """A table of all chapters: notebook, cost, and launch links where there is an address."""

    def run(self) -> list[nodes.Node]:
        repository: Repository | None = self.config.bertology_repository
        words, costs = _words(self.config), self.config.bertology_costs
        self.env.note_reread()  # another run costs something else
        heads = words["heads"] if repository is not None else words["heads"][:3]
        rows = []
        for chapter in self.config.bertology_chapters:
            if chapter.runs_last:
                continue
            cost = costs.get(chapter.docname)
            time, memory = (
                (run_cost.minutes(cost, self.config.language), run_cost.memory(cost))
                if cost
                else (words["unknown"], words["unknown"])
            )
            row: list[list[nodes.Node]] = [
                [_link(self.env, chapter, file_name(chapter))],
                [nodes.Text(time)],
                [nodes.Text(memory)],
            ]
            if repository is not None:
                links: list[nodes.Node] = []
                for link in repository.launch_links(file_name(chapter)):
                    links += [nodes.Text(", ")] if links else []
                    links.append(nodes.reference("", link.service, refuri=link.url))
                row.append(links)
            rows.append(row)
        return [_table(heads, rows)]


def _table(heads: Sequence[str], rows: list[list[list[nodes.Node]]]) -> nodes.table:
    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    head, body = nodes.thead(), nodes.tbody()
    cells = [[nodes.Text(text)] for text in heads]
    for part, lines in ((head, [cells]), (body, rows)):
        for line in lines:
            row = nodes.row()
            for content in line:
                # Made anew at every build, and in the page's language: nothing for translators.
                paragraph = nodes.paragraph("", "", *content, translatable=False)
                row += nodes.entry("", paragraph)
            part += row
    group += [head, body]
    return nodes.table("", group)


class WithAddress(SphinxDirective):
    """Keep the content only where the repository has an address.

    Catalogues for translators hold what either kind of book says.
    """

    has_content = True
    wanted = True

    def run(self) -> list[nodes.Node]:
        for_translators = self.env.app.builder.name == "gettext"
        if not for_translators and self.wanted != (self.config.bertology_repository is not None):
            return []
        return self.parse_content_to_nodes(allow_section_headings=False)


class WithoutAddress(WithAddress):
    """Keep the content only where the repository has no address."""

    wanted = False


def read_settings(app: Sphinx, config: Config) -> None:
    """Read the repository's address and the chapters, and tell the theme of the former.

    Raises:
        ConfigError: the address is not one that links can be made from.
    """
    root = Path(app.srcdir)
    try:
        repository = read_repository(root)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    book = read_book(root)
    config.bertology_repository = repository
    config.bertology_chapters = book.chapters
    config.bertology_costs = last_costs(root)
    # Another address makes every page anew; the objects above cannot be compared after a pickle.
    config.bertology_launch = _digest(repr(repository))
    if repository is not None:
        config.html_theme_options = config.html_theme_options | {
            "repository_url": repository.url,
            "repository_branch": repository.branch,
            "use_repository_button": True,
            "use_source_button": True,
            "use_issues_button": True,
        }


def _digest(settings: str) -> str:
    code = Path(__file__).read_bytes()
    return hashlib.sha256(code + settings.encode()).hexdigest()


def link_notebook(app: Sphinx, doctree: nodes.document) -> None:
    """Put the link to a chapter's notebook behind what its run cost."""
    chapters = {chapter.docname: chapter for chapter in app.config.bertology_chapters}
    chapter = chapters.get(app.env.docname)
    for paragraph in doctree.findall(nodes.paragraph):
        if chapter is not None and "run-cost" in paragraph["classes"]:
            paragraph += nodes.Text(" ")
            paragraph += _link(app.env, chapter, _words(app.config)["download"])


def offer_notebook(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Give a chapter's page the theme's download button for notebooks."""
    for chapter in app.config.bertology_chapters:
        if chapter.docname == pagename:
            context["ipynb_source"] = notebook_path(chapter)


def offer_launch(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Give a chapter's page a button for every service that can run its notebook."""
    repository, words = app.config.bertology_repository, _words(app.config)
    if repository is None:
        return
    for chapter in app.config.bertology_chapters:
        if chapter.docname == pagename and not chapter.runs_last:
            buttons = [
                {
                    "type": "link",
                    "text": link.service,
                    "tooltip": words["launch-on"].format(link.service),
                    "icon": link.icon,
                    "url": link.url,
                }
                for link in repository.launch_links(file_name(chapter))
            ]
            group = {
                "type": "group",
                "tooltip": words["launch"],
                "icon": "fas fa-rocket",
                "buttons": buttons,
                "label": "launch-buttons",
            }
            context["header_buttons"] += [group] if buttons else []


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Put the notebook of every chapter that was built where the pages' links look for it."""
    if exception is not None or app.builder.format != "html":
        return
    book = read_book(Path(app.srcdir))
    costs = app.config.bertology_costs
    for chapter in book.chapters:
        if chapter.docname in app.env.found_docs:
            notebook = make_notebook(
                book, chapter, app.config.bertology_repository, costs.get(chapter.docname)
            )
            write_notebook(notebook, Path(app.outdir) / _DOWNLOADS / notebook_path(chapter))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("bertology_launch", "", "env", [str])
    app.add_config_value("bertology_repository", None, "", [Repository])
    app.add_config_value("bertology_chapters", (), "", [tuple])
    app.add_config_value("bertology_costs", {}, "", [dict])
    app.add_directive("launch-links", LaunchLinks)
    app.add_directive("with-address", WithAddress)
    app.add_directive("without-address", WithoutAddress)
    app.connect("config-inited", read_settings)
    app.connect("doctree-read", link_notebook)
    app.connect("html-page-context", offer_notebook)
    # After the theme has begun its list of buttons, before it adds its own.
    app.connect("html-page-context", offer_launch, priority=501)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
