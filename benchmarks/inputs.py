"""The same inputs for both sides: sentences of mixed length, minimal pairs, words of trees."""

from bertology_utils.stimuli import minimal_pairs, passages, treebank


def sentences(n: int) -> list[str]:
    """``n`` different sentences and short paragraphs of about 3 to 60 words, lengths mixed.

    Three in four come from the grammar; every fourth is a run of one to four sentences of prose
    for as long as there is prose left.
    """
    runs = [
        " ".join(passage.sentences[start : start + length])
        for start in range(4)
        for length in range(1, 5 - start)
        for passage in passages()
    ]
    # A stride without a common divisor deals the lengths out evenly.
    prose = [runs[i * 7 % len(runs)] for i in range(min(len(runs), n // 4))]
    made = iter(treebank(n - len(prose)).texts)
    return [prose[i // 4] if i % 4 == 3 and i // 4 < len(prose) else next(made) for i in range(n)]


def pairs(n: int) -> list[tuple[str, str]]:
    """``n`` minimal pairs of agreement across an attractor: (good, bad)."""
    return [(pair.good, pair.bad) for pair in minimal_pairs("agreement_attractors", n)]
