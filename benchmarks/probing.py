"""Probes of all layers: ours, scikit-learn's, and structural probes written from the paper."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from bertology_utils.activations import collect
from bertology_utils.encoder import load_encoder
from bertology_utils.probes import fit_structural, random_split, words_split
from bertology_utils.probes.linear import PRECISIONS, fit_linear
from bertology_utils.probes.tree_metrics import edge_hits, spanning_trees
from bertology_utils.stimuli import treebank
from bertology_utils.words import WordList


def _words(folder: str, n: int):
    """(sentences, features [S, words, D], split over sentences)"""
    bank = list(treebank(n, max_words=25))
    encoder = load_encoder(folder, device="cpu")
    found = collect(encoder, [WordList(s.words, s.text) for s in bank])
    return bank, torch.from_numpy(found.arrays["hidden_states"]), random_split(n)


def _tags(folder: str, n: int):
    bank, features, split = _words(folder, n)
    words = words_split(split, [len(s) for s in bank])
    names = sorted({tag for s in bank for tag in s.upos})
    codes = np.array([names.index(tag) for s in bank for tag in s.upos])
    return features, codes, words, len(names)


def _quality(log_probs: np.ndarray, gold: np.ndarray) -> dict:
    """[S, N, K] -> accuracy and mean loss of every layer on the test part."""
    loss = -np.take_along_axis(log_probs, gold[None, :, None], axis=2)[..., 0].mean(1)
    return {"accuracy": (log_probs.argmax(2) == gold).mean(1), "loss": loss}


def linear_ours(folder: str, n: int):
    """Softmax probes of parts of speech, penalties chosen on the development part."""
    features, codes, split, k = _tags(folder, n)

    def run():
        train, dev, test = (features[:, getattr(split, p)] for p in ("train", "dev", "test"))
        held = (dev, torch.from_numpy(codes[split.dev]))
        probes = fit_linear(train, torch.from_numpy(codes[split.train]), k, dev=held)
        return _quality(probes.log_probs(test).numpy(), codes[split.test])

    return run


def linear_sklearn(folder: str, n: int):
    """LogisticRegression on standardised features for the same penalties, layer by layer, and the
    penalty with the lowest development loss."""
    features, codes, split, k = _tags(folder, n)

    def run():
        gold = {p: codes[getattr(split, p)] for p in ("train", "dev", "test")}
        out = []
        for layer in features.numpy():
            mean, scale = layer[split.train].mean(0), layer[split.train].std(0)
            train, dev, test = (
                (layer[getattr(split, p)] - mean) / scale for p in ("train", "dev", "test")
            )
            best = None
            for precision in PRECISIONS:
                probe = LogisticRegression(C=1 / precision, max_iter=1000)
                probe.fit(train, gold["train"])
                loss = -probe.predict_log_proba(dev)[np.arange(len(dev)), gold["dev"]].mean()
                if best is None or loss < best[0]:
                    best = (loss, probe)
            full = np.full((len(test), k), -np.inf)
            full[:, best[1].classes_] = best[1].predict_log_proba(test)
            out.append(full)
        return _quality(np.stack(out), gold["test"])

    return run


_TRAINING = {"rank": 64, "epochs": 10, "lr": 4e-4, "batch_size": 32}


def _uuas(distances: list[list[np.ndarray]], bank, split) -> dict:
    test = [bank[i] for i in split.test]
    scores = []
    for layer in distances:
        hits, totals = edge_hits(spanning_trees(layer, test), test)
        scores.append(hits.sum() / totals.sum())
    return {"uuas": np.array(scores)}


def _test_words(features: Tensor, bank, split) -> tuple[Tensor, list[int]]:
    starts = np.concatenate([[0], np.cumsum([len(s) for s in bank])])
    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in split.test])
    return features[:, rows], [len(bank[i]) for i in split.test]


def structural_ours(folder: str, n: int):
    """Distance probes of all layers."""
    bank, features, split = _words(folder, n)

    def run():
        probes = fit_structural(features, bank, split, "distance", patience=99, **_TRAINING)
        return _uuas(probes.predict(*_test_words(features, bank, split)), bank, split)

    return run


def structural_plain(folder: str, n: int):
    """The distance probe as its paper defines it, one layer after the other: a batch of sentences
    is padded, every vector is mapped, all differences of two words are formed, squared and summed,
    and the mean absolute error over the pairs of each sentence is minimised with Adam."""
    bank, features, split = _words(folder, n)
    starts = np.concatenate([[0], np.cumsum([len(s) for s in bank])])
    gold = [torch.tensor(s.distances(), dtype=torch.float32) for s in bank]

    def loss_of(layer: Tensor, probe: Tensor, members) -> Tensor:
        longest = max(len(bank[i]) for i in members)
        vectors = torch.zeros(len(members), longest, layer.shape[1])
        wanted = torch.zeros(len(members), longest, longest)
        real = torch.zeros(len(members), longest, longest)
        for row, i in enumerate(members):
            size = len(bank[i])
            vectors[row, :size] = layer[starts[i] : starts[i + 1]]
            wanted[row, :size, :size] = gold[i]
            real[row, :size, :size] = 1
        mapped = vectors @ probe
        distances = (mapped[:, :, None] - mapped[:, None, :]).square().sum(-1)
        errors = ((distances - wanted).abs() * real).sum((1, 2)) / real.sum((1, 2))
        return errors.mean()

    def fit(layer: Tensor) -> Tensor:
        words = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in split.train])
        scale = layer[words].std(0)
        layer = layer / scale
        generator, order = torch.Generator().manual_seed(0), np.random.default_rng(0)
        width = layer.shape[1]
        bound = (3 / (width * _TRAINING["rank"])) ** 0.5
        start = torch.rand(width, _TRAINING["rank"], generator=generator) * 2 - 1
        probe = (start * bound).requires_grad_(True)
        adam = torch.optim.Adam([probe], lr=_TRAINING["lr"])
        epochs = _TRAINING["epochs"]
        schedule = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.1, total_iters=epochs - 1)
        best = (np.inf, probe.detach().clone())
        for _ in range(epochs):
            members = order.permutation(split.train)
            for first in range(0, len(members), _TRAINING["batch_size"]):
                adam.zero_grad()
                loss_of(layer, probe, members[first : first + _TRAINING["batch_size"]]).backward()
                adam.step()
            schedule.step()
            with torch.no_grad():
                held = loss_of(layer, probe, split.dev).item()
            if held < best[0]:
                best = (held, probe.detach().clone())
        return best[1] / scale[:, None]

    def run():
        words, lengths = _test_words(features, bank, split)
        distances = []
        for layer, test in zip(features, words, strict=True):
            mapped = test @ fit(layer)
            parts = mapped.split(lengths)
            distances.append([torch.cdist(p, p).square().numpy() for p in parts])
        return _uuas(distances, bank, split)

    return run
