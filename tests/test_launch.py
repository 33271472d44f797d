"""Notebooks to download and links to launch them, with a repository address and without one."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from minibook import MiniBook, printed
from nbclient import NotebookClient

from bertology_utils.reproduce.chapters import read_book
from tools.export_notebooks import first_cells, make_notebook
from tools.publish_notebooks import PublishError, commit_folder, publish
from tools.repository import Repository, read_repository
from tools.run_cost import measured_cost

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "https://github.com/someone/a-book"
SERVICES = {"binder": "https://mybinder.org", "colab": "https://colab.research.google.com"}
GITHUB = Repository("github.com", "someone/a-book", "main", **SERVICES)
ELSEWHERE = re.compile(r"mybinder|colab|github\.com|gitlab\.com|git-pull")


def settings(folder: Path, url: str, **changes) -> Path:
    """Write a ``_config.yml`` like the book's own, with an address."""
    text = yaml.safe_load((ROOT / "_config.yml").read_text())
    text["repository"]["url"] = url
    for key, value in changes.items():
        text["launch_buttons"][key] = value
    (folder / "_config.yml").write_text(yaml.safe_dump(text))
    return folder


# -- the address and what follows from it ---------------------------------------------------------


def test_this_checkout_reads_its_own_settings():
    repository = read_repository(ROOT)
    url = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    assert (repository is None) == (url == "")


def test_the_address_is_read_from_one_place(tmp_path):
    assert read_repository(settings(tmp_path, "")) is None
    assert read_repository(settings(tmp_path, ADDRESS)) == GITHUB
    assert read_repository(settings(tmp_path, ADDRESS + ".git")) == GITHUB
    assert read_repository(settings(tmp_path, ADDRESS + "/")) == GITHUB
    group = read_repository(settings(tmp_path, "https://gitlab.com/a/group/book"))
    assert (group.path, group.name) == ("a/group/book", "book")


@pytest.mark.parametrize(
    "url", ["OWNER/NAME", "http://github.com/a/b", "https://github.com/a", "git@github.com:a/b"]
)
def test_an_address_of_another_form_is_named(tmp_path, url):
    with pytest.raises(ValueError, match=re.escape(repr(url))):
        read_repository(settings(tmp_path, url))


def test_a_service_without_https_is_named(tmp_path):
    with pytest.raises(ValueError, match="jupyterhub_url"):
        read_repository(settings(tmp_path, ADDRESS, jupyterhub_url="hub.example.edu"))


def test_links_have_the_form_that_each_service_reads(tmp_path):
    hub = settings(tmp_path, ADDRESS, jupyterhub_url="https://hub.example.edu/")
    made = read_repository(hub).launch_links("02_syntax.ipynb")
    assert {link.service: link.url for link in made} == {
        "Binder": "https://mybinder.org/v2/gh/someone/a-book/main"
        "?urlpath=lab%2Ftree%2Fnotebooks%2F02_syntax.ipynb",
        "Colab": "https://colab.research.google.com/github/someone/a-book/blob/notebooks/"
        "02_syntax.ipynb",
        "JupyterHub": "https://hub.example.edu/hub/user-redirect/git-pull"
        "?repo=https%3A%2F%2Fgithub.com%2Fsomeone%2Fa-book&branch=notebooks"
        "&urlpath=lab%2Ftree%2Fa-book%2F02_syntax.ipynb",
    }
    (binder,) = Repository("gitlab.com", "a/b", "dev/x", **SERVICES).launch_links("n.ipynb")
    assert binder.url.startswith("https://mybinder.org/v2/gl/a%2Fb/dev%2Fx?urlpath=")


# -- the first cells of a notebook ----------------------------------------------------------------


def setup_code(repository: Repository | None) -> str:
    return first_cells(repository, None)[1].source


@pytest.mark.parametrize("repository", [None, GITHUB])
def test_where_all_is_there_the_first_cell_does_nothing(repository, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing to install"))
    exec(setup_code(repository), {})


def test_where_the_package_is_missing_the_first_cell_says_or_installs(monkeypatch):
    ran = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append(command))
    with pytest.raises(ModuleNotFoundError, match="no bertology_utils and no myst_nb") as said:
        exec(setup_code(None), {})
    assert "make env" in str(said.value) and "pip install" in str(said.value)
    assert ran == []
    exec(setup_code(GITHUB), {})
    (command,) = ran
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert command[-1] == f"bertology_utils[book] @ git+{ADDRESS}@main"


