"""Clauses of the grammar by construction; relative clauses and complements."""

from __future__ import annotations

from bertology_utils.stimuli._predicates import Predicates
from bertology_utils.stimuli._syntax import HEAD, NP, Clause, Leaf, NoChoice, Phrase, phrase
from bertology_utils.stimuli._verb_groups import TAM
from bertology_utils.stimuli.lexicon import Noun, Verb

REFLEXIVE_VERBS = frozenset(
    "see help protect trust love hate know describe praise save respect paint hear blame".split()
)
_COPULAR_KINDS = (
    "person", "person", "person", "person", "animal", "object", "clothing", "document",
    "furniture", "building", "place", "vehicle", "food", "drink", "abstract", "event",
)  # fmt: skip
_ZERO_THAT = frozenset({"say", "think", "hope", "believe", "know"})


class Clauses(Predicates):
    """Builds finite clauses. ``embed`` is always the number of clauses to nest inside."""

    # -- clauses by construction -----------------------------------------------------------------

    def clause(
        self,
        construction: str,
        embed: int = 0,
        tense: str | None = None,
        subject: NP | None = None,
    ) -> Clause:
        """A clause of the named construction, with ``embed`` nested clauses inside it."""
        vehicle = ""
        if embed > 0:
            options = {
                "intransitive": ["subject"], "oblique": ["subject"], "copular": ["subject"],
                "locative": ["subject"], "reflexive": ["subject"],
                "transitive": ["subject", "object"], "passive": ["subject"],
                "ditransitive": ["subject", "object"], "existential": ["object"],
                "infinitive": ["subject"], "complement": ["complement"],
            }[construction]  # fmt: skip
            if subject is not None:
                options = [o for o in options if o != "subject"]
            if not options:
                raise NoChoice
            vehicle = self.draw.pick(options)
        builder = getattr(self, f"_{construction}")
        return builder(vehicle, embed, tense, subject)

    def _subject(self, verb: Verb, vehicle: str, embed: int, subject: NP | None) -> NP:
        if subject is not None:
            return subject
        return self.np(self.subjects_of(verb), "nom", embed if vehicle == "subject" else 0)

    def _accepts(self, verb: Verb, subject: NP | None) -> bool:
        if subject is None:
            return True
        if subject.noun is not None:
            return subject.noun.lemma in verb.subjects
        return any(noun.kind == "person" for noun in self.subjects_of(verb))

    def _verb(self, frame: str, subject: NP | None) -> Verb:
        return self.fresh([v for v in self.lexicon.verbs_of(frame) if self._accepts(v, subject)])

    def _intransitive(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verb = self._verb("intransitive", subject)
        subject = self._subject(verb, vehicle, embed, subject)
        tam = self.tam(verb, tense)
        vp, finite, leaf = self.predicate(subject, verb, tam, self.adjunct(verb, tam))
        self.note_roles(verb, leaf, subject.head, None)
        return self.finish(subject, vp, finite, leaf, tam, "intransitive")

    def _oblique(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verb = self._verb("oblique", subject)
        subject = self._subject(verb, vehicle, embed, subject)
        tam = self.tam(verb, tense)
        target = self.plain_np(self.objects_of(verb))
        pp = self.pp(verb.preposition or "", target)
        vp, finite, leaf = self.predicate(subject, verb, tam, [("obl", pp)])
        self.note_roles(verb, leaf, subject.head, None)
        self.record.features.add("pp")
        return self.finish(subject, vp, finite, leaf, tam, "oblique")

    def own_np(self, noun: Noun, subject: NP) -> NP | None:
        """ "his hat" with "his" referring to the subject, or None when that would be unclear."""
        if subject.number == "sing" and subject.person == 3 and subject.animate:
            gender = subject.gender
            if gender is None:
                if subject.noun is None or subject.noun.kind != "person":
                    return None
                gender = self.draw.pick(["m", "f"])
            word = "his" if gender == "m" else "her"
        elif subject.number == "plur" and subject.person == 3 and subject.animate:
            word = "their"
        else:
            return None
        np = self.noun_phrase(noun, self.pick_number(noun), word, adjective=False)
        poss = next(leaf for leaf in np.phrase.leaves() if leaf.form == word)
        lemma = {"his": "he", "her": "she", "their": "they"}[word]
        poss.lemma = lemma
        if not subject.pronoun:
            self.record.coreference.append((poss, subject.head))
        self.record.features.add("possessive")
        return np

    def _object(self, verb: Verb, vehicle: str, embed: int, subject: NP) -> NP:
        candidates = self.objects_of(verb)
        if vehicle == "object":
            return self.np(candidates, "acc", embed)
        if self.draw.chance(self.config.own):
            own = [n for n in candidates if n.kind in ("object", "clothing", "document", "vehicle")]
            own = [n for n in own if n.lemma not in self.record.used]
            if own:
                np = self.own_np(self.fresh(own), subject)
                if np is not None:
                    return np
        return self.np(candidates, "acc")

    def _transitive(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verb = self._verb("transitive", subject)
        subject = self._subject(verb, vehicle, embed, subject)
        tam = self.tam(verb, tense)
        obj = self._object(verb, vehicle, embed, subject)
        tail = [] if vehicle == "object" else self.adjunct(verb, tam)
        vp, finite, leaf = self.predicate(subject, verb, tam, [("obj", obj.phrase), *tail])
        self.note_roles(verb, leaf, subject.head, obj.head)
        return self.finish(subject, vp, finite, leaf, tam, "transitive", obj)

    def _ditransitive(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verb = self._verb("ditransitive", subject)
        subject = self._subject(verb, vehicle, embed, subject)
        tam = self.tam(verb, tense)
        recipient = self.np(self.lexicon.nouns_of("person"), "acc")
        theme = (
            self.np(self.objects_of(verb), "acc", embed)
            if vehicle == "object"
            else self.plain_np(self.objects_of(verb))
        )
        if vehicle == "object" or self.draw.chance(0.5):
            complements = [("iobj", recipient.phrase), ("obj", theme.phrase)]
        else:
            complements = [("obj", theme.phrase), ("obl", self.pp("to", recipient))]
        vp, finite, leaf = self.predicate(subject, verb, tam, complements)
        self.note_roles(verb, leaf, subject.head, theme.head)
        self.record.roles.append((leaf, "recipient", recipient.head))
        return self.finish(subject, vp, finite, leaf, tam, "ditransitive", theme)

    def _copular(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        if subject is None:
            kind = self.draw.pick(_COPULAR_KINDS)
            nouns = [n for n in self.lexicon.nouns_of(kind) if self.lexicon.predicates_for(n)]
            if not nouns:
                raise NoChoice
            subject = self.np(nouns, "nom",
                              embed if vehicle == "subject" else 0, definite=True)  # fmt: skip
        if subject.noun is not None:
            options = self.lexicon.predicates_for(subject.noun)
        else:
            options = self.lexicon.predicates_for(self.lexicon.nouns_of("person")[0])
        adjective = self.fresh(options)
        leaf = Leaf(adjective.lemma, adjective.lemma, "ADJ", "Degree=Pos")
        degree = None
        tam = self.tam(None, tense, plain=True)
        if tam.tense == "fut":
            tam = TAM("fut", "will", negated=tam.negated)
        if not tam.negated and self.draw.chance(0.25):
            word = self.draw.pick([a.lemma for a in self.lexicon.adverbs_of("degree")])
            degree = Leaf(word, word, "ADV")
            self.record.features.add("adverb")
        core = phrase("ADJP", ("advmod", degree), (HEAD, leaf))
        vp, finite, be = self.predicate(subject, None, tam, core=core)
        return self.finish(subject, vp, finite, be, tam, "copular")

    def _locative(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        if subject is None:
            kinds = self.draw.pick([("person",), ("person",), ("animal",), ("object", "document")])
            subject = self.np(self.lexicon.nouns_of(*kinds), "nom",
                              embed if vehicle == "subject" else 0, definite=True)  # fmt: skip
        pp = self.location() if subject.animate else self.surface()
        tam = self.tam(None, tense or self.draw.pick(["past", "pres"]), plain=True)
        vp, finite, be = self.predicate(subject, None, tam, core=pp)
        self.record.features.add("pp")
        return self.finish(subject, vp, finite, be, tam, "locative")

    def _passive(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        if subject is not None:
            raise NoChoice
        verbs = [v for v in self.lexicon.verbs_of("transitive")
                 if not (v.stative and v.lemma not in ("love", "respect", "hate", "trust"))
                 and v.lemma not in ("eat", "wear", "enter", "hit")]  # fmt: skip
        verb = self.fresh(verbs)
        subject = self.np(self.objects_of(verb), "nom", embed if vehicle == "subject" else 0)
        base = self.tam(verb, tense)
        # The simple present passive ("the cup is thrown") reads as a stage direction.
        perfect = base.perfect or (base.tense == "pres" and not base.modal)
        tam = TAM(base.tense, base.modal, perfect, False, base.negated)
        complements: list[tuple[str, Phrase]] = []
        agent = None
        if self.draw.chance(0.6):
            agent = self.plain_np(self.subjects_of(verb))
            complements.append(("obl:agent", self.pp("by", agent)))
        vp, finite, leaf = self.predicate(subject, verb, tam, complements, passive=True)
        self.note_roles(verb, leaf, agent.head if agent else None, subject.head)
        self.record.features.add("passive")
        return self.finish(subject, vp, finite, leaf, tam, "passive", rel="nsubj:pass")

    def _existential(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        if subject is not None:
            raise NoChoice
        kinds = self.draw.pick([("person",), ("animal",), ("object", "document"), ("vehicle",)])
        noun = self.fresh(self.lexicon.nouns_of(*kinds))
        number = self.pick_number(noun)
        negative = self.draw.chance(self.config.negation)
        singular = ["a"] if number == "sing" else ["two", "three", "some", "many", "several"]
        determiner = "no" if negative else self.draw.pick(singular)
        np = self.noun_phrase(noun, number, determiner)
        if vehicle == "object":
            rc = self.relative_clause(np, embed - 1)
            np.phrase = phrase("NP", (HEAD, np.phrase), ("acl:relcl", rc))
        tam = TAM(tense if tense in ("past", "pres") else self.draw.pick(["past", "pres"]))
        be = self.finite_be(np, tam.tense, "VERB")
        self.record.agreements.append((np.head, be, np.number))
        where = None
        if vehicle != "object":
            in_field = noun.kind in ("object", "document")
            where = self.surface() if in_field else self.location()
        there = Leaf("there", "there", "PRON")
        vp = phrase("VP", (HEAD, be), ("nsubj", np.phrase), ("obl", where))
        node = phrase("S", ("expl", phrase("NP", (HEAD, there))), (HEAD, vp))
        if negative:
            cue = next(leaf for leaf in np.phrase.leaves() if leaf.form == "no")
            self.record.negations.append((cue, node))
            self.record.features.add("negation")
        self.record.features.add("existential")
        return Clause(node, np, be, be, tam.tense, "active", negative, None, "existential")

    def _infinitive(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verb = self._verb("infinitival", subject)
        subject = self._subject(verb, vehicle, embed, subject)
        tam = self.tam(verb, tense)
        frames = [f for f in ("transitive", "transitive", "intransitive", "oblique")
                  if self.lexicon.verbs_of(f)]  # fmt: skip
        frame = self.draw.pick(frames)
        inner = self.fresh([
            v for v in self.lexicon.verbs_of(frame)
            if self._accepts(v, subject) and not v.stative and v.lemma not in ("lose", "hit")
        ])  # fmt: skip
        leaf = self.verb_leaf(inner, "base", "VerbForm=Inf")
        parts: list[tuple[str, Phrase]] = []
        obj_leaf = None
        if frame == "transitive":
            obj = self._object(inner, "", 0, subject)
            obj_leaf = obj.head
            parts.append(("obj", obj.phrase))
        elif frame == "oblique":
            pp = self.pp(inner.preposition or "", self.plain_np(self.objects_of(inner)))
            parts.append(("obl", pp))
        to = Leaf("to", "to", "PART")
        inner_vp = phrase("VP", ("mark", to), (HEAD, phrase("VP", (HEAD, leaf), *parts)))
        vp, finite, main = self.predicate(
            subject, verb, tam, [("xcomp", phrase("S", (HEAD, inner_vp)))]
        )
        self.note_roles(inner, leaf, subject.head, obj_leaf)
        self.record.roles.append((main, "experiencer", subject.head))
        self.record.features.add("infinitive")
        return self.finish(subject, vp, finite, main, tam, "infinitive")

    def _reflexive(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verbs = [v for v in self.lexicon.verbs_of("transitive") if v.lemma in REFLEXIVE_VERBS]
        verb = self.fresh([v for v in verbs if self._accepts(v, subject)])
        if subject is None:
            people = self.lexicon.nouns_of("person")
            subject = self.np(people, "nom", embed if vehicle == "subject" else 0)
        if not subject.animate or subject.person != 3:
            raise NoChoice
        tam = self.tam(verb, tense)
        form = self.reflexive_form(subject)
        leaf = Leaf(form, form, "PRON", "Case=Acc|PronType=Prs|Reflex=Yes", "person")
        obj = NP(phrase("NP", (HEAD, leaf)), leaf, subject.number, 3, subject.gender, None, True)
        vp, finite, main = self.predicate(subject, verb, tam, [("obj", obj.phrase)])
        self.record.coreference.append((leaf, subject.head))
        self.note_roles(verb, main, subject.head, leaf)
        self.record.features.add("reflexive")
        return self.finish(subject, vp, finite, main, tam, "reflexive", obj)

    def reflexive_form(self, subject: NP) -> str:
        """The reflexive that agrees with a third-person noun phrase."""
        if subject.number == "plur":
            return "themselves"
        if subject.noun is not None and subject.noun.kind != "person":
            return "itself"
        gender = subject.gender or self.draw.pick(["m", "f"])
        return "himself" if gender == "m" else "herself"

    def _complement(self, vehicle: str, embed: int, tense: str | None, subject: NP | None):
        verb = self._verb("clausal", subject)
        subject = self._subject(verb, vehicle, embed, subject)
        tense = tense or self.draw.pick(["past", "past", "pres"])
        tam = TAM(tense, negated=self.draw.chance(self.config.negation))
        inner_subject = None
        if subject.person == 3 and not subject.pronoun and self.draw.chance(0.25):
            inner_subject = self.pronoun_for(subject)
        inner = self.embedded(max(embed - 1, 0), "past" if tense == "past" else None, inner_subject)
        that = Leaf("that", "that", "SCONJ")
        if verb.lemma in _ZERO_THAT and self.draw.chance(0.3):
            that = None
        sbar = phrase("SBAR", ("mark", that), (HEAD, inner.phrase))
        vp, finite, main = self.predicate(subject, verb, tam, [("ccomp", sbar)])
        self.record.roles.append((main, "agent", subject.head))
        self.record.features.add("complement")
        return self.finish(subject, vp, finite, main, tam, "complement")

    def pronoun_for(self, np: NP) -> NP:
        """A subject pronoun that refers back to ``np``, with the link noted."""
        if np.number == "plur":
            lemma = "they"
        else:
            lemma = "he" if (np.gender or self.draw.pick(["m", "f"])) == "m" else "she"
        pronoun = self.pronoun(lemma)
        self.record.coreference.append((pronoun.head, np.head))
        return pronoun

    # -- embedding -------------------------------------------------------------------------------

    def embedded(self, embed: int, tense: str | None, subject: NP | None = None) -> Clause:
        """A clause to stand inside another: complement, coordinate or adverbial."""
        options = [("intransitive", 1.0), ("transitive", 2.0), ("copular", 1.0)]
        options += [("locative", 0.5), ("oblique", 0.5)]
        if subject is None:
            options += [("passive", 0.4)]
        if embed > 0:
            options += [("complement", 1.0)]
            if subject is not None:
                options = [("transitive", 1.0), ("complement", 1.0)]
        return self.clause(self.draw.weighted(options), embed, tense, subject)

    def relative_clause(self, head: NP, embed: int, form: str | None = None,
                        tense: str | None = None) -> Phrase:  # fmt: skip
        """A relative clause on ``head``: subject gap, object gap, or object gap without "that".

        Deeper clauses are nested to the right, in the object of a subject relative: a relative
        clause in the middle of another is grammatical but hardly readable.
        """
        noun = head.noun
        if noun is None:
            raise NoChoice
        subject_verbs = [
            v for frame in ("transitive", "intransitive", "oblique")
            for v in self.lexicon.verbs_of(frame)
            if noun.lemma in v.subjects and v.lemma not in self.record.used
            and (embed == 0 or frame == "transitive")
        ]  # fmt: skip
        object_verbs = [
            v for v in self.lexicon.verbs_of("transitive")
            if noun.lemma in v.objects and v.lemma not in self.record.used and embed == 0
            and any(n.kind == "person" for n in self.subjects_of(v))
        ]  # fmt: skip
        forms = (["subject"] if subject_verbs else []) + (
            ["object", "object_zero"] if object_verbs else []
        )
        if form is None:
            if not forms:
                raise NoChoice
            form = self.draw.pick(forms)
        elif form not in forms:
            raise NoChoice
        tense = tense or self.draw.pick(["past", "pres"])
        self.record.features.add(f"{form}_rc")
        person = noun.kind == "person"
        word = self.draw.pick(["who", "that"]) if person else "that"
        relative = Leaf(word, word, "PRON", "PronType=Rel")
        wh = phrase("WHNP", (HEAD, relative))
        if form == "subject":
            verb = self.fresh(subject_verbs)
            tam = self.tam(verb, tense)
            complements: list[tuple[str, Phrase]] = []
            obj = None
            if verb.frame == "transitive":
                obj = self.np(self.objects_of(verb), "acc", embed)
                complements.append(("obj", obj.phrase))
            elif verb.frame == "oblique":
                target = self.plain_np(self.objects_of(verb))
                complements.append(("obl", self.pp(verb.preposition or "", target)))
            else:
                complements += self.adjunct(verb, tam)
            vp, _, leaf = self.predicate(head, verb, tam, complements)
            self.note_roles(verb, leaf, head.head, obj.head if obj else None)
            return phrase("SBAR", ("nsubj", wh), (HEAD, phrase("S", (HEAD, vp))))
        verb = self.fresh(object_verbs)
        # "The man that boy saw" and "the man that that boy saw" are hard to read: keep to "the".
        subject = self.np(self.subjects_of(verb), determiner="the")
        tam = self.tam(verb, tense)
        vp, _, leaf = self.predicate(subject, verb, tam)
        self.note_roles(verb, leaf, subject.head, head.head)
        body = self.declarative(subject, "nsubj", vp)
        return phrase("SBAR", ("obj", None if form == "object_zero" else wh), (HEAD, body))
