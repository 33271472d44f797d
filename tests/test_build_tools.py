"""The build of the book, tried on books of two or three tiny chapters."""

import ast
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import psutil
import pytest
from minibook import MiniBook, printed
from nbclient import NotebookClient

from bertology_utils.reproduce.chapters import environment_digest, read_book
from tools.export_notebooks import export, plain_markdown

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def mini(tmp_path: Path) -> MiniBook:
    return MiniBook(tmp_path / "book")


def test_a_chapter_runs_again_only_when_its_code_or_the_package_changed(mini, monkeypatch):
    mini.write("one", "import bertology_utils\nprint(bertology_utils.ANSWER)")
    mini.write("two", "print('two')")
    texts, failures, ran = mini.run()
    assert (texts, failures, ran) == ({"one": "1\n", "two": "two\n"}, [], {"one", "two"})
    assert mini.run()[2] == set()

    mini.write("two", "print('two')", text="Only the prose changed.")
    assert mini.run()[2] == set()
    mini.write("two", "print('changed')")
    texts, _, ran = mini.run()
    assert (texts["two"], ran) == ("changed\n", {"two"})

    (mini.root / "bertology_utils" / "__init__.py").write_text("ANSWER = 2\n")
    texts, _, ran = mini.run()
    assert (texts["one"], ran) == ("2\n", {"one", "two"})

    monkeypatch.setenv("BERTOLOGY_MODEL", "another-model")
    assert mini.run()[2] == {"one", "two"}
    monkeypatch.delenv("BERTOLOGY_MODEL")
    assert mini.run()[2] == set(), "going back to the first model must cost nothing"


def test_more_training_of_a_model_folder_is_noticed(mini, monkeypatch, tmp_path):
    (tmp_path / "model").mkdir()
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(b"before")
    monkeypatch.setenv("BERTOLOGY_MODEL", str(tmp_path / "model"))
    before = environment_digest(mini.root)
    assert environment_digest(mini.root) == before
    weights.write_bytes(b"further")
    assert environment_digest(mini.root) != before


def test_a_failing_cell_names_chapter_cell_and_cause_and_costs_no_other_chapter(mini):
    path = mini.write("bad", "print('before')")
    text = path.read_text() + "\n```{code-cell} ipython3\nraise KeyError('the reason')\n```\n"
    path.write_text(text)
    line = text.splitlines().index("raise KeyError('the reason')")
    mini.write("good", "print('good')")
    texts, failures, _ = mini.run()
    assert texts == {"good": "good\n"}
    (failure,) = failures
    message = str(failure)
    assert message.startswith(f"chapters/bad.md, code cell 2 (line {line})")
    assert "raise KeyError('the reason')" in message and "Traceback" in message
    assert "\x1b" not in message
    assert mini.run()[2] == {"bad"}


def test_a_dead_kernel_and_an_endless_cell_are_failures(mini):
    settings = (mini.root / "_config.yml").read_text()
    (mini.root / "_config.yml").write_text(settings.replace("timeout: 300", "timeout: 3"))
    assert read_book_timeout(mini) == 3
    mini.write("dies", "import os\nos._exit(1)")
    mini.write("hangs", "while True: pass")
    texts, failures, _ = mini.run()
    messages = sorted(str(failure) for failure in failures)
    assert texts == {}
    assert messages[0].startswith("chapters/dies.md, code cell 1") and "died" in messages[0]
    assert messages[1].startswith("chapters/hangs.md, code cell 1") and "timed out" in messages[1]


def read_book_timeout(mini: MiniBook) -> int:
    mini.write("dies", "")
    return read_book(mini.root).cell_timeout


