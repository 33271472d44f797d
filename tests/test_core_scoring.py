"""Pseudo-likelihoods, gates of heads and measurements on cases with answers known beforehand."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch
from planted import planted_encoder
from tiny import tiny_encoder

from bertology_utils.activations import run_with_cache
from bertology_utils.cloze import (
    UnequalPairError,
    compare_at_mask,
    compare_sentences,
    pll,
    surprisal,
    wilson_interval,
)
from bertology_utils.encoder import evaluating
from bertology_utils.interventions import ablate_heads, heads, mean_heads, scale_heads
from bertology_utils.ledger import (
    DOES_NOT,
    PARTLY,
    REPLICATES,
    BrokenModel,
    Measurement,
    MeasurementError,
    MissingBaselineError,
    NotTestable,
    Rule,
)
from bertology_utils.ledger.measurement import as_measurement
from bertology_utils.words import TextPair, align_all, make_batch

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

# --- pseudo-log-likelihood ----------------------------------------------------------------------

#: seven pieces: five special ones, "cat" and "sat"; "cat" speaks for "sat", all texts for "cat"
KNOWS = {"": {"cat": 1.0}, "cat": {"sat": 2.0}}
#: small weights of the planted model break ties, hence not exact
NEAR = {"abs": 2e-3}


def of_cat():
    """log p(cat) where "cat" is hidden: one piece of seven has the logit 1."""
    return 1 - math.log(math.e + 6)


def of_sat():
    """log p(sat) beside "cat": logits 1 for "cat", 2 for "sat"."""
    return 2 - math.log(math.e + math.e**2 + 5)


@pytest.fixture(scope="module")
def planted():
    return planted_encoder(["cat sat"], KNOWS)


def test_pll_of_two_words_by_hand(planted):
    (found,) = pll(planted, ["cat sat"])
    assert found.text == "cat sat" and found.pieces == ("cat", "sat")
    assert found.log_probs == pytest.approx((of_cat(), of_sat()), **NEAR)
    assert found.total == pytest.approx(of_cat() + of_sat(), **NEAR)
    assert found.per_piece == pytest.approx(found.total / 2)
    assert found.perplexity == pytest.approx(math.exp(-found.total / 2))
    assert found.words == (("cat", 0, 1), ("sat", 1, 2))
    one, two = pll(planted, ["cat", "cat sat"], max_tokens=8)
    assert one.log_probs == pytest.approx((of_cat(),), **NEAR)
    assert two.log_probs == pytest.approx(found.log_probs)
    with pytest.raises(ValueError, match="unknown scheme 'all'"):
        pll(planted, ["cat"], scheme="all")


def test_budgets_reach_the_model(planted, tiny_bert):
    pairs = [Pair("cat sat", "cat cat")]
    for measure in (
        lambda **budget: pll(planted, ["cat"], **budget),
        lambda **budget: surprisal(planted, ["cat"], **budget),
        lambda **budget: compare_at_mask(planted, ["[MASK]"], ["cat"], ["sat"], **budget),
        lambda **budget: compare_sentences(planted, pairs, **budget),
        lambda **budget: mean_heads(tiny_bert, ["cats bark"], **budget),
    ):
        measure()
        with pytest.raises(ValueError, match="max_tokens .*starts? at 1, got 0"):
            measure(max_tokens=0)


def test_pll_of_a_pair_of_texts_names_both(planted):
    (found,) = pll(planted, [TextPair("cat", "sat")])
    assert found.text == "cat sat" and found.pieces == ("cat", "sat")


def test_many_texts_come_back_in_order(planted, monkeypatch):
    texts = ["cat", "sat", "cat sat"] * 700  # more than are read at once
    sizes = []

    def align(encoder, chunk):
        sizes.append(len(chunk))
        return align_all(encoder, chunk)

    monkeypatch.setattr(sys.modules["bertology_utils.cloze.pll"], "align_all", align)
    found = pll(planted, iter(texts))
    assert sizes == [2048, 52]
    assert [score.text for score in found] == texts
    assert len({score.total for score in found}) == 3


def test_surprisal_is_in_bits(planted):
    (found,) = surprisal(planted, ["cat sat"])
    assert found.text == "cat sat" and found.words == ("cat", "sat")
    bits = (-of_cat() / math.log(2), -of_sat() / math.log(2))
    assert found.bits == pytest.approx(bits, abs=4e-3)


def test_later_pieces_of_a_word_are_hidden_too(tiny_bert):
    text = "cats barksed"  # two pieces, "barks" and "##ed"
    original = pll(tiny_bert, [text])[0]
    within = pll(tiny_bert, [text], scheme="within_word_l2r")[0]
    start, stop = original.words[1][1:]
    assert original.pieces[start:stop] == ("barks", "##ed")
    ids = tiny_bert.tokenizer(text)["input_ids"]

    def log_prob(hidden, read):
        masked = torch.tensor([ids])
        for place in hidden:
            masked[0, place] = tiny_bert.tokenizer.mask_token_id
        with torch.no_grad():
            logits = tiny_bert.model(input_ids=masked).prediction_logits
        return float(logits[0, read].log_softmax(-1)[ids[read]])

    first, second = start + 1, start + 2
    assert original.log_probs[start:stop] == pytest.approx(
        (log_prob([first], first), log_prob([second], second)), abs=1e-5
    )
    assert within.log_probs[start:stop] == pytest.approx(
        (log_prob([first, second], first), log_prob([second], second)), abs=1e-5
    )
    bits = surprisal(tiny_bert, [text])[0].bits[1]
    assert bits == pytest.approx(-sum(within.log_probs[start:stop]) / math.log(2), abs=1e-5)


class Pair:
    def __init__(self, good, bad):
        self.good, self.bad = good, bad


def test_comparisons_by_hand(planted):
    found = compare_at_mask(planted, ["[MASK]", "cat [MASK]"], ["cat", "sat"], ["sat", "cat"])
    assert found.margins == pytest.approx((1.0, 1.0), **NEAR)
    assert found.interval == wilson_interval(2, 2) and found.model == "planted"
    for frames, good, bad in (
        (["[MASK]"], ["cat"], []), (["[MASK]"], [], ["sat"]), ([], ["cat"], ["sat"]),
    ):  # fmt: skip
        with pytest.raises(UnequalPairError, match="frames, . good and . bad words"):
            compare_at_mask(planted, frames, good, bad)
    with pytest.raises(UnequalPairError, match="pair 1 offers 'cat' twice"):
        compare_at_mask(planted, ["[MASK]"] * 2, ["sat", "cat"], ["cat", "cat"])
    pairs = [Pair("cat sat", "cat cat"), Pair("sat", "cat")]
    whole = compare_sentences(planted, iter(pairs))
    scores = pll(planted, ["cat sat", "cat cat", "sat", "cat"])
    totals = {score.text: score.total for score in scores}
    assert whole.margins == pytest.approx(
        (totals["cat sat"] - totals["cat cat"], totals["sat"] - totals["cat"])
    )
    assert (whole.n, whole.model, whole.accuracy) == (2, "planted", 0.5)
    within = compare_sentences(planted, pairs, scheme="within_word_l2r", max_tokens=9)
    assert within.margins == pytest.approx(whole.margins)
    with pytest.raises(UnequalPairError, match="pair 1 is twice the same sentence: 'cat'"):
        compare_sentences(planted, [pairs[0], Pair("cat", "cat")])
    with pytest.raises(ValueError, match="unknown scheme"):
        compare_sentences(planted, pairs, scheme="all")


# --- heads --------------------------------------------------------------------------------------


def run(encoder, texts):
    with evaluating(encoder):
        return encoder.encode(make_batch(encoder, texts))


def test_silent_heads_leave_nothing_of_themselves(tiny_bert, texts):
    with ablate_heads(tiny_bert, {0: [1, 3], 2: [0], 1: []}):
        cut = run_with_cache(tiny_bert, texts, ["z"])["z"]
    free = run_with_cache(tiny_bert, texts, ["z"])["z"]
    assert cut[0, :, [1, 3]].abs().max() == 0 and cut[2, :, 0].abs().max() == 0
    torch.testing.assert_close(cut[0, :, [0, 2]], free[0, :, [0, 2]])
    assert cut[1].abs().min() >= 0 and cut[2, :, 1:].abs().max() > 0
    whole = run(tiny_bert, texts)
    torch.testing.assert_close(run(tiny_bert, texts), whole)  # nothing stays behind


def test_averaged_heads_hand_over_their_average(tiny_bert, texts):
    means = mean_heads(tiny_bert, texts[:3], max_tokens=20)
    assert means.shape == (3, 4, 8) and means.dtype == torch.float32
    total = sum(run_with_cache(tiny_bert, t, ["z"])["z"][:, 0].sum(2) for t in texts[:3])
    pieces = sum(len(tiny_bert.tokenizer(t)["input_ids"]) for t in texts[:3])
    torch.testing.assert_close(means, total / pieces, atol=1e-5, rtol=1e-5)
    with ablate_heads(tiny_bert, {1: [2]}, "mean", means=means):
        z = run_with_cache(tiny_bert, texts[:1], ["z"])["z"]
    torch.testing.assert_close(z[1, 0, 2], means[1, 2].expand_as(z[1, 0, 2]))
    with pytest.raises(ValueError, match="no texts"):
        mean_heads(tiny_bert, [])
    for mode, given in (("zero", means), ("mean", None)):
        with pytest.raises(ValueError, match="mode 'mean' needs means="):
            with ablate_heads(tiny_bert, {0: [0]}, mode, means=given):
                pass
    with pytest.raises(ValueError, match="mode is 'half', must be one of zero, mean"):
        with ablate_heads(tiny_bert, {0: [0]}, "half"):
            pass
    with pytest.raises(ValueError, match=r"means have shape \(3, 4\), expected \(3, 4, 8\)"):
        with ablate_heads(tiny_bert, {0: [0]}, "mean", means=means[..., 0]):
            pass


def test_gates_scale_what_heads_hand_over(tiny_bert, texts):
    gates = torch.tensor([[1.0, 2, 0, -1], [1, 1, 1, 1], [0.5, 1, 1, 1]])
    batch = texts[:2]
    free = run_with_cache(tiny_bert, batch, ["z"])["z"]
    with scale_heads(tiny_bert, gates):
        scaled = run_with_cache(tiny_bert, batch, ["z"])["z"]
    torch.testing.assert_close(scaled[0], free[0] * gates[0, None, :, None, None].squeeze(0))
    with ablate_heads(tiny_bert, {0: [2]}):
        silent = run(tiny_bert, batch)
    one = torch.ones(3, 4)
    one[0, 2] = 0
    with scale_heads(tiny_bert, one):
        torch.testing.assert_close(run(tiny_bert, batch), silent)
    rows = torch.stack([torch.ones(3, 4), one])
    with scale_heads(tiny_bert, rows):
        both = run(tiny_bert, batch)
    torch.testing.assert_close(both[0], run(tiny_bert, batch)[0])
    torch.testing.assert_close(both[1], silent[1])
    with pytest.raises(ValueError, match="gates for 2 rows, but a batch of 1"):
        with scale_heads(tiny_bert, rows):
            run(tiny_bert, batch[:1])
    for wrong in (torch.ones(3, 5), torch.ones(2, 4), torch.ones(2, 2, 4), torch.ones(0, 3, 4)):
        with pytest.raises(ValueError, match="gates have shape"):
            with scale_heads(tiny_bert, wrong):
                pass


def test_layers_that_differ_in_heads_have_no_shape():
    uneven = SimpleNamespace(heads_per_layer=(4, 3), n_layers=2, name="cut")
    with pytest.raises(ValueError, match="layers of 'cut' differ in heads, so gates have no shape"):
        heads._check_shape("gates", torch.ones(2, 4), uneven)


def test_gradients_of_gates_tell_heads_that_matter(texts):
    encoder = tiny_encoder("bert")
    with torch.no_grad():  # a head whose output is thrown away
        encoder.layers[1].output.weight[:, 8:16] = 0
    gates = torch.ones(3, 4, requires_grad=True)
    with scale_heads(encoder, gates):
        encoder.encode(make_batch(encoder, texts))[:, 0, :5].pow(2).sum().backward()
    assert gates.grad[1, 1] == 0 and (gates.grad != 0).sum() == 11


# --- measurements -------------------------------------------------------------------------------


def measured(**changes):
    fields = {"value": 0.5, "unit": "share", "n": 4, "model": "m", **changes}
    return Measurement(**fields)


@pytest.mark.parametrize(
    ("unit", "low", "high"),
    [("share", 0, 1), ("correlation", -1, 1), ("cosine difference", -2, 2), ("ratio", 0, math.inf)],
)
def test_values_stay_in_the_range_of_their_unit(unit, low, high):
    assert measured(value=low, unit=unit).value == low
    assert measured(value=low - 1e-7, unit=unit).value == low
    with pytest.raises(MeasurementError, match=f"value is .*, but a {unit} lies between"):
        measured(value=low - 2e-6, unit=unit)
    assert measured(value=low - 1e-6, unit=unit).value == low
    if math.isfinite(high):
        assert measured(value=high + 1e-6, unit=unit).value == high
        assert measured(value=high + 1e-7, unit=unit).value == high
        with pytest.raises(MeasurementError, match="lies between"):
            measured(value=high + 2e-6, unit=unit)
        with pytest.raises(MeasurementError, match="baseline 'b' is"):
            measured(value=0, unit=unit, baselines={"b": high + 1})


def test_an_interval_holds_its_value_but_for_rounding():
    assert measured(interval=(0.5, 0.5)).interval == (0.5, 0.5)
    assert measured(interval=[0, 1]).interval == (0.0, 1.0)
    assert measured(interval=(0.5 + 5e-7, 0.9)).interval == (0.5 + 5e-7, 0.9)
    for ends in ((0.5 + 2e-6, 0.9), (0.1, 0.5 - 2e-6), (0.6, 0.4)):
        with pytest.raises(MeasurementError, match="does not hold the value 0.5"):
            measured(interval=ends)
    nothing = {"value": 0, "unit": "nats"}
    for ends in ((1e-6, 1), (-1, -1e-6)):
        assert measured(interval=ends, **nothing).interval == ends
    large = measured(value=1e6, unit="count", interval=(1e6 + 0.5, 2e6))
    assert large.interval == (1e6 + 0.5, 2e6), "rounding grows with the number"
    with pytest.raises(MeasurementError, match="interval's low end is nan"):
        measured(interval=(math.nan, 1))
    with pytest.raises(MeasurementError, match="interval's high end is inf"):
        measured(interval=(0, math.inf))
    for wrong in ((0.1, 0.5, 0.9), 3, (0.1,)):
        with pytest.raises(MeasurementError, match=r"not \(low, high\)"):
            measured(interval=wrong)


def test_numbers_are_normalised_and_others_refused():
    found = measured(n=4.0, seed=2.0, baselines={"b": True + 0.0}, details={"pairs": 12})
    assert (found.n, type(found.n), found.seed, type(found.seed)) == (4, int, 2, int)
    assert found.baselines == {"b": 1.0} and found.details == {"pairs": 12.0}
    assert type(measured(baselines={"b": 1}).baselines["b"]) is float
    assert type(found.details["pairs"]) is type(measured(value=1).value) is float
    counted = {"pairs": 12}
    kept = measured(details=counted)
    counted["pairs"] = 0
    assert kept.details == {"pairs": 12}
    # Details have units of their own.
    assert measured(details={"far": -1e9}).details == {"far": -1e9}
    assert (measured().seed, measured().interval, measured(n=1).n) == (None, None, 1)
    for changes, message in (
        ({"n": 0}, "n is 0; a measurement needs at least one item"),
        ({"n": True}, "n is True, not a number"),
        ({"seed": 1.5}, "seed is 1.5, not a whole number"),
        ({"value": "x" * 100}, r"value is 'x{76}\.\.\., not a number"),
        ({"value": "x" * 78}, f"value is '{'x' * 78}', not a number"),
        ({"value": "x" * 79}, r"value is 'x{76}\.\.\., not a number"),
        ({"value": 10**400}, "value is a whole number of 1329 bits, not a number"),
        ({"unit": 3}, "unknown unit a whole number of 2 bits"),
        ({"unit": "metres"}, "unknown unit 'metres'; known: share, share difference"),
        ({"model": ""}, "the model's name is ''"),
        ({"model": 7}, "the model's name is"),
        ({"model": "\ud800"}, "the model's name holds half of a surrogate pair"),
        ({"baselines": {"\ud800": 1}}, "the name of a baseline holds half"),
        ({"baselines": [1]}, r"baselines are \[1\], not numbers by name"),
        ({"details": {"d": "x"}}, "detail 'd' is 'x', not a number"),
    ):
        with pytest.raises(MeasurementError, match=message):
            measured(**changes)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"kind": "above_baseline", "baselines": ["a_b", "c"]}, "above a b and c"),
        (
            {"kind": "above_baseline", "baselines": ["c"], "margin": 0.05},
            "above c by more than 0.05",
        ),
        (
            {"kind": "below_baseline", "baselines": ["a_b", "c"], "margin": 2},
            "below a b and c by more than 2",
        ),
        ({"kind": "near_baseline", "baselines": ["a_b"], "tolerance": 0.1}, "within 0.1 of a b"),
        ({"kind": "direction", "expected": "positive"}, "positive effect"),
        ({"kind": "equal", "target": 0.5, "tolerance": 0.01}, "0.5 to within 0.01"),
        ({"kind": "above", "threshold": 0.25}, "above 0.25"),
        ({"kind": "below", "threshold": 0.25}, "below 0.25"),
        ({"kind": "interval", "low": 0.1, "high": 0.2}, "between 0.1 and 0.2"),
        (
            {"kind": "above", "threshold": 0, "controls": ["a_b", "c"]},
            "above 0, and beyond a b and c",
        ),
    ],
)
def test_rules_in_words(rule, words):
    assert Rule.parse(rule).in_words() == words


def test_rules_name_all_that_stands_in_the_way():
    absent = {"kind": "below", "threshold": 0.3, "present": ["in_a", "b"]}
    rule = Rule.parse(absent)
    assert rule.in_words() == "below 0.3, but not for in a and b"
    blind = rule.judge(measured(value=0.1, baselines={"in_a": 0.2, "b": 0.25}))
    assert blind.because == "0.1 is below 0.3, but in a (0.2), b (0.25), known to differ, is too"
    closed = Rule.parse({"kind": "interval", "low": 0.4, "high": 0.6, "controls": ["c_d", "e"]})
    assert closed.in_words() == "between 0.4 and 0.6, unlike c d and e"
    both = {"c_d": 0.45, "e": 0.5}
    found = closed.judge(measured(interval=(0.45, 0.55), baselines=both))
    assert (
        found.because == "0.5 [0.45, 0.55] is between 0.4 and 0.6, but c d (0.45), e (0.5) is too"
    )
    above = Rule.parse({"kind": "above", "threshold": 0.4, "controls": ["c"]})
    found = above.judge(measured(interval=(0.45, 0.55), baselines={"c": 0.5}))
    assert (
        found.because == "0.5 [0.45, 0.55] is above 0.4, but c (0.5) is too and not clearly behind"
    )


def test_verdicts_say_what_led_to_them():
    rule = Rule.parse({"kind": "above", "threshold": 0.4})
    for changes, word, because in (
        ({"value": 0.3}, DOES_NOT, "0.3 is not above 0.4"),
        ({}, PARTLY, "0.5 is above 0.4, but its uncertainty was not estimated"),
        ({"interval": (0.3, 0.6)}, PARTLY, "0.5 is above 0.4, its interval [0.3, 0.6] is not"),
        ({"interval": (0.45, 0.6)}, REPLICATES, "0.5 [0.45, 0.6] is above 0.4"),
    ):
        found = rule.judge(measured(**changes))
        assert (found.word, found.because) == (word, because)


def test_the_edge_of_what_a_rule_admits():
    few = Rule.parse({"kind": "above", "threshold": 0.25, "min_n": 4})
    assert few.judge(measured(interval=(0.4, 0.6))).word == REPLICATES
    assert few.judge(measured(n=3)).because == "only 3 items of at least 4"
    for kind, region in (
        ("below_baseline", (-math.inf, 0.5)), ("above_baseline", (1.25, math.inf)),
    ):  # fmt: skip
        apart = Rule.parse({"kind": kind, "baselines": ["a", "b"], "margin": 0.25})
        assert apart.region({"a": 0.75, "b": 1.0}) == region
    point = Rule.parse({"kind": "interval", "low": 0.5, "high": 0.5})
    assert point.judge(measured(interval=(0.5, 0.5))).word == REPLICATES
    beside = Rule.parse({"kind": "near_baseline", "baselines": ["b"], "tolerance": 0})
    with pytest.raises(MissingBaselineError, match=r"baseline 'b' was not measured \(have: none\)"):
        beside.judge(measured())
    unlike = Rule.parse({"kind": "above", "threshold": 0, "controls": ["c"]})
    with pytest.raises(MissingBaselineError, match=r"control 'c' was not measured \(have: none\)"):
        unlike.judge(measured())
    with pytest.raises(MissingBaselineError, match=r"baseline 'b' was not .* \(have: a, c\)"):
        beside.judge(measured(baselines={"c": 1, "a": 0}))
    with pytest.raises(MissingBaselineError, match=r"\(have: a, b\)"):
        unlike.judge(measured(baselines={"b": 1, "a": 0}))


class Result:
    value, n, model, baselines, seed, interval = 0.25, 8, "m", {"b": 0.5}, 1, (0.1, 0.4)


def test_results_of_methods_become_measurements():
    found = Measurement.of(Result(), unit="share", n=9)
    assert found == Measurement(
        value=0.25, unit="share", n=9, model="m", baselines={"b": 0.5}, seed=1, interval=(0.1, 0.4)
    )
    with pytest.raises(MeasurementError, match="Result has no 'unit'"):
        Measurement.of(Result())
    assert as_measurement(Result(), "share").unit == "share"
    assert as_measurement(found, "nats") is found
    own = Result()
    own.unit = "correlation"
    assert as_measurement(own, "share").unit == "correlation"
    for kind in (NotTestable, BrokenModel):
        assert kind(model="m", reason="r").seed is None
