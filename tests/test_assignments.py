"""Assignments: the reference solution earns all, a stub nothing, every typical mistake is named."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import zipfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml

from tools import assignments
from tools.grading import codec, failure_of, given_names, load_assignment
from tools.grading.assignment import SETUP_TAG, SOLUTION_TAG

WRONG = assignments.MASTERS.parent / "wrong"
NAMES = [master.stem for master in assignments.masters()]


@pytest.fixture(scope="session")
def outputs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("assignments")


@pytest.fixture(scope="session")
def built(outputs):
    """name -> (built notebooks, what the judge knows, the given names): each made once."""

    @cache
    def make(name: str):
        result = assignments.build(assignments.find_master(name), outputs)
        assignment = load_assignment(result.autograder)
        return result, assignment, given_names(assignment)

    return make


def answers(path: Path) -> list[str]:
    """Sources of the cells that are the student's, in a notebook of either kind."""
    notebook = nbformat.read(path, as_version=4)
    tags = {SOLUTION_TAG, "otter_answer_cell"}
    return [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and tags & set(cell.metadata.get("tags", ()))
    ]


def with_code(given: dict, *sources: str) -> dict:
    names = dict(given)
    for source in sources:
        exec(compile(source, "<answer>", "exec"), names)
    return names


def as_graded(names: dict, given: dict) -> dict:
    """The same names, with functions that exchange plain data only, as a worker's do."""

    def far(function):
        def call(*arguments, **options):
            line = codec.dumps([list(arguments), options], given)
            there, extra = codec.loads(line, names)
            return codec.loads(codec.dumps(function(*there, **extra)))

        return call

    own = {name: far(value) for name, value in names.items()
           if name not in given and callable(value)}  # fmt: skip
    return names | own


@contextmanager
def unharmed(encoder):
    """Some mistakes leave the model changed, which all tests here share."""
    whole = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    try:
        yield
    finally:
        encoder.model.load_state_dict(whole)


