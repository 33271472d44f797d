"""Charts draw what they are given, name it, and end up accessible and theme-following."""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import Rectangle

from bertology_utils import figures, page
from bertology_utils.figures.chart import COLOURS


@dataclass(frozen=True)
class Result:
    value: float
    interval: tuple[float, float] | None = None
    baselines: dict = field(default_factory=dict)


PROBE = {
    "agreement": Result(0.9, (0.85, 0.94), {"majority": 0.5, "random weights": 0.6}),
    "reflexives": Result(0.8, (0.7, 0.85), {"majority": 0.5}),
    "plain number": 0.7,
}


def texts(chart) -> list[str]:
    return [t.get_text() for t in chart.findobj(mpl.text.Text) if t.get_text()]


def legend_of(chart) -> list[str]:
    return [t.get_text() for legend in chart.legends for t in legend.get_texts()]


def test_bars_draw_values_intervals_baselines_and_the_papers_number():
    chart = figures.bars(
        PROBE,
        baselines={"chance": 0.25},
        paper={"agreement": 0.97},
        paper_name="Goldberg 2019",
        title="Found",
        axis="accuracy",
        number_format=".0%",
    )
    axes = chart.axes[0]
    assert [bar.get_width() for bar in axes.patches] == [0.9, 0.8, 0.7]
    assert legend_of(chart) == ["majority", "random weights", "chance: 25%", "Goldberg 2019"]
    assert {"90% (◇ 97%)", "80%", "70%", "Found", "accuracy", "agreement"} <= set(texts(chart))
    # Both intervals, at the rows of their bars.
    spans = sorted(
        tuple(np.round(segment[:, 0], 6))
        for group in axes.collections
        for segment in group.get_segments()
    )
    assert spans == [(0.7, 0.85), (0.85, 0.94)]
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    assert [(d.get_xdata()[0], d.get_ydata()[0]) for d in diamonds] == [(0.97, 0)]
    assert chart.rows[0] == ("agreement", 0.9, "85% to 94%", 0.5, 0.6, 0.25, 0.97)
    assert chart.rows[2][3:] == (None, None, 0.25, None)


def test_values_are_written_beyond_every_mark_on_the_bar():
    chart = figures.bars({"a": Result(0.5, (0.4, 0.6), {"top": 0.8})}, paper={"a": 0.9})
    written = next(t for t in chart.axes[0].texts if t.get_text() == "0.50 (◇ 0.90)")
    assert written.xy[0] == 0.9 and written.get_position()[0] > 0
    negative = figures.bars({"a": Result(-0.5, (-0.6, -0.4)), "b": 0.2})
    written = next(t for t in negative.axes[0].texts if t.get_text() == "-0.50")
    assert written.xy[0] == -0.6 and written.get_position()[0] < 0
    assert negative.axes[0].get_xlim()[0] < -0.6
    # Room for the numbers, but no marks of the scale where no bar can reach.
    assert max(chart.axes[0].get_xticks()) <= 1 < chart.axes[0].get_xlim()[1]


def test_a_single_paper_number_is_a_line():
    chart = figures.bars({"a": 0.5}, paper=0.8, paper_name="BERT-base")
    assert legend_of(chart) == ["BERT-base: 0.80"]
    assert "0.50" in texts(chart)  # its number stands in the legend, once for all bars
    assert chart.rows[0][-1] == 0.8


def test_grouped_bars_allow_gaps_and_colour_by_series():
    chart = figures.grouped_bars(
        {"mini": {"probe": Result(0.8, (0.7, 0.9)), "control": 0.4}, "base": {"probe": 0.9}},
        baselines={"chance": 0.1},
    )
    assert legend_of(chart) == ["probe", "control", "chance: 0.10"]
    assert [row[:3] for row in chart.rows] == [
        ("mini", "probe", 0.8),
        ("mini", "control", 0.4),
        ("base", "probe", 0.9),
    ]


