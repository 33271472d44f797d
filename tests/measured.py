"""One measurement or two from every room, for processes to compare: ``python measured.py OUT``.

Writes every number of every result, by name, as JSON: under "one" with one thread, and under
"two" those of :data:`SMOOTH` again with two. The process's own random streams begin anywhere, so
that a measurement that draws from them gives itself away.
"""

import dataclasses
import json
import os
import random
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from tiny import TEXTS, tiny_encoder

from bertology_utils import (
    activations,
    architecture,
    attention,
    behaviour,
    compression,
    embeddings,
    finetuning,
    geometry,
    heads,
    interventions,
    knowledge,
    lab,
    layers,
    limits,
    probes,
    semantics,
    stimuli,
    subnetworks,
    syntax,
)
from bertology_utils.cloze import fill_mask, judge_pairs, pll
from bertology_utils.encoder import load_encoder, random_encoder
from bertology_utils.lab.train import train
from bertology_utils.training import neighbours

LABELS = [0, 1, 0, 1]
TINY_LAB = lab.LabConfig(steps=4, batch=8, width=16, sentences=200)


@cache
def encoder():
    return load_encoder("bertology-mini-uncased", device="cpu")


@cache
def trees():
    return list(stimuli.treebank(40, seed=3, max_words=12))


def texts() -> list[str]:
    return [sentence.text for sentence in trees()]


@cache
def judge():
    return behaviour.learn(tiny_encoder("bert"), TEXTS, LABELS, epochs=3)


def collected() -> activations.Collected:
    return activations.collect(encoder(), texts())


def probed(kind: str) -> object:
    arrays, tags, forms = word_vectors()
    return probes.probe_layers(arrays[[1, 4]], tags, probes.random_split(len(tags)), kind=kind)


def word_vectors() -> tuple[np.ndarray, list[str], list[str]]:
    made = syntax.treebank_vectors(encoder(), trees())
    tags = [tag for sentence in trees() for tag in sentence.upos]
    forms = [word for sentence in trees() for word in sentence.words]
    return made.words, tags, forms


def attacked() -> tuple[Sequence[str], Sequence[int]]:
    found = finetuning.reviews(12, 0, "train")
    return found.texts, found.labels


def selective() -> object:
    arrays, tags, forms = word_vectors()
    return probes.selectivity(arrays[[3]], tags, forms, probes.random_split(len(forms)))


