"""The playground's place on the page: controls, and an example that needs no model.

Without scripts a reader sees the example as tables; with them the page draws the same example
anew, and after loading the model whatever the reader types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..encoder import Encoder
from ..page import Display, bar_table, heat_table, inner_html, stack
from ..page.panel_texts import ENGLISH, in_language, say
from .exporting import Exported, SmallModel

#: longest text of the page, in pieces
MOST_PIECES = 128
#: answers shown in each list
ANSWERS = 8
_UNIT = 1000

Best = list[tuple[int, float]]


@dataclass(frozen=True)
class Example:
    """A text and everything the page shows of it.

    Attributes:
        text: with one mask.
        tokens: its T pieces.
        chosen: the token looked at.
        attentions: [L, H, T, T].
        fills: for each mask its place and the best pieces with their probabilities.
        near: for each token the nearest rows of the table (cosine), and what the head reads from
            it before and after every layer (probability).
    """

    text: str
    tokens: tuple[str, ...]
    chosen: int
    attentions: np.ndarray
    fills: tuple[tuple[int, Best], ...]
    near: tuple[tuple[Best, tuple[Best, ...]], ...]


def example(encoder: Encoder, small: SmallModel, text: str, chosen: str) -> Example:
    """Run the small model on ``text`` the way the page does.

    Raises:
        ValueError: ``chosen`` is no piece of the text.
    """
    tokenizer = encoder.tokenizer
    ids = tokenizer(text)["input_ids"]
    tokens = tuple(tokenizer.convert_ids_to_tokens(ids))
    if chosen not in tokens:
        raise ValueError(f"{chosen!r} is no piece of {text!r}; pieces: {' '.join(tokens)}")
    layers = range(encoder.n_layers + 1)
    places = [(layer, place) for place in range(len(ids)) for layer in layers]
    found = small.run(ids, places, ids)
    read = _probable(found.logits)
    near = []
    for place in range(len(ids)):
        rows = read[place * len(layers) : (place + 1) * len(layers)]
        near.append((_best(found.cosines[place]), tuple(rows)))
    masks = [i for i, piece in enumerate(ids) if piece == tokenizer.mask_token_id]
    return Example(
        text=text,
        tokens=tokens,
        chosen=tokens.index(chosen),
        attentions=found.attentions,
        fills=tuple((place, near[place][1][-1]) for place in masks),
        near=tuple(near),
    )


def panel(
    encoder: Encoder,
    exported: Exported,
    shown: Example,
    texts: Sequence[str] = (),
    *,
    layer: int = 0,
    head: int = 0,
) -> Display:
    """The playground with an example.

    Args:
        encoder: the model, for the spelling of its pieces.
        exported: what was written for the browser.
        shown: the example.
        texts: further sentences to choose from.
        layer, head: whose attention is drawn first, counted from 0.

    Raises:
        LayerIndexError, HeadIndexError: no such layer or head.
    """
    encoder.check_heads({encoder.check_layer(layer): (head,)})
    data = {
        "model": {
            "name": exported.model,
            "bytes": exported.n_bytes,
            "digest": exported.sha256,
            "layers": exported.n_layers,
            "heads": exported.n_heads,
        },
        "most": MOST_PIECES,
        "shown": ANSWERS,
        "text": shown.text,
        "chosen": shown.chosen,
        "layer": layer,
        "head": head,
        "attentions": np.rint(shown.attentions * _UNIT).astype(int).ravel().tolist(),
        "fills": [{"place": place, "best": _short(best)} for place, best in shown.fills],
        "near": {
            place: {"alike": _short(alike), "read": [_short(best) for best in read]}
            for place, (alike, read) in enumerate(shown.near)
        },
    }
    # "<" cannot end the script element when it is spelt as an escape.
    script = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    html = _SKELETON.format(
        script=script,
        text=escape(shown.text),
        examples="".join(
            f'<option value="{escape(one)}" lang="en">{escape(one)}</option>'
            for one in (shown.text, *texts)
        ),
        tokens=" ".join(
            f'<span class="pg-token" lang="en">{escape(one)}</span>' for one in shown.tokens
        ),
        layers=_options(exported.n_layers, layer),
        heads=_options(exported.n_heads, head),
        n_layers=exported.n_layers,
        **_tables(encoder, shown, layer, head),
    )
    return Display(in_language(html, ENGLISH), f"the playground, showing {shown.text!r}")


def _tables(encoder: Encoder, shown: Example, layer: int, head: int) -> Mapping[str, str]:
    """The example for readers without scripts."""
    spelt = encoder.tokenizer.convert_ids_to_tokens

    def bars(best: Best, columns: tuple[str, str], caption: str, form: str = ".1%") -> Display:
        values = {spelt(piece): max(0.0, value) for piece, value in best}
        return bar_table(values, columns, caption=caption, number_format=form)

    alike, read = shown.near[shown.chosen]
    word, likely = shown.tokens[shown.chosen], (say("piece"), say("probability"))
    return {
        "fills": inner_html(
            stack(*(bars(best, likely, say("for-mask")) for _, best in shown.fills))
        ),
        "attention": inner_html(
            heat_table(
                shown.attentions[layer, head].tolist(),
                rows=shown.tokens,
                columns=shown.tokens,
                corner=say("from-to"),
                caption=say("head-attention", layer=layer + 1, head=head + 1),
            )
        ),
        "near": inner_html(
            stack(
                bars(
                    alike,
                    (say("piece"), say("cosine")),
                    say("nearest-to", token=word),
                    ".2f",
                ),
                bars(read[-1], likely, say("read-from", token=word, layer=len(read) - 1)),
            )
        ),
    }


def _options(n: int, chosen: int) -> str:
    return "".join(
        f'<option value="{i}"{" selected" if i == chosen else ""}>{i + 1}</option>'
        for i in range(n)
    )


def _best(row: np.ndarray) -> Best:
    order = np.argsort(-row, kind="stable")[:ANSWERS]
    return [(int(i), float(row[i])) for i in order]


def _probable(logits: np.ndarray) -> list[Best]:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return [_best(row) for row in shifted / shifted.sum(axis=1, keepdims=True)]


def _short(best: Best) -> list[list[float]]:
    return [[piece, round(value, 4)] for piece, value in best]


# What only scripts can work is hidden until they are there: in a notebook they are not. Texts are
# filled in by their names, see panel_texts.json.
_SKELETON = """
<div class="pg" id="pg-root" lang="">
<script type="application/json">{script}</script>
<noscript><p class="pg-note" data-pg-say="no-scripts"></p></noscript>
<div class="pg-row pg-loading pg-scripted" hidden>
<button type="button" class="pg-main" data-pg="load" data-pg-say="load"></button>
<progress data-pg="progress" data-pg-label="loading-bar" aria-label="" hidden></progress>
<p class="pg-note" role="status" data-pg="status"></p>
</div>
<div class="pg-part">
<label for="pg-text" data-pg-say="your-sentence"></label>
<textarea id="pg-text" data-pg="text" rows="2" maxlength="4000" spellcheck="false" lang="en"
 autocomplete="off" aria-describedby="pg-problem">{text}</textarea>
