"""How many bits to send the labels to someone who already has the vectors?

Minimum description length probing (Voita and Titov 2020, arXiv 2003.12298). A probe's accuracy says
how well it does in the end; a code also pays for what it takes to get there. The *online* code
sends labels in growing blocks, each with a probe trained on what was sent before (Rissanen's
prequential code); the *variational* code sends a probe with noisy weights and then all labels with
it (Hinton and van Camp 1993; Blier and Ollivier 2018). Both are compared with the uniform code,
N log2 K bits.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .data import Split, Task, as_features, as_task, standardise
from .errors import UnequalLengthError
from .fit import shuffled, train_together
from .linear import fit_linear
from .mlp import fit_mlp
from .results import ratio_interval

#: ends of the blocks of the online code, as shares of the data (Voita and Titov's timesteps)
PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
#: share of what was sent that is held out to stop each probe of the online code early; of the first
#: blocks more (half, up to 50 examples), or luck on a handful of them would pick the probe
HELD_OUT, HELD_OUT_AT_LEAST = 0.15, 50
#: prior odds of the label frequencies against a probe picked by its held-out loss
CANDIDATES = 16


@dataclass(frozen=True)
class CodelengthResult:
    """Bits that the labels of one layer take.

    Attributes:
        layer: number of the layer.
        code: ``"online"`` or ``"variational"``.
        kind: of the probe.
        bits: length of the code.
        uniform_bits: N log2 K.
        frequency_bits: the code that ignores the vectors and learns the label frequencies as it
            goes (Krichevsky and Trofimov 1981).
        compression: uniform_bits / bits; 1 means that the vectors are of no use.
        parts: of the online code, (examples sent before, bits of the block) for every block; of
            the variational code, ("labels", bits) and ("weights", bits).
        n: labels sent; n_classes: K.
        seed: of the order of the data and of the probe.
        interval: 95 % bootstrap interval of the compression over examples (over groups where groups
            were given) with the trained probes as they are; None for the variational code, whose
            weights cost the same whatever the sample.
        model: name of the probed model.
    """

    layer: int
    code: str
    kind: str
    bits: float
    uniform_bits: float
    frequency_bits: float
    n: int
    n_classes: int
    seed: int
    model: str
    parts: tuple[tuple[int | str, float], ...] = field(repr=False)
    interval: tuple[float, float] | None = None

    unit = "ratio"

    @property
    def compression(self) -> float:
        return self.uniform_bits / self.bits

    @property
    def value(self) -> float:
        """The compression."""
        return self.compression

    @property
    def baselines(self) -> dict[str, float]:
        """Compressions of the codes that do not look at the vectors."""
        return {"uniform code": 1.0, "label frequencies": self.uniform_bits / self.frequency_bits}


def online_codelength(
    features: np.ndarray | Tensor,
    labels: Sequence[Hashable],
    *,
    kind: str = "linear",
    portions: Sequence[float] = PORTIONS,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
    model: str = "features",
    **options,
) -> list[CodelengthResult]:
    """Online code of the labels for every layer.

    The first block goes by the uniform code. Every other is coded by a probe trained on all before
    it, a last part of which is held out for early stopping, and mixed with the plain label
    frequencies by the odds of the held-out labels. After n examples one part in n + 1 of the
    uniform distribution is mixed in too, so that classes not yet seen can be sent. Ends of blocks
    that leave fewer than 20 examples, or two a class, to train on are passed over.

    Args:
        features: [S, N, D].
        labels: [N].
        kind: ``"linear"`` or ``"mlp"``.
        portions: growing shares of the data at which blocks end, the last being 1.
        seed: of the order in which examples are sent, and of the MLP.
        groups: [N] sentence of every example; sentences are then sent whole, so that no block is
            helped by having seen half of its sentence.
        model: name for the results.
        options: of the probe, such as ``l2`` or ``hidden``.

    Raises:
        ValueError: an unknown kind, or portions that do not grow to 1.
        OneClassError, TooFewExamplesError, UnequalLengthError, NonFiniteError: bad data.
    """
    data = as_features(features)
    n = data.shape[1]
    task = _whole(labels, n, seed)
    shares = list(portions)
    if not shares or shares[-1] != 1 or shares != sorted(set(shares)) or shares[0] <= 0:
        raise ValueError(f"portions must grow from above 0 to 1, got {tuple(shares)}")
    order = _order(n, groups, seed)
    fewest = max(20, 2 * len(task.classes))
    ends = sorted({end for share in shares if (end := math.ceil(share * n)) >= fewest} | {n})
    rows = data.index_select(1, torch.as_tensor(order, device=data.device))
    codes = task.codes[order].to(data.device)
    uniform = math.log2(len(task.classes))
    cost = torch.full((len(data), n), uniform, dtype=torch.float64)
    for start, end in zip(ends, ends[1:], strict=False):
        log_probs = _block(rows, codes, start, end, len(task.classes), kind, seed, options)
        # (n p + 1 / K) / (n + 1), in logarithms
        mixed = torch.logaddexp(
            log_probs + math.log(start), torch.tensor(-math.log(len(task.classes)))
        ) - math.log(start + 1)
        cost[:, start:end] = -mixed.double().cpu() / math.log(2)
    blocks = list(zip([0, *ends], ends, strict=False))
    frequency = _frequency_bits(codes.cpu().numpy(), len(task.classes))
    numbers: dict[Hashable, int] = {}
    held = order if groups is None else [groups[i] for i in order]
    owner = np.array([numbers.setdefault(group, len(numbers)) for group in held])
    sizes = np.bincount(owner) * uniform
    results = []
    for layer, bits in enumerate(cost.numpy()):
        interval = ratio_interval(sizes, np.bincount(owner, weights=bits), seed)
        parts = tuple((start, float(bits[start:end].sum())) for start, end in blocks)
        results.append(
            CodelengthResult(
                layer,
                "online",
                kind,
                float(bits.sum()),
                n * uniform,
                frequency,
                n,
                len(task.classes),
                seed,
                model,
                parts,
                interval,
            )
        )
    return results


def variational_codelength(
    features: np.ndarray | Tensor,
    labels: Sequence[Hashable],
    *,
    epochs: int = 20,
    lr: float = 2e-2,
    batch_size: int = 512,
    seed: int = 0,
    model: str = "features",
) -> list[CodelengthResult]:
    """Variational code of the labels for every layer, with a linear probe.

    Weights have independent Gaussian posteriors; the prior is one Gaussian around 0 per probe whose
    width is fitted and paid for with half a log2 N bits (biases have a prior and a width of their
    own). Voita and Titov use a sparser prior, so that compare codes made here with one another
    only. The code is ``KL(posterior, prior) + expected -log2 likelihood``: what sending such a
    probe and then the labels costs (bits-back).

    Args:
        features: [S, N, D].
        labels: [N].
        epochs, lr, batch_size: of Adam.
        seed: of the noise and of the batches.
        model: name for the results.

    Raises:
        OneClassError, TooFewExamplesError, UnequalLengthError, NonFiniteError: bad data.
    """
    data = as_features(features)
    layers, n, width = data.shape
    task = _whole(labels, n, seed)
    classes = len(task.classes)
    codes = task.codes.to(data.device)
    rows, _, _ = standardise(data)
    generator = torch.Generator().manual_seed(seed)
    start = -3.0  # log deviation: small enough not to drown the first gradients
    parameters = {
        "weight": torch.zeros(layers, width, classes, device=data.device),
        "weight_spread": torch.full((layers, width, classes), start, device=data.device),
        "bias": torch.zeros(layers, 1, classes, device=data.device),
        "bias_spread": torch.full((layers, 1, classes), start, device=data.device),
    }

    def weights_nats() -> Tensor:
        """KL [S] to the prior of the best width, which has a closed form."""
        total = torch.zeros(layers, device=data.device)
        for name in ("weight", "bias"):
            mean, log_spread = parameters[name], parameters[f"{name}_spread"]
            power = (mean.square() + (2 * log_spread).exp()).mean((1, 2), keepdim=True)
            total = total + (0.5 * power.log() - log_spread).sum((1, 2))
        return total

    def label_nats(batch: Tensor, noise: torch.Generator) -> Tensor:
        """-log likelihood [S, b] under one draw; noise is drawn on logits, not on weights."""
        part = rows.index_select(1, batch)
        mean = torch.baddbmm(parameters["bias"], part, parameters["weight"])
        variance = torch.baddbmm(
            (2 * parameters["bias_spread"]).exp(),
            part.square(),
            (2 * parameters["weight_spread"]).exp(),
        )
        # One draw for all layers, so that no layer's code depends on its companions.
        draw = torch.randn(mean.shape[1:], generator=noise).to(mean)
        logits = (mean + variance.sqrt() * draw).transpose(1, 2)
        target = codes[batch].expand(layers, -1)
        return torch.nn.functional.cross_entropy(logits, target, reduction="none")

    train_together(
        parameters,
        lambda: [b.to(data.device) for b in shuffled(n, batch_size, generator)],
        lambda batch: label_nats(batch, generator).mean(1) + weights_nats() / n,
        None,
        epochs=epochs,
        patience=epochs,
        lr=lr,
    )
    with torch.no_grad():
        fixed = torch.Generator().manual_seed(seed)
        draws = 4
        labels_nats = torch.zeros(layers, dtype=torch.float64)
        for _ in range(draws):
            for batch in torch.arange(n, device=data.device).split(4096):
                labels_nats += label_nats(batch, fixed).double().sum(1).cpu() / draws
        weight_nats = weights_nats().double().cpu() + 2 * 0.5 * math.log(n)
    frequency = _frequency_bits(task.codes.numpy(), classes)
    results = []
    for layer in range(layers):
        label_bits = float(labels_nats[layer]) / math.log(2)
        weight_bits = float(weight_nats[layer]) / math.log(2)
        results.append(
            CodelengthResult(
                layer,
                "variational",
                "linear",
                label_bits + weight_bits,
                n * math.log2(classes),
                frequency,
                n,
                classes,
                seed,
                model,
                (("labels", label_bits), ("weights", weight_bits)),
            )
        )
    return results


def _whole(labels: Sequence[Hashable], n: int, seed: int) -> Task:
    """All rows are sent; the split only carries them through the checks."""
    if len(labels) != n:
        raise UnequalLengthError(f"{len(labels)} labels for {n} examples")
    # A test part cannot be empty, so the last row stands in for it; classes come from all rows.
    return as_task(labels, Split(np.arange(n - 1), [], [n - 1], seed), n)


def _order(n: int, groups: Sequence[Hashable] | None, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if groups is None:
        return rng.permutation(n)
    if len(groups) != n:
        raise UnequalLengthError(f"{len(groups)} groups for {n} examples")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups])
    place = rng.permutation(len(numbers))
    return np.argsort(place[codes], kind="stable")


def _block(rows, codes, start, end, classes, kind, seed, options) -> Tensor:
    """Log-probability [S, end - start] of the labels of a block, by a probe of all before it."""
    if kind not in ("linear", "mlp"):
        raise ValueError(f"kind is {kind!r}, must be 'linear' or 'mlp'")
    held = start - max(round(HELD_OUT * start), min(HELD_OUT_AT_LEAST, start // 2))
    dev = (rows[:, held:start], codes[held:start])
    if kind == "linear":
        fitted = fit_linear(rows[:, :held], codes[:held], classes, dev=dev, **options)
    else:
        fitted = fit_mlp(rows[:, :held], codes[:held], classes, dev=dev, seed=seed, **options)
    counts = torch.bincount(codes[:held], minlength=classes) + 0.5
    plain = (counts / counts.sum()).log()

    def of_probe(first: int, last: int) -> Tensor:
        target = codes[first:last].expand(len(rows), -1)[:, :, None]
        return fitted.log_probs(rows[:, first:last]).gather(2, target)[:, :, 0]

    # The probe is the best of many on the held-out part; on few examples that may be luck. So it
    # is mixed with the plain frequencies, by how likely each makes the held-out labels.
    gain = (of_probe(held, start) - plain[codes[held:start]]).sum(1, keepdim=True)
    odds = gain - math.log(CANDIDATES)
    return torch.logaddexp(
        torch.nn.functional.logsigmoid(odds) + of_probe(start, end),
        torch.nn.functional.logsigmoid(-odds) + plain[codes[start:end]],
    )


def _frequency_bits(codes: np.ndarray, classes: int) -> float:
    """Krichevsky-Trofimov code; its length does not depend on the order of the labels."""
    counts = np.bincount(codes, minlength=classes)
    gammaln = np.vectorize(math.lgamma)
    nats = math.lgamma(len(codes) + classes / 2) - math.lgamma(classes / 2)
    nats -= float((gammaln(counts + 0.5) - math.lgamma(0.5)).sum())
    return nats / math.log(2)