def test_a_damaged_run_is_made_again(mini):
    mini.write("one", "print('true')")
    mini.run()
    (kept,) = mini.store().folder.glob("*.ipynb")
    (chapter,) = read_book(mini.root).chapters
    text = kept.read_text()
    key = json.loads(text)["metadata"]["bertology_run"]["key"]
    assert mini.store().load(chapter, key) is not None
    for damaged in (text[: len(text) // 2], text.replace("true\\n", "forged\\n"), "[]", "{}", ""):
        assert damaged != text
        kept.write_text(damaged)
        assert mini.store().load(chapter, key) is None
    texts, _, ran = mini.run()
    assert (texts, ran) == ({"one": "true\n"}, {"one"})
    shutil.rmtree(mini.store().results_of(chapter))
    assert mini.run()[2] == {"one"}, "a run without its results is half a run"


def test_a_report_on_all_chapters_runs_last_and_again_after_any_of_them(mini):
    mini.write(
        "report",
        "import json, os\n"
        "runs = json.load(open(os.environ['BERTOLOGY_EXECUTIONS']))\n"
        "print(*sorted((n, r['code_cells'], r['peak_memory_mb'] > 1) for n, r in runs.items()))",
        front="bertology:\n  runs_after: all\n",
    )
    mini.write("one", "import time; time.sleep(1); print(1)")
    assert mini.run()[0]["report"] == "('chapters/one', 1, True)\n"
    assert mini.run()[2] == set()
    mini.write("one", "print(2)")
    assert mini.run()[2] == {"one", "report"}
    summary = json.loads(mini.store().summary.read_text())
    assert set(summary) == {"chapters/one", "chapters/report"}
    assert 0 < summary["chapters/one"]["cpu_seconds"] < summary["chapters/one"]["seconds"] < 600


def test_a_page_that_runs_last_finds_the_results_of_all_others(mini):
    code = "import os, pathlib\npathlib.Path(os.environ['BERTOLOGY_RESULTS'], '{}').touch()"
    mini.write("one", code.format("one.json"))
    mini.write("two", code.format("two.json"))
    mini.write(
        "report",
        "import os\nprint(*sorted(os.listdir(os.environ['BERTOLOGY_RESULTS'])))",
        front="bertology:\n  runs_after: all\n",
    )
    assert mini.run()[0]["report"] == "one.json two.json\n"
    mini.write("one", code.format("three.json"))
    assert mini.run()[0]["report"] == "three.json two.json\n"


def test_kernels_run_offline_on_one_thread_in_an_empty_folder(mini, monkeypatch):
    monkeypatch.delenv("BERTOLOGY_MODEL", raising=False)
    names = ("OMP_NUM_THREADS", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "BERTOLOGY_CHAPTER")
    code = f"import os\nprint([os.environ.get(n) for n in {names}], os.listdir())"
    mini.write("one", code)
    assert mini.run()[0]["one"] == "['1', '1', '1', 'chapters/one'] []\n"
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setenv("BERTOLOGY_MODEL", "from-a-hub")
    assert mini.run()[0]["one"] == "['1', None, None, 'chapters/one'] []\n"


HEADLESS = """class MissingHeadError(Exception): pass
raise MissingHeadError("'m' has no trained 'mlm' head")
guesses = 1
```

```{code-cell} ipython3
print("twice", 2 * guesses)
```

```{code-cell} ipython3
print("goes on")"""


def test_another_model_may_lack_a_head_and_the_books_own_may_not(mini, monkeypatch):
    mini.write("one", HEADLESS)
    monkeypatch.setenv("BERTOLOGY_MODEL", "another-model")
    texts, failures, _ = mini.run()
    assert (texts, failures) == ({"one": "goes on\n"}, [])
    mini.write("one", HEADLESS + "\nprint(never_made)")
    assert "never_made" in str(mini.run()[1][0])  # a mistake remains one
    monkeypatch.delenv("BERTOLOGY_MODEL")
    mini.write("one", HEADLESS)
    assert "has no trained" in str(mini.run()[1][0])


def test_results_of_an_earlier_run_do_not_survive_the_next(mini):
    code = "import os, pathlib\npathlib.Path(os.environ['BERTOLOGY_RESULTS'], '{}').touch()"
    mini.write("one", code.format("old.json"))
    mini.run()
    mini.write("one", code.format("new.json"))
    mini.run()
    names = [path.name for path in mini.store().results.rglob("*.json")]
    assert names == ["new.json"]


def test_a_page_missing_from_disk_is_named(mini):
    mini.write("one", "1").unlink()
    with pytest.raises(FileNotFoundError, match="chapters/one"):
        read_book(mini.root)


def test_pages_are_made_and_follow_every_change(mini):
    figure = "mystnb:\n  image:\n    alt: {}\n"
    code = (
        "---\n" + figure + "---\n"
        "from IPython.display import Image, SVG\n"
        "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>')"
    )
    mini.write("one", code.format("a white square"), text="```{run-cost}\n```")
    mini.write("two", "import bertology_utils\nprint('answer', bertology_utils.ANSWER)")
    status, output = mini.build()
    assert status == 0, output
    assert 'alt="a white square"' in mini.page("one")
    assert "Measured at the last build" in mini.page("one")
    assert "answer 1" in mini.page("two")
    assert "thebe" not in mini.page("one").lower().replace("sphinx-book-theme", "")
    assert (mini.root / "_build/html/_static/mathjax/tex-chtml.js").is_file()
    assert "intro.html" in (mini.root / "_build/html/index.html").read_text()

    # What a build that was killed had half written goes with the next one.
    store = mini.store()
    left = [place / ".x.0123456789ab.new" for place in (store.parent, store.folder, store.results)]
    for path in left[:2]:
        path.write_text("half")
    (left[2] / "inside").mkdir(parents=True)

    # Another alt text is another page, but no other run; another package is both.
    mini.write("one", code.format("an empty square"), text="```{run-cost}\n```")
    (mini.root / "bertology_utils" / "__init__.py").write_text("ANSWER = 1\n")
    status, output = mini.build()
    assert status == 0 and "Running" not in output, output
    assert 'alt="an empty square"' in mini.page("one")
    assert not any(path.exists() for path in left)
    (mini.root / "bertology_utils" / "__init__.py").write_text("ANSWER = 2\n")
    status, output = mini.build()
    assert status == 0 and "Running 2 chapter(s)" in output, output
    assert "answer 2" in mini.page("two")


def test_warnings_fail_the_build_until_they_are_gone(mini):
    mini.write("one", "print(1)", text="See {doc}`nowhere`.")
    mini.write(
        "two",
        "from IPython.display import display\n"
        "display({'application/vnd.jupyter.widget-view+json': {'model_id': 'x'}}, raw=True)\n"
        "display({'image/svg+xml': '<svg xmlns=\"http://www.w3.org/2000/svg\"/>'}, raw=True)",
    )
    for _ in range(2):
        status, output = mini.build()
        assert status == 1
        assert "unknown document: 'nowhere'" in output
        assert "a widget without a static form" in output
        assert "image 1 of this page has no alt text" in output
    mini.write("one", "print(1)")
    mini.write("two", "print(2)")
    status, output = mini.build()
    assert status == 0, output


def test_two_builds_at_once_take_turns(mini):
    # The first build's chapter ends when the second has said that it waits.
    gate = mini.root / "gate"
    wait = (
        "import pathlib, time\nlatest = time.monotonic() + 600\n"
        f"while not pathlib.Path({str(gate)!r}).exists() and time.monotonic() < latest:\n"
        "    time.sleep(0.05)\n"
    )
    mini.write("one", wait + "print('done')")
    builds = [mini.start_build(), mini.start_build()]
    outputs = ["", ""]
    with ThreadPoolExecutor(2) as pool:

        def listen(number: int) -> None:
            for line in builds[number].stdout:
                outputs[number] += line
                if "Another build" in line:
                    gate.touch()

        list(pool.map(listen, range(2)))
    assert [build.wait(300) for build in builds] == [0, 0], outputs
    assert sorted("Another build" in output for output in outputs) == [False, True]
    assert sum("Running 1 chapter(s)" in output for output in outputs) == 1
    assert "done" in mini.page("one")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_build_that_is_broken_off_leaves_no_kernel_and_keeps_finished_chapters(mini, how):
    started = mini.root / "started"
    mini.write("quick", "print('quick')")
    code = f"import os, pathlib, time\npathlib.Path({str(started)!r}).write_text(str(os.getpid()))"
    mini.write("slow", code + "\ntime.sleep(600)")
    process = mini.start_build()
    quick = "chapters--quick.ipynb"
    deadline = time.monotonic() + 900
    while not (started.exists() and (mini.store().folder / quick).exists()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.2)
    process.send_signal(how)
    try:
        process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0
    kernel = int(started.read_text())
    while psutil.pid_exists(kernel) and psutil.Process(kernel).status() != "zombie":
        assert time.monotonic() < deadline, "the kernel outlived its build"
        time.sleep(0.2)
    mini.write("slow", "print('fast now')")
    texts, failures, ran = mini.run()
    assert (texts["slow"], failures, ran) == ("fast now\n", [], {"slow"})


def test_exported_notebooks_run_and_read_well(mini, tmp_path):
    text = ":::{note}\nSee {doc}`the start <one>` and {cite:p}`rogers2020primer`.\n:::"
    mini.write("one", ":tags: [hide-input]\nprint(6 * 7)", text=text)
    folder = tmp_path / "notebooks"
    (path,) = export(read_book(mini.root), folder, None, {})
    first = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    assert "> See the start and [rogers2020primer]." in notebook.cells[2].source
    assert "{note}" not in notebook.cells[2].source
    NotebookClient(notebook, timeout=600).execute()
    assert printed(notebook) == "42\n"
    path.unlink()
    export(read_book(mini.root), folder, None, {})
    assert path.read_bytes() == first


def test_what_a_reader_made_of_a_notebook_stays(mini, tmp_path):
    mini.write("one", "print(1)")
    folder = tmp_path / "notebooks"
    (path,) = export(read_book(mini.root), folder, None, {})
    own = folder / "mine.ipynb"
    own.write_text("a reader's own", encoding="utf-8")

    ran = nbformat.read(path, as_version=4)
    NotebookClient(ran, timeout=600).execute()
    nbformat.write(ran, path)
    assert export(read_book(mini.root), folder, None, {}) == []
    assert printed(nbformat.read(path, as_version=4)) == "1\n"

    mini.write("one", "print(2)")
    assert export(read_book(mini.root), folder, None, {}) == [path]
    edited = nbformat.read(path, as_version=4)
    edited.cells[-1].source = "print('my answer')"
    nbformat.write(edited, path)
    mini.write("one", "print(3)")
    assert export(read_book(mini.root), folder, None, {}) == []
    assert nbformat.read(path, as_version=4).cells[-1].source == "print('my answer')"

    path.write_text("{ torn", encoding="utf-8")
    assert export(read_book(mini.root), folder, None, {}) == []
    path.unlink()
    assert export(read_book(mini.root), folder, None, {}) == [path]
    assert own.read_text(encoding="utf-8") == "a reader's own"


def test_plain_markdown_keeps_formulas_code_and_nesting():
    source = (
        "````{admonition} Look\n:class: tip\nA {math}`x^2` and {numref}`fig-a`.\n"
        "```{math}\ny = 1\n```\n````\n```python\nprint(1)\n```\n```{run-cost}\n```\nEnd."
    )
    result = plain_markdown(source)
    assert "> **Look**" in result and "> A $x^2$ and `fig-a`." in result
    assert "$$\n> y = 1\n$$" in result or "> $$\n> y = 1\n> $$" in result
    assert "```python\nprint(1)\n```" in result
    assert "run-cost" not in result and result.endswith("End.")


def test_plain_markdown_leaves_no_label_and_no_link_to_one():
    assert plain_markdown("(bg-06)=\n## A row\n\nSee [the row](#bg-06).") == (
        "## A row\n\nSee the row."
    )


def test_setup_env_speaks_to_an_old_python(monkeypatch, capsys):
    source = (ROOT / "tools" / "setup_env.py").read_text()
    ast.parse(source, feature_version=(3, 4))
    monkeypatch.setattr(sys, "version_info", (3, 8, 18, "final", 0))
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(ROOT / "tools" / "setup_env.py"), run_name="__main__")
    assert stop.value.code == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "needs Python 3.11 or newer" in message and "is Python 3.8" in message


def test_setup_env_names_a_build_of_torch_that_it_does_not_know():
    script = [sys.executable, str(ROOT / "tools" / "setup_env.py"), "gpu"]
    result = subprocess.run(script, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("TORCH is gpu") and result.stderr.count("\n") == 1


def test_make_without_a_python_says_so_in_one_line():
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    result = subprocess.run(
        ["make", "PYTHON=", "book"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    lines = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert result.returncode != 0
    assert len(lines) == 1 and "needs Python 3.11 or newer" in lines[0]


def test_results_of_other_models_reach_the_pages_that_report(mini):
    report = (
        "import os, pathlib\n"
        "print(sorted(p.parent.name for p in "
        "pathlib.Path(os.environ['BERTOLOGY_RESULTS']).glob('*/*.json')))"
    )
    mini.write("board", report, front="bertology:\n  runs_after: all\n")
    mini.write("one", "print(1)")
    assert mini.run()[0]["board"] == "[]\n"
    for name in ("another-model", "bertology-mini-uncased"):  # the build's own come from it alone
        folder = mini.root / "_results" / name
        folder.mkdir(parents=True)
        (folder / "SYN-01.json").write_text("{}")
    texts, _, ran = mini.run()
    assert (texts["board"], ran) == ("['another-model']\n", {"board"})


@pytest.mark.parametrize(("language", "words"), (("en", "not tested"), ("zh_CN", "未测")))
def test_a_sentence_says_not_tested_instead_of_nan(language, words):
    from types import SimpleNamespace

    from docutils import nodes

    from tools.sphinx_bertology import name_what_was_not_tested

    paragraph = nodes.paragraph()
    for text in ("nan", "+nan", "nan%", "0.3", "banana"):
        paragraph += nodes.inline(text, text, classes=["pasted-text"])
    paragraph += nodes.inline("nan", "nan")
    document = SimpleNamespace(findall=paragraph.findall)
    app = SimpleNamespace(config=SimpleNamespace(language=language))
    name_what_was_not_tested(app, document, "a")
    assert [child.astext() for child in paragraph] == [words, words, words, "0.3", "banana", "nan"]
