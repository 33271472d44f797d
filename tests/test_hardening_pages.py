"""Text that reaches a page stays text: in elements, attributes, scripts, drawings and frames."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hostile import NASTY, fuzz, texts, tried
from hypothesis import given
from hypothesis import strategies as st

from bertology_utils import embeds, figures, page, widgets
from bertology_utils.embeds import AttentionError
from bertology_utils.embeds.frame import POLICY
from bertology_utils.ledger import Measurement, NotTestable, load_claims, record, table

#: each tries to leave the place it is written in; none may become an element or an attribute
ESCAPES = (
    "<xss>", '"><xss>', "'><xss>", "' onxss='1", '" onxss="1', " onxss=1 ", "</script><xss>",
    "<!--<script>", "</style><xss>", "</template><xss>", "</title><xss>", "</textarea><xss>",
    "--><xss>", "]]><xss>", "<svg/onload=xss>", "\u2028</script><xss>", "&lt;xss&gt;",
    "&quot; onxss=1",
    "<xss\x00>", "\\u003cxss>", "${xss}", "`<xss>`", "</p></div></iframe><xss>",
)  # fmt: skip
RAW = {"script", "style"}


class Seen(HTMLParser):
    """Every element and attribute of a document, those of frames within included."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.frames = set(), set(), [], []
        self.open, self.maths = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        for name, value in attrs:
            if name == "srcdoc":
                inner = Seen(value)
                self.frames.append((dict(attrs), value))
                self.tags |= inner.tags
                self.attributes |= inner.attributes
            assert not (value or "").strip().lower().startswith("javascript:")
        if tag not in {"br", "meta", "input", "link", "img", "path", "rect", "use"}:
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not self.open or self.open[-1][0] not in RAW:
            self.text.append(data)
            if not any("mathjax_ignore" in name for _, name in self.open):
                self.maths.append(data)


def check(html: str) -> Seen:
    """Nothing of what was slipped in is an element, an attribute or mathematics."""
    html.encode()
    seen = Seen(html)
    assert not [tag for tag in seen.tags if "xss" in tag]
    assert not [name for name in seen.attributes if "xss" in name or name.startswith("on")]
    assert not re.search(r"[$\\]", "".join(seen.maths))
    return seen


def shown(thing) -> str:
    """The HTML that a notebook writes into a page."""
    return (
        thing._repr_html_()
        if hasattr(thing, "_repr_html_")
        else thing._repr_mimebundle_()["text/html"]
    )


def attention(tokens):
    n = len(tokens)
    return np.full((1, 1, n, n), 1 / n)


MAKERS = {
    "table": lambda t: page.table([[t, 1.0], [t, t]], [t, "x"], caption=t),
    "text": lambda t: page.stack(t, t),
    "heat": lambda t: page.heat_table([[0.5]], rows=[t], columns=[t], corner=t, caption=t),
    "heads": lambda t: embeds.head_view(attention([t, "b"]), [t, "b"], title=t),
    "model": lambda t: embeds.model_view(attention([t, "b"]), [t, "b"]),
    "explorer": lambda t: widgets.explorer({(t,): t, ("b",): page.stack(t)}, {"a": [t, "b"]},
                                           title=t, note=t),
    "slider": lambda t: widgets.explorer({(n,): t for n in (1, 2, 3)},
                                         {"a": {t: 1, "2": 2, "3": 3}}, title=t),
}  # fmt: skip


MATHS = ("\\(\\href{javascript:xss}{x}\\)", "$xss$", "a$b$c", "$\\frac$",
         "$$\\require{html}\\style{xss}{x}$$")  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_text_stays_text(maker):
    for text in (*ESCAPES, *MATHS):
        check(shown(MAKERS[maker](text)))


@fuzz
@given(st.sampled_from(sorted(MAKERS)), texts.filter(lambda t: len(t) < 500))
def test_any_text_makes_a_page_that_can_be_written(maker, text):
    made, _ = tried(lambda: shown(MAKERS[maker](text)), ValueError)
    if made is not None:
        check(made)


WRITABLE = [t for t in NASTY if 0 < len(t) < 40 and t == t.encode("utf-8", "replace").decode()]


def test_a_label_that_cannot_be_drawn_is_named():
    chart = figures.bars({"half \ud800": 0.5, "b": 0.1})
    with pytest.raises(ValueError, match="half .ud800"):
        figures.show(chart, alt="x")


@pytest.mark.parametrize("labels", [ESCAPES, MATHS, WRITABLE])
def test_text_stays_text_in_drawings(labels):
    first = labels[0]
    for chart in (
        figures.heatmap([[0.5] * len(labels)], rows=[first], columns=labels, title=first),
        figures.bars(dict.fromkeys(labels, 0.5), title=labels[1]),
    ):
        check(shown(figures.show(chart, alt="x" + first, caption=labels[-1])))


def test_frames_are_shut_in():
    html = shown(embeds.head_view(attention(["a", "b"]), ["a", "b"]))
    ((attributes, document),) = check(html).frames
    assert attributes["sandbox"] == "allow-scripts"  # and so no origin, forms, pop-ups, top window
    assert "src" not in attributes and "allow" not in attributes
    assert document.index(POLICY) < document.index("<script")
    assert "default-src 'none'" in POLICY and "unsafe-eval" not in POLICY
    assert not re.search(r"<(script|img|link|iframe)[^>]* (src|href)=|@import", document)


@pytest.mark.parametrize("text", ESCAPES)
def test_tokens_reach_the_frame_as_data(text):
    html = shown(embeds.head_view(attention([text[:12], "b"]), [text[:12], "b"]))
    ((_, document),) = check(html).frames
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', document, re.S)[1]
    assert json.loads(data)["tokens"][0].strip() in (text[:12].strip(), "") or "…" in data
    assert "<" not in data


@fuzz
@given(st.lists(texts | st.none() | st.integers(), max_size=4), st.floats(), st.integers(0, 3))
def test_attention_of_anything(tokens, weight, shape):
    n = max(1, len(tokens) + shape - 1)
    weights = np.full((1, 1, n, n), weight)
    tried(lambda: embeds.head_view(weights, tokens), AttentionError)


@pytest.mark.parametrize("text", ESCAPES)
def test_names_of_models_and_reasons_stay_text_on_the_scoreboard(tmp_path, text):
    claim = load_claims()["SYN-13"]
    kept = [
        record("SYN-13", NotTestable(model=text, reason=text), root=tmp_path),
        record("SYN-13", Measurement(
            value=0.5, unit=claim.measure.unit, n=50, model=text + "2",
            baselines=dict.fromkeys(claim.measure.baselines, 0.1) | {text: 0.2},
        ), root=tmp_path),
    ]  # fmt: skip
    for entry in kept:
        Seen(entry._repr_html_())
        for html in (entry._repr_html_(), table(claim.chapter, entry.model, tmp_path).to_html()):
            seen = Seen(html)
            assert not [t for t in seen.tags if "xss" in t]
            assert not [a for a in seen.attributes if "xss" in a]
