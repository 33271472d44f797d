"""What embeddings know: static vectors, sentences behind words, senses, maps of layers."""

from .choosing import HeldOut, held_out_best, rise_from_poorest
from .cones import cone_without
from .explorer import (
    Groups,
    OccurrenceError,
    Occurrences,
    find_occurrences,
    group_occurrences,
    likely_words,
    parse_request,
    substitutes,
)
from .information import information_bound, static_information
from .layer_map import LayerMap, layer_map
from .relatedness import Relatedness, shared_features
from .sentences import neutral_vectors, probe_by_layer, sentence_identity
from .students import SkipGram, skip_gram
from .texts import (
    FRAMES,
    FramedNouns,
    Tagged,
    framed_nouns,
    free_sentences,
    in_frame,
    other_nouns,
    tagged_senses,
)

__all__ = [
    "FRAMES",
    "FramedNouns",
    "Groups",
    "HeldOut",
    "LayerMap",
    "OccurrenceError",
    "Occurrences",
    "Relatedness",
    "SkipGram",
    "Tagged",
    "cone_without",
    "find_occurrences",
    "framed_nouns",
    "free_sentences",
    "group_occurrences",
    "held_out_best",
    "in_frame",
    "information_bound",
    "layer_map",
    "likely_words",
    "neutral_vectors",
    "other_nouns",
    "parse_request",
    "probe_by_layer",
    "rise_from_poorest",
    "sentence_identity",
    "shared_features",
    "skip_gram",
    "static_information",
    "substitutes",
    "tagged_senses",
]
