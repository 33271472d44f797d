"""The book in two languages: what its English and its Chinese edition add to Sphinx.

Both are made from one source; Sphinx's gettext catalogues in ``locale`` hold the translation.

* Every page links to the same page in the other language, in sight and in its head.
* A page of the Chinese edition says how much of it is translated; what is not is marked as English,
  and what is Chinese on an English page is marked as Chinese, for voices that read it out.
* What a page says in both languages itself (the glossary) is not for translators; nor are formulas.
* Numbers and words of a run (``{glue:...}``) may stand in a translated sentence.
* Chinese can be searched, offline and without a dictionary.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

import sphinx.search
from docutils import nodes
from myst_nb.ext.glue.roles import PasteMarkdownRole, PasteRoleAny, PasteTextRole
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.locale import init as init_locale
from sphinx.search import SearchEnglish
from sphinx.transforms import SphinxTransform


@dataclass(frozen=True)
class Edition:
    """The book in one language.

    Attributes:
        language: as Sphinx writes it; names the folder of the catalogues.
        tag: as HTML writes it.
        folder: where its pages lie, below those of the book.
        name: the language in its own words.
    """

    language: str
    tag: str
    folder: str
    name: str


ENGLISH = Edition("en", "en", "", "English")
CHINESE = Edition("zh_CN", "zh-CN", "zh", "中文")
EDITIONS = (ENGLISH, CHINESE)

# What the pages say by themselves.
_WORDS = {
    "en": {
        "nav": "Language",
        "switch": "This page in {name}",
        "title": "BERTology, live",
    },
    "zh_CN": {
        "nav": "语言",
        "switch": "本页的{name}版",
        "title": "BERTology, live（中文版）",
        "part": "本页 {total} 段文字中已译出 {done} 段，其余为英文原文；",
        "whole": "本页文字已全部译出；",
        "outputs": "代码、图表与运行结果保持英文。",
        "source": "阅读英文版",
    },
}
_CHINESE_SETTINGS = {
    "html_title": _WORDS["zh_CN"]["title"],
    "nb_code_prompt_show": "显示代码",
    "nb_code_prompt_hide": "隐藏代码",
    "togglebutton_hint": "点击展开",
    "togglebutton_hint_hide": "点击收起",
}

_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
# A run of Chinese: from a character to a character, with the punctuation and spaces between.
_CHINESE_RUN = re.compile(f"[{_HAN}](?:[{_HAN}\u3000-\u303f\uff00-\uffef]*[{_HAN}\u3002\uff1b])?")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_LATIN_WORD = re.compile("[A-Za-z]+")


def is_chinese(text: str) -> bool:
    """Say whether a text is Chinese, though it may name things in Latin letters."""
    return len(_HAN_CHARACTER.findall(text)) > len(_LATIN_WORD.findall(text))


def edition_of(config: Config) -> Edition:
    """Return the edition a configuration makes.

    Raises:
        ValueError: there is no edition in the configuration's language.
    """
    for edition in EDITIONS:
        if edition.language == (config.language or ENGLISH.language):
            return edition
    offered = ", ".join(edition.language for edition in EDITIONS)
    raise ValueError(f"there is no edition in {config.language!r}; there are {offered}")


def other_edition(edition: Edition) -> Edition:
    """Return the edition a page's switch leads to."""
    return CHINESE if edition is ENGLISH else ENGLISH


class SaidInBothLanguages(SphinxTransform):
    """Keep formulas, and what the source says in both languages, out of the translators' hands.

    A paragraph in Chinese after one in English says the same, and the Chinese edition shows the
    Chinese one only. Terms have their names in both languages.
    """

    default_priority = 5  # before Sphinx keeps the messages it will translate

    def apply(self, **kwargs: object) -> None:
        in_chinese = edition_of(self.config) is CHINESE
        for paragraph in list(self.document.findall(nodes.paragraph)):
            if not is_chinese(paragraph.astext()):
                continue
            paragraph["translatable"] = False
            siblings = paragraph.parent.children
            place = siblings.index(paragraph)
            twin = siblings[place - 1] if place else None
            if isinstance(twin, nodes.paragraph) and not is_chinese(twin.astext()):
                twin["translatable"] = False
                if in_chinese:
                    paragraph.parent.remove(twin)
        for formula in self.document.findall(nodes.math_block):
            formula["translatable"] = False
        for glossary in self.document.findall(addnodes.glossary):
            for term in glossary.findall(nodes.term):
                term["translatable"] = False