<p class="pg-problem" id="pg-problem" role="alert" data-pg="problem" hidden></p>
<div class="pg-row pg-scripted" hidden>
<button type="button" data-pg="mask" data-pg-say="insert-mask"></button>
<button type="button" data-pg="hide" data-pg-say="hide-token"></button>
<label for="pg-examples" class="pg-hidden" data-pg-say="take-example"></label>
<select id="pg-examples" data-pg="examples">
<option value="" data-pg-say="take-example-option"></option>{examples}</select>
</div>
</div>
<div class="pg-part">
<h3 data-pg-say="tokens"></h3>
<div class="pg-tokens" role="radiogroup" data-pg-label="choose-token" aria-label=""
 data-pg="tokens">{tokens}</div>
<p class="pg-note" data-pg="counted"></p>
</div>
<div class="pg-part">
<h3 data-pg-say="fill"></h3>
<div class="pg-lists" data-pg="fills" lang="en">{fills}</div>
</div>
<div class="pg-part">
<h3 data-pg-say="attention"></h3>
<div class="pg-row pg-scripted" hidden>
<label for="pg-layer" data-pg-say="layer"></label>
<select id="pg-layer" data-pg="layer">{layers}</select>
<label for="pg-head" data-pg-say="head"></label>
<select id="pg-head" data-pg="head">{heads}</select>
</div>
<p class="pg-note" aria-live="polite" data-pg="said"></p>
<div class="pg-attention" data-pg="attention" lang="en">{attention}</div>
<details class="pg-scripted" data-pg="numbers" hidden><summary data-pg-say="as-numbers"></summary>
<div class="pg-scroll" tabindex="0" role="region" data-pg-label="in-numbers" aria-label=""
 data-pg="matrix"></div>
</details>
</div>
<div class="pg-part">
<h3 data-pg-say="nearest"></h3>
<div class="pg-row pg-scripted" hidden>
<label for="pg-depth" data-pg-say="read-after"></label>
<input type="range" id="pg-depth" data-pg="depth" min="0" max="{n_layers}" step="1">
<output for="pg-depth" data-pg="depth-shown"></output>
</div>
<div class="pg-lists" data-pg="near" lang="en">{near}</div>
</div>
</div>
"""