MEASUREMENTS: dict[str, Callable[[], object]] = {
    "stimuli": lambda: [
        [sentence.text for sentence in trees()],
        [pair.good for pair in stimuli.minimal_pairs("agreement_pp", 20, seed=1)],
        [fact.subject for fact in stimuli.facts("capital")],
        stimuli.lexicon("train").vocabulary(),
    ],
    "words and activations": lambda: collected().arrays["hidden_states"][:, ::7],
    "encoder": lambda: random_encoder(tiny_encoder("bert"), seed=5).model.state_dict(),
    "interventions": lambda: interventions.mean_heads(encoder(), TEXTS),
    "cloze": lambda: [
        pll(encoder(), TEXTS),
        fill_mask(encoder(), ["The [MASK] sat on the mat."], k=3),
        judge_pairs(encoder(), stimuli.minimal_pairs("agreement_simple", 8, seed=1)),
    ],
    "probes, linear": lambda: probed("linear"),
    "probes, mlp": lambda: probed("mlp"),
    "probes, control tasks": selective,
    "attention": lambda: [
        attention.attention_to(encoder(), texts()),
        attention.norm_shares(encoder(), texts()[:8]),
        attention.attention_gradients(encoder(), texts()[:8]),
        attention.relation_scores(encoder(), trees()[:6]),
    ],
    "geometry": lambda: [
        geometry.anisotropy(collected(), n_pairs=500),
        geometry.logit_lens(encoder(), texts()[:10]),
    ],
    "knowledge": lambda: knowledge.precision_at_k(
        knowledge.ask(encoder(), knowledge.known_facts(encoder(), ("capital",))[:40])
    ),
    "training": lambda: neighbours.bag_features(
        encoder(), neighbours.passage_pairs([1, 2])[:20]
    ),
    "lab": lambda: train(TINY_LAB.seeds(2)),
    "compression": lambda: compression.masked_losses(encoder(), texts()[:10]),
    "architecture": lambda: architecture.score_masked(encoder(), texts()[:10]),
    "semantics": lambda: [
        semantics.role_reversal(encoder(), stimuli.minimal_pairs("role_reversal", 10, seed=1)),
        semantics.link_entities(
            tiny_encoder("bert"), knowledge.known_facts(encoder(), ("capital",))[:4], epochs=1
        ).losses,
    ],
    "syntax": lambda: syntax.predictions(
        encoder(), [(i.words, i.target) for i in syntax.hidden_words(trees()[:10], seed=1)]
    )[:, ::997],
    "layers": lambda: layers.peak(geometry.similarity_to_input(collected())),
    "heads": lambda: heads.head_functions(
        attention.relation_scores(encoder(), trees()), min_edges=20
    ),
    "fine-tuning": lambda: finetuning.fine_tune(
        tiny_encoder("bert"),
        finetuning.reviews(24, 0, "train"),
        finetuning.Run(recipe=finetuning.Recipe(epochs=1)),
    ).losses,
    "behaviour": lambda: [
        behaviour.probabilities(judge(), TEXTS),
        behaviour.attack(judge(), *attacked()),
    ],
    "limits": lambda: limits.head_importance(encoder(), texts()[:6]),
    "subnetworks": lambda: subnetworks.without_each(
        subnetworks.classified(judge(), TEXTS, LABELS)
    ),
    "embeddings": lambda: embeddings.skip_gram(
        [list(sentence.words) for sentence in trees()], model="none", width=8, epochs=1
    ),
}

#: Measurements without choices, such as a best word, that a last digit may tip.
SMOOTH = ("words and activations", "interventions", "compression", "syntax", "limits")


def numbers(result: object, place: str) -> Iterator[tuple[str, float]]:
    """Every number inside a result; texts count by their checksum."""
    if isinstance(result, str | bytes):
        yield place, float(zlib.crc32(result if isinstance(result, bytes) else result.encode()))
    elif isinstance(result, bool | int | float | np.generic):
        yield place, float(result)
    elif isinstance(result, torch.Tensor):
        yield from numbers(result.detach().cpu().numpy(), place)
    elif isinstance(result, np.ndarray) and result.dtype.kind in "OUS":
        yield from numbers(result.tolist(), place)
    elif isinstance(result, np.ndarray):
        for index, value in enumerate(result.astype(float).ravel()):
            yield f"{place}[{index}]", value
    elif isinstance(result, Mapping):
        for key, value in result.items():
            yield from numbers(value, f"{place}.{key}")
    elif dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            yield from numbers(getattr(result, field.name), f"{place}.{field.name}")
    elif isinstance(result, list | tuple):
        for index, value in enumerate(result):
            yield from numbers(value, f"{place}[{index}]")
    elif isinstance(result, set | frozenset):
        yield from numbers(sorted(result, key=repr), place)


def measure(names: Iterable[str], threads: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    found: dict[str, float] = {}
    for name in names:
        own = dict(numbers(MEASUREMENTS[name](), name))
        if not own:
            raise AssertionError(f"{name} gave no number")
        found |= own
    # How long a run took is no result of it.
    return {place: value for place, value in found.items() if not place.endswith(".seconds")}


def main(out: str) -> None:
    random.seed(os.getpid())
    np.random.seed(os.getpid())
    torch.manual_seed(os.getpid())
    found = {"one": measure(MEASUREMENTS, 1), "two": measure(SMOOTH, 2)}
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