def wrong_solutions() -> list:
    found = []
    for path in sorted(WRONG.glob("*.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            label = f"{path.stem}-{entry['question']}-{entry['mistake'].replace(' ', '_')}"
            found.append(pytest.param(path.stem, entry, id=label))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_solution_earns_every_point(built, name):
    result, assignment, given = built(name)
    names = as_graded(with_code(given, *answers(result.autograder)), given)
    for question in assignment.questions:
        for test in question.tests:
            assert failure_of(test, names) is None, f"{question.name}, {test.name}"


@pytest.mark.parametrize("name", NAMES)
def test_the_empty_stub_earns_nothing(built, name):
    result, assignment, given = built(name)
    names = with_code(given, *answers(result.student))
    for question in assignment.questions:
        for test in question.tests:
            said = failure_of(test, names)
            assert said and "nothing is written yet" in said, (question.name, test.name, said)


@pytest.mark.parametrize("name, entry", wrong_solutions())
def test_a_typical_mistake_loses_points_and_is_named(built, name, entry):
    result, assignment, given = built(name)
    (question,) = (q for q in assignment.questions if q.name == entry["question"])
    names = with_code(given, *answers(result.autograder), entry["code"])
    with unharmed(given["encoder"]):
        failures = [found for test in question.tests if (found := failure_of(test, names))]
    assert failures, "earns full marks"
    assert any(entry["message"] in failure for failure in failures), failures


@pytest.mark.parametrize("name", NAMES)
def test_five_mistakes_or_more_are_known(name):
    entries = yaml.safe_load((WRONG / f"{name}.yml").read_text(encoding="utf-8"))
    assert len({entry["mistake"] for entry in entries}) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_an_assignment_is_complete(built, name):
    result, assignment, _ = built(name)
    questions = len(assignment.questions) + len(assignment.written)
    assert 4 <= questions <= 6 and len(assignment.written) == 1
    assert list(assignment.written) == [f"q{questions}"]
    for question in assignment.questions:
        hidden = [test.hidden for test in question.tests]
        assert True in hidden and False in hidden, f"{question.name}: both kinds of tests"
    text = (assignments.MASTERS / f"{name}.md").read_text(encoding="utf-8")
    assert "Rubric." in text


@pytest.mark.parametrize("name", NAMES)
def test_the_notes_for_instructors_know_the_assignment(built, name):
    _, assignment, _ = built(name)
    notes = (assignments.MASTERS.parent / "INSTRUCTORS.md").read_text(encoding="utf-8")
    points = assignment.points + sum(assignment.written.values())
    assert f"### {name} ({points:g} points" in notes


@pytest.mark.parametrize("name", NAMES)
def test_students_get_no_solution_and_no_hidden_test(built, name):
    result, assignment, _ = built(name)
    folder = result.student.parent
    master = assignments.read_master(assignments.find_master(name))
    assert assignments.leaks(master, folder) == []
    secret, _ = assignments.secret_lines(master)
    assert len(secret) > 20, "the search looks for something"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.ipynb"))
    assert "hidden=True" not in text and "Rubric." not in text and SOLUTION_TAG not in text
    for question in assignment.questions:
        for test in question.tests:
            name_of_test = test.body.test_func.__name__
            assert (f"def {name_of_test}(" in text) is not test.hidden
    everything = result.autograder.read_text(encoding="utf-8")
    assert "hidden=True" in everything
    assert [path.name for path in folder.rglob("*")] == [f"{name}.ipynb"]


def test_a_leak_is_found(tmp_path, built):
    name = NAMES[0]
    result, _, _ = built(name)
    master = assignments.read_master(assignments.find_master(name))
    line = sorted(assignments.secret_lines(master)[0])[0]
    notebook = nbformat.read(result.student, as_version=4)
    notebook.cells.append(nbformat.v4.new_markdown_cell("see: " + line))
    (tmp_path / "x.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    assert assignments.leaks(master, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_students_own_checks_work(built, tmp_path, monkeypatch, capsys, name):
    result, assignment, given = built(name)
    # The student may have given the file another name, and other notebooks may lie beside it.
    shutil.copy(result.student, tmp_path / "mine.ipynb")
    (tmp_path / "other.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook()))
    (tmp_path / "empty.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(result.student, as_version=4)
    (setup,) = (c for c in notebook.cells if SETUP_TAG in c.metadata.get("tags", ()))
    names = with_code(given, setup.source, *answers(result.student))
    for question in assignment.questions:
        assert not names["grader"].check(question.name, names).passed_all
    names = with_code(names, *answers(result.autograder))
    for question in assignment.questions:
        assert names["grader"].check(question.name, names).passed_all


def test_the_set_up_cell_says_what_is_missing(built, tmp_path, monkeypatch):
    result, _, _ = built(NAMES[0])
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(result.student, as_version=4)
    (setup,) = (c for c in notebook.cells if SETUP_TAG in c.metadata.get("tags", ()))
    with pytest.raises(FileNotFoundError, match="has to lie in the current folder"):
        with_code({}, setup.source)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="put bertology_utils"):
        with_code({}, setup.source)


def test_the_wheel_holds_the_package_and_its_model(tmp_path):
    wheel = assignments.build_wheel(tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("model.safetensors") for name in names)
    assert not any(name.startswith(("assignments/", "tools/", "tests/")) for name in names)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


@pytest.mark.parametrize("name", NAMES)
def test_building_twice_gives_the_same_bytes(built, tmp_path, name):
    first, _, _ = built(name)
    second = assignments.build(assignments.find_master(name), tmp_path)
    assert first.student.read_bytes() == second.student.read_bytes()
    assert first.autograder.read_bytes() == second.autograder.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_one_pinned_cell_installs_what_is_missing(built, name):
    result, _, _ = built(name)
    notebook = json.loads(result.student.read_text(encoding="utf-8"))
    setup = [c for c in notebook["cells"] if SETUP_TAG in c["metadata"].get("tags", ())]
    assert len(setup) == 1
    source = "".join(setup[0]["source"])
    compile(source, name, "exec")
    assert "torch==" in source and "otter-grader==" in source and "find_spec" in source
    rest = "".join("".join(c["source"]) for c in notebook["cells"] if c is not setup[0])
    assert "pip install" not in rest


def test_the_syllabus_names_what_there_is():
    text = (assignments.ROOT / "syllabus.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(\d\d_\w+)`", text):
        assert name in NAMES, name
    for number in {part[:2] for part in re.findall(r"\b(\d\d): q\d", text)}:
        assert any(name.startswith(number) for name in NAMES), number
    tables = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    for chapter, exercise in re.findall(r"(?<![\d.])(\d{1,2})\.(\d)(?![\d.])", tables):
        (page,) = (assignments.ROOT / "chapters").glob(f"{int(chapter):02d}_*.md")
        assert f"### Exercise {exercise}:" in page.read_text(encoding="utf-8"), (chapter, exercise)


def test_an_unknown_assignment_is_named():
    with pytest.raises(assignments.AssignmentError, match="no assignment 'nowhere'"):
        assignments.find_master("nowhere")


def test_a_malformed_master_is_named(tmp_path):
    master = tmp_path / "99_broken.md"
    master.write_text("# Title\n\n```otter\n# BEGIN QUESTION\nname: q1\n```\n\nText.\n")
    with pytest.raises(assignments.AssignmentError, match="99_broken.md: QUESTION has no end"):
        assignments.build(master, tmp_path / "out")
