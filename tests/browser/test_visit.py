"""The look at a page finds what is wrong with it; otherwise the book's tests prove nothing."""

from book_server import Server
from visit import DESKTOP, PHONE, Visitor

BAD = """<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>bad</title>
<script src="https://example.org/remote.js"></script>
<style>[data-theme=dark] body { background: #121212; color: #333 }</style></head>
<body><main><h1>Bad</h1><p style="color:#aaa">pale text</p>
<p style="color:#111; opacity:.3">see-through text</p><p>plain text</p>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><img src="/rooted.png" alt="rooted">
<svg role="img" width="9" height="9"></svg>
<div class="cell_output"><svg width="9" height="9"></svg></div>
<iframe srcdoc="x"></iframe><div id="wide" style="width:800px">wide</div>
<div style="overflow-x:auto"><div id="scrolled" style="width:900px">scrolls</div></div>
<input><script>console.warn("careful"); undefinedName();</script></main></body></html>"""


def test_a_bad_page_is_found_out(browser, tmp_path):
    (tmp_path / "bad.html").write_text(BAD, encoding="utf-8")
    with Server(tmp_path) as server:
        visitor = Visitor(browser, server)
        page, seen = visitor.open("bad.html")
        faint = page.evaluate("bertologyLook.faint()")
        unnamed = page.evaluate("bertologyLook.unnamed()")
        wide_enough = page.evaluate("bertologyLook.overflow()")
        page.set_viewport_size({"width": PHONE, "height": 900})
        overflow = page.evaluate("bertologyLook.overflow()")
        page.set_viewport_size({"width": DESKTOP, "height": 900})
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        dark = page.evaluate("bertologyLook.faint()")
        axe = visitor.axe_findings(page)
        colours = visitor.axe_findings(page, colours_only=True)
        page.context.close()
    assert seen.outside == ["https://example.org/remote.js"]
    assert any("warning: careful" in line for line in seen.console)
    assert any("undefinedName is not defined" in line for line in seen.console)
    assert any(line.startswith("404") and "rooted.png" in line for line in seen.failed)
    assert [line.rsplit(": ", 1)[1] for line in faint] == ["pale text", "see-through text"]
    assert "plain text" in " ".join(dark)
    assert [line.split(":")[0] for line in unnamed] == [
        "img without alt",
        "svg without a name",
        "svg that is no image",
        "frame without title",
    ]
    assert wide_enough == []
    assert overflow[0].startswith("the page is ") and "div#wide" in overflow
    assert "div#scrolled" not in overflow
    assert any(line.startswith("label:") for line in axe)
    assert {line.split(":")[0] for line in colours} == {"color-contrast"}
    assert any("plain text" in line for line in colours)


def test_contrast_is_measured_on_what_lies_behind_the_text(open_html):
    shown, _ = open_html(
        '<div style="background:#000"><p style="color:#fff">white on black</p>'
        '<p style="background:rgb(255 255 255 / .9);color:#fff">white on veiled black</p></div>'
    )
    (found,) = shown.evaluate("bertologyLook.faint()")
    assert "white on veiled black" in found