def test_the_first_cell_of_a_notebook_says_what_it_costs():
    cost = {"cpu_seconds": 120.0, "peak_memory_mb": 1500.0}
    sentence = "Measured at the last build: 2.0 minutes of one core's time and 1.5 GB of memory"
    assert measured_cost(cost).startswith(sentence)
    assert sentence in first_cells(None, cost)[0].source
    assert ADDRESS in first_cells(GITHUB, cost)[0].source
    assert "not measured" in first_cells(None, None)[0].source


@pytest.mark.parametrize(
    ("seconds", "language", "words"),
    [
        (42.4, "en", "42 seconds"),
        (42.4, "zh_CN", "42 秒"),
        (89.9, "fr", "90 seconds"),
        (90.0, "en", "1.5 minutes"),
        (600.0, "zh_CN", "10.0 分钟"),
    ],
)
def test_page_and_notebook_say_what_it_costs_in_one_sentence(seconds, language, words):
    cost = {"cpu_seconds": seconds, "peak_memory_mb": 1234.0}
    said = measured_cost(cost, language)
    assert words in said and "1.2 GB" in said and said[-1] in ".。"
    assert measured_cost(None, language)[-1] in ".。"


def test_nobody_else_words_what_a_run_costs():
    """Page, notebook and table take their words from one module."""
    for path in ROOT.glob("tools/*.py"):
        if path.name != "run_cost.py":
            text = path.read_text(encoding="utf-8")
            assert "Measured at the last build" not in text and "上次构建时实测" not in text, path


def test_every_chapter_becomes_a_valid_notebook_without_traces_of_the_pages():
    book = read_book(ROOT)
    for chapter in book.chapters:
        notebook = make_notebook(book, chapter, GITHUB, None)
        nbformat.validate(notebook)
        kinds = [cell.cell_type for cell in notebook.cells[:3]]
        assert kinds == ["markdown", "code", "markdown"]
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        traces = r"^\([\w-]+\)=$|^`{3,}\{|^:{3,}\{|\{doc\}|\]\(#"
        assert re.findall(traces, text, re.MULTILINE) == [], chapter.docname


# -- the pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mini(tmp_path_factory) -> MiniBook:
    book = MiniBook(tmp_path_factory.mktemp("launch") / "book")
    text = (
        "```{run-cost}\n```\n\n```{launch-links}\n```\n\n```{with-address}\nThere is one.\n```\n\n"
        "```{without-address}\nThere is none.\n```\n"
    )
    book.write("one", "print(6 * 7)", text=text)
    return book


def test_without_an_address_a_page_offers_its_notebook_and_no_launch(mini):
    settings(mini.root, "")
    status, output = mini.build()
    assert status == 0, output
    page = mini.page("one")
    assert "There is none." in page and "There is one." not in page
    assert not ELSEWHERE.search(page) and "launch-buttons" not in page
    # In the sentence, in the table, and behind the theme's button.
    assert page.count('href="../_sources/chapters/one.ipynb"') == 3
    notebook = nbformat.read(mini.root / "_build/html/_sources/chapters/one.ipynb", as_version=4)
    assert "Measured at the last build" in notebook.cells[0].source
    NotebookClient(notebook, timeout=600).execute()
    assert printed(notebook) == "42\n"


def test_with_an_address_every_page_gets_its_links_without_running_again(mini):
    settings(mini.root, ADDRESS)
    status, output = mini.build()
    assert status == 0 and "Running" not in output, output
    page = mini.page("one")
    assert "There is one." in page and "There is none." not in page
    for link in GITHUB.launch_links("one.ipynb"):
        # Once in the table and once behind the rocket.
        assert page.count(f'href="{link.url.replace("&", "&amp;")}"') == 2, link.service
    assert f'href="{ADDRESS}"' in page and f"{ADDRESS}/issues/new" in page
    first = (mini.root / "_build/html/intro.html").read_text()
    assert "launch-buttons" not in first and f'href="{ADDRESS}"' in first
    downloaded = (mini.root / "_build/html/_sources/chapters/one.ipynb").read_text()
    assert f"git+{ADDRESS}@main" in downloaded


