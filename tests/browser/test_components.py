"""Figures, attention views and explorers on a page of their own, before any book is built."""

from functools import partial

import numpy as np
import pytest
from visit import DRAWN, comes_to, set_theme

from bertology_utils import embeds, figures, page, widgets

TOKENS = ["[CLS]", "the", "<b>cat</b>", '"sat"', "</script>", "[SEP]"]


@pytest.fixture(scope="module")
def attention() -> np.ndarray:
    scores = np.random.default_rng(1).normal(size=(3, 4, len(TOKENS), len(TOKENS))) * 2
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


def frame_of(shown_page, index: int = 0):
    return shown_page.locator("iframe.bx-frame").nth(index).element_handle().content_frame()


def test_head_view_draws_the_attention_it_was_given(open_html, attention):
    shown, seen = open_html(embeds.head_view(attention, TOKENS, layer=1)._repr_html_())
    frame = frame_of(shown)
    assert frame.locator("#left text").all_text_contents() == TOKENS
    lines = frame.locator("#attention line").evaluate_all("lines => lines.map(l => l.__data__)")
    np.testing.assert_allclose(
        np.reshape(lines, (4, len(TOKENS), len(TOKENS))), attention[1], atol=5.01e-4
    )
    assert seen.console == seen.outside == seen.failed == []


def test_head_view_says_the_weights_of_the_token_under_the_pointer(open_html, attention):
    shown, _ = open_html(embeds.head_view(attention, TOKENS, layer=2, heads=[1, 3])._repr_html_())
    frame = frame_of(shown)
    frame.locator("#left text").nth(2).hover()
    weights = attention[2, [1, 3], 2].mean(0)
    best = int(weights.argmax())
    frame.locator("#said", has_text="attends to").wait_for()
    said = frame.locator("#said").inner_text()
    assert said.startswith(f"<b>cat</b> attends to: {TOKENS[best]} {weights[best]:.0%}")
    assert said.endswith("(layer 2, mean of 2 heads)")
    frame.locator("select#layer").select_option("0")
    frame.locator("#right text").nth(0).hover()
    frame.locator("#said", has_text="is attended to by").wait_for()
    assert "layer 0" in frame.locator("#said").inner_text()


def test_head_view_can_be_worked_by_keyboard(open_html, attention):
    shown, _ = open_html(embeds.head_view(attention, TOKENS, heads=[0])._repr_html_())
    frame = frame_of(shown)
    boxes = frame.locator("rect[role='checkbox']")
    lit = "boxes => boxes.map(b => b.getAttribute('aria-checked'))"
    assert boxes.evaluate_all(lit) == ["true", "false", "false", "false"]
    boxes.nth(0).press("ArrowRight")
    boxes.nth(1).press(" ")
    assert boxes.evaluate_all(lit) == ["true", "true", "false", "false"]
    boxes.nth(1).press("Enter")
    assert boxes.evaluate_all(lit) == ["false", "true", "false", "false"]
    first = frame.locator("#left [role='button']").first
    first.focus()
    first.press("ArrowDown")
    focused = frame.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "the, attending"
    assert frame.locator("#said").inner_text().startswith("the attends to:")
    visible = frame.locator("#attention line[visibility='visible']")
    assert visible.count() == 4 * len(TOKENS)


def test_sentence_pairs_can_be_looked_at_part_by_part(open_html, attention):
    shown, _ = open_html(embeds.head_view(attention, TOKENS, sentence_b_start=2)._repr_html_())
    frame = frame_of(shown)
    frame.locator("select#filter").select_option("3")  # A to B
    assert frame.locator("#left text").all_text_contents() == TOKENS[:2]
    assert frame.locator("#right text").all_text_contents() == TOKENS[2:]
    lines = frame.locator("#attention line").evaluate_all("lines => lines.map(l => l.__data__)")
    np.testing.assert_allclose(
        np.reshape(lines, (4, 2, len(TOKENS) - 2)), attention[0, :, :2, 2:], atol=5.01e-4
    )


def test_model_view_enlarges_the_head_that_is_asked_for(open_html, attention):
    shown, seen = open_html(
        embeds.model_view(attention, TOKENS, layers=[0, 2], heads=[1, 3])._repr_html_()
    )
    frame = frame_of(shown)
    heads = frame.locator("rect[role='button']")
    labels = heads.evaluate_all("heads => heads.map(h => h.getAttribute('aria-label'))")
    assert labels == [f"layer {layer}, head {head}" for layer in (0, 2) for head in (1, 3)]
    heads.nth(0).press("ArrowDown")
    heads.nth(2).press("Enter")
    lines = frame.locator(".attn-line-group line").evaluate_all("ls => ls.map(l => l.__data__)")
    np.testing.assert_allclose(
        np.reshape(lines, (len(TOKENS), len(TOKENS))), attention[2, 1], atol=5.01e-4
    )
    assert frame.locator("text.detail", has_text="Layer 2, Head 1").count() == 1
    frame.locator("text.token").nth(1).hover()
    groups = frame.locator(".attn-line-group")
    opacity = "groups => groups.map(g => getComputedStyle(g).opacity)"
    one = ["0", "1", "0", "0", "0", "0"]
    assert comes_to(shown, lambda: groups.evaluate_all(opacity), one) == one
    assert seen.console == []


