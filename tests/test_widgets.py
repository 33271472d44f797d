"""Explorers work from the page alone; the same call is live where a notebook is."""

import html
import json
import re

import ipywidgets
import nbformat
import pytest
from nbclient import NotebookClient

from bertology_utils import ledger, page, widgets
from bertology_utils.widgets.controls import as_controls


def shout(word: str, times: int) -> str:
    if not word.isalpha():
        raise ValueError(f"<{word}> is no word")
    return f"{word} & " * times


CONTROLS = {"word": ["cat", "<dog>"], "times": [1, 2, 4]}


def say(word, times):
    return f"{word} & " * times


def grid_of(display) -> tuple[list[int], list[int]]:
    sizes, grid = re.search(r'"sizes":(\[[^]]*\]),"grid":(\[[^]]*\])', display.html).groups()
    return json.loads(sizes), json.loads(grid)


def templates_of(display) -> list[str]:
    return re.findall(r"<template>(.*?)</template>", display.html, re.DOTALL)


# --- controls -------------------------------------------------------------------------------------


def test_rising_numbers_make_sliders_and_the_rest_lists():
    made = as_controls(
        {"a": [0, 1, 2], "b": [1, 3], "c": [2, 1, 0], "d": ["x", "y", "z"], "e": [False, True]}
    )
    assert [control.is_slider for control in made] == [True, False, False, False, False]
    assert made[4].labels == ("no", "yes")
    assert as_controls({"k": [0.5, 1.0, 2.5]})[0].labels == ("0.5", "1", "2.5")
    assert as_controls({"k": {"first": 0, "last": 11}})[0].labels == ("first", "last")


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ({}, "no control"),
        ({"a": []}, "'a' has no setting"),
        ({"a": "xyz"}, "options of 'a' are one string"),
        ({"a": [1, "1"]}, "written the same"),
        ({"two words": [1]}, "'two words' cannot name an argument"),
    ],
)
def test_bad_controls_are_named(controls, message):
    with pytest.raises(ValueError, match=message):
        as_controls(controls)


# --- the page half --------------------------------------------------------------------------------


def test_every_combination_travels_and_equal_states_only_once():
    states = {("a", 1): "one", ("a", 2): "two", ("b", 1): "one", ("b", 2): "<three>"}
    shown = widgets.explorer(states, {"x": ["a", "b"], "n": [1, 2]}, title="T")
    sizes, grid = grid_of(shown)
    assert sizes == [2, 2] and grid == [0, 1, 0, 2]
    assert templates_of(shown) == [
        f'<p class="bx-text">{text}</p>' for text in ("one", "two", "&lt;three&gt;")
    ]
    # Without a script the first state is there to be read.
    assert re.search(r'<div class="bx-shown"><p class="bx-text">one</p></div>', shown.html)


def test_the_start_is_selected_and_shown():
    states = {("a", n): f"state {n}" for n in range(3)}
    shown = widgets.explorer(states, {"x": ["a"], "n": range(3)}, title="T", start={"n": 2})
    assert '<div class="bx-shown"><p class="bx-text">state 2</p>' in shown.html
    assert 'min="0" max="2" step="1" value="2"' in shown.html
    assert 'aria-valuetext="2"' in shown.html


def test_every_control_is_a_labelled_native_one():
    shown = widgets.interactive(say, CONTROLS, title='Say "it" <twice>').static
    fields = re.findall(r'<(?:select|input)[^>]* id="([^"]+)"', shown.html)
    labels = re.findall(r'<label for="([^"]+)">', shown.html)
    assert fields == labels and len(fields) == 2
    assert '<option value="1">&lt;dog&gt;</option>' in shown.html
    assert "Say &quot;it&quot; &lt;twice&gt;" in shown.html
    assert 'aria-live="polite"' in shown.html and "<noscript>" in shown.html
    group, title = re.search(
        r'aria-labelledby="([^"]+)".*? id="([^"]+-title)"', shown.html
    ).groups()
    assert group == title
    # Sliders keep their labels as data for the script.
    labels = json.loads(html.unescape(re.search(r'data-labels="([^"]*)"', shown.html)[1]))
    assert labels == ["1", "2", "4"]


