"""One builder method for each phenomenon besides agreement: anaphors, determiners, polarity."""

from __future__ import annotations

from bertology_utils.stimuli._clauses import REFLEXIVE_VERBS
from bertology_utils.stimuli._pair_agreement import OTHER, AgreementPairs, Draft
from bertology_utils.stimuli._syntax import HEAD, NP, Clause, Leaf, NoChoice, Phrase, phrase
from bertology_utils.stimuli._verb_groups import TAM

_NPI_VERBS = frozenset(
    "visit see meet help read write play drive paint praise thank trust love hear discuss touch "
    "steal eat drink cook follow attack".split()
)


class PairBuilder(AgreementPairs):
    """Drafts of minimal pairs; the method is named after the phenomenon."""

    # -- anaphors --------------------------------------------------------------------------------

    def _himself(self, subject: NP) -> tuple[Phrase, Leaf, Leaf, Leaf]:
        verbs = [v for v in self.lexicon.verbs_of("transitive") if v.lemma in REFLEXIVE_VERBS]
        verb = self.fresh([v for v in verbs if self._accepts(v, subject)])
        form = self.reflexive_form(subject)
        leaf = Leaf(form, form, "PRON", "Case=Acc|PronType=Prs|Reflex=Yes", "person")
        tail: list[tuple[str, Phrase]] = [("obj", phrase("NP", (HEAD, leaf)))]
        vp, finite, main = self.predicate(subject, verb, TAM("past"), tail)
        self.record.coreference.append((leaf, subject.head))
        self.note_roles(verb, main, subject.head, leaf)
        return vp, finite, main, leaf

    def _other_number(self, form: str) -> str:
        if form == "themselves":
            return self.draw.pick(["himself", "herself"])
        return "themselves"

    def reflexive_simple(self) -> Draft:
        subject = self.subject("person")
        vp, finite, main, leaf = self._himself(subject)
        clause = self.finish(subject, vp, finite, main, TAM("past"), "reflexive")
        return Draft(clause, leaf, self._other_number(leaf.form), subject=subject.head)

    def reflexive_object_rc(self) -> Draft:
        subject = self.subject("person", adjective=False)
        self.use_number(OTHER[self.number])
        verbs = [v for v in self.lexicon.verbs_of("transitive") if subject.noun is not None
                 and subject.noun.lemma in v.objects and "man" in v.subjects]  # fmt: skip
        if not verbs:
            raise NoChoice
        rc = self.relative_clause(subject, 0, "object", "past")
        subject.phrase = phrase("NP", (HEAD, subject.phrase), ("acl:relcl", rc))
        self.record.embedding = 1
        vp, finite, main, leaf = self._himself(subject)
        clause = self.finish(subject, vp, finite, main, TAM("past"), "reflexive")
        return Draft(
            clause, leaf, self._other_number(leaf.form), subject=subject.head, attractors=1
        )

    def reflexive_complement(self) -> Draft:
        outer = self.noun_phrase(
            self.subject_noun("person"), OTHER[self.number], "the", adjective=False
        )
        inner = self.subject("person", adjective=False)
        vp, finite, _, leaf = self._himself(inner)
        body = self.declarative(inner, "nsubj", vp)
        verb = self.fresh(self.lexicon.verbs_of("clausal"))
        sbar = phrase("SBAR", ("mark", Leaf("that", "that", "SCONJ")), (HEAD, body))
        top, top_finite, top_main = self.predicate(outer, verb, TAM("past"), [("ccomp", sbar)])
        self.record.embedding = 1
        clause = self.finish(outer, top, top_finite, top_main, TAM("past"), "reflexive")
        return Draft(clause, leaf, self._other_number(leaf.form), subject=inner.head, attractors=1)

    def anaphor_gender(self) -> Draft:
        gender = "m" if self.number == "sing" else "f"  # balanced like number elsewhere
        if self.draw.chance(0.5):
            subject = self.name(gender)
        else:
            nouns = [n for n in self.lexicon.nouns_of("person") if n.gender == gender]
            subject = self.noun_phrase(self.fresh(nouns), "sing", "the")
        vp, finite, main, leaf = self._himself(subject)
        clause = self.finish(subject, vp, finite, main, TAM("past"), "reflexive")
        wrong = "herself" if leaf.form == "himself" else "himself"
        return Draft(clause, leaf, wrong, subject=subject.head, features={"gender": gender})

    # -- determiner and noun ---------------------------------------------------------------------

    def _demonstrative(self, *, adjective: bool, irregular: bool | None, target: str) -> Draft:
        # "They knew that author" could go on as a clause, so no verb that takes one.
        clausal = {v.lemma for v in self.lexicon.verbs_of("clausal")} | {"warn"}
        verbs = [v for v in self.lexicon.verbs_of("transitive")
                 if "man" in v.subjects and v.lemma not in clausal]  # fmt: skip
        verb = self.fresh(verbs)
        nouns = [n for n in self.objects_of(verb) if n.plural
                 and (irregular is None or n.irregular == irregular)]  # fmt: skip
        noun = self.fresh(nouns)
        near = {"sing": ["this", "that"], "plur": ["these", "those"]}
        word = self.draw.pick(near[self.number])
        obj = self.noun_phrase(noun, self.number, word, adjective=adjective)
        leaves = list(obj.phrase.leaves())
        if adjective and len(leaves) < 3:
            raise NoChoice
        if self.draw.chance(0.6):
            subject = self.name(self.draw.pick(["m", "f"]))
        else:
            subject = self.plain_np(self.lexicon.nouns_of("person"))
        tam = TAM("past")
        vp, finite, main = self.predicate(subject, verb, tam, [("obj", obj.phrase)])
        self.note_roles(verb, main, subject.head, obj.head)
        clause = self.finish(subject, vp, finite, main, tam, "determiner_noun", obj)
        if target == "noun":
            return Draft(clause, obj.head, noun.form(OTHER[self.number]))
        flip = {"this": "these", "these": "this", "that": "those", "those": "that"}
        return Draft(clause, leaves[0], flip[word])

    def determiner_noun(self) -> Draft:
        return self._demonstrative(adjective=False, irregular=False, target="noun")

    def determiner_noun_irregular(self) -> Draft:
        return self._demonstrative(adjective=False, irregular=True, target="noun")

    def determiner_noun_adjective(self) -> Draft:
        return self._demonstrative(adjective=True, irregular=None, target="noun")

    def noun_determiner(self) -> Draft:
        return self._demonstrative(adjective=False, irregular=None, target="determiner")

    # -- negative polarity -----------------------------------------------------------------------

    def _npi_body(self, subject: NP, word: str) -> tuple[Clause, Leaf]:
        verbs = [v for v in self.lexicon.verbs_of("transitive") if v.lemma in _NPI_VERBS
                 and self._accepts(v, subject)]  # fmt: skip
        verb = self.fresh(verbs)
        obj = self.plain_np(self.objects_of(verb))
        groups, main = self.verb_group(verb, subject, TAM("pres", perfect=True))
        assert main is not None
        npi = Leaf(word, word, "ADV")
        core = phrase("VP", (HEAD, main), ("obj", obj.phrase))
        vp = phrase("VP", groups[0], ("advmod", phrase("ADVP", (HEAD, npi))), (HEAD, core))
        finite = groups[0][1]
        self.record.agreements.append((subject.head, finite, subject.number))
        self.note_roles(verb, main, subject.head, obj.head)
        clause = self.finish(subject, vp, finite, main, TAM("pres"), "npi", obj)
        return clause, npi

    def npi_presence(self) -> Draft:
        subject = self.subject("person", determiner=self.draw.pick(["the", "the", "this"])
                               if self.number == "sing" else "the")  # fmt: skip
        word = self.draw.pick(["also", "often", "already", "really"])
        clause, npi = self._npi_body(subject, word)
        return Draft(clause, npi, "ever", subject=subject.head)

    def npi_licensor(self) -> Draft:
        word = "no" if self.number == "sing" else self.draw.pick(["no", "few"])
        subject = self.subject("person", determiner=word, adjective=False)
        clause, _ = self._npi_body(subject, "ever")
        cue = next(subject.phrase.leaves())
        others = ["the", "this", "that"] if self.number == "sing" else ["the", "these", "many"]
        self.record.negations.append((cue, clause.phrase))
        return Draft(clause, cue, self.draw.pick(others), subject=subject.head)

    def npi_negation(self) -> Draft:
        subject = self.subject("person", adjective=False)
        verbs = [v for v in self.lexicon.verbs_of("transitive")
                 if "man" in v.subjects and v.participle and not v.stative]  # fmt: skip
        verb = self.fresh(verbs)
        obj = self.noun_phrase(self.fresh([n for n in self.objects_of(verb) if n.plural]), "plur",
                               "any", adjective=False)  # fmt: skip
        tam = TAM("pres", perfect=True, negated=True)
        vp, finite, main = self.predicate(subject, verb, tam, [("obj", obj.phrase)])
        self.note_roles(verb, main, subject.head, obj.head)
        clause = self.finish(subject, vp, finite, main, tam, "npi", obj)
        cue = next(leaf for leaf in clause.phrase.leaves() if leaf.form == "not")
        return Draft(clause, cue, self.draw.pick(["now", "also", "just"]), subject=subject.head)

    def npi_scope(self) -> Draft:
        self.use_number("plur" if self.draw.chance(0.5) else "sing")
        subject = self.subject("person", determiner="no", adjective=False)
        rc = self.relative_clause(subject, 0, "object", "past")
        inside = [leaf for leaf in rc.leaves() if leaf.upos == "DET"]
        if len(inside) != 1 or len(list(rc.leaves())) != 4:
            raise NoChoice
        inside[0].form = inside[0].lemma = "the"
        cue = next(subject.phrase.leaves())
        subject.phrase = phrase("NP", (HEAD, subject.phrase), ("acl:relcl", rc))
        self.record.embedding = 1
        clause, npi = self._npi_body(subject, "ever")
        self.record.negations.append((cue, clause.phrase))
        return Draft(clause, npi, swap=(cue, inside[0]), subject=subject.head)

    # -- argument structure ----------------------------------------------------------------------

    def animate_subject(self) -> Draft:
        verbs = [v for v in self.lexicon.verbs_of("transitive")
                 if "man" in v.subjects and "car" not in v.subjects and not v.stative]  # fmt: skip
        verb = self.fresh(verbs)
        subject = self.subject("person", adjective=False)
        obj = self.plain_np(self.objects_of(verb))
        tam = TAM("past")
        vp, finite, main = self.predicate(subject, verb, tam, [("obj", obj.phrase)])
        self.note_roles(verb, main, subject.head, obj.head)
        clause = self.finish(subject, vp, finite, main, tam, "argument", obj)
        thing = self.fresh([n for n in self.lexicon.nouns_of("furniture", "clothing", "building")
                            if n.plural])  # fmt: skip
        return Draft(clause, subject.head, thing.form(self.number), subject=subject.head)

    def irregular_participle(self) -> Draft:
        verbs = [v for v in self.lexicon.verbs_of("transitive") if v.irregular
                 and v.past != v.participle and "man" in v.subjects and not v.stative]  # fmt: skip
        verb = self.fresh(verbs)
        subject = self.subject("person", adjective=False)
        obj = self.plain_np(self.objects_of(verb))
        perfect = self.draw.chance(0.5)
        tam = TAM("pres", perfect=perfect) if perfect else TAM("past")
        vp, finite, main = self.predicate(subject, verb, tam, [("obj", obj.phrase)])
        self.note_roles(verb, main, subject.head, obj.head)
        clause = self.finish(subject, vp, finite, main, tam, "morphology", obj)
        wrong = verb.past if perfect else verb.participle
        return Draft(clause, main, wrong, subject=subject.head)
