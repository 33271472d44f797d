"""Fast paths: the same numbers, with less work than without them, in memory that does not grow.

Work is counted in multiplications of matrices, since times depend on what else a machine does;
``benchmarks/`` has the measured times.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.arithmetic import Arithmetic
from bertology_utils.activations import stream
from bertology_utils.cloze import pll, read_queries
from bertology_utils.encoder import evaluating, in_bfloat16
from bertology_utils.interventions import ablate_heads, sweep_heads
from bertology_utils.words import make_batch, token_batches

SENTENCES = [
    "The keys to the cabinet in the hall are on the table.",
    "Dogs bark.",
    "A well-known doctor said that the old cats near the dogs sleep all day.",
    "Nobody in the house wanted to carry the heavy boxes down the stairs.",
    "The river froze, and the children skated on it until it was dark outside.",
    "She gave him a book.",
]


def work(run) -> int:
    """Floating-point operations of a call."""
    with Arithmetic() as counted:
        run()
    assert counted.operations > 0, "nothing was counted"
    return counted.operations


def plain_pll(encoder, texts):
    """All copies of a text through the whole model, as its definition reads."""
    totals = []
    for text in texts:
        ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"][0]
        inner = torch.arange(1, len(ids) - 1)
        copies = ids.repeat(len(inner), 1)
        copies[range(len(inner)), inner] = encoder.tokenizer.mask_token_id
        with torch.no_grad():
            logits = encoder.model(input_ids=copies).prediction_logits
        scores = logits[range(len(inner)), inner].log_softmax(-1)
        totals.append(scores[range(len(inner)), ids[inner]].sum().item())
    return totals


def test_pll_is_plain_pll_with_half_the_work(embedded):
    expected = plain_pll(embedded, SENTENCES)
    assert np.allclose([s.total for s in pll(embedded, SENTENCES)], expected, atol=1e-3)
    spent = work(lambda: pll(embedded, SENTENCES))
    assert work(lambda: plain_pll(embedded, SENTENCES)) > 2 * spent


def test_a_sweep_is_less_work_than_its_runs(embedded):
    batch = make_batch(embedded, SENTENCES[:3])

    def measure(hidden, _batch):
        return hidden[:, 0].sum(-1)

    def naive():
        for layer in range(embedded.n_layers):
            for head in range(embedded.n_heads):
                with evaluating(embedded), ablate_heads(embedded, {layer: [head]}):
                    measure(embedded.encode(batch), batch)

    # On average, half of the layers lie above the head that is taken away.
    assert work(naive) > 1.6 * work(lambda: sweep_heads(embedded, SENTENCES[:3], measure))


def test_reading_nothing_is_no_more_work_than_the_passes(embedded):
    texts = SENTENCES * 4

    def bare():
        for batch in token_batches(embedded, texts, max_tokens=256):
            with evaluating(embedded):
                embedded.encode(batch)

    def empty():
        for _ in stream(embedded, texts, [], max_tokens=256):
            pass

    assert work(empty) <= work(bare)


def test_fast_and_own_forward_give_the_same_scores(embedded):
    fast = [score.log_probs for score in pll(embedded, SENTENCES)]
    passes = []
    handle = embedded.base.register_forward_hook(lambda *_: passes.append(1))
    try:
        own = [score.log_probs for score in pll(embedded, SENTENCES)]
    finally:
        handle.remove()
    assert passes, "a hooked model must go through its own forward pass"
    assert all(np.allclose(a, b, atol=1e-4) for a, b in zip(fast, own, strict=True))


def test_bfloat16_is_near_and_says_so(embedded):
    half = in_bfloat16(embedded)
    assert half.name.endswith("(bfloat16)") and embedded.model.dtype == torch.float32
    full = [score.per_piece for score in pll(embedded, SENTENCES)]
    near = [score.per_piece for score in pll(half, SENTENCES)]
    assert full != near and np.allclose(full, near, atol=0.1)
    with pytest.raises(TypeError, match="not in float32"):
        in_bfloat16(half)


def test_queries_leave_the_model_as_it_was(tiny_bert):
    tiny_bert.model.train()
    try:
        assert list(read_queries(tiny_bert, [], lambda *_: [])) == []
        pll(tiny_bert, ["Dogs bark."])
        assert tiny_bert.model.training and torch.is_grad_enabled()
    finally:
        tiny_bert.model.eval()


_MEMORY = """
import resource
from tiny import TEXTS, tiny_encoder
from bertology_utils.cloze import pll
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
encoder = tiny_encoder("bert")
texts = lambda n: (TEXTS[i % 4][: 20 + i % 7] + f" {i} cats." for i in range(n))
pll(encoder, texts(250))
before = peak()
found = pll(encoder, texts(2500))
print(peak() - before, len(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read the Unix way")
def test_ten_times_the_sentences_take_no_more_memory_but_for_their_scores():
    tests = Path(__file__).parent
    out = subprocess.run(
        [sys.executable, "-c", _MEMORY],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent)]),
            "OMP_NUM_THREADS": "1",
        },
        check=True,
        capture_output=True,
        text=True,
    )
    growth, n = map(float, out.stdout.split())
    # Scores of a sentence are a few kilobytes of Python; copies of it would be hundreds.
    assert n == 2500 and growth < 60, growth
