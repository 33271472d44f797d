"""The feature grammar: unlimited English sentences with exact gold structure, by seed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bertology_utils.stimuli._clauses import Clauses
from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._phrases import GrammarConfig
from bertology_utils.stimuli._syntax import (
    HEAD,
    NP,
    Clause,
    Leaf,
    NoChoice,
    Phrase,
    assemble,
    phrase,
)
from bertology_utils.stimuli._verb_groups import TAM
from bertology_utils.stimuli.lexicon import Lexicon, Verb, lexicon
from bertology_utils.stimuli.trees import Sentence, Treebank

CONSTRUCTIONS = (
    "intransitive", "oblique", "transitive", "ditransitive", "copular", "locative", "passive",
    "existential", "infinitive", "reflexive", "complement", "vp_coordination",
    "clause_coordination", "yes_no_question", "wh_question",
)  # fmt: skip

_EMBEDDABLE = ("intransitive", "oblique", "transitive", "ditransitive", "copular", "locative",
               "passive", "existential", "reflexive")  # fmt: skip
_MAX_TRIES = 400


class GrammarError(ValueError):
    """A request the grammar cannot satisfy."""


class Grammar:
    """Sentences over one lexicon.

    ``Grammar(lexicon("train")).sentence(seed=3)`` always returns the same sentence, on any machine.
    """

    def __init__(self, words: Lexicon | None = None, config: GrammarConfig | None = None):
        self.lexicon = words or lexicon("all")
        self.config = config or GrammarConfig()
        unknown = [name for name, _ in self.config.constructions if name not in CONSTRUCTIONS]
        if unknown:
            raise GrammarError(
                f"unknown construction {unknown[0]!r}; known: {', '.join(CONSTRUCTIONS)}"
            )

    def sentence(
        self, seed: int | str, *, construction: str | None = None, depth: int | None = None
    ) -> Sentence:
        """One sentence.

        ``construction`` fixes the main clause (one of :data:`CONSTRUCTIONS`); ``depth`` fixes the
        number of clauses nested inside one another (0 = a single clause).  Coordinated and
        adverbial clauses count as one level.

        Raises GrammarError for an unknown construction, a negative depth, or a combination that
        does not exist (an infinitive's embedded clause, for instance).
        """
        if construction is not None and construction not in CONSTRUCTIONS:
            raise GrammarError(
                f"unknown construction {construction!r}; known: {', '.join(CONSTRUCTIONS)}"
            )
        if depth is not None and depth < 0:
            raise GrammarError(f"depth must be at least 0, not {depth}")
        for attempt in range(_MAX_TRIES):
            draw = Draw("sentence", self.lexicon.split, seed, construction, depth, attempt)
            builder = _SentenceBuilder(self.lexicon, draw, self.config)
            try:
                return builder.build(construction, depth, str(seed))
            except NoChoice:
                continue
        raise GrammarError(
            f"no sentence with construction={construction!r}, depth={depth} "
            f"in the {self.lexicon.split!r} lexicon"
        )

    def treebank(
        self,
        n: int,
        seed: int = 0,
        *,
        construction: str | None = None,
        depth: int | None = None,
        min_words: int = 1,
        max_words: int = 60,
        exclude: Collection[str] = (),
    ) -> Treebank:
        """``n`` different sentences whose length lies within bounds, none of them in ``exclude``.

        A larger ``n`` with the same seed extends the smaller treebank.  ``exclude`` holds texts,
        for instance ``train.texts``.  Raises GrammarError when the constraints leave too few.
        """
        if n < 1:
            raise GrammarError(f"a treebank needs at least one sentence, not {n}")
        seen = set(exclude)
        out: list[Sentence] = []
        misses = 0
        index = 0
        while len(out) < n:
            made = self.sentence(f"{seed}.{index}", construction=construction, depth=depth)
            index += 1
            if made.text in seen or not min_words <= len(made) <= max_words:
                misses += 1
                if misses > 200 * (len(out) + 10):
                    raise GrammarError(
                        f"found only {len(out)} of {n} different sentences of {min_words} to "
                        f"{max_words} words"
                    )
                continue
            seen.add(made.text)
            out.append(made)
        return Treebank(f"grammar-{self.lexicon.split}", tuple(out), seed)


def treebank(n: int, seed: int = 0, split: str = "all", **options: Any) -> Treebank:
    """``n`` sentences over the words of a split; options as for :meth:`Grammar.treebank`.

    Treebanks of the splits "train" and "test" share no content word, hence no sentence.
    """
    return Grammar(lexicon(split)).treebank(n, seed, **options)


class _SentenceBuilder(Clauses):
    """Builds whole sentences out of clauses."""

    def build(self, construction: str | None, depth: int | None, sent_id: str) -> Sentence:
        if depth is None:
            depth = self.draw.weighted(list(enumerate(self.config.embedding)))
            fixed = False
        else:
            fixed = True
        if construction is None:
            options = list(self.config.constructions)
            if depth > 0:
                options = [(name, w) for name, w in options if name in _EMBEDDABLE]
                total = sum(w for _, w in options)
                options.append(("complement", 0.4 * total))
                if depth == 1:
                    options.append(("clause_coordination", 0.08 * total))
            else:
                options = [(name, w) for name, w in options
                           if name not in ("complement", "clause_coordination")]  # fmt: skip
            construction = self.draw.weighted(options)
        elif construction in ("complement", "clause_coordination"):
            depth = depth if fixed else max(depth, 1)
            if depth == 0:
                raise NoChoice
        self.record.embedding = depth
        question = construction.endswith("question")
        if construction in ("vp_coordination", "clause_coordination") or question:
            if depth > (1 if construction == "clause_coordination" else 0):
                if fixed:
                    raise NoChoice
                self.record.embedding = depth = 1 if construction == "clause_coordination" else 0
            clause = getattr(self, f"_{construction}_sentence")()
        else:
            if depth > 0 and construction not in (*_EMBEDDABLE, "complement", "infinitive"):
                raise NoChoice
            clause = self.clause(construction, depth)
        top = clause.phrase
        mark = Leaf("?" if question else ".", "?" if question else ".", "PUNCT")
        top.parts.append(mark)
        top.rels.append("punct")
        clause.construction = construction
        return assemble(top, clause, self.record, sent_id)

    def _vp_coordination_sentence(self) -> Clause:
        """ "The boy opens the door and closes the window." """
        verb = self.fresh([v for v in self.lexicon.verbs_of("transitive")
                           if "man" in v.subjects])  # fmt: skip
        subject = self.np(self.lexicon.nouns_of("person"))
        tense = self.draw.pick(["past", "past", "pres"])
        phrases = []
        first: tuple[Leaf, Leaf, NP] | None = None
        negated = False
        for chosen in (verb, None):
            if chosen is None:
                chosen = self.fresh([
                    v for frame in ("transitive", "intransitive", "oblique")
                    for v in self.lexicon.verbs_of(frame)
                    if "man" in v.subjects
                ])  # fmt: skip
            complements = []
            obj = None
            if chosen.frame == "transitive":
                obj = self._object(chosen, "", 0, subject)
                complements.append(("obj", obj.phrase))
            elif chosen.frame == "oblique":
                target = self.plain_np(self.objects_of(chosen))
                complements.append(("obl", self.pp(chosen.preposition or "", target)))
            vp, finite, leaf = self.predicate(subject, chosen, TAM(tense), complements)
            self.note_roles(chosen, leaf, subject.head, obj.head if obj else None)
            phrases.append(vp)
            if first is None and obj is not None:
                first = (finite, leaf, obj)
        assert first is not None
        conj = Leaf("and", "and", "CCONJ")
        both = phrase("VP", (HEAD, phrases[0]), ("cc>2", conj), ("conj", phrases[1]))
        self.record.features.add("vp_coordination")
        node = self.declarative(subject, "nsubj", both)
        return Clause(
            node, subject, first[1], first[0], tense, "active", negated, first[2],
            "vp_coordination",
        )  # fmt: skip

    def _clause_coordination_sentence(self) -> Clause:
        """Two clauses joined by "and", "but", "because", "when", "before", "after", "while"."""
        tense = self.draw.pick(["past", "past", "past", "pres"])
        first = self.embedded(0, tense)
        back = None
        if (first.subject.animate and not first.subject.pronoun and first.subject.person == 3
                and first.subject.phrase.head_leaf().kind == "person"
                and self.draw.chance(0.4)):  # fmt: skip
            back = self.pronoun_for(first.subject)
        second = self.embedded(0, tense, back)
        word = self.draw.pick(["and", "but", "because", "when", "before", "after", "while"])
        self.record.features.add("clause_coordination" if word in ("and", "but") else "adverbial")
        if word in ("and", "but"):
            link = Leaf(word, word, "CCONJ")
            comma = Leaf(",", ",", "PUNCT")
            node = phrase(
                "S", (HEAD, first.phrase), ("punct>3", comma), ("cc>3", link),
                ("conj", second.phrase),
            )  # fmt: skip
        else:
            sbar = phrase("SBAR", ("mark", Leaf(word, word, "SCONJ")), (HEAD, second.phrase))
            if back is None and self.draw.chance(0.35):
                comma = Leaf(",", ",", "PUNCT")
                node = phrase("S", ("advcl", sbar), ("punct", comma), (HEAD, first.phrase))
            else:
                node = phrase("S", (HEAD, first.phrase), ("advcl", sbar))
        first.phrase = node
        return first

    # -- questions -------------------------------------------------------------------------------

    def invert(
        self, subject: NP, verb: Verb | None, tam: TAM, complements, *, core: Phrase | None = None,
        passive: bool = False,
    ) -> tuple[Phrase, Leaf, Leaf]:  # fmt: skip
        """ "did the boy see the dog": (SQ, finite auxiliary, main verb)."""
        groups, main = self.verb_group(verb, subject, tam, passive=passive, inverted=True)
        node = core if core is not None else phrase("VP", (HEAD, main), *complements)
        for rel, leaf in reversed(groups[1:]):
            node = phrase("VP", (rel, leaf), (HEAD, node))
        rel = "nsubj:pass" if passive else "nsubj"
        sq = phrase("SQ", groups[0], (rel, subject.phrase), (HEAD, node))
        finite = groups[0][1]
        self.record.agreements.append((subject.head, finite, subject.number))
        self.record.features.add("question")
        return sq, finite, main if main is not None else groups[-1][1]

    def _question_tam(self, verb: Verb) -> TAM:
        tam = self.tam(verb)
        modal = "can" if tam.modal in ("may", "must") else tam.modal
        return TAM(tam.tense, modal, tam.perfect, tam.progressive, False)

    def _yes_no_question_sentence(self) -> Clause:
        form = self.draw.pick(["transitive", "transitive", "intransitive", "copular", "locative"])
        obj = None
        if form in ("copular", "locative"):
            tam = TAM(self.draw.pick(["past", "pres"]))
            if form == "copular":
                nouns = [n for n in self.lexicon.nouns if self.lexicon.predicates_for(n)]
                noun = self.fresh(nouns)
                number = self.pick_number(noun)
                determiner = self.pick_determiner(noun, number, definite=True)
                subject = self.noun_phrase(noun, number, determiner)
                adjective = self.fresh(self.lexicon.predicates_for(noun))
                leaf = Leaf(adjective.lemma, adjective.lemma, "ADJ", "Degree=Pos")
                core = phrase("ADJP", (HEAD, leaf))
            else:
                kind = self.draw.pick(["person", "animal", "object"])
                noun = self.fresh(self.lexicon.nouns_of(kind))
                number = self.pick_number(noun)
                determiner = self.pick_determiner(noun, number, definite=True)
                subject = self.noun_phrase(noun, number, determiner)
                core = self.surface() if kind == "object" else self.location()
            sq, finite, main = self.invert(subject, None, tam, [], core=core)
        else:
            verb = self._verb(form, None)
            tam = self._question_tam(verb)
            subject = self.np(self.subjects_of(verb))
            complements = []
            if form == "transitive":
                obj = self.np(self.objects_of(verb), "acc")
                complements.append(("obj", obj.phrase))
            complements += self.adjunct(verb, tam)
            sq, finite, main = self.invert(subject, verb, tam, complements)
            self.note_roles(verb, main, subject.head, obj.head if obj else None)
        return Clause(sq, subject, main, finite, tam.tense, "active", False, obj, "")

    def _wh_question_sentence(self) -> Clause:
        form = self.draw.pick(["subject", "object", "which", "where"])
        if form == "where":
            verb = self.fresh([v for v in self.lexicon.verbs_of("transitive")
                               if v.lemma in _WHERE and self._accepts(v, None)])  # fmt: skip
        else:
            verb = self.fresh([v for v in self.lexicon.verbs_of("transitive")
                               if "man" in v.subjects])  # fmt: skip
        tam = self._question_tam(verb)
        if form == "subject":
            who = Leaf("who", "who", "PRON", "PronType=Int|Number=Sing", "person")
            subject = NP(phrase("WHNP", (HEAD, who)), who, "sing", 3, None, None, True, True)
            obj = self.np(self.objects_of(verb), "acc")
            vp, finite, main = self.predicate(subject, verb, tam, [("obj", obj.phrase)])
            node = phrase("SBARQ", ("nsubj", subject.phrase), (HEAD, vp))
            self.record.features.add("question")
        else:
            subject = self.np(self.subjects_of(verb))
            candidates = self.objects_of(verb)
            if form == "which":
                noun = self.fresh([n for n in candidates if n.plural])
                number = self.pick_number(noun)
                which = Leaf("which", "which", "DET", "PronType=Int")
                head = self.noun_leaf(noun, number)
                wh = phrase("WHNP", ("det", which), (HEAD, head))
                obj = NP(wh, head, number, 3, noun.gender, noun, noun.animate)
            elif form == "object":
                person = candidates[0].kind == "person"
                word = "who" if person else "what"
                leaf = Leaf(word, word, "PRON", "PronType=Int", "person" if person else "")
                obj = NP(phrase("WHNP", (HEAD, leaf)), leaf, "sing", 3, None, None, person, True)
            else:
                obj = self.np(candidates, "acc")
            inside = [("obj", obj.phrase)] if form == "where" else []
            sq, finite, main = self.invert(subject, verb, tam, inside)
            if form == "where":
                where = Leaf("where", "where", "ADV", "PronType=Int")
                node = phrase("SBARQ", ("advmod", phrase("WHADVP", (HEAD, where))), (HEAD, sq))
            else:
                node = phrase("SBARQ", ("obj", obj.phrase), (HEAD, sq))
        self.note_roles(verb, main, subject.head, obj.head)
        return Clause(node, subject, main, finite, tam.tense, "active", False, obj, "")


_WHERE = frozenset("see find meet buy hide lose read play build watch follow visit write".split())
