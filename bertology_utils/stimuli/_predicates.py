"""Predicates of the grammar: adverbs and places, agreement and negation noted, clause assembly."""

from __future__ import annotations

from collections.abc import Sequence

from bertology_utils.stimuli._syntax import HEAD, NP, Clause, Leaf, Phrase, phrase
from bertology_utils.stimuli._verb_groups import TAM, VerbGroups
from bertology_utils.stimuli.lexicon import Noun, Verb

_PSYCH = frozenset({"surprise", "scare", "shock", "worry"})
_SOUND = frozenset("laugh cry sing shout speak talk".split())
_NO_MANNER = frozenset(
    "sleep rest wait arrive leave disappear die grow burn change start begin stop fall return "
    "travel lose own find meet save hit".split()
)
_NO_PLACE = frozenset(
    "arrive leave return disappear start begin stop change travel run walk own need enter cross "
    "visit call build trust invite thank remember know respect fear like love hate".split()
)


class Predicates(VerbGroups):
    """Builds verb phrases and joins them to their subjects."""

    # -- helpers ---------------------------------------------------------------------------------

    def subjects_of(self, verb: Verb) -> tuple[Noun, ...]:
        return self.lexicon.nouns_among(verb.subjects)

    def objects_of(self, verb: Verb) -> tuple[Noun, ...]:
        return self.lexicon.nouns_among(verb.objects)

    def note_roles(self, verb: Verb, leaf: Leaf, subject: Leaf | None, obj: Leaf | None) -> None:
        if verb.lemma in _PSYCH:
            names = ("stimulus", "experiencer")
        elif verb.frame == "transitive" and verb.stative:
            names = ("experiencer", "stimulus")
        elif verb.frame == "intransitive" and subject is not None and subject.kind != "person":
            names = ("theme", "theme")
        elif verb.frame == "ditransitive":
            names = ("agent", "theme")
        else:
            names = ("agent", "patient")
        for name, argument in zip(names, (subject, obj), strict=True):
            if argument is not None:
                self.record.roles.append((leaf, name, argument))

    def frequency(self, tam: TAM, verb: Verb | None) -> Leaf | None:
        habitual = tam.tense == "pres" and not (tam.modal or tam.perfect or tam.progressive)
        stative = verb is None or verb.stative
        chance = 0.04 if habitual or tam.tense == "past" else 0.0
        if habitual and not stative:
            chance = 0.4
        if "adverb" in self.record.features:
            return None  # one adverb a sentence is enough
        if tam.progressive or tam.perfect or not self.draw.chance(chance):
            return None
        barred = ("never", "rarely", "sometimes") if tam.negated else ()
        options = [a for a in self.lexicon.adverbs_of("frequency") if a.lemma not in barred]
        if not options:
            return None
        adverb = self.fresh(options)
        self.record.features.add("adverb")
        return Leaf(adverb.lemma, adverb.lemma, "ADV")

    def adjunct(self, verb: Verb, tam: TAM) -> list[tuple[str, Phrase]]:
        """At most one trailing adverb or place: "carefully", "yesterday", "in the garden"."""
        if self.draw.chance(self.config.verb_pp) and verb.lemma not in _NO_PLACE:
            if "man" in verb.subjects or verb.frame == "intransitive":
                self.record.features.add("pp")
                return [("obl", self.location())]
        if not self.draw.chance(self.config.adverb):
            return []
        options = []
        if not verb.stative and verb.lemma not in _NO_MANNER and "man" in verb.subjects:
            if verb.lemma in _SOUND:
                options += self.lexicon.adverbs_of("sound")
            else:
                options += self.lexicon.adverbs_of("manner")
        if not verb.stative and not (tam.modal and tam.tense == "pres") and not tam.perfect:
            options += [a for a in self.lexicon.adverbs_of("time", tam.tense) if a.tenses]
        options = [a for a in options if a.lemma not in self.record.used]
        if not options:
            return []
        adverb = self.fresh(options)
        self.record.features.add("adverb")
        return [("advmod", phrase("ADVP", (HEAD, Leaf(adverb.lemma, adverb.lemma, "ADV"))))]

    # -- putting a clause together ---------------------------------------------------------------

    def predicate(
        self,
        subject: NP,
        verb: Verb | None,
        tam: TAM,
        complements: Sequence[tuple[str, Leaf | Phrase | None]] = (),
        *,
        core: Phrase | None = None,
        passive: bool = False,
    ) -> tuple[Phrase, Leaf, Leaf]:
        """(verb phrase, finite leaf, main verb or "be" leaf); notes agreement and negation."""
        groups, main = self.verb_group(verb, subject, tam, passive=passive)
        if core is None:
            core = phrase("VP", (HEAD, main), *complements)
        adverb = self.frequency(tam, verb) if not passive else None
        node = core
        for rel, leaf in reversed(groups[1:]):
            node = phrase("VP", (rel, leaf), (HEAD, node))
        cue = Leaf("not", "not", "PART", "Polarity=Neg") if tam.negated else None
        adv = phrase("ADVP", (HEAD, adverb)) if adverb else None
        first = groups[0] if groups else None
        if first:
            node = phrase("VP", first, ("advmod", cue), ("advmod", adv), (HEAD, node))
        elif adv is not None:
            node = phrase("VP", ("advmod", adv), (HEAD, node))
        finite = first[1] if first else main
        assert finite is not None
        verb_leaf = main if main is not None else groups[-1][1]
        self.record.agreements.append((subject.head, finite, subject.number))
        if cue is not None:
            self.record.negations.append((cue, node))
            self.record.features.add("negation")
        elif adverb is not None and adverb.form == "never":
            self.record.negations.append((adverb, node))
        return node, finite, verb_leaf

    def declarative(self, subject: NP, rel: str, vp: Phrase) -> Phrase:
        """S over subject and verb phrase; negation found in the verb phrase scopes over both."""
        node = phrase("S", (rel, subject.phrase), (HEAD, vp))
        self.record.negations = [
            (cue, node if scope is vp else scope) for cue, scope in self.record.negations
        ]
        return node

    def finish(
        self, subject: NP, vp: Phrase, finite: Leaf, verb: Leaf, tam: TAM, construction: str,
        obj: NP | None = None, rel: str = "nsubj",
    ) -> Clause:  # fmt: skip
        voice = "passive" if rel == "nsubj:pass" else "active"
        node = self.declarative(subject, rel, vp)
        return Clause(node, subject, verb, finite, tam.tense, voice, tam.negated, obj, construction)