class ChineseNamesFirst(SphinxTransform):
    """Put a term's Chinese name first in the Chinese edition; the order of entries stays."""

    default_priority = 600  # after Sphinx has sorted the entries

    def apply(self, **kwargs: object) -> None:
        if edition_of(self.config) is not CHINESE:
            return
        for glossary in self.document.findall(addnodes.glossary):
            for entry in glossary.findall(nodes.definition_list_item):
                terms = [node for node in entry.children if isinstance(node, nodes.term)]
                rest = [node for node in entry.children if not isinstance(node, nodes.term)]
                terms.sort(key=lambda term: not is_chinese(term.astext()))
                entry.children = [*terms, *rest]


class MarkTheOtherLanguage(SphinxTransform):
    """Say which parts of a page are not in the page's language.

    docutils writes a class ``language-...`` as the attribute ``lang``.
    """

    default_priority = 945

    def apply(self, **kwargs: object) -> None:
        if edition_of(self.config) is CHINESE:
            self._mark_english()
        else:
            self._mark_chinese()

    def _mark_english(self) -> None:
        for node in self.document.findall(nodes.Element):
            untranslated = node.get("translated", True) is False
            output = isinstance(node, nodes.container) and "cell_output" in node["classes"]
            name = isinstance(node, nodes.term) and not is_chinese(node.astext())
            if untranslated or output or name:
                node["classes"].append(f"language-{ENGLISH.tag}")

    def _mark_chinese(self) -> None:
        mark = f"language-{CHINESE.tag}"
        for text in list(self.document.findall(nodes.Text)):
            block = text.parent
            if not _HAN_CHARACTER.search(text) or isinstance(block, nodes.FixedTextElement):
                continue
            if isinstance(block, nodes.paragraph | nodes.term) and is_chinese(block.astext()):
                if mark not in block["classes"]:
                    block["classes"].append(mark)
            else:
                block.replace(text, list(self._parts(text, mark)))

    @staticmethod
    def _parts(text: nodes.Text, mark: str):
        end = 0
        for run in _CHINESE_RUN.finditer(text):
            if run.start() > end:
                yield nodes.Text(text[end : run.start()])
            yield nodes.inline(run[0], run[0], classes=[mark])
            end = run.end()
        if end < len(text):
            yield nodes.Text(text[end:])


class _InTranslation:
    """A role of myst-nb that also works in a translated sentence.

    Sphinx parses a translation as a document of its own, which knows nothing of the page's run.
    The role then asks for the page's results by name, as one does for those of another page.
    """

    def run(self):
        env = self.document.settings.env
        if str(self.document["source"]).endswith("<translated>") and "::" not in self.text:
            self.text = f"/{env.doc2path(env.docname, base=False)}::{self.text}"
        return super().run()


class GlueAny(_InTranslation, PasteRoleAny):
    """``{glue:any}``, ``{glue:}`` and ``{glue}``."""


class GlueText(_InTranslation, PasteTextRole):
    """``{glue:text}``; the long way of asking takes a format, which is that of a text here."""

    def run(self):
        if ":" not in self.text:
            self.text += ":s"
        return super().run()


class GlueMarkdown(_InTranslation, PasteMarkdownRole):
    """``{glue:md}``."""


class SearchBothLanguages(SearchEnglish):
    """Words for English, single characters and pairs of neighbours for Chinese.

    A query is cut the same way, and a page must hold all its pairs. This finds any phrase
    without knowing where words begin, so that neither build nor reader needs a dictionary.
    """

    lang = "zh"
    language_name = "Chinese"
    _pieces = re.compile(f"[{_HAN}]+|[^\\W{_HAN}]+")
    js_splitter_code = f"""
var splitQuery = (query) => {{
  const found = [];
  for (const run of query.match(/[{_HAN}]+|[\\p{{Letter}}\\p{{Number}}_]+/gu) || []) {{
    for (const piece of run.match(/[{_HAN}]+|[^{_HAN}]+/gu)) {{
      if (!/[{_HAN}]/u.test(piece) || piece.length === 1) found.push(piece);
      else for (let i = 0; i + 1 < piece.length; i++) found.push(piece.slice(i, i + 2));
    }}
  }}
  return found;
}};
"""

    def split(self, input: str) -> list[str]:
        found: list[str] = []
        for piece in self._pieces.findall(input):
            if _HAN_CHARACTER.match(piece):
                found += piece
                found += [piece[i : i + 2] for i in range(len(piece) - 1)]
            else:
                found.append(piece)
        return found