def test_the_frame_cannot_reach_the_network_or_the_page(open_html, attention):
    shown, seen = open_html(embeds.head_view(attention, TOKENS)._repr_html_())
    frame = frame_of(shown)
    attempts = frame.evaluate(
        """async () => {
          const tried = {};
          const local = document.referrer || 'http://127.0.0.1/';
          for (const url of [local, 'https://cdnjs.cloudflare.com/x.js']) {
            tried[url] = await fetch(url).then(() => 'reached', () => 'refused');
          }
          try { tried.page = parent.document.title; } catch (error) { tried.page = error.name; }
          return Object.values(tried);
        }"""
    )
    assert attempts == ["refused", "refused", "SecurityError"]
    assert seen.outside == []


def test_frames_take_the_height_of_their_drawing_at_any_width(open_html, attention):
    body = "".join(
        view(attention, TOKENS)._repr_html_() for view in (embeds.head_view, embeds.model_view)
    )
    for width in (1440, 390):
        shown, _ = open_html(body, width=width)
        for index in range(2):
            # A frame asks for its height again when a scroll bar comes or goes.
            hidden, spare = comes_to(
                shown,
                partial(hidden_and_spare, shown, index),
                lambda seen: seen[0] <= 1 and seen[1] < 8,
            )
            assert hidden <= 1 and spare < 8
        assert shown.evaluate("bertologyLook.overflow()") == []


def hidden_and_spare(shown, index: int) -> tuple[float, float]:
    """Pixels that a frame's drawing is higher than the frame, and pixels that it is less high."""
    frame = frame_of(shown, index)
    hidden = frame.evaluate(
        "document.documentElement.scrollHeight - document.documentElement.clientHeight"
    )
    outer = shown.locator("iframe.bx-frame").nth(index).bounding_box()["height"]
    return hidden, outer - frame.evaluate("document.body.getBoundingClientRect().height")


def test_figures_change_colour_with_the_theme(open_html):
    chart = figures.lines({"a": [0.2, 0.4], "b": [0.3, 0.1]}, title="Lines")
    shown, _ = open_html(figures.show(chart, alt="Two lines that cross.")._repr_html_())
    assert shown.get_by_role("img", name="Two lines that cross.").count() == 1

    def colours() -> set[str]:
        return set(
            shown.locator("svg *").evaluate_all(
                "nodes => nodes.map(n => getComputedStyle(n)).flatMap(s => [s.fill, s.stroke])"
            )
        )

    def rgb(colour: str) -> str:
        return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"

    for theme in ("light", "dark"):
        set_theme(shown, theme)
        wanted = {rgb(page.THEMES[theme][role]) for role in ("ink", "s0", "s1", "faint")}
        assert wanted <= colours()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_explorers_follow_their_controls(open_html, theme):
    made = widgets.interactive(
        lambda word, times: page.stack(
            " ".join([word] * times), page.heat_table([[0.1 * times]], rows=["r"], columns=["c"])
        ),
        {"word": ["cat", "<dog>"], "times": [1, 2, 4]},
        title="Say it",
        start={"times": 2},
    )
    shown, seen = open_html(made.static._repr_html_(), theme=theme)
    words = shown.locator(".bx-shown .bx-text")
    assert words.inner_text() == "cat cat"
    shown.get_by_label("word").select_option(label="<dog>")
    assert words.inner_text() == "<dog> <dog>"
    shown.get_by_label("times").press("ArrowRight")
    assert words.inner_text() == "<dog> <dog> <dog> <dog>"
    assert shown.locator("output").inner_text() == "4"
    assert shown.get_by_label("times").get_attribute("aria-valuetext") == "4"
    assert shown.locator("[aria-live]").inner_text() == "Showing word <dog>, times 4"
    assert seen.console == []


def test_attention_views_inside_explorers_draw_when_chosen(open_html, attention):
    states = {
        (layer,): embeds.head_view(attention, TOKENS, layer=layer, layers=[layer])
        for layer in range(3)
    }
    made = widgets.explorer(states, {"layer": range(3)}, title="Layers")
    shown, seen = open_html(made._repr_html_())
    shown.get_by_label("layer", exact=True).press("End")
    frame = shown.locator("iframe.bx-frame:visible")
    shown.wait_for_function(DRAWN, arg=frame.element_handle())
    assert frame_of(shown).locator("select#layer").input_value() == "2"
    assert seen.console == []


def test_two_explorers_on_a_page_do_not_disturb_each_other(open_html):
    one, other = (
        widgets.explorer({(n,): f"{name} {n}" for n in range(3)}, {"n": range(3)}, title=name)
        for name in ("one", "other")
    )
    shown, _ = open_html(one._repr_html_() + other._repr_html_())
    shown.get_by_role("group", name="other").get_by_label("n").press("ArrowRight")
    assert shown.locator(".bx-shown").all_inner_texts() == ["one 0", "other 1"]