def test_a_wrong_address_stops_the_build_with_one_line(mini):
    settings(mini.root, "https://example.org/a/b")
    status, output = mini.build()
    assert status != 0
    assert "_config.yml: repository.url is 'https://example.org/a/b'" in output


# -- the branch of notebooks ----------------------------------------------------------------------


@pytest.fixture
def checkout(mini, tmp_path, monkeypatch) -> Path:
    """A git repository with a book of one chapter in it."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A. Tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@example.org")
    root = tmp_path / "checkout"
    shutil.copytree(mini.root, root, ignore=shutil.ignore_patterns("_build"))
    shutil.copy(ROOT / "LICENSE", root)
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "book"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def in_git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_notebooks_are_committed_to_a_branch_of_their_own(checkout):
    before = in_git(checkout, "rev-parse", "HEAD")
    first = publish(checkout, GITHUB)
    assert in_git(checkout, "rev-parse", "notebooks") == first
    names = in_git(checkout, "ls-tree", "--name-only", "notebooks").split()
    assert names == ["LICENSE", "README.md", "one.ipynb"]
    notebook = json.loads(in_git(checkout, "show", "notebooks:one.ipynb"))
    assert f"git+{ADDRESS}@main" in "".join(notebook["cells"][1]["source"])
    # The branch shares no history with the sources, and they stay untouched.
    assert in_git(checkout, "rev-list", "--count", "notebooks") == "1"
    assert in_git(checkout, "rev-parse", "HEAD") == before
    assert in_git(checkout, "status", "--porcelain") == ""

    assert publish(checkout, GITHUB) is None
    chapter = checkout / "chapters" / "one.md"
    chapter.write_text(chapter.read_text().replace("6 * 7", "6 * 8"))
    second = publish(checkout, GITHUB)
    assert in_git(checkout, "rev-parse", "notebooks^") == first
    assert second != first


def test_the_branch_goes_on_from_where_it_was_published(checkout, tmp_path):
    published = publish(checkout, GITHUB)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(checkout), str(clone)], check=True)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "one.ipynb").write_text("{}")
    commit = commit_folder(clone, tmp_path / "new", "notebooks", "news")
    assert in_git(clone, "rev-parse", f"{commit}^") == published


def test_without_a_repository_git_says_why(tmp_path):
    (tmp_path / "one.ipynb").write_text("{}")
    with pytest.raises(PublishError, match="not a git repository"):
        commit_folder(tmp_path, tmp_path, "notebooks", "news")


# -- the container --------------------------------------------------------------------------------


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each on one line."""
    text = (ROOT / "Dockerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_the_container_runs_as_an_ordinary_user_from_a_fixed_version():
    steps = dockerfile()
    names = [name for name, _ in steps]
    assert re.fullmatch(r"python:3\.\d+-slim-\w+ AS base", steps[0][1])
    users = [value for name, value in steps if name == "USER"]
    assert users == ["${NB_USER}"]
    assert dict(line.split("=") for name, line in steps if name == "ARG") == {
        "NB_USER": "reader", "NB_UID": "1000"
    }  # fmt: skip
    assert names.index("USER") < names.index("COPY"), "the book is not root's"
    assert names[-1] == "CMD" and "ENTRYPOINT" not in names
    assert json.loads(steps[-1][1])[:2] == ["jupyter", "lab"]


def test_the_container_copies_and_runs_what_there_is():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    for name, value in dockerfile():
        if name == "COPY":
            for source in value.split()[1:-1]:
                assert list(ROOT.glob(source)) if source != "." else True, source
                assert source not in ignored
        if name == "RUN":
            for target in re.findall(r"\bmake (?:TORCH=cpu )?([a-z-]+)", value):
                assert target in targets or target == "git", target
            for pins in re.findall(r"-r (\S+)", value):
                assert (ROOT / pins).is_file()
    assert {".git", ".venv", "_build", "notebooks"} <= set(ignored)


def test_the_development_container_uses_the_same_base():
    text = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    build = text["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    stages = [value.partition(" AS ")[2] for name, value in dockerfile() if name == "FROM"]
    assert build["target"] in stages
    assert f"NB_USER={text['remoteUser']}" in [value for name, value in dockerfile()]
    assert "make TORCH=cpu notebooks" in text["postCreateCommand"]