def test_lines_draw_bands_baselines_and_the_papers_point():
    chart = figures.lines(
        {"probe": [Result(v, (v - 0.1, v + 0.1)) for v in (0.5, 0.7, 0.6)], "MLP": [0.6, 0.8, 0.7]},
        baselines={"majority": 0.33},
        paper={"Hewitt & Manning": (1, 0.85), "ELMo": 0.77},
        ylabel="UUAS",
    )
    axes = chart.axes[0]
    assert legend_of(chart) == [
        "probe",
        "MLP",
        "majority: 0.33",
        "Hewitt & Manning: 0.85",
        "ELMo: 0.77",
    ]
    (band,) = axes.collections
    low_high = band.get_paths()[0].get_extents()
    assert (low_high.y0, low_high.y1) == pytest.approx((0.4, 0.8))
    assert [list(line.get_ydata()) for line in axes.lines[:2]] == [[0.5, 0.7, 0.6], [0.6, 0.8, 0.7]]
    assert chart.rows[1] == ("1", 0.7, 0.8)
    # Colour is never the only difference between two series.
    looks = {(line.get_linestyle(), line.get_marker()) for line in axes.lines[:2]}
    assert len(looks) == 2


def test_places_of_lines_are_written_with_the_digits_that_a_reader_wants():
    places = [0, 71 / 72, 0.1 + 0.2, 50 / 3, np.float64(12345.6), np.int64(7)]
    chart = figures.lines({"a": [0.0] * len(places)}, x=places)
    assert [row[0] for row in chart.rows] == ["0", "0.9861", "0.3", "16.67", "12346", "7"]


def test_lines_take_named_places():
    chart = figures.lines({"a": [1, 2]}, x=["before", "after"])
    assert [t.get_text() for t in chart.axes[0].get_xticklabels()] == ["before", "after"]


def test_distributions_share_bins_and_table_their_summary():
    chart = figures.distributions(
        {"same": [0.5, 0.6, 0.7], "random": [0.1, 0.2]}, bins=4, paper={"Ethayarajh": 0.4}
    )
    assert legend_of(chart) == ["same", "random", "Ethayarajh: 0.40"]
    assert chart.rows[0] == ("same", 3, pytest.approx(0.6), 0.6, 0.5, 0.7)


def test_heatmap_writes_cells_in_readable_colours_and_outlines():
    values = np.array([[0.0, 0.5], [1.0, np.nan]])
    chart = figures.heatmap(
        values, rows=["L0", "L1"], columns=[0, 1], marked={"the paper's": [(1, 0)]}, scale="mass"
    )
    axes = chart.axes[0]
    assert [t.get_text() for t in axes.texts] == [".00", ".50", "1.00"]
    cells = axes.collections[0]
    for text, value in zip(axes.texts, (0.0, 0.5, 1.0), strict=True):
        ground = page.luminance(cells.cmap(cells.norm(value))[:3])
        ink = page.luminance(mpl.colors.to_rgb(text.get_color()))
        dark, light = sorted((ground, ink))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    outline = next(p for p in axes.patches if isinstance(p, Rectangle))
    assert (round(outline.get_x()), round(outline.get_y())) == (0, 1)
    assert legend_of(chart) == ["the paper's"]
    assert chart.rows[1] == ("L1", 1.0, None)


def test_heatmap_diverges_evenly_from_its_centre():
    chart = figures.heatmap([[-0.1, 0.4]], rows=["a"], columns=["b", "c"], centre=0)
    norm = chart.axes[0].collections[0].norm
    assert (norm.vmin, norm.vcenter, norm.vmax) == (-0.4, 0, 0.4)


def test_large_heatmaps_stay_without_numbers():
    chart = figures.heatmap(np.eye(40), rows=range(40), columns=range(40))
    assert not chart.axes[0].texts


def test_scatter_groups_labels_lines_and_paper():
    chart = figures.scatter(
        {"nouns": [(0, 1), (2, 3)], "verbs": [(1, 1)]},
        labels={"nouns": ["cat", "dog"]},
        lines={"y = x": (1, 0)},
        paper={"reported": (1.5, 2)},
    )
    assert set(legend_of(chart)) == {"nouns", "verbs", "y = x", "reported"}
    assert {"cat", "dog"} <= set(texts(chart))
    assert chart.rows == [("nouns", "cat", 0, 1), ("nouns", "dog", 2, 3), ("verbs", "", 1, 1)]


def test_points_may_have_names_that_only_the_table_shows():
    chart = figures.scatter({"a": [(0, 1), (2, 3)]}, names={"a": ["left", "right"]})
    assert chart.columns == ("group", "label", "x", "y")
    assert [row[1] for row in chart.rows] == ["left", "right"] and "left" not in texts(chart)
    bare = figures.scatter({"a": [(0, 1), (2, 3)]})
    assert bare.columns == ("group", "x", "y") and bare.rows == [("a", 0, 1), ("a", 2, 3)]
    with pytest.raises(KeyError, match="'b'"):
        figures.scatter({"a": [(0, 1)]}, names={"b": ["x"]})


