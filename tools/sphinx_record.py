"""What a build was made from, on a page and beside the pages.

``{build-record}`` shows commit, model, digests and versions of the last build; the whole record
(see :mod:`tools.build_record`) is published as ``build.json`` beside the first page.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FILE = "build.json"
#: Digits of a digest that are shown; the file has all.
_DIGITS = 16

_WORDS = {
    "en": {
        "none": "What this build was made from was not recorded.",
        "commit": "Commit",
        "clean": "as committed",
        "changed": "with changes that are not committed",
        "no commit": "not built from a git checkout",
        "model": "Model",
        "package": "Package bertology_utils",
        "sources": "Sources of the pages",
        "computed": "Computed with",
        "instructions": "PyTorch's instructions",
        "all": "Whole digests and all versions",
    },
    "zh": {
        "none": "没有记录此次构建由什么生成。",
        "commit": "提交",
        "clean": "与提交一致",
        "changed": "含未提交的修改",
        "no commit": "并非由 git 检出构建",
        "model": "模型",
        "package": "软件包 bertology_utils",
        "sources": "页面的源文件",
        "computed": "计算环境",
        "instructions": "PyTorch 的指令集",
        "all": "完整的摘要和所有版本",
    },
}


class BuildRecord(SphinxDirective):
    """Say what the pages were made from."""

    def run(self) -> list[nodes.Node]:
        words = _WORDS["zh" if self.env.config.language == "zh_CN" else "en"]
        path = _record_path(self.env.app)
        if not path.is_file():
            return [nodes.paragraph(words["none"], words["none"], translatable=False)]
        # The record is only written anew when it changes; then this page is read again.
        self.env.note_dependency(str(path))
        record = json.loads(path.read_text(encoding="utf-8"))
        items = nodes.definition_list(classes=["build-record"])
        for term, parts in _lines(record, words):
            text = nodes.paragraph("", "", *parts, translatable=False)
            items += nodes.definition_list_item(
                "", nodes.term("", "", nodes.Text(term), translatable=False),
                nodes.definition("", text),
            )  # fmt: skip
        up = "../" * self.env.docname.count("/")
        link = nodes.reference("", FILE, refuri=up + FILE, internal=True)
        whole = nodes.paragraph("", f"{words['all']}: ", translatable=False)
        whole += link
        return [items, whole]


def _lines(record: dict[str, Any], words: dict[str, str]) -> list[tuple[str, list[nodes.Node]]]:
    """What is shown, line by line: a term, and text with digests as code."""
    commit, model = record["commit"], record["model"]
    if commit is None:
        state = [nodes.Text(words["no commit"])]
    else:
        said = words["changed" if commit["changed"] else "clean"]
        state = [_code(commit["sha1"]), nodes.Text(f", {said}")]
    weights = [name for name in model["files"] if name.endswith(".safetensors")]
    of_model: list[nodes.Node] = [nodes.Text(model["name"])]
    for name in weights:
        of_model += [nodes.Text(f", {name}: SHA-256 "), _code(model["files"][name])]
    used = {run["instructions"] for run in record["chapters"].values()} - {""}
    computed = f"Python {record['python']}; {record['platform']}"
    if used:
        computed += f"; {words['instructions']}: {', '.join(sorted(used))}"
    return [
        (words["commit"], state),
        (words["model"], of_model),
        (words["package"], [nodes.Text("SHA-256 "), _code(record["package"]["sha256"])]),
        (words["sources"], [nodes.Text("SHA-256 "), _code(record["sources"]["sha256"])]),
        (words["computed"], [nodes.Text(computed)]),
    ]


def _code(digest: str) -> nodes.literal:
    return nodes.literal("", digest[:_DIGITS])


def _record_path(app: Sphinx) -> Path:
    return Path(app.config.nb_execution_cache_path or ".").parent / FILE


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Put the record beside the pages; a build that wrote none publishes none."""
    if exception is not None or app.builder.format != "html":
        return
    path, target = _record_path(app), Path(app.outdir) / FILE
    if path.is_file():
        shutil.copyfile(path, target)
    else:
        target.unlink(missing_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("build-record", BuildRecord)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
