"""Verb groups of the grammar: tense, aspect, modality, polarity, voice and agreement."""

from __future__ import annotations

from dataclasses import dataclass

from bertology_utils.stimuli._phrases import NUMBER_FEAT, Phrases
from bertology_utils.stimuli._syntax import NP, Leaf, NoChoice
from bertology_utils.stimuli.lexicon import Verb

TENSE_FEAT = {"past": "Tense=Past", "pres": "Tense=Pres", "fut": "Tense=Fut"}

# Verbs of a moment, odd in the simple present ("the train stops", "the cup falls").
_MOMENTARY = frozenset(
    "arrive leave return fall burn disappear die change start begin stop lose find break hide "
    "steal enter cross destroy hit surprise shock save".split()
)


@dataclass(frozen=True)
class TAM:
    """Tense, aspect, modality and polarity of a finite verb group."""

    tense: str = "past"
    modal: str | None = None
    perfect: bool = False
    progressive: bool = False
    negated: bool = False


class VerbGroups(Phrases):
    """Adds finite verb groups to the phrases."""

    def tam(self, verb: Verb | None, tense: str | None = None, *, plain: bool = False) -> TAM:
        """Tense and aspect that sound natural for a verb (None for "be")."""
        dynamic = verb is not None and not verb.stative
        momentary = verb is not None and verb.lemma in _MOMENTARY
        gerund = verb is not None and verb.gerund is not None and dynamic
        negated = self.draw.chance(self.config.negation)
        if tense is None:
            tense = self.draw.weighted([("past", 0.55), ("pres", 0.37), ("fut", 0.08)])
        if plain:
            return TAM(tense, negated=negated)
        if momentary and tense == "pres":
            return TAM("pres", perfect=True, negated=negated)
        if tense == "fut":
            return TAM("fut", "will", negated=negated)
        if tense == "past":
            style = self.draw.weighted([("simple", 0.76), ("progressive", 0.14), ("perfect", 0.1)])
        else:
            options = [("simple", 0.36), ("progressive", 0.36), ("perfect", 0.18), ("modal", 0.1)]
            if verb is not None and verb.stative:
                options = [("simple", 0.9), ("perfect", 0.1)]
            style = self.draw.weighted(options)
        if style == "progressive" and not gerund:
            style = "simple"
        if style == "modal":
            modal = self.draw.pick(
                ["must", "should"] if negated else ["can", "must", "may", "should"]
            )
            return TAM("pres", modal, negated=negated)
        return TAM(tense, None, style == "perfect", style == "progressive", negated)

    def verb_leaf(self, verb: Verb, form: str, feats: str) -> Leaf:
        return Leaf(getattr(verb, form), verb.base, "VERB", feats)

    def finite_be(self, subject: NP, tense: str, upos: str = "AUX") -> Leaf:
        if tense == "past":
            form = "was" if subject.number == "sing" else "were"
        elif subject.person == 1 and subject.number == "sing":
            form = "am"
        else:
            form = "is" if subject.number == "sing" else "are"
        return Leaf(form, "be", upos, self._finite_feats(subject, tense))

    @staticmethod
    def _finite_feats(subject: NP, tense: str) -> str:
        number = NUMBER_FEAT[subject.number]
        return f"Mood=Ind|{number}|Person={subject.person}|{TENSE_FEAT[tense]}|VerbForm=Fin"

    def verb_group(
        self,
        verb: Verb | None,
        subject: NP,
        tam: TAM,
        *,
        passive: bool = False,
        inverted: bool = False,
    ) -> tuple[list[tuple[str, Leaf]], Leaf | None]:
        """Auxiliaries with their relations, and the main verb (None when ``verb`` is None: "be").

        The first auxiliary, or the verb when there is none, is finite and agrees with the subject.
        """
        third = subject.number == "sing" and subject.person == 3
        chain: list[tuple[str, str]] = []  # (relation, lemma)
        if tam.modal:
            chain.append(("aux", tam.modal))
        if tam.perfect:
            chain.append(("aux", "have"))
        if tam.progressive:
            chain.append(("aux", "be"))
        if passive:
            chain.append(("aux:pass", "be"))
        if verb is None:
            chain.append(("cop", "be"))
        elif not chain and (tam.negated or inverted):
            chain.append(("aux", "do"))
        leaves: list[tuple[str, Leaf]] = []
        need = "finite"
        for relation, lemma in chain:
            if lemma == tam.modal:
                leaf = Leaf(lemma, lemma, "AUX", "VerbForm=Fin")
                following = "base"
            elif lemma == "have":
                forms = {"base": "have", "participle": "had", "gerund": "having"}
                finite = "had" if tam.tense == "past" else ("has" if third else "have")
                leaf = self._aux(lemma, finite, forms, need, subject, tam.tense)
                following = "participle"
            elif lemma == "do":
                finite = "did" if tam.tense == "past" else ("does" if third else "do")
                leaf = self._aux(lemma, finite, {}, need, subject, tam.tense)
                following = "base"
            else:
                forms = {"base": "be", "participle": "been", "gerund": "being"}
                finite_be = self.finite_be(subject, "past" if tam.tense == "past" else "pres")
                leaf = self._aux(lemma, finite_be.form, forms, need, subject, tam.tense)
                following = "participle" if relation == "aux:pass" else "gerund"
            leaves.append((relation, leaf))
            need = following
        if verb is None:
            return leaves, None
        if need == "finite":
            form = "past" if tam.tense == "past" else ("third" if third else "base")
            return [], self.verb_leaf(verb, form, self._finite_feats(subject, tam.tense))
        feats = {"base": "VerbForm=Inf", "participle": "VerbForm=Part", "gerund": "VerbForm=Ger"}
        if need == "gerund" and verb.gerund is None:
            raise NoChoice
        return leaves, self.verb_leaf(verb, need, feats[need])

    def _aux(
        self, lemma: str, finite: str, forms: dict[str, str], need: str, subject: NP, tense: str
    ) -> Leaf:
        if need == "finite":
            return Leaf(finite, lemma, "AUX", self._finite_feats(subject, tense))
        feats = {"base": "VerbForm=Inf", "participle": "VerbForm=Part", "gerund": "VerbForm=Ger"}
        return Leaf(forms[need], lemma, "AUX", feats[need])