def test_a_line_to_compare_with_does_not_widen_the_view():
    chart = figures.scatter({"far away": [(10, 20), (11, 21)]}, lines={"y = x + 10": (1, 10)})
    assert chart.axes[0].get_xlim()[0] > 9 and chart.axes[0].get_ylim()[0] > 19


def test_contour_draws_levels_and_marks_places():
    x, y = np.linspace(-1, 1, 5), np.linspace(0, 2, 4)
    surface = x[None] ** 2 + y[:, None]
    chart = figures.contour(surface, x=x, y=y, points={"start": (0, 0), "end": (1, 2)},
                            xlabel="right", ylabel="up", scale="loss (nats)")  # fmt: skip
    axes = chart.axes[0]
    marks = {line.get_label(): line for line in axes.lines}
    assert marks["end"].get_xydata().tolist() == [[1, 2]]
    assert marks["start"].get_marker() != marks["end"].get_marker()
    assert chart.columns == ("up \\ right", "-1", "-0.5", "0", "0.5", "1")
    assert len(chart.rows) == 4 and chart.rows[0][1:] == pytest.approx(tuple(surface[0]))
    shown = figures.show(chart, alt="a bowl")
    assert "loss" in str([a.get_ylabel() for a in chart.axes]) and "<table" in shown.html
    flat = figures.contour(np.ones((2, 2)), x=(0, 1), y=(0, 1))
    assert "<svg" in figures.show(flat, alt="flat").html
    for wrong, message in (
        ({"x": (0, 1)}, "places"), ({"x": (0, 2, 1, 3, 4)}, "rise"),
        ({"values": np.full((4, 5), np.nan)}, "holes"),
    ):  # fmt: skip
        given = {"values": surface, "x": x, "y": y} | wrong
        with pytest.raises(ValueError, match=message):
            figures.contour(given.pop("values"), **given)


