"""A book of two or three tiny chapters, which the build's own tests build."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from bertology_utils.reproduce.chapters import environment_digest, read_book
from tools.execution import ChapterFailed, Store, run_book

ROOT = Path(__file__).resolve().parent.parent

CHAPTER = """---
file_format: mystnb
kernelspec:
  name: python3
{front}---

# {title}

{text}

```{{code-cell}} ipython3
{code}
```
"""


class MiniBook:
    """A folder with everything the build needs and chapters of a few lines."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir(parents=True)
        (root / "chapters").mkdir()
        (root / "bertology_utils").mkdir()
        (root / "bertology_utils" / "__init__.py").write_text("ANSWER = 1\n")
        (root / "intro.md").write_text("# Welcome\n")
        (root / "requirements.txt").write_text("")
        (root / "references.bib").write_text("")
        shutil.copy(ROOT / "_config.yml", root)
        for folder in ("_static", "_templates"):
            if (ROOT / folder).is_dir():
                shutil.copytree(ROOT / folder, root / folder)
        for extension in (ROOT / "tools").glob("sphinx_*.py"):
            shutil.copy(extension, root / "tools")
        self.names: list[str] = []

    def write(self, name: str, code: str, *, front: str = "", text: str = "") -> Path:
        """Add or replace a chapter."""
        path = self.root / "chapters" / f"{name}.md"
        path.write_text(CHAPTER.format(front=front, title=name, text=text, code=code))
        if name not in self.names:
            self.names.append(name)
        lines = ["format: jb-book", "root: intro", "chapters:"]
        lines += [f"  - file: chapters/{name}" for name in self.names]
        (self.root / "_toc.yml").write_text("\n".join(lines) + "\n")
        return path

    def store(self) -> Store:
        return Store(self.root / "_build" / "executed", environment_digest(self.root))

    def run(self) -> tuple[dict[str, str], list[ChapterFailed], set[str]]:
        """Run what is due; return each chapter's printed text, the failures, and who ran."""
        reports: list[str] = []
        executed, failures = run_book(read_book(self.root), self.store(), 2, reports.append)
        texts = {c.docname.split("/")[1]: printed(nb) for c, nb in executed.items()}
        ran = {line.split("chapters/")[1].split(":")[0] for line in reports if "chapters/" in line}
        return texts, failures, ran

    def start_build(self) -> subprocess.Popen:
        """Start the whole build, pages included, in a process of its own."""
        program = "import signal, sys; from pathlib import Path\n"
        program += "from tools.build_book import build\n"
        # A shell that starts the tests in the background has them ignore Ctrl-C; ask for it back.
        program += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        program += f"sys.exit(build(Path({str(self.root)!r}), 2))"
        return subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def build(self) -> tuple[int, str]:
        process = self.start_build()
        output, _ = process.communicate(timeout=900)
        return process.returncode, output

    def page(self, name: str) -> str:
        return (self.root / "_build" / "html" / "chapters" / f"{name}.html").read_text()


def printed(notebook: nbformat.NotebookNode) -> str:
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return "".join(out.text for out in outputs if out.output_type == "stream")
