"""Meaning in a BERT-like model: roles, entities, names exchanged, entities tagged.

>>> from bertology_utils.semantics import filler_order
>>> filler_order(encoder, stimuli.role_fillers()).ordered.value

Numbers live in :mod:`bertology_utils.knowledge`; this room adds what chapter 3 needs beside them.
"""

from .battery import RELATIONS, held_out_subjects, semantic_tasks
from .errors import SemanticsError
from .linking import Linked, link_entities
from .names import (
    VERBS,
    NameGap,
    NameQuestion,
    NameSwaps,
    exchange_names,
    name_gap,
    name_questions,
)
from .probing import SemanticProbes, semantic_probes
from .roles import FillerOrder, Reversal, filler_order, role_reversal
from .tasks import (
    SpanTask,
    coreference_task,
    entity_frame,
    entity_task,
    relation_task,
    role_task,
    span_vectors,
)

__all__ = [
    "RELATIONS",
    "VERBS",
    "FillerOrder",
    "Linked",
    "NameGap",
    "NameQuestion",
    "NameSwaps",
    "Reversal",
    "SemanticProbes",
    "SemanticsError",
    "SpanTask",
    "coreference_task",
    "entity_frame",
    "entity_task",
    "exchange_names",
    "filler_order",
    "held_out_subjects",
    "link_entities",
    "name_gap",
    "name_questions",
    "relation_task",
    "role_reversal",
    "role_task",
    "semantic_probes",
    "semantic_tasks",
    "span_vectors",
]
