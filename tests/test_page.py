"""The shared ground of everything visible: colours, escaping, tables, displays."""

import re

import numpy as np
import pytest

from bertology_utils import page

HEX = re.compile(r"#[0-9a-f]{6}")
# How a page looks to readers without one kind of cone (Machado et al. 2009, severity 1),
# as matrices on linear RGB.
SEEN_BY = {
    "everybody": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def contrast(one: str, other: str) -> float:
    dark, light = sorted(page.luminance(rgb(colour)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def oklab(linear: np.ndarray) -> np.ndarray:
    lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return lab @ np.cbrt(lms @ linear)


def smallest_distance(colours: list[str], matrix) -> float:
    def seen(colour: str) -> np.ndarray:
        c = rgb(colour)
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return oklab(np.clip(np.asarray(matrix) @ linear, 0, 1))

    spots = [seen(colour) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for i, a in enumerate(spots) for b in spots[i + 1 :])


def test_luminance_of_known_colours():
    assert page.luminance((0, 0, 0)) == 0
    assert page.luminance((1, 1, 1)) == pytest.approx(1)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.01)  # WCAG's example grey


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_reaches_4_5_and_data_3_to_1(theme):
    colours = page.THEMES[theme]
    for ground in ("paper", "card"):
        for role in ("ink", "soft", "accent", "error"):
            assert contrast(colours[role], colours[ground]) >= 4.5, (role, ground)
    for role in (*page.SERIES, "line"):
        assert contrast(colours[role], colours["paper"]) >= 3.0, role
    assert contrast(colours["ink"], colours["heat"]) >= 4.5


@pytest.mark.parametrize("kind", SEEN_BY)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_series_can_be_told_apart_by_colour_blind_readers(theme, kind):
    okabe_ito = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442"]
    reference = min(smallest_distance(okabe_ito, matrix) for matrix in SEEN_BY.values())
    ours = [page.THEMES[theme][role] for role in page.SERIES]
    assert smallest_distance(ours, SEEN_BY[kind]) >= reference


def test_both_themes_have_the_same_roles_and_no_colour_twice():
    light, dark = page.THEMES["light"], page.THEMES["dark"]
    assert set(light) == set(dark)
    for theme in (light, dark):
        assert all(HEX.fullmatch(colour) for colour in theme.values())
        assert len(set(theme.values())) == len(theme)


def test_the_style_defines_every_variable_it_uses():
    style = page.page_style()
    used = set(re.findall(r"var\((--bx-[a-z0-9]+)", style))
    defined = set(re.findall(r"(--bx-[a-z0-9]+):", style))
    assert used and used <= defined
    assert "/*" not in style and "\n" not in style


def test_ids_differ_for_equal_content_and_repeat_in_a_new_run():
    first, second = page.unique_id("x", "same text"), page.unique_id("x", "same text")
    assert first != second
    assert first.rsplit("-", 1)[0] == second.rsplit("-", 1)[0]


def test_table_escapes_and_formats():
    shown = page.table([("<b>", 0.51234, None), ("x", 3, "&")], ["a", "b", "<c>"], caption="<i>")
    assert "<b>" not in shown.html and "&lt;b&gt;" in shown.html
    assert "<i>" not in shown.html and "&lt;c&gt;" in shown.html and "&amp;" in shown.html
    assert ">0.512<" in shown.html and ">3<" in shown.html and "<td></td>" in shown.html
    assert shown.text.splitlines()[1] == "<b>\t0.512\t"


def test_table_formats_the_floats_of_numpy_and_leaves_whole_numbers():
    import numpy as np

    shown = page.table([("a", np.float32(0.9861111), np.int64(3), True)], ["n", "x", "k", "b"],
                       number_format=".2f")  # fmt: skip
    assert ">0.99<" in shown.html and ">3<" in shown.html and ">True<" in shown.html


def test_table_names_the_row_that_does_not_fit():
    with pytest.raises(ValueError, match="row 1 of the table has 1 cells for 2 columns"):
        page.table([(1, 2), (3,)], ["a", "b"])


def test_bar_table_scales_to_the_largest_or_to_full():
    values = {"dog": 0.2, "<cat>": 0.1}
    assert re.findall(r"width:(\d+)%", page.bar_table(values, ("w", "p")).html) == ["100", "50"]
    assert re.findall(r"width:(\d+)%", page.bar_table(values, ("w", "p"), full=1).html) == [
        "20",
        "10",
    ]
    assert "&lt;cat&gt;" in page.bar_table(values, ("w", "p")).html


@pytest.mark.parametrize("bad", [{}, {"a": -1.0}, {"a": float("nan")}])
def test_bar_table_refuses_what_has_no_bar(bad):
    with pytest.raises(ValueError):
        page.bar_table(bad, ("w", "p"))


def test_heat_table_shades_and_checks():
    shown = page.heat_table([[0, 1], [0.25, 2]], rows=["a", "b"], columns=["<x>", "y"])
    assert re.findall(r"--v:(\d+)", shown.html) == ["0", "100", "25", "100"]
    assert "&lt;x&gt;" in shown.html
    with pytest.raises(ValueError, match="2 row and 1 column"):
        page.heat_table([[0, 1], [0, 1]], rows=["a", "b"], columns=["x"])
    with pytest.raises(ValueError, match="finite"):
        page.heat_table([[float("nan")]], rows=["a"], columns=["x"])


def test_display_offers_html_text_and_png():
    bundle = page.Display("<p>x</p>", "x", png=b"\x89PNG")._repr_mimebundle_()
    assert re.search(r'<div class="bx [^"]*"><p>x</p></div>$', bundle["text/html"])
    assert bundle["text/plain"] == "x"
    assert bundle["image/png"] == "iVBORw=="
    assert "image/png" not in page.Display("", "")._repr_mimebundle_()


def test_inner_html_escapes_text_and_asks_objects():
    class Own:
        def _repr_html_(self):
            return "<em>own</em>"

    assert page.inner_html("<script>") == '<p class="bx-text">&lt;script&gt;</p>'
    assert page.inner_html(Own()) == "<em>own</em>"
    with pytest.raises(TypeError, match="int cannot be shown"):
        page.inner_html(3)


def test_stack_keeps_the_order():
    both = page.stack("one", page.Display("<i>two</i>", "two"))
    assert both.html.index("one") < both.html.index("<i>two</i>")
    assert both.text == "one\ntwo"
    with pytest.raises(ValueError):
        page.stack()


def places(html: str) -> list[float]:
    return [float(left) for left in re.findall(r'<b style="left:([\d.]+)%"', html)]


def test_dots_lie_on_one_scale_with_zero_and_intervals():
    shown = page.dot_table(
        {"<ours>": 0.25, "low": -0.5, "high": 0.5}, ("", "gain"), intervals={"<ours>": (0.0, 0.5)}
    )
    ours, low, high = places(shown.html)
    assert low == 3 and high == 97 and ours == pytest.approx(73.5)
    assert "&lt;ours&gt;" in shown.html and "0.25 [0, 0.5]" in shown.html
    assert 'class="bx-zero" style="left:50.0%"' in shown.html
    assert 'class="bx-reach" style="left:50.0%;width:47.0%"' in shown.html
    assert '<th scope="col"></th>' not in shown.html
    assert places(page.dot_table({"one": 3.0}, ("what", "number")).html) == [50.0]
    for values, intervals, fault in (
        ({}, {}, "nothing to show"),
        ({"a": float("inf")}, {}, "finite"),
        ({"a": 1.0}, {"b": (0.0, 1.0)}, "'b'"),
    ):
        with pytest.raises(ValueError, match=fault):
            page.dot_table(values, ("what", "number"), intervals=intervals)
