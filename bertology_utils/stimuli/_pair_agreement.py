"""Drafts of agreement pairs: a good sentence, the word that decides, and its wrong form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertology_utils.stimuli._clauses import Clauses
from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._phrases import GrammarConfig
from bertology_utils.stimuli._syntax import HEAD, NP, Clause, Leaf, NoChoice, Phrase, phrase
from bertology_utils.stimuli._verb_groups import TAM
from bertology_utils.stimuli.lexicon import Lexicon, Noun, Verb

PLAIN = GrammarConfig(
    adjective=0.12, noun_pp=0, verb_pp=0, adverb=0, name=0, pronoun=0, genitive=0, own=0,
    np_coordination=0, negation=0, embedding=(1,),
)  # fmt: skip
OTHER = {"sing": "plur", "plur": "sing"}
_BE_HAVE_DO = {
    "is": "are", "was": "were", "has": "have", "does": "do",
    "are": "is", "were": "was", "have": "has", "do": "does",
}  # fmt: skip
# Verbs that read well in the simple present without an adverb.
_PRESENT = frozenset(
    "see hear love like hate know trust fear respect need own remember visit help watch follow "
    "drive play write read sleep laugh smile sing dance work travel run walk wait talk speak cook "
    "drink eat sell wear teach paint call meet praise describe dream rest cry shout".split()
)


def _shows_number(verb: Verb) -> bool:
    """True for verbs of the simple present whose base form is wrong for a singular subject.

    "The pilot read it" is right as a past tense, so "read" cannot be the bad form.
    """
    return verb.lemma in _PRESENT and verb.past != verb.base


@dataclass(eq=False)
class Draft:
    """A good sentence under construction and how to spoil it.

    ``bad`` is the wrong form of the target leaf; None means "the other number of this verb".
    ``swap`` names two leaves to exchange instead (the target then stays the same).
    """

    clause: Clause
    target: Leaf
    bad: str | None = None
    swap: tuple[Leaf, Leaf] | None = None
    subject: Leaf | None = None
    attractors: int = 0
    features: dict[str, str] | None = None


class AgreementPairs(Clauses):
    """Drafts of agreement pairs for a wanted subject number ("sing" or "plur")."""

    def __init__(self, lexicon: Lexicon, draw: Draw, number: str, attractors: int, between: int):
        super().__init__(lexicon, draw, PLAIN)
        self.number = number
        self.n_attractors = attractors
        self.n_between = between

    def tam(self, verb: Verb | None, tense: str | None = None, *, plain: bool = False) -> TAM:
        """The simple tenses only: a pair should differ in nothing but its phenomenon."""
        return TAM(tense or "past")

    def frequency(self, tam: TAM, verb: Verb | None) -> Leaf | None:
        return None

    # -- pieces ----------------------------------------------------------------------------------

    def use_number(self, number: str) -> None:
        """Make every noun phrase drawn from here on have this number."""
        self.config = replace(self.config, plural=1.0 if number == "plur" else 0.0)

    def subject_noun(self, *kinds: str, plural_known: bool = True) -> Noun:
        nouns = [n for n in self.lexicon.nouns_of(*kinds) if n.plural or not plural_known]
        return self.fresh(nouns)

    def subject(self, *kinds: str, determiner: str = "the", modifier: Phrase | None = None,
                noun: Noun | None = None, adjective: bool | None = None) -> NP:  # fmt: skip
        noun = noun or self.subject_noun(*kinds)
        return self.noun_phrase(
            noun, self.number, determiner, modifier=modifier, adjective=adjective
        )

    def agreeing(self, subject: NP, styles: Sequence[str] = ("be", "verb", "have")) -> tuple:
        """(vp, finite leaf, verb leaf, TAM, object) with a finite word that shows number."""
        style = self.draw.pick(styles)
        noun = subject.noun
        if noun is None:
            raise NoChoice
        if style == "be":
            tam = TAM(self.draw.pick(["pres", "past"]))
            said = [a for a in self.lexicon.predicates_for(noun) if a.lemma not in self.record.used]
            if noun.animate and (not said or self.draw.chance(0.3)):
                core = self.location(plain=True)
            elif noun.kind in ("object", "document") and (not said or self.draw.chance(0.3)):
                core = self.surface("sing")
            elif said:
                word = self.fresh(said).lemma
                core = phrase("ADJP", (HEAD, Leaf(word, word, "ADJ", "Degree=Pos")))
            else:
                raise NoChoice
            vp, finite, verb = self.predicate(subject, None, tam, core=core)
            return vp, finite, verb, tam, None
        perfect = style == "have"
        frames = ("intransitive", "transitive", "oblique")
        options = [
            v
            for frame in frames
            for v in self.lexicon.verbs_of(frame)
            if noun.lemma in v.subjects
            and v.lemma not in self.record.used
            and (perfect and not v.stative or _shows_number(v))
        ]
        verb_entry = self.fresh(options)
        tam = TAM("pres", perfect=perfect)
        complements: list[tuple[str, Phrase]] = []
        obj = None
        if verb_entry.frame == "transitive":
            obj = self.plain_np(self.objects_of(verb_entry), OTHER[self.number])
            complements.append(("obj", obj.phrase))
        elif verb_entry.frame == "oblique":
            target = self.plain_np(self.objects_of(verb_entry), OTHER[self.number])
            complements.append(("obl", self.pp(verb_entry.preposition or "", target)))
        groups, main = self.verb_group(verb_entry, subject, tam)
        core = phrase("VP", (HEAD, main), *complements)
        vp = phrase("VP", groups[0], (HEAD, core)) if groups else core
        finite = groups[0][1] if groups else main
        assert main is not None and finite is not None
        self.record.agreements.append((subject.head, finite, subject.number))
        self.note_roles(verb_entry, main, subject.head, obj.head if obj else None)
        return vp, finite, main, tam, obj

    def sentence(self, subject: NP, made: tuple, construction: str) -> Clause:
        vp, finite, verb, tam, obj = made
        return self.finish(subject, vp, finite, verb, tam, construction, obj)

    def steps(self, noun: Noun) -> list[tuple[str, Sequence[Noun]]]:
        """(preposition, nouns) that may modify a noun in a chain of phrases."""
        own = [(r.preposition, self.lexicon.nouns_among(r.complements))
               for r in self.lexicon.complements_of(noun) if r.preposition != "of"
               or noun.kind == "person"]  # fmt: skip
        if own and self.draw.chance(0.5):
            return own
        sites = self.lexicon.nouns_of("building", "place")
        if noun.kind in ("person", "animal", "vehicle", "plant", "building", "place"):
            return [(p, sites) for p in ("near", "beside", "behind")]
        if noun.kind == "furniture":
            return [(p, self.lexicon.nouns_of("furniture")) for p in ("near", "beside", "behind")]
        return [(p, self.lexicon.nouns_of("furniture")) for p in ("on", "near", "beside", "under")]

    def chain(self, noun: Noun, numbers: Sequence[str]) -> Phrase | None:
        """Prepositional phrases nested to the right, one noun per given number."""
        if not numbers:
            return None
        steps = [s for s in self.steps(noun) if s[0] not in self.record.used]
        if not steps:
            raise NoChoice
        preposition, nouns = self.draw.pick(steps)
        if preposition in ("near", "beside", "behind", "under"):
            self.record.used.add(preposition)  # "near ... near ..." reads badly
        inner = self.fresh([n for n in nouns if n.plural])
        below = self.chain(inner, numbers[1:])
        np = self.noun_phrase(inner, numbers[0], "the", adjective=False, modifier=below)
        return self.pp(preposition, np)

    # -- agreement -------------------------------------------------------------------------------

    _KINDS = ("person", "person", "animal", "object", "vehicle", "document", "building")

    def agreement_simple(self) -> Draft:
        subject = self.subject(self.draw.pick(self._KINDS))
        made = self.agreeing(subject)
        return Draft(self.sentence(subject, made, "agreement"), made[1], subject=subject.head)

    def agreement_pp(self) -> Draft:
        self.n_attractors = self.n_between = 1
        return self.agreement_attractors()

    def agreement_attractors(self) -> Draft:
        numbers = [OTHER[self.number]] * self.n_attractors
        numbers += [self.number] * (self.n_between - self.n_attractors)
        numbers = self.draw.shuffled(numbers)
        noun = self.subject_noun(self.draw.pick(self._KINDS))
        subject = self.subject(noun=noun, modifier=self.chain(noun, numbers), adjective=False)
        made = self.agreeing(subject)
        return Draft(
            self.sentence(subject, made, "agreement"), made[1], subject=subject.head,
            attractors=self.n_attractors,
        )  # fmt: skip

    def _relative(self, form: str) -> tuple[NP, Phrase]:
        kinds = ("person", "person", "animal", "object", "document", "vehicle")
        noun = self.subject_noun(self.draw.pick(kinds if form != "subject" else kinds[:3]))
        subject = self.subject(noun=noun, adjective=False)
        self.use_number(OTHER[self.number])
        if form == "subject":
            options = [
                v for v in self.lexicon.verbs_of("transitive") if noun.lemma in v.subjects
                and any(n.plural for n in self.objects_of(v)) and v.lemma not in self.record.used
            ]  # fmt: skip
            verb = self.fresh(options)
            nouns = [n for n in self.objects_of(verb) if n.plural]
            obj = self.noun_phrase(self.fresh(nouns), OTHER[self.number], "the", adjective=False)
            word = self.draw.pick(["who", "that"]) if noun.kind == "person" else "that"
            wh = phrase("WHNP", (HEAD, Leaf(word, word, "PRON", "PronType=Rel")))
            _, leaf = self.verb_group(verb, subject, TAM("past"))
            assert leaf is not None
            self.record.agreements.append((subject.head, leaf, subject.number))
            self.note_roles(verb, leaf, subject.head, obj.head)
            body = phrase("S", (HEAD, phrase("VP", (HEAD, leaf), ("obj", obj.phrase))))
            clause = phrase("SBAR", ("nsubj", wh), (HEAD, body))
        else:
            clause = self.relative_clause(subject, 0, form, "past")
        subject.phrase = phrase("NP", (HEAD, subject.phrase), ("acl:relcl", clause))
        self.record.embedding = 1
        return subject, clause

    def _across(self, form: str) -> Draft:
        subject, _ = self._relative(form)
        made = self.agreeing(subject, ("be", "be", "verb", "have"))
        return Draft(
            self.sentence(subject, made, "agreement"), made[1], subject=subject.head, attractors=1
        )

    def agreement_subject_rc(self) -> Draft:
        return self._across("subject")

    def agreement_object_rc(self) -> Draft:
        return self._across("object")

    def agreement_object_rc_no_that(self) -> Draft:
        return self._across("object_zero")

    def _inside(self, with_that: bool) -> Draft:
        """The verb of the relative clause itself is the target; the outer noun distracts."""
        outer = self.subject_noun("person", "document", "object", "animal")
        verbs = [v for v in self.lexicon.verbs_of("transitive")
                 if outer.lemma in v.objects and "man" in v.subjects
                 and _shows_number(v)]  # fmt: skip
        verb = self.fresh(verbs)
        head = self.noun_phrase(outer, OTHER[self.number], "the", adjective=False)
        inner = self.subject("person", adjective=False)
        _, leaf = self.verb_group(verb, inner, TAM("pres"))
        assert leaf is not None
        self.record.agreements.append((inner.head, leaf, inner.number))
        self.note_roles(verb, leaf, inner.head, head.head)
        body = self.declarative(inner, "nsubj", phrase("VP", (HEAD, leaf)))
        wh = phrase("WHNP", (HEAD, Leaf("that", "that", "PRON", "PronType=Rel")))
        clause = phrase("SBAR", ("obj", wh if with_that else None), (HEAD, body))
        head.phrase = phrase("NP", (HEAD, head.phrase), ("acl:relcl", clause))
        saved, self.number = self.number, OTHER[self.number]
        made = self.agreeing(head, ("be",))
        self.number = saved
        self.record.embedding = 1
        return Draft(self.sentence(head, made, "agreement"), leaf, subject=inner.head, attractors=1)

    def agreement_in_object_rc(self) -> Draft:
        return self._inside(True)

    def agreement_in_object_rc_no_that(self) -> Draft:
        return self._inside(False)

    def agreement_complement(self) -> Draft:
        self.record.embedding = 1
        teller = self.subject_noun("person")
        outer = self.noun_phrase(teller, OTHER[self.number], "the", adjective=False)
        inner = self.subject(self.draw.pick(self._KINDS), adjective=False)
        made = self.agreeing(inner)
        body = self.declarative(inner, "nsubj", made[0])
        verb = self.fresh(self.lexicon.verbs_of("clausal"))
        that = Leaf("that", "that", "SCONJ")
        sbar = phrase("SBAR", ("mark", that), (HEAD, body))
        # The tenses must agree too: "said that the keys were here", "says that they are".
        tense = made[3].tense
        vp, finite, leaf = self.predicate(outer, verb, TAM(tense), [("ccomp", sbar)])
        clause = self.finish(outer, vp, finite, leaf, TAM(tense), "agreement")
        return Draft(clause, made[1], subject=inner.head, attractors=1)

    def _coordinated(self, long: bool) -> Draft:
        subject = self.subject("person")
        first = self.agreeing(subject, ("verb",))
        if any(leaf.upos == "NOUN" for leaf in first[0].leaves()) != long:
            raise NoChoice
        second = self.agreeing(subject, ("verb",))
        conj = Leaf("and", "and", "CCONJ")
        vp = phrase("VP", (HEAD, first[0]), ("cc>2", conj), ("conj", second[0]))
        clause = self.sentence(subject, (vp, *first[1:]), "agreement")
        attractor = 1 if long else 0
        return Draft(clause, second[1], subject=subject.head, attractors=attractor)

    def agreement_vp_coordination(self) -> Draft:
        return self._coordinated(False)

    def agreement_vp_coordination_long(self) -> Draft:
        return self._coordinated(True)

    def agreement_question(self) -> Draft:
        noun = self.subject_noun("person", "object", "animal", "document")
        subject = self.subject(noun=noun)
        tam = TAM(self.draw.pick(["pres", "past"]))
        said = self.lexicon.predicates_for(noun)
        if said and self.draw.chance(0.6):
            word = self.fresh(said).lemma
            core = phrase("ADJP", (HEAD, Leaf(word, word, "ADJ", "Degree=Pos")))
        else:
            core = self.location(plain=True) if noun.animate else self.surface("sing")
        groups, _ = self.verb_group(None, subject, tam, inverted=True)
        finite = groups[0][1]
        self.record.agreements.append((subject.head, finite, subject.number))
        node = phrase("SQ", groups[0], ("nsubj", subject.phrase), (HEAD, core))
        clause = Clause(node, subject, finite, finite, tam.tense, "active", False, None, "question")
        return Draft(clause, finite, subject=subject.head)

    # -- wrong forms -----------------------------------------------------------------------------

    def wrong_form(self, draft: Draft) -> str:
        """The other-number form of a finite target ("is" -> "are", "sleeps" -> "sleep")."""
        if draft.bad is not None:
            return draft.bad
        form = draft.target.form
        if form in _BE_HAVE_DO and draft.target.upos == "AUX":
            return _BE_HAVE_DO[form]
        verb = next(v for v in self.lexicon.verbs if v.base == draft.target.lemma)
        return verb.third if form == verb.base else verb.base