def test_long_titles_and_legends_stay_inside_the_picture():
    names = [f"what was measured in a rather special case, number {i}" for i in range(4)]
    title = "A title that says at length what was found, so that it does not fit on one line"
    chart = figures.lines({name: [0.1, 0.2] for name in names}, title=title)
    chart.canvas.draw()
    room = chart.bbox
    parts = [*chart.legends[0].get_texts(), chart.axes[0]._left_title]
    for part in parts:
        box = part.get_window_extent()
        assert room.x0 <= box.x0 and box.x1 <= room.x1, part.get_text()
    few = figures.lines({"one": [0.1, 0.2], "two": [0.2, 0.1]})
    few.canvas.draw()
    one, two = few.legends[0].get_texts()
    assert one.get_window_extent().y0 == two.get_window_extent().y0, "short names share a line"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.bars({}), "nothing to draw"),
        (lambda: figures.bars({"a": float("nan")}), "a is nan"),
        (lambda: figures.bars({"a": "0.5"}), "a is '0.5', not a number"),
        (lambda: figures.bars({"a": True}), "a is True, not a number"),
        (lambda: figures.bars({"a": Result(0.5, (0.6, 0.7))}), "interval .* of 'a' misses 0.5"),
        (lambda: figures.bars({"a": Result(0.5, None, {"b": np.inf})}), "baseline 'b' of a is inf"),
        (lambda: figures.bars({"a": 1}, number_format="%d"), "no number format"),
        (lambda: figures.grouped_bars({}), "nothing to draw"),
        (lambda: figures.grouped_bars({"g": {str(i): 1 for i in range(7)}}), "at most 6 series"),
        (lambda: figures.lines({}), "nothing to draw"),
        (lambda: figures.lines({"a": [1, 2], "b": [1]}), "'b' has 1 points for 2 x values"),
        (lambda: figures.lines({"a": [1, np.nan]}), r"a\[1\] is nan"),
        (lambda: figures.distributions({"a": []}), "'a' must be a non-empty list"),
        (lambda: figures.heatmap([1, 2], rows=[1], columns=[1, 2]), "needs a matrix"),
        (lambda: figures.heatmap([[1, 2]], rows=[1], columns=[1]), "1 row and 1 column labels"),
        (lambda: figures.heatmap([[np.inf]], rows=[1], columns=[1]), "infinite"),
        (lambda: figures.heatmap([[1]], rows=[1], columns=[1], limits=(1, 0)), "wrong way round"),
        (lambda: figures.scatter({"a": []}), "nothing to draw"),
        (lambda: figures.scatter({"a": [(0, np.nan)]}), "y in 'a' is nan"),
        (lambda: figures.scatter({"a": [(0, 1)]}, labels={"a": []}), "0 labels for 1 points"),
    ],
)
def test_bad_input_is_named(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(KeyError, match="'b' has no bar"):
        figures.bars({"a": 1}, paper={"b": 1})
    with pytest.raises(KeyError, match="'b', which is no group"):
        figures.scatter({"a": [(0, 1)]}, labels={"b": ["x"]})
    with pytest.raises(IndexError, match=r"cell \(2, 0\) outside"):
        figures.heatmap([[1.0]], rows=[1], columns=[1], marked={"m": [(2, 0)]})


def test_drawing_leaves_the_global_style_and_pyplot_alone():
    before = dict(mpl.rcParams)
    chart = figures.bars(PROBE)
    figures.show(chart, alt="bars")
    assert dict(mpl.rcParams) == before
    assert not plt.get_fignums()


# --- show -----------------------------------------------------------------------------------------


def svg_of(display) -> ET.Element:
    return ET.fromstring(re.search(r"<svg.*</svg>", display.html, re.DOTALL).group())


def test_show_is_an_image_with_escaped_alt_text_and_caption():
    shown = figures.show(
        figures.bars(PROBE), alt='Two "bars" <b>\n   & more', caption="<i>Accuracy</i> & n"
    )
    svg = svg_of(shown)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == 'Two "bars" <b> & more'
    assert "<figcaption>&lt;i&gt;Accuracy&lt;/i&gt; &amp; n</figcaption>" in shown.html
    assert shown.text == '[figure: Two "bars" <b> & more]'
    assert shown.png.startswith(b"\x89PNG")


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_show_insists_on_alt_text(alt):
    with pytest.raises(ValueError, match="alt is empty"):
        figures.show(figures.bars(PROBE), alt=alt)


def test_show_refuses_an_alt_text_that_repeats_the_caption():
    with pytest.raises(ValueError, match="repeats the caption"):
        figures.show(figures.bars(PROBE), alt="Bars  of x", caption="Bars of x")


def test_show_refuses_other_things():
    with pytest.raises(TypeError, match="not list"):
        figures.show([1, 2], alt="x")


def test_every_text_and_data_colour_follows_the_theme():
    shown = figures.show(figures.lines({"a": [1, 2], "b": [2, 1]}, baselines={"c": 1.5}), alt="x")
    fixed = re.findall(r"(?:fill|stroke): ?(#[0-9a-f]{6})", shown.html)
    assert fixed == []  # each is var(--bx-role, light colour)
    used = dict(re.findall(r"var\(--bx-(\w+),(#[0-9a-f]{6})\)", shown.html))
    assert {"ink", "soft", "s0", "s1", "faint"} <= set(used)
    assert all(COLOURS[role] == colour for role, colour in used.items())


def test_the_svg_brings_no_style_sheet_for_the_whole_page():
    shown = figures.show(figures.bars(PROBE), alt="x")
    assert "<style" not in shown.html
    assert "http://" not in shown.html.replace("http://www.w3.org/", "")


def test_two_figures_on_a_page_share_no_ids_and_every_reference_is_met():
    html = "".join(figures.show(figures.bars(PROBE), alt="x").html for _ in range(2))
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    references = re.findall(r'href="#([^"]+)"', html) + re.findall(r"url\(#([^)]+)\)", html)
    assert references and set(references) <= set(ids)


def test_the_same_figure_gives_the_same_bytes():
    def once() -> str:
        html = figures.show(figures.bars(PROBE), alt="x").html
        return re.sub(r"[0-9a-f]{10}-\d+", "ID", html)

    assert once() == once()


def test_the_numbers_are_folded_below_unless_too_many():
    shown = figures.show(figures.bars(PROBE, number_format=".0%"), alt="x")
    assert "<summary>The numbers</summary>" in shown.html and ">85% to 94%<" in shown.html
    crowd = figures.scatter({"a": [(i, i) for i in range(500)]})
    assert "<summary>" not in figures.show(crowd, alt="x").html


def test_plain_matplotlib_figures_can_be_shown():
    figure = mpl.figure.Figure()
    figure.add_subplot().plot([1, 2], color=COLOURS["s0"])
    assert "var(--bx-s0" in figures.show(figure, alt="a line").html
