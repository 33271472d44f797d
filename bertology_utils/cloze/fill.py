"""One mask, one question: what stands there, and how probable is this word?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..encoder import Encoder
from ..words import Text, TextTypeError, align_all
from ..words.errors import checked_text, checked_texts, excerpt
from .errors import MaskCountError, TargetError, UnequalPairError
from .queries import Query, read_queries


@dataclass(frozen=True)
class Filling:
    """The model's best pieces for the mask of a text, most probable first.

    Attributes:
        text: the text, with its mask.
        tokens: pieces as the vocabulary spells them.
        log_probs: their natural log-probabilities.
    """

    text: str
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]


def mask_queries(encoder: Encoder, texts: Sequence[Text]) -> list[Query]:
    """The queries that read the only mask of each text, numbered in their order.

    Raises:
        MaskCountError: a text with no mask, or with several.
    """
    tokenizer = encoder.tokenizer
    queries = []
    for number, row in enumerate(align_all(encoder, texts)):
        places = [i for i, piece in enumerate(row.input_ids) if piece == tokenizer.mask_token_id]
        if len(places) != 1:
            raise MaskCountError(
                f"expected exactly one {tokenizer.mask_token}, found {len(places)} in "
                f"text {number}: {excerpt(row.text)}"
            )
        queries.append(Query(row, (), places[0], number))
    return queries


def target_id(encoder: Encoder, word: str) -> int:
    """Vocabulary number of a word that is one piece when it stands inside a sentence.

    Raises:
        TargetError: the word is empty, unknown, or splits into several pieces.
        TextTypeError, TextEncodingError: it is not a string of whole characters.
    """
    checked_text(word, "a target word")
    tokenizer = encoder.tokenizer
    # Byte-level vocabularies spell a word inside a sentence with a leading space.
    pieces = tokenizer.encode(f" {word.strip()}", add_special_tokens=False)
    if not word.strip() or len(pieces) != 1 or pieces[0] == tokenizer.unk_token_id:
        shown = tokenizer.convert_ids_to_tokens(pieces)
        raise TargetError(
            f"target {excerpt(word)} is not one piece of the vocabulary: "
            f"{shown[:8]}{' ...' if len(shown) > 8 else ''}"
        )
    return pieces[0]


def fill_mask(
    encoder: Encoder, texts: Iterable[Text], *, k: int = 10, max_tokens: int = 4096
) -> list[Filling]:
    """The ``k`` most probable pieces at the one mask of every text.

    Raises:
        MaskCountError: a text without exactly one mask.
        ValueError: ``k`` below 1 or above the vocabulary; bad texts as in ``words``.
        MissingHeadError: no trained MLM head.
    """
    size = encoder.config.vocab_size
    if not 1 <= k <= size:
        raise ValueError(f"k must lie in 1..{size}, got {k}")
    names = encoder.tokenizer.convert_ids_to_tokens

    def top(logits: Tensor, queries: Sequence[Query]) -> list[Filling]:
        values, pieces = logits.log_softmax(dim=1).topk(k, dim=1)
        return [
            Filling(query.row.text, tuple(names(ids)), tuple(scores))
            for query, ids, scores in zip(queries, pieces.tolist(), values.tolist(), strict=True)
        ]

    queries = mask_queries(encoder, _listed(texts))
    return list(read_queries(encoder, queries, top, max_tokens=max_tokens))


def target_log_probs(
    encoder: Encoder,
    texts: Iterable[Text],
    targets: Iterable[Sequence[str]],
    *,
    max_tokens: int = 4096,
) -> list[tuple[float, ...]]:
    """Natural log-probability of every target word of every text, at the text's one mask.

    Args:
        targets: for every text, the words to score there (at least one).

    Raises:
        UnequalPairError: not one entry of targets for each text, or an entry without words.
        TextTypeError: an entry is one word, not a list of words.
        TargetError, MaskCountError, MissingHeadError: see :func:`target_id`, :func:`mask_queries`.
    """
    listed, wanted = _listed(texts), [_entry(i, entry) for i, entry in enumerate(targets)]
    if len(listed) != len(wanted):
        raise UnequalPairError(f"{len(listed)} texts, but targets for {len(wanted)}")
    if (bare := next((i for i, entry in enumerate(wanted) if not entry), None)) is not None:
        raise UnequalPairError(f"no target words for text {bare}: {excerpt(str(listed[bare]))}")
    ids = [torch.tensor([target_id(encoder, w) for w in entry]) for entry in wanted]
    queries = mask_queries(encoder, listed)

    def chosen(logits: Tensor, batch: Sequence[Query]) -> list[tuple[float, ...]]:
        norms = logits.logsumexp(dim=1)
        return [
            tuple((logits[i, ids[q.number].to(logits.device)] - norms[i]).tolist())
            for i, q in enumerate(batch)
        ]

    return list(read_queries(encoder, queries, chosen, max_tokens=max_tokens))


def target_ranks(
    encoder: Encoder,
    texts: Iterable[Text],
    targets: Iterable[str],
    *,
    candidates: Sequence[str] | None = None,
    max_tokens: int = 4096,
) -> list[int]:
    """Rank (1 = best) of one target word a text, for P@k = share of ranks <= k (Petroni 2019).

    Args:
        candidates: rank among these words only; by default the whole vocabulary.

    Raises:
        UnequalPairError: not one target for each text.
        TargetError: a target outside the vocabulary, or not among the candidates.
        MaskCountError, MissingHeadError: see :func:`mask_queries`.
    """
    listed, wanted = _listed(texts), list(targets)
    if len(listed) != len(wanted):
        raise UnequalPairError(f"{len(listed)} texts, but {len(wanted)} targets")
    ids = [target_id(encoder, word) for word in wanted]
    among = None
    if candidates is not None:
        among = torch.tensor([target_id(encoder, word) for word in candidates])
        allowed = set(among.tolist())
        if odd := next((w for w, i in zip(wanted, ids, strict=True) if i not in allowed), None):
            raise TargetError(f"target {odd!r} is not among the {len(candidates)} candidates")
    queries = mask_queries(encoder, listed)

    def ranks(logits: Tensor, batch: Sequence[Query]) -> list[int]:
        rows = torch.arange(len(batch), device=logits.device)
        own = torch.tensor([ids[q.number] for q in batch], device=logits.device)
        scores = logits if among is None else logits[:, among.to(logits.device)]
        return ((scores > logits[rows, own][:, None]).sum(dim=1) + 1).tolist()

    return list(read_queries(encoder, queries, ranks, max_tokens=max_tokens))


def _entry(number: int, entry: Sequence[str]) -> list[str]:
    # A string is a sequence of its letters, which would be scored one by one.
    if isinstance(entry, str) or not isinstance(entry, Iterable):
        raise TextTypeError(
            f"the targets of text {number} must be a list of words, not {excerpt(repr(entry))}"
        )
    return list(entry)


def _listed(texts: Iterable[Text]) -> list[Text]:
    if isinstance(texts, str):
        return [texts]
    checked_texts(texts)
    return list(texts)