def speak_the_language(app: Sphinx, config: Config) -> None:
    """Set what an edition's own buttons and boxes say."""
    if edition_of(config) is CHINESE:
        for name, value in _CHINESE_SETTINGS.items():
            setattr(config, name, value)
        config.html_theme_options["search_bar_text"] = "搜索本书……"
        config.html_theme_options["toc_title"] = "目录"


def keep_runs_beside_the_pages(app: Sphinx) -> None:
    """Put what myst-nb writes into the build's folder, not among the pages of the other edition."""
    if edition_of(app.config) is not ENGLISH:
        folder = Path(app.doctreedir).parent / f"jupyter_execute-{edition_of(app.config).folder}"
        app.env.mystnb_config = app.env.mystnb_config.copy(output_folder=str(folder))


def translate_captions(app: Sphinx, doctree: nodes.document) -> None:
    """Translate the captions of the contents.

    They come from the file of contents after Sphinx has translated the page.
    """
    if edition_of(app.config) is CHINESE:
        folders = [str(Path(app.srcdir, folder)) for folder in app.config.locale_dirs]
        catalogue, _ = init_locale(folders, CHINESE.language, app.env.docname)
        for toctree in doctree.findall(addnodes.toctree):
            if toctree.get("caption"):
                toctree["caption"] = catalogue.gettext(toctree["caption"])


def link_the_editions(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Tell a page where the same page is in the other language, and what of it is translated."""
    here = edition_of(app.config)
    there = other_edition(here)
    uri = app.builder.get_target_uri(pagename)
    page = Path(here.folder, uri)
    addresses = {
        edition.tag: Path(os.path.relpath(Path(edition.folder, uri), page.parent)).as_posix()
        for edition in EDITIONS
    }
    words = _WORDS[here.language]
    context["other_edition"] = {
        "href": addresses[there.tag],
        "tag": there.tag,
        "name": there.name,
        "nav": words["nav"],
        "title": words["switch"].format(name=there.name),
    }
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<link rel="alternate" hreflang="{tag}" href="{escape(address)}" />'
        for tag, address in [*addresses.items(), ("x-default", addresses[ENGLISH.tag])]
    )
    if here is CHINESE and doctree is not None and "body" in context:
        note = _note(doctree, addresses[ENGLISH.tag])
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{note}", 1)


def _note(doctree: nodes.document, english: str) -> str:
    words = _WORDS[CHINESE.language]
    progress = doctree.get("translation_progress", {"total": 0, "translated": 0})
    total, done = progress["total"], progress["translated"]
    said = words["whole"] if done == total else words["part"].format(total=total, done=done)
    return (
        f'<p class="edition-note">{said}{words["outputs"]}<a href="{escape(english)}" '
        f'hreflang="{ENGLISH.tag}">{words["source"]}</a></p>'
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    # A change of this file makes every page anew.
    this_file = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    app.add_config_value("bertology_editions", this_file, "env", [str])
    app.setup_extension("myst_nb")
    for name, role in (("", GlueAny), ("any", GlueAny), ("text", GlueText), ("md", GlueMarkdown)):
        app.add_role_to_domain("glue", name, role(), override=True)
    app.add_role("glue", GlueAny(), override=True)
    app.add_transform(SaidInBothLanguages)
    app.add_transform(ChineseNamesFirst)
    app.add_transform(MarkTheOtherLanguage)
    sphinx.search.languages[SearchBothLanguages.lang] = SearchBothLanguages
    app.connect("config-inited", speak_the_language)
    app.connect("builder-inited", keep_runs_beside_the_pages, priority=900)
    app.connect("doctree-read", translate_captions, priority=900)
    app.connect("html-page-context", link_the_editions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
