"""Noun phrases, prepositional phrases and verb groups of the grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bertology_utils.stimuli import _lexicon_tables as tables
from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._syntax import HEAD, NP, Leaf, NoChoice, Phrase, Record, phrase
from bertology_utils.stimuli.lexicon import Adjective, Adverb, Lexicon, Name, Noun, Verb

E = TypeVar("E", Noun, Verb, Adjective, Adverb, Name)

NUMBER_FEAT = {"sing": "Number=Sing", "plur": "Number=Plur"}

# (nominative, accusative, possessive, reflexive, number, person, gender)
PRONOUNS = {
    "i": ("i", "me", "my", "myself", "sing", 1, None),
    "you": ("you", "you", "your", "yourself", "plur", 2, None),
    "he": ("he", "him", "his", "himself", "sing", 3, "m"),
    "she": ("she", "her", "her", "herself", "sing", 3, "f"),
    "we": ("we", "us", "our", "ourselves", "plur", 1, None),
    "they": ("they", "them", "their", "themselves", "plur", 3, None),
}

DETERMINERS = {
    "sing": [("the", 0.62), ("a", 0.24), ("this", 0.05), ("that", 0.04), ("every", 0.05)],
    "plur": [("the", 0.58), ("some", 0.11), ("these", 0.08), ("those", 0.05), ("two", 0.06),
             ("three", 0.04), ("many", 0.05), ("several", 0.03)],
    "mass": [("the", 0.7), ("some", 0.3)],
}  # fmt: skip
_OWNABLE = frozenset(tables.OWNABLE.split())
_FAMILY = frozenset(tables.FAMILY.split())
_NUMERALS = frozenset({"two", "three", "four", "five", "six"})
_QUANTITY = frozenset({"many", "several", "few"})


@dataclass(frozen=True)
class GrammarConfig:
    """How often each optional part appears (probabilities) and how deep clauses nest.

    ``embedding`` gives the chance of 0, 1, 2, ... clauses nested inside one another.
    ``constructions`` maps main-clause constructions to weights; see :data:`CONSTRUCTIONS`.
    """

    adjective: float = 0.25
    noun_pp: float = 0.15
    verb_pp: float = 0.22
    adverb: float = 0.15
    name: float = 0.15
    pronoun: float = 0.08
    genitive: float = 0.05
    own: float = 0.07
    np_coordination: float = 0.05
    negation: float = 0.1
    plural: float = 0.45
    embedding: tuple[float, ...] = (0.58, 0.3, 0.1, 0.02)
    constructions: tuple[tuple[str, float], ...] = (
        ("intransitive", 1.2),
        ("oblique", 0.7),
        ("transitive", 2.6),
        ("ditransitive", 0.8),
        ("copular", 1.2),
        ("locative", 0.7),
        ("passive", 0.8),
        ("existential", 0.4),
        ("infinitive", 0.6),
        ("reflexive", 0.4),
        ("vp_coordination", 0.6),
        ("clause_coordination", 0.5),
        ("yes_no_question", 0.6),
        ("wh_question", 0.6),
    )

    def __post_init__(self) -> None:
        for name in ("adjective", "noun_pp", "verb_pp", "adverb", "name", "pronoun", "genitive",
                     "own", "np_coordination", "negation", "plural"):  # fmt: skip
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {value}")
        if not self.embedding or min(self.embedding) < 0 or sum(self.embedding) <= 0:
            raise ValueError(f"embedding must be non-negative chances, not {self.embedding}")


def article(next_word: str) -> str:
    """ "a" or "an" before a word of the lexicon."""
    vowel = next_word[0] in "aeiou" and not next_word.startswith(("us", "uni", "one"))
    return "an" if vowel or next_word == "honest" else "a"


class Phrases:
    """Builds phrases from one lexicon with one stream of draws, noting gold facts in a record."""

    def __init__(self, lexicon: Lexicon, draw: Draw, config: GrammarConfig):
        self.lexicon = lexicon
        self.draw = draw
        self.config = config
        self.record = Record()

    # -- choosing words ------------------------------------------------------------------------

    def fresh(self, options: Sequence[E]) -> E:
        """An option whose lemma the sentence has not used yet; NoChoice when there is none."""
        used = self.record.used
        for _ in range(4 if options else 0):  # most draws succeed at once
            choice = self.draw.pick(options)
            if choice.lemma not in used:
                break
        else:
            unused = [option for option in options if option.lemma not in used]
            if not unused:
                raise NoChoice
            choice = self.draw.pick(unused)
        used.add(choice.lemma)
        return choice

    # -- leaves ----------------------------------------------------------------------------------

    def noun_leaf(self, noun: Noun, number: str) -> Leaf:
        return Leaf(noun.form(number), noun.lemma, "NOUN", NUMBER_FEAT[number], noun.kind)

    def determiner_leaf(self, word: str, next_word: str, number: str) -> tuple[str, Leaf]:
        """(relation, leaf) of a determiner, numeral, quantity adjective or possessive."""
        if word == "a":
            return "det", Leaf(article(next_word), "a", "DET", "Definite=Ind|PronType=Art")
        if word == "the":
            return "det", Leaf("the", "the", "DET", "Definite=Def|PronType=Art")
        if word in _NUMERALS:
            return "nummod", Leaf(word, word, "NUM", "NumType=Card")
        if word in _QUANTITY:
            return "amod", Leaf(word, word, "ADJ", "Degree=Pos")
        if word in ("my", "our", "your", "his", "her", "their"):
            return "nmod:poss", Leaf(word, word, "PRON", "Case=Gen|Poss=Yes|PronType=Prs")
        if word in ("this", "that", "these", "those"):
            lemma = {"these": "this", "those": "that"}.get(word, word)
            return "det", Leaf(word, lemma, "DET", f"{NUMBER_FEAT[number]}|PronType=Dem")
        return "det", Leaf(word, word, "DET", "_")

    # -- noun phrases ----------------------------------------------------------------------------

    def noun_phrase(
        self,
        noun: Noun,
        number: str,
        determiner: str | None = None,
        *,
        adjective: bool | None = None,
        modifier: Phrase | None = None,
        modifier_rel: str = "nmod",
        owner: NP | None = None,
    ) -> NP:
        """Determiner (or owner), optional adjective, noun, optional post-modifier.

        ``determiner=""`` gives a bare noun phrase; None draws one.
        """
        if determiner is None:
            determiner = self.pick_determiner(noun, number)
        head = self.noun_leaf(noun, number)
        wants_adjective = (
            self.draw.chance(self.config.adjective) if adjective is None else adjective
        )
        adj_leaf = None
        if wants_adjective:
            options = [
                a for a in self.lexicon.adjectives_for(noun) if a.lemma not in self.record.used
            ]
            if options:
                choice = self.fresh(options)
                adj_leaf = Leaf(choice.lemma, choice.lemma, "ADJ", "Degree=Pos")
                self.record.features.add("adjective")
        next_word = adj_leaf.form if adj_leaf else head.form
        parts: list[tuple[str, Leaf | Phrase | None]] = []
        if owner is not None:
            mark = Leaf("'s", "'s", "PART", "_")
            parts.append(("nmod:poss", phrase("NP", (HEAD, owner.phrase), ("case", mark))))
            self.record.features.add("possessive")
        elif determiner:
            parts.append(self.determiner_leaf(determiner, next_word, number))
        parts += [("amod", adj_leaf), (HEAD, head)]
        node = phrase("NP", *parts)
        if modifier is not None:
            node = phrase("NP", (HEAD, node), (modifier_rel, modifier))
        return NP(node, head, number, 3, noun.gender, noun, noun.animate)

    def pick_determiner(self, noun: Noun, number: str, *, definite: bool = False) -> str:
        """A determiner that suits the noun; definite ones for subjects one says something of."""
        if noun.lemma in _FAMILY and self.draw.chance(0.5):
            one_each = noun.lemma in ("father", "mother", "husband", "wife")
            return self.draw.pick(
                ["our"] if one_each and number == "plur" else ["my", "our", "her", "his"]
            )
        ownable = noun.lemma in _OWNABLE or noun.kind in ("object", "clothing")
        if ownable and self.draw.chance(0.1):
            return self.draw.pick(["my", "our"])
        if noun.plural is None:
            return "the" if definite else self.draw.weighted(DETERMINERS["mass"])
        if not definite:
            return self.draw.weighted(DETERMINERS[number])
        near = ["this", "that"] if number == "sing" else ["these", "those"]
        return "the" if self.draw.chance(0.85) else self.draw.pick(near)

    def pick_number(self, noun: Noun) -> str:
        if noun.plural is None:
            return "sing"
        return "plur" if self.draw.chance(self.config.plural) else "sing"

    def np(
        self,
        candidates: Sequence[Noun],
        case: str = "nom",
        embed: int = 0,
        *,
        definite: bool = False,
        determiner: str | None = None,
    ) -> NP:
        """A noun phrase over one of the candidate nouns, or a name or pronoun if they are people.

        ``embed`` > 0 attaches a relative clause nested that deep; ``definite`` keeps to "the",
        "this", possessives and no adjective, as suits the subject of "is"; ``determiner`` fixes
        the determiner of an unmodified noun.
        """
        config = self.config
        people = any(noun.kind == "person" for noun in candidates)
        if people and embed == 0:
            if self.draw.chance(config.name):
                return self.name(self.draw.pick(["m", "f"]))
            if self.draw.chance(config.pronoun):
                options = ["he", "she", "they"] + (["we", "i"] if case == "nom" else [])
                return self.pronoun(self.draw.pick(options), case)
        noun = self.fresh(candidates)
        number = self.pick_number(noun)
        if embed > 0:
            determiner = self.draw.pick(["the", "the", "a"] if number == "sing" else ["the"])
            if noun.plural is None:
                determiner = "the"
            base = self.noun_phrase(noun, number, determiner)
            clause = self.relative_clause(base, embed - 1)
            base.phrase = phrase("NP", (HEAD, base.phrase), ("acl:relcl", clause))
            return base
        if self.draw.chance(config.noun_pp):
            pp = self.noun_pp(noun)
            if pp is not None:
                determiner = self.draw.pick(["the", "the", "a"] if number == "sing" else ["the"])
                if noun.plural is None:
                    determiner = "the"
                self.record.features.add("pp")
                return self.noun_phrase(noun, number, determiner, modifier=pp)
        if self.draw.chance(config.genitive) and noun.kind in ("animal", "object", "document",
                                                                "clothing", "vehicle"):  # fmt: skip
            owner = self.owner()
            return self.noun_phrase(noun, number, "", owner=owner)
        if determiner is None:
            determiner = self.pick_determiner(noun, number, definite=definite)
        plain = False if definite else None
        first = self.noun_phrase(noun, number, determiner, adjective=plain)
        if noun.animate and self.draw.chance(config.np_coordination):
            others = [n for n in candidates if n.kind == noun.kind and n.plural]
            second_noun = self.fresh(others)
            second = self.noun_phrase(second_noun, self.pick_number(second_noun), "the")
            conj = Leaf("and", "and", "CCONJ")
            node = phrase("NP", (HEAD, first.phrase), ("cc>2", conj), ("conj", second.phrase))
            self.record.features.add("np_coordination")
            return NP(node, first.head, "plur", 3, None, noun, True)
        return first

    def relative_clause(self, head: NP, embed: int) -> Phrase:
        """A relative clause on ``head``; supplied by the clause builder."""
        raise NotImplementedError

    def owner(self) -> NP:
        """The possessor in "the doctor's car": a name or a singular person."""
        if self.draw.chance(0.4):
            return self.name(self.draw.pick(["m", "f"]))
        noun = self.fresh(self.lexicon.nouns_of("person"))
        return self.noun_phrase(noun, "sing", "the", adjective=False)

    def name(self, gender: str) -> NP:
        entry = self.fresh(self.lexicon.names_of(gender))
        leaf = Leaf(entry.lemma.capitalize(), entry.lemma, "PROPN", "Number=Sing", "person")
        self.record.features.add("name")
        return NP(phrase("NP", (HEAD, leaf)), leaf, "sing", 3, gender, None, True)

    def pronoun(self, lemma: str, case: str = "nom") -> NP:
        nom, acc, _, _, number, person, gender = PRONOUNS[lemma]
        form = nom if case == "nom" else acc
        feats = f"Case={'Nom' if case == 'nom' else 'Acc'}|{NUMBER_FEAT[number]}|Person={person}"
        leaf = Leaf("I" if form == "i" else form, lemma, "PRON", feats, "person")
        self.record.features.add("pronoun")
        return NP(phrase("NP", (HEAD, leaf)), leaf, number, person, gender, None, True, True)

    # -- prepositional phrases -------------------------------------------------------------------

    def pp(self, preposition: str, np: NP) -> Phrase:
        return phrase("PP", ("case", Leaf(preposition, preposition, "ADP")), (HEAD, np.phrase))

    def plain_np(self, candidates: Sequence[Noun], number: str | None = None) -> NP:
        """A short noun phrase with "the" or "a"; asking for "plur" leaves out mass nouns."""
        if number == "plur":
            candidates = [n for n in candidates if n.plural]
        noun = self.fresh(candidates)
        number = number or self.pick_number(noun)
        options = ["the", "the", "the", "a"] if number == "sing" else ["the"]
        determiner = "the" if noun.plural is None else self.draw.pick(options)
        return self.noun_phrase(noun, number, determiner, adjective=self.draw.chance(0.1))

    def bare_np(self, candidates: Sequence[Noun], number: str | None = None) -> NP:
        """A noun without determiner: "tea", "apples"."""
        noun = self.fresh(candidates)
        number = "sing" if noun.plural is None else number or "plur"
        return self.noun_phrase(noun, number, "", adjective=False)

    def location(self, number: str | None = None, *, plain: bool = False) -> Phrase:
        """A place someone can be: "in the garden", "near the station", "on the bus"."""
        lexicon = self.lexicon
        if plain or self.draw.chance(0.65):
            np = self.plain_np(lexicon.nouns_of("site"), number or "sing")
            preposition = np.noun.locative if np.noun is not None else "in"
            return self.pp(preposition, np)
        near = lexicon.nouns_of("building", "vehicle", "plant")
        np = self.plain_np([n for n in near if n.lemma not in ("flower", "rose")], number)
        return self.pp(self.draw.pick(["near", "behind", "beside"]), np)

    def surface(self, number: str | None = None) -> Phrase:
        """A place a small thing can be: "on the table", "under the chair", "near the door"."""
        np = self.plain_np(self.lexicon.nouns_of("furniture"), number)
        if np.noun is not None and np.noun.lemma in ("door", "window", "mirror", "cabinet"):
            return self.pp(self.draw.pick(["near", "beside"]), np)
        return self.pp(self.draw.pick(["on", "on", "under", "near"]), np)

    def noun_pp(self, noun: Noun, number: str | None = None) -> Phrase | None:
        """A prepositional phrase that suits a noun, or None for nouns that take none.

        ``number`` fixes the number of the noun inside.
        """
        own = self.lexicon.complements_of(noun)
        if own and self.draw.chance(0.75):
            relation = self.draw.pick(own)
            options = [
                n
                for n in self.lexicon.nouns_among(relation.complements)
                if n.lemma not in self.record.used and (number != "plur" or n.plural)
            ]
            if options:
                bare = relation.preposition == "of" and options[0].kind in ("food", "drink")
                if bare and number == "sing":  # "a box of apple" is not English
                    options = [n for n in options if n.plural is None]
                    if not options:
                        return None
                return self.pp(
                    relation.preposition,
                    self.bare_np(options, number) if bare else self.plain_np(options, number),
                )
        if noun.kind in ("person", "animal"):
            return self.location(number)
        if noun.kind in ("object", "document"):
            return self.surface(number)
        if noun.kind in ("vehicle", "plant", "building", "furniture"):
            sites = self.lexicon.nouns_of("building", "place")
            near = [n for n in sites if n.lemma not in ("desert", "valley")]
            return self.pp(self.draw.pick(["near", "beside"]), self.plain_np(near, number))
        return None
