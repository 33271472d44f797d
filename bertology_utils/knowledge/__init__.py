"""What a masked model knows of the world, and how to tell knowing from guessing.

>>> from bertology_utils.knowledge import ask, known_facts, precision_at_k
>>> facts = known_facts(encoder, ["capital", "language"])
>>> precision_at_k(ask(encoder, facts), k=1)

Facts are asked as masked questions (``ask``) and scored against the most frequent answers
(``precision_at_k``); then come other wordings, misleading words, names, steps, triples, things and
numbers, each with its own control.
"""

from .answers import Answers, ask, askable, hits_at, known_facts, one_piece
from .completion import (
    Completion,
    completion,
    pmi_scores,
    supervised_scores,
    usable_triples,
)
from .errors import KnowledgeError, UnmatchedError
from .features import (
    FeatureProbes,
    Inference,
    infer_features,
    pair_text,
    pair_vectors,
    probe_features,
    thing_vectors,
)
from .gaps import Gaps, Scenes, fill_gaps, read_scenes
from .misleading import Negation, Priming, mispriming, negation, primed
from .names import (
    Changes,
    NameFilter,
    Stereotypes,
    changed_predictions,
    name_filter,
    name_stereotypes,
)
from .neighbours import Neighbours, neighbour_cosines
from .numbers import (
    Extrapolation,
    NumberProbe,
    add_numbers,
    character_features,
    decode_numbers,
    extrapolate,
    find_largest,
    number_vectors,
)
from .phrasings import Phrasings, Wording, ask_phrasings, wording
from .precision import (
    CardinalityGap,
    Precision,
    cardinality_gap,
    macro_mean,
    majority_ranks,
    precision_at_k,
)
from .steps import Steps, ask_steps, step_questions

__all__ = [
    "Answers",
    "CardinalityGap",
    "Changes",
    "Completion",
    "Extrapolation",
    "FeatureProbes",
    "Gaps",
    "Inference",
    "KnowledgeError",
    "NameFilter",
    "Negation",
    "Neighbours",
    "NumberProbe",
    "Phrasings",
    "Precision",
    "Priming",
    "Scenes",
    "Steps",
    "Stereotypes",
    "UnmatchedError",
    "Wording",
    "add_numbers",
    "ask",
    "ask_phrasings",
    "ask_steps",
    "askable",
    "cardinality_gap",
    "changed_predictions",
    "character_features",
    "completion",
    "decode_numbers",
    "extrapolate",
    "fill_gaps",
    "find_largest",
    "hits_at",
    "infer_features",
    "known_facts",
    "macro_mean",
    "majority_ranks",
    "mispriming",
    "name_filter",
    "name_stereotypes",
    "negation",
    "neighbour_cosines",
    "number_vectors",
    "one_piece",
    "pair_text",
    "pair_vectors",
    "pmi_scores",
    "precision_at_k",
    "primed",
    "probe_features",
    "read_scenes",
    "step_questions",
    "supervised_scores",
    "thing_vectors",
    "usable_triples",
    "wording",
]
