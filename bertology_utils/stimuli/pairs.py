"""Minimal pairs by single feature flips, with the mask frame, distractors and gold structure."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertology_utils.stimuli import _roles
from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._pair_builders import Draft, PairBuilder
from bertology_utils.stimuli._syntax import Leaf, NoChoice, assemble
from bertology_utils.stimuli.lexicon import Lexicon, lexicon
from bertology_utils.stimuli.perturb import fix_articles, shuffle_words, substitute
from bertology_utils.stimuli.trees import Sentence, join_words

MASK = "[MASK]"

AGREEMENT = (
    "agreement_simple",
    "agreement_pp",
    "agreement_subject_rc",
    "agreement_object_rc",
    "agreement_object_rc_no_that",
    "agreement_in_object_rc",
    "agreement_in_object_rc_no_that",
    "agreement_complement",
    "agreement_vp_coordination",
    "agreement_vp_coordination_long",
    "agreement_attractors",
    "agreement_question",
)
PHENOMENA = (
    *AGREEMENT,
    "reflexive_simple",
    "reflexive_complement",
    "reflexive_object_rc",
    "anaphor_gender",
    "determiner_noun",
    "determiner_noun_irregular",
    "determiner_noun_adjective",
    "noun_determiner",
    "npi_presence",
    "npi_licensor",
    "npi_negation",
    "npi_scope",
    "animate_subject",
    "irregular_participle",
    "role_reversal",
)
_PATIENCE = 400  # draws in a row without a new pair before giving up
_NAMES = frozenset(name.lemma for name in lexicon("all").names)
VERSIONS = ("natural", "nonsense", "shuffled")


class PairError(ValueError):
    """An unknown phenomenon or version, or more pairs than can be made."""


@dataclass(frozen=True)
class MinimalPair:
    """A good and a bad sentence that differ by one feature.

    Word indices are 0-based. In a *target* contrast the sentences are equal except for one word,
    at ``good_target == bad_target``.  In a *context* contrast the target word is the same and two
    words of its context have changed places (role reversal, scope of a negative).

    ``subject`` is the word the target depends on; ``distractors`` are the other nouns before the
    target; ``attractors`` counts those whose number would favour the bad form.
    """

    phenomenon: str
    version: str
    good_words: tuple[str, ...]
    bad_words: tuple[str, ...]
    good_target: int
    bad_target: int
    contrast: str
    attractors: int = 0
    subject: int | None = None
    distractors: tuple[int, ...] = ()
    features: tuple[tuple[str, str], ...] = ()
    sentence: Sentence | None = field(default=None, compare=False)

    @property
    def good(self) -> str:
        return join_words(self.good_words)

    @property
    def bad(self) -> str:
        return join_words(self.bad_words)

    @property
    def good_word(self) -> str:
        return self.good_words[self.good_target]

    @property
    def bad_word(self) -> str:
        return self.bad_words[self.bad_target]

    @property
    def good_frame(self) -> str:
        """The good sentence with [MASK] for the target."""
        return _frame(self.good_words, self.good_target)

    @property
    def bad_frame(self) -> str:
        """The bad sentence with [MASK] for the target; equals good_frame in a target contrast."""
        return _frame(self.bad_words, self.bad_target)

    @property
    def frame(self) -> str:
        """The shared frame of a target contrast; PairError for a context contrast."""
        if self.contrast != "target":
            raise PairError(f"{self.phenomenon!r} contrasts contexts: use good_frame and bad_frame")
        return self.good_frame

    def feature(self, name: str) -> str:
        """A feature such as "number"; KeyError when the pair has none of that name."""
        return dict(self.features)[name]


def _frame(words: tuple[str, ...], target: int) -> str:
    return join_words(MASK if i == target else word for i, word in enumerate(words))


def minimal_pairs(
    phenomenon: str,
    n: int,
    seed: int = 0,
    *,
    split: str = "all",
    version: str = "natural",
    attractors: int = 1,
    intervening: int | None = None,
) -> list[MinimalPair]:
    """``n`` different minimal pairs.

    The good subject is singular and plural in turn (masculine and feminine for "anaphor_gender"),
    so a preference for one form scores one half.

    Args:
        phenomenon: one of :data:`PHENOMENA`.
        split: words of the lexicon to use ("all", "train", "test").
        version: "natural"; "nonsense" (content words replaced, Gulordava et al. 2018); or
            "shuffled" (the context in random order, the target in place).
        attractors: for "agreement_attractors", nouns of the opposite number between subject and
            verb (0 to 3).
        intervening: for "agreement_attractors", all nouns between subject and verb; default
            ``attractors``.  Fix it to hold length constant while ``attractors`` varies.

    Raises PairError for unknown names, impossible counts, or when fewer than ``n`` different
    pairs were found.
    """
    if phenomenon not in PHENOMENA:
        raise PairError(f"unknown phenomenon {phenomenon!r}; known: {', '.join(PHENOMENA)}")
    if version not in VERSIONS:
        raise PairError(f"unknown version {version!r}; known: {', '.join(VERSIONS)}")
    if n < 1:
        raise PairError(f"n must be at least 1, not {n}")
    between = attractors if intervening is None else intervening
    if not 0 <= attractors <= between <= 3:
        raise PairError(f"need 0 <= attractors <= intervening <= 3, not {attractors} and {between}")
    words = lexicon(split)
    out: list[MinimalPair] = []
    seen: set[tuple[str, str]] = set()
    misses = 0
    index = 0
    while len(out) < n:
        number = "sing" if len(out) % 2 == 0 else "plur"
        key = f"{phenomenon}.{attractors}.{between}.{seed}.{index}"
        index += 1
        pair = _one(phenomenon, words, number, key, version, attractors, between)
        if pair is None or (pair.good, pair.bad) in seen:
            misses += 1
            if misses > _PATIENCE:
                raise PairError(
                    f"only {len(out)} different pairs of {phenomenon!r} ({version}) in the "
                    f"{split!r} words; {n} were asked for"
                )
            continue
        misses = 0
        seen.add((pair.good, pair.bad))
        out.append(pair)
    return out


def _one(
    phenomenon: str, words: Lexicon, number: str, key: str, version: str, attractors: int,
    between: int,
) -> MinimalPair | None:  # fmt: skip
    draw = Draw("pair", words.split, key)
    if phenomenon == "role_reversal":
        good, bad, target = _roles.reversal(draw, words)
        pair = MinimalPair(phenomenon, version, good, bad, target, target, "context")
        if version == "nonsense":
            raise PairError("role reversal has no nonsense version: it is about meaning")
        return _shuffled(pair, key) if version == "shuffled" else pair
    builder = PairBuilder(words, draw, number, attractors, between)
    try:
        draft = getattr(builder, phenomenon)()
    except NoChoice:
        return None
    if version == "nonsense":
        _make_nonsense(draft, builder, phenomenon)
    pair = _finish(phenomenon, draft, builder, number, version, key)
    return _shuffled(pair, key) if version == "shuffled" else pair


def _make_nonsense(draft: Draft, builder: PairBuilder, phenomenon: str) -> None:
    gendered = phenomenon.startswith(("reflexive", "anaphor"))
    if phenomenon in ("animate_subject", "irregular_participle") or (
        phenomenon.startswith("determiner_noun")
    ):
        raise PairError(f"{phenomenon!r} has no nonsense version: its target is a content word")
    leaves = list(draft.clause.phrase.leaves())
    for leaf in leaves:
        new = substitute(leaf.lemma, leaf.upos, leaf.feats, builder.draw, builder.lexicon, gendered)
        if new is not None:
            leaf.form, leaf.lemma = new
    forms = [leaf.form for leaf in leaves]
    fix_articles(forms, [leaf.lemma for leaf in leaves])
    for leaf, form in zip(leaves, forms, strict=True):
        leaf.form = form


def _finish(
    phenomenon: str, draft: Draft, builder: PairBuilder, number: str, version: str, key: str
) -> MinimalPair:
    clause = draft.clause
    question = clause.construction == "question"
    clause.phrase.parts.append(Leaf("?" if question else ".", "?" if question else ".", "PUNCT"))
    clause.phrase.rels.append("punct")
    leaves = list(clause.phrase.leaves())
    at = {id(leaf): i for i, leaf in enumerate(leaves)}
    sentence = assemble(clause.phrase, clause, builder.record, key)
    target = at[id(draft.target)]
    bad = [leaf.form for leaf in leaves]
    if draft.swap is not None:
        a, b = (at[id(leaf)] for leaf in draft.swap)
        bad[a], bad[b] = bad[b], bad[a]
    else:
        bad[target] = builder.wrong_form(draft)
    bad[0] = bad[0][0].upper() + bad[0][1:]
    subject = None if draft.subject is None else at[id(draft.subject)]
    distractors = tuple(
        i for i in range(target) if leaves[i].upos == "NOUN" and i != subject
    )  # fmt: skip
    features = dict(draft.features or {"number": number})
    return MinimalPair(
        phenomenon, version, sentence.words, tuple(bad), target, target,
        "context" if draft.swap else "target", draft.attractors, subject, distractors,
        tuple(sorted(features.items())), sentence,
    )  # fmt: skip


def _shuffled(pair: MinimalPair, key: str) -> MinimalPair:
    """The same permutation of both contexts; the target keeps its place."""
    order = tuple(str(i) for i in range(len(pair.good_words) - 1))
    moved = shuffle_words(order, 1.0, key, keep=(pair.good_target,))
    places = [int(i) for i in moved] + [len(order)]

    def apply(words: tuple[str, ...]) -> tuple[str, ...]:
        first = words[0] if words[0].lower() in _NAMES else words[0].lower()
        plain = [first, *words[1:]]
        out = [plain[i] for i in places]
        out[0] = out[0][0].upper() + out[0][1:]
        return tuple(out)

    back = {old: new for new, old in enumerate(places)}
    return MinimalPair(
        pair.phenomenon, "shuffled", apply(pair.good_words), apply(pair.bad_words),
        pair.good_target, pair.bad_target, pair.contrast, pair.attractors,
        None if pair.subject is None else back[pair.subject],
        tuple(sorted(back[i] for i in pair.distractors)), pair.features,
    )  # fmt: skip