def test_two_explorers_of_the_same_thing_share_no_ids():
    made = (
        widgets.interactive(say, CONTROLS, title="T"),
        widgets.interactive(say, CONTROLS, title="T"),
    )
    ids = re.findall(r' id="([^"]+)"', "".join(one.static.html for one in made))
    assert len(ids) == len(set(ids))


def test_explorers_refuse_what_is_missing_or_too_much():
    with pytest.raises(ValueError, match=r"no state for the settings \('b',\)"):
        widgets.explorer({("a",): "x"}, {"x": ["a", "b"]}, title="T")
    with pytest.raises(TypeError, match="cannot be shown"):
        widgets.explorer({("a",): 3}, {"x": ["a"]}, title="T")
    with pytest.raises(ValueError, match="start sets 'x' to 'c'"):
        widgets.explorer({("a",): "x"}, {"x": ["a"]}, title="T", start={"x": "c"})
    with pytest.raises(ValueError, match="start names 'y'"):
        widgets.explorer({("a",): "x"}, {"x": ["a"]}, title="T", start={"y": "c"})
    heavy = {(n,): f"{n}" + "x" * 900_000 for n in range(2)}
    with pytest.raises(ValueError, match="more than the 1,500,000 a page"):
        widgets.explorer(heavy, {"n": range(2)}, title="T")


# --- both halves ----------------------------------------------------------------------------------


def test_interactive_runs_the_function_once_per_state_of_the_page():
    calls = []

    def fn(a, b):
        calls.append((a, b))
        return f"{a}{b}"

    shown = widgets.interactive(
        fn, {"a": [1, 2, 3], "b": ["x", "y"]}, title="T", static={"a": [1, 3]}
    )
    assert calls == []  # nothing is computed before it is shown
    first = shown._repr_mimebundle_()
    assert calls == [(1, "x"), (1, "y"), (3, "x"), (3, "y")]
    assert shown._repr_mimebundle_() == first
    assert len(calls) == 4
    assert "Run this page as a notebook to try every a." in first["text/html"]
    assert "application/vnd.jupyter.widget-view+json" not in first


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"static": {"c": [1]}}, "static names 'c'"),
        ({"static": {"a": [9]}}, "9 is not a setting of 'a'"),
        ({"static": {"a": []}}, "left without a setting"),
        ({"start": {"c": 1}}, "start names 'c'"),
        ({"start": {"a": 2}, "static": {"a": [1]}}, "start sets 'a' to 2"),
        ({"free": ["c"]}, "free names 'c'"),
        ({"free": "a"}, "free is the string 'a'"),
    ],
)
def test_interactive_names_what_does_not_exist(kwargs, message):
    with pytest.raises(ValueError, match=message):
        widgets.interactive(say, {"a": [1, 2]}, title="T", **kwargs)


def test_a_grid_too_large_for_the_page_is_refused_before_any_work():
    with pytest.raises(ValueError, match="30 a x 30 b = 900 states, more than 600"):
        widgets.interactive(say, {"a": range(30), "b": range(30)}, title="T")


def find(box, kind):
    return [w for row in box.children for w in (row, *getattr(row, "children", ()))
            if type(w) is kind]  # fmt: skip


def test_live_widgets_call_the_function_on_every_change():
    box = widgets.live(shout, {"word": ["cat", "dog"], "times": [1, 2, 3]}, title="T <x>",
                       free=["word"], start={"times": 2})  # fmt: skip
    (menu,) = find(box, ipywidgets.Dropdown)
    (slider,) = find(box, ipywidgets.SelectionSlider)
    (own,) = find(box, ipywidgets.Text)
    heading, output = find(box, ipywidgets.HTML)
    assert "T &lt;x&gt;" in heading.value
    assert "cat &amp; cat &amp; </p>" in output.value
    menu.value = "dog"
    slider.value = 3
    assert "dog &amp; dog &amp; dog &amp; </p>" in output.value
    own.value = "bird"
    assert "bird &amp; bird &amp; bird" in output.value
    own.value = "42"
    assert '<p class="bx-error" role="alert">&lt;42&gt; is no word</p>' in output.value
    own.value = "  "
    assert "dog &amp; dog" in output.value


