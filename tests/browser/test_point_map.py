"""The map whose points a slider moves, on a page of its own."""

import numpy as np

from bertology_utils import embeddings, widgets

NOTES = [f"<i>note</i> {i} </script>" for i in range(10)]


def one_map(seed: int):
    vectors = np.random.default_rng(seed).standard_normal((4, 10, 6))
    groups = ["left", "right"] * 5
    return embeddings.layer_map(vectors, groups, ["word"] * 10, NOTES, model="made")


def places(shown) -> list[str]:
    return shown.locator("svg.bx-map path").evaluate_all(
        "marks => marks.map(mark => mark.style.transform)"
    )


def test_the_slider_moves_the_points_and_the_lists_change_them(open_html):
    maps = {
        "first": {"a": one_map(0), "b": one_map(1)}, "second": {"a": one_map(2), "b": one_map(3)}
    }  # fmt: skip
    shown, seen = open_html(widgets.point_map(maps, title="A map", start=1)._repr_html_())
    at_start = places(shown)
    assert len(set(at_start)) == 10
    slider = shown.locator("input[type=range]")
    slider.press("ArrowRight")
    moved = places(shown)
    assert moved != at_start and len(moved) == 10
    assert "Layer 2 of 3" in shown.locator(".bx-map-line").inner_text()
    said = shown.locator("[aria-live]")
    assert said.text_content().startswith("Showing points first, weights a, layer 2. Layer 2")
    slider.press("ArrowLeft")
    assert places(shown) == at_start
    shown.locator("select").nth(1).select_option("1")
    assert places(shown) != at_start and "weights b" in said.text_content()
    assert shown.locator(".bx-map-legend").inner_text().split() == ["left", "right"]
    assert seen.console == seen.outside == seen.failed == []


def test_points_are_read_by_pointer_and_by_keyboard(open_html):
    shown, seen = open_html(
        widgets.point_map({"only": {"a": one_map(0)}}, title="A map")._repr_html_(), width=390
    )
    drawing, line = shown.locator("svg.bx-map"), shown.locator(".bx-map-pointed")
    drawing.focus()
    drawing.press("ArrowRight")
    assert line.inner_text() == "left: word - <i>note</i> 0 </script>"
    for _ in range(5):
        drawing.press("ArrowRight")
    assert line.inner_text() == "right: word - <i>note</i> 1 </script>"
    drawing.press("ArrowLeft")
    assert line.inner_text() == "left: word - <i>note</i> 8 </script>"
    assert shown.locator(".bx-at").count() == 1
    shown.locator("svg.bx-map path").nth(3).hover()
    shown.locator(".bx-map-pointed", has_text="note").wait_for()
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen.console == []
