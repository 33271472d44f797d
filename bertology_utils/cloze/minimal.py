"""Our minimal pairs (:func:`bertology_utils.stimuli.minimal_pairs`) judged by any model."""

from collections.abc import Sequence

from ..encoder import Encoder
from ..stimuli import MASK, MinimalPair
from ..words.errors import checked_text, excerpt
from .errors import UnequalPairError
from .fill import target_log_probs
from .pairs import Preference, compare_at_mask, compare_sentences, preference


def spell_mask(encoder: Encoder, text: str) -> str:
    """The text with every ``[MASK]`` spelled as this model spells its mask."""
    return text.replace(MASK, encoder.tokenizer.mask_token)


def compare_contexts(
    encoder: Encoder,
    good_frames: Sequence[str],
    bad_frames: Sequence[str],
    words: Sequence[str],
    *,
    max_tokens: int = 4096,
) -> Preference:
    """Compare one word at the mask of two contexts: does the good one make it likelier?

    Raises:
        UnequalPairError: lists of different lengths, none at all, or twice the same frame.
        TargetError: a word that is not one piece.
        MaskCountError: a frame without exactly one mask.
    """
    if not len(good_frames) == len(bad_frames) == len(words):
        raise UnequalPairError(
            f"{len(good_frames)} good and {len(bad_frames)} bad frames, {len(words)} words"
        )
    both = list(zip(good_frames, bad_frames, strict=True))
    if (same := next((i for i, (good, bad) in enumerate(both) if good == bad), None)) is not None:
        raise UnequalPairError(
            f"pair {same} is twice the same frame: {excerpt(str(good_frames[same]))}"
        )
    frames = [frame for pair in both for frame in pair]
    targets = [[word] for word in words for _ in range(2)]
    scores = [s for (s,) in target_log_probs(encoder, frames, targets, max_tokens=max_tokens)]
    margins = [scores[i] - scores[i + 1] for i in range(0, len(scores), 2)]
    return preference(margins, encoder.name)


def judge_pairs(
    encoder: Encoder, pairs: Sequence[MinimalPair], *, max_tokens: int = 4096
) -> Preference:
    """Preference for the good member of our minimal pairs, read at the target's mask.

    Where a target is one word in two contexts, its log-probability is compared across contexts.
    Words of several pieces in this model's vocabulary are compared by whole-sentence PLL, so
    that any tokenizer can be judged.

    Raises:
        UnequalPairError: no pairs.
        MissingHeadError: no trained MLM head.
    """
    words = {word for pair in pairs for word in (pair.good_word, pair.bad_word)}
    for word in words:
        checked_text(word, "a target word")
    tokenizer = encoder.tokenizer
    if any(len(tokenizer.tokenize(f" {word}")) != 1 for word in words):
        return compare_sentences(encoder, pairs, max_tokens=max_tokens)
    if all(pair.contrast == "target" for pair in pairs):
        return compare_at_mask(
            encoder,
            [spell_mask(encoder, pair.frame) for pair in pairs],
            [pair.good_word for pair in pairs],
            [pair.bad_word for pair in pairs],
            max_tokens=max_tokens,
        )
    return compare_contexts(
        encoder,
        [spell_mask(encoder, pair.good_frame) for pair in pairs],
        [spell_mask(encoder, pair.bad_frame) for pair in pairs],
        [pair.good_word for pair in pairs],
        max_tokens=max_tokens,
    )