def test_live_refuses_settings_that_do_not_exist():
    with pytest.raises(ValueError, match="start sets 'a' to 3"):
        widgets.live(say, {"a": [1, 2]}, title="T", start={"a": 3})
    with pytest.raises(ValueError, match="free names 'b'"):
        widgets.live(say, {"a": [1, 2]}, title="T", free=["b"])


def test_live_and_static_share_their_results():
    calls = []

    def fn(a):
        calls.append(a)
        return page.Display(f"<b>{a}</b>", str(a))

    both = widgets.interactive(fn, {"a": [1, 2]}, title="T")
    assert len(templates_of(both.static)) == 2
    (menu,) = find(both.live, ipywidgets.Dropdown)
    menu.value = 2
    assert calls == [1, 2]


def test_the_switch_overrules_and_is_checked(monkeypatch):
    for mark in ("JPY_SESSION_NAME", "COLAB_RELEASE_TAG", "BERTOLOGY_WIDGETS"):
        monkeypatch.delenv(mark, raising=False)
    assert not widgets.has_front_end()
    monkeypatch.setenv("JPY_SESSION_NAME", "chapter.ipynb")
    assert widgets.has_front_end()
    monkeypatch.setenv("BERTOLOGY_WIDGETS", "static")
    assert not widgets.has_front_end()
    monkeypatch.setenv("BERTOLOGY_WIDGETS", "on")
    with pytest.raises(ValueError, match="BERTOLOGY_WIDGETS is 'on'"):
        widgets.has_front_end()


def run_in_kernel() -> tuple[dict, dict]:
    notebook = nbformat.v4.new_notebook()
    source = (
        "from bertology_utils import widgets\n"
        "widgets.interactive(lambda word: word * 2, {'word': ['ha', 'ho']}, title='Laugh')"
    )
    notebook.cells = [nbformat.v4.new_code_cell(source)]
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    return output["data"], notebook.metadata.get("widgets", {})


def test_a_kernel_without_a_front_end_gives_the_page_half_alone(monkeypatch):
    monkeypatch.setenv("BERTOLOGY_WIDGETS", "static")
    data, state = run_in_kernel()
    assert set(data) == {"text/html", "text/plain"}
    assert "haha" in data["text/html"] and "hoho" in data["text/html"]
    assert state == {}


def test_a_kernel_with_a_front_end_gives_both(monkeypatch):
    monkeypatch.setenv("BERTOLOGY_WIDGETS", "live")
    data, state = run_in_kernel()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "hoho" in data["text/html"]
    models = state["application/vnd.jupyter.widget-state+json"]["state"]
    assert "DropdownModel" in {model["model_name"] for model in models.values()}


# --- the claims of a chapter ----------------------------------------------------------------------


def test_claims_show_every_number_that_was_recorded(tmp_path):
    model = "a <model>"
    for claim in (c for c in ledger.load_claims().select(chapter="03") if c.mode != "discuss"):
        if claim.id == "SEM-01":
            found = ledger.Measurement(
                value=0.75, unit="share", n=40, model=model, interval=(0.6, 0.9),
                baselines={name: 0.5 for name in claim.measure.baselines} | {"chance": 0.5},
            )  # fmt: skip
        else:
            found = ledger.NotTestable(model=model, reason="it was not <asked>")
        ledger.record(claim.id, found, root=tmp_path)
    shown = widgets.claims("03", model, root=tmp_path)
    states = templates_of(shown)
    assert len(states) == len(ledger.rows(model, chapter="03", root=tmp_path)) - 1  # one discussed
    assert "0.75 [0.6, 0.9]" in states[0] and "a &lt;model&gt;, n = 40" in states[0]
    assert all("it was not &lt;asked&gt;" in state for state in states[1:])


def test_claims_that_were_not_run_say_so(tmp_path):
    states = templates_of(widgets.claims("05", "nobody", root=tmp_path))
    assert states and all("not in this build" in state for state in states)


def test_claims_of_a_chapter_that_is_not_there(tmp_path):
    with pytest.raises(KeyError):
        widgets.claims("77", "nobody", root=tmp_path)
