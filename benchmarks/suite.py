"""What is compared with what: rows by group, at full or at quick size."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertology_utils.encoder import load_encoder

from .compare import Comparison, all_close, as_good, close, same_bits
from .inputs import pairs, sentences
from .ours import mask_direction
from .sides import Task

GROUPS = ("scores", "activations", "ablation", "probes")


@dataclass(frozen=True)
class Sizes:
    """How much of everything: sentences, pairs, and paired runs of every row."""

    scored: int
    scored_again: int
    paired: int
    collected: int
    swept: tuple[int, ...]
    tagged: int
    parsed: int
    rounds: int


FULL = Sizes(2000, 400, 500, 1000, (1, 8, 64), 1000, 1000, 3)
QUICK = Sizes(60, 40, 20, 100, (1, 8), 120, 400, 3)


class Suite:
    """Comparisons on a device, over inputs written to ``folder``."""

    def __init__(self, folder: Path, model: str, sizes: Sizes, device: str = "cpu"):
        self.folder, self.sizes = folder, sizes
        self.model, self.device = model, device
        #: what every task on the device is given
        self.about = {"folder": model, "device": device}

    def write(self, name: str, content: list) -> str:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    def group(self, name: str) -> Iterator[Comparison]:
        """The comparisons of one of :data:`GROUPS`."""
        return getattr(self, name)()

    def scores(self) -> Iterator[Comparison]:
        """Pseudo-log-likelihood and minimal pairs."""
        # A total is a sum over up to a hundred pieces in float32, in another order on every device.
        check = close("totals", 1e-4 if self.device == "cpu" else 1e-3)
        rows = (
            (self.sizes.scored, 32, 4.0, ""),
            (self.sizes.scored_again, 8, None, ""),
            (self.sizes.scored_again, 1, None, "its best: nothing is padded"),
        )
        for n, batch, goal, note in rows:
            given = {**self.about, "texts": self.write(f"scored-{n}", sentences(n))}
            yield Comparison(
                "scores",
                f"PLL of {n} sentences, minicons, {batch} a call",
                Task("ours", "pll_ours", given),
                Task("peers", "pll_minicons", {**given, "batch": batch}),
                check,
                goal,
                note,
            )
        yield Comparison(
            "scores",
            f"PLL of {n} sentences, plain transformers",
            Task("ours", "pll_ours", given),
            Task("ours", "pll_plain", given),
            close("totals", 1e-3),
            note="one sentence at a time, so nothing is padded",
        )
        n = self.sizes.paired
        given = {**self.about, "pairs": self.write("pairs", pairs(n))}
        yield Comparison(
            "scores",
            f"{n} minimal pairs, minicons, 32 a call",
            Task("ours", "pairs_ours", given),
            Task("peers", "pairs_minicons", {**given, "batch": 32}),
            close("margins", 1e-3),
            note="sentences of one construction are nearly of one length, so little is padded",
        )

    def activations(self) -> Iterator[Comparison]:
        """Every hidden state and every pattern; and what reading costs where nothing is read."""
        n = self.sizes.collected
        given = {**self.about, "texts": self.write("collected", sentences(n))}
        ours = Task("ours", "collect_ours", given)
        check = all_close({"hidden": 1e-4, "pattern": 1e-4})
        rows = (
            ("transformer-lens", "collect_transformer_lens", {"logits": True}, False, 1.5, ""),
            (
                "transformer-lens, at its best",
                "collect_transformer_lens",
                {"logits": False},
                True,
                None,
                "texts sorted by length and vocabulary logits left out by hand",
            ),
            ("nnsight", "collect_nnsight", {}, False, 1.5, ""),
            ("nnsight, at its best", "collect_nnsight", {}, True, None, "texts sorted by length"),
        )
        for name, function, options, by_length, goal, note in rows:
            arguments = {**given, **options, "batch": 32, "by_length": by_length}
            yield Comparison(
                "activations",
                f"all layers and patterns of {n} sentences, {name}",
                ours,
                Task("peers", function, arguments),
                check,
                goal,
                note,
            )
        yield Comparison(
            "activations",
            "nothing read, bare forward pass",
            Task("ours", "nothing_kept", given),
            Task("ours", "bare_forward", given),
            same_bits("n"),
            0.95,
            "a ratio of 1 is no cost at all",
        )

    def ablation(self) -> Iterator[Comparison]:
        """Every head silenced in turn, read at the mask."""
        encoder = load_encoder(self.model, device="cpu")
        direction = self.folder / "direction.npy"
        np.save(direction, mask_direction(encoder).numpy())
        mask = encoder.tokenizer.mask_token
        frames = list(dict.fromkeys(_masked(text, mask) for text in sentences(4 * 64)))
        frames = [text for text in frames if 8 <= len(text.split()) <= 24]
        for n in self.sizes.swept:
            swept = {**self.about, "texts": self.write(f"swept-{n}", frames[:n])}
            given = {**swept, "direction": str(direction)}
            ours = Task("ours", "sweep_ours", given)
            for layers, goal in ((None, 2.5), (12, 3.0)):
                about = f"all heads of {layers or encoder.n_layers} layers, {_count(n)}"
                deep = {**swept, "n_layers": layers}
                yield Comparison(
                    "ablation",
                    f"{about}, plain transformers",
                    Task("ours", "sweep_ours_words", deep),
                    Task("ours", "sweep_plain", deep),
                    close("values", 1e-3),
                    goal,
                    "" if n == 1 else "all texts in one padded batch",
                )
                deep = {**deep, "direction": str(direction)}
                yield Comparison(
                    "ablation",
                    f"{about}, this package one head at a time",
                    Task("ours", "sweep_ours", deep),
                    Task("ours", "sweep_naive", deep),
                    same_bits("values"),
                    goal,
                    "the same padded batch, encoder alone on both sides",
                )
            for logits, note in ((True, ""), (False, "vocabulary logits left out by hand")):
                best = "" if logits else ", at its best"
                yield Comparison(
                    "ablation",
                    f"all heads of {encoder.n_layers} layers, {_count(n)}, transformer-lens{best}",
                    ours,
                    Task("peers", "sweep_transformer_lens", {**given, "logits": logits}),
                    close("values", 1e-3),
                    note=note,
                )

    def limited(self) -> dict[str, Task]:
        """What is held against the arithmetic of the device, by name."""
        texts = self.write("limited", sentences(self.sizes.scored_again))
        given = {**self.about, "texts": texts}
        n = self.sizes.scored_again
        return {
            f"PLL of {n} sentences": Task("ours", "pll_ours", given),
            f"all layers and patterns of {n} sentences": Task("ours", "collect_ours", given),
        }

    def probes(self) -> Iterator[Comparison]:
        """Linear and structural probes of every layer at equal quality, on the processor."""
        n = self.sizes.tagged
        given = {"folder": self.model, "n": n}
        yield Comparison(
            "probes",
            f"parts of speech in {n} sentences, every layer, scikit-learn",
            Task("probing", "linear_ours", given),
            Task("probing", "linear_sklearn", given),
            as_good("loss", 0.01, higher=False),
            5.0,
            "the same five penalties to choose from",
        )
        n = self.sizes.parsed
        given = {"folder": self.model, "n": n}
        yield Comparison(
            "probes",
            f"structural probes on {n} sentences, every layer, as the paper defines them",
            Task("probing", "structural_ours", given),
            Task("probing", "structural_plain", given),
            as_good("uuas", 0.02, higher=True),
            5.0,
            "same rank, epochs, batch size and learning rates",
        )


def _masked(text: str, mask: str) -> str:
    """The text with its middle word hidden."""
    words = text.split()
    words[len(words) // 2] = mask
    return " ".join(words)


def _count(n: int) -> str:
    return f"{n} sentence{'' if n == 1 else 's'}"
