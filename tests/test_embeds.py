"""bertviz frames: the right numbers, no network, nothing that can break out of the frame."""

import hashlib
import html
import json
import re
from importlib.resources import files

import numpy as np
import pytest

from bertology_utils import embeds
from bertology_utils.embeds.frame import LIBRARIES

VENDOR = files("bertology_utils.embeds").joinpath("vendor")
TOKENS = ["[CLS]", "the", "</script>", 'a"b', "it's", "&amp;", "[SEP]"]


def attention(layers: int = 3, heads: int = 4, length: int = len(TOKENS)) -> np.ndarray:
    scores = np.random.default_rng(0).normal(size=(layers, heads, length, length))
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


def document(display) -> str:
    (source,) = re.findall(r"srcdoc='([^']*)'", display.html)
    return html.unescape(source)


def data(display) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', document(display), re.DOTALL)[1])


@pytest.mark.parametrize("draw", [embeds.head_view, embeds.model_view])
def test_the_frame_carries_the_attention_to_three_decimals(draw):
    weights = attention()
    carried = data(draw(weights, TOKENS))
    assert carried["tokens"] == TOKENS
    back = np.array(carried["weights"]).reshape(carried["shape"]) / 1000
    np.testing.assert_allclose(back, weights, atol=5.01e-4)


def test_layers_and_heads_are_chosen_together_with_their_weights():
    weights = attention()
    view = data(embeds.model_view(weights, TOKENS, layers=[2, 0], heads=[3, 1]))
    assert (view["layers"], view["heads"]) == ([2, 0], [3, 1])
    back = np.array(view["weights"]).reshape(view["shape"]) / 1000
    np.testing.assert_allclose(back, weights[[2, 0]][:, [3, 1]], atol=5.01e-4)
    view = data(embeds.head_view(weights, TOKENS, layers=[1, 2], layer=2, heads=[0]))
    assert (view["layers"], view["layer"], view["lit"]) == ([1, 2], 2, [0])
    assert view["shape"] == [2, 4, 7, 7]


def test_torch_tensors_and_lists_of_layers_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    weights = attention()
    layers = [torch.tensor(layer) for layer in weights]
    assert (
        data(embeds.model_view(layers, TOKENS))["weights"]
        == data(embeds.model_view(weights, TOKENS))["weights"]
    )


@pytest.mark.parametrize("draw", [embeds.head_view, embeds.model_view])
def test_the_frame_is_sandboxed_named_and_cut_off(draw):
    shown = draw(attention(), TOKENS, title='Heads of "it" & <b>')
    assert 'sandbox="allow-scripts"' in shown.html
    assert 'title="Heads of &quot;it&quot; &amp; &lt;b&gt;"' in shown.html
    page = document(shown)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy and "unsafe-eval" not in policy
    # The policy stands before anything that it has to govern.
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert not re.findall(r'(?:src|href)="[^"]', page)


def test_the_title_says_what_is_drawn_unless_given():
    shown = embeds.head_view(attention(), TOKENS)
    assert "3 layers of 4 heads, over: [CLS] the &lt;/script&gt;" in shown.html
    assert shown.text.startswith("[head_view: Attention heads, 3 layers of 4 heads")


def test_tokens_cannot_end_the_script_they_travel_in():
    page = document(embeds.head_view(attention(), TOKENS, title="plain"))
    scripts = len(LIBRARIES) + 4  # libraries, data, ours, bertviz, start
    assert page.count("</script>") == scripts


def test_long_and_invisible_tokens_are_drawn_within_their_column():
    tokens = ["supercalifragilistic", " ", "", "ab", "c", "d", "e"]
    drawn = data(embeds.head_view(attention(), tokens))["tokens"]
    assert drawn[:4] == ["supercalifr…", "␣", "␣", "ab"]


def test_bertviz_gets_our_parameters_and_no_remote_loader_runs():
    for draw, mark in ((embeds.head_view, "renderAttention"), (embeds.model_view, "renderDetail")):
        page = document(draw(attention(), TOKENS))
        assert mark in page
        assert "const params = bertologyParams;" in page and "= PYTHON_PARAMS" not in page
    # bertviz still names its CDN, but the loader it asks is ours and fetches nothing.
    assert "const require = { config() {} };" in page


def test_sentence_pairs_carry_their_border():
    assert data(embeds.head_view(attention(), TOKENS, sentence_b_start=3))["sentence_b_start"] == 3
    for bad in (0, 7, -1):
        with pytest.raises(embeds.AttentionError, match="sentence_b_start"):
            embeds.head_view(attention(), TOKENS, sentence_b_start=bad)


def test_a_page_with_five_views_of_a_mini_model_stays_light():
    weights = attention(6, 12, 16)
    tokens = [f"t{i}" for i in range(16)]
    shown = embeds.model_view(weights, tokens)
    assert len(shown._repr_html_()) < 300_000


@pytest.mark.parametrize(
    ("weights", "tokens", "message"),
    [
        (attention()[0], TOKENS, r"shape \(4, 7, 7\)"),
        (attention(), TOKENS[:5], "7 x 7 positions does not fit 5 tokens"),
        (attention(), "sentence", "one string"),
        (attention(), [*TOKENS[:6], 3], "token 6 is 3, not text"),
        (attention() * np.nan, TOKENS, "finite numbers from 0 to 1"),
        (attention() - 0.5, TOKENS, "finite numbers from 0 to 1"),
        (attention() * 8, TOKENS, "finite numbers from 0 to 1"),
        ([["a"]], TOKENS, "not an array"),
        (np.zeros((0, 4, 7, 7)), TOKENS, "shape"),
        (np.zeros((12, 12, 64, 64)), ["t"] * 64, "589,824 attention weights are more than"),
    ],
)
@pytest.mark.parametrize("draw", [embeds.head_view, embeds.model_view])
def test_bad_input_is_named(draw, weights, tokens, message):
    with pytest.raises(embeds.AttentionError, match=message):
        draw(weights, tokens)


def test_unknown_layers_and_heads_are_named():
    for kwargs, message in (
        ({"layer": 3}, "layer 3 is not among"),
        ({"layers": [5]}, "layers 5 does not exist; there are 0 to 2"),
        ({"heads": [-1]}, "heads -1 does not exist"),
        ({"heads": []}, "name at least one"),
        ({"heads": [1, 1]}, "none twice"),
    ):
        with pytest.raises(embeds.AttentionError, match=message):
            embeds.head_view(attention(), TOKENS, **kwargs)


def test_vendored_files_are_the_pinned_ones_each_with_a_licence():
    sums = dict(
        reversed(line.split()) for line in VENDOR.joinpath("SHA256SUMS").read_text().splitlines()
    )
    scripts = {entry.name for entry in VENDOR.iterdir() if entry.name.endswith(".js")}
    assert scripts == set(sums)
    assert set(LIBRARIES) == {name for name in scripts if not name.startswith("bertviz")}
    readme = VENDOR.joinpath("README.md").read_text()
    licences = [entry.name for entry in VENDOR.joinpath("licenses").iterdir()]
    for name, expected in sums.items():
        assert hashlib.sha256(VENDOR.joinpath(name).read_bytes()).hexdigest() == expected, name
        package = re.split(r"[-.](?:head|model)_view|\.slim|\.min", name)[0]
        version = re.search(rf"`{re.escape(name)}`.*?\| ([\d.]+) \|", readme)[1]
        assert f"{package}-{version}.txt" in licences
