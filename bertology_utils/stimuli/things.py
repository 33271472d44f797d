"""Everyday things with their kinds, properties and affordances, labelled by hand.

Made for the questions of Forbes et al. (2019, arXiv 1908.02899) and Da and Kasai (2019, arXiv
1910.01157): is it read from a word what a thing is, what it is like, and what one can do with it?
Every feature is decided for every thing, so that what is not listed is false.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bertology_utils.stimuli._phrases import article

KINDS = ("taxonomic", "perceptual", "abstract", "affordance")

_ANIMALS = """cat dog rabbit horse bear cow sheep lion tiger wolf fox mouse elephant eagle owl duck
chicken snake shark salmon frog bee ant butterfly"""
_FOOD = "apple banana orange lemon cherry carrot potato onion bread cake cheese egg sandwich pizza"
_VEHICLES = "car truck bus bicycle motorcycle train airplane boat ship tractor helicopter wagon"
_CLOTHES = "hat coat shirt dress shoe glove sock boot jacket scarf helmet ring"
_FURNITURE = "chair table bed sofa desk shelf bench cabinet"
_TOOLS = "hammer saw knife axe shovel drill needle screwdriver broom"
_INSTRUMENTS = "piano violin guitar drum flute trumpet"
_BUILDINGS = "house church barn castle hotel hospital"
_WEAPONS = "sword rifle pistol cannon spear bomb"
_VESSELS = "bottle cup plate bowl bucket box bag basket spoon fork pan oven refrigerator"
_OTHERS = """ball doll kite balloon pillow blanket book coin stone feather brick mirror window
telephone television computer umbrella rope ladder key candle clock"""

NOUNS = tuple(
    " ".join(
        (_ANIMALS, _FOOD, _VEHICLES, _CLOTHES, _FURNITURE, _TOOLS, _INSTRUMENTS, _BUILDINGS,
         _WEAPONS, _VESSELS, _OTHERS)
    ).split()
)  # fmt: skip

# feature | kind | what it says of "it" | things that have it
_TABLE = (
    ("animal", "taxonomic", "it is an animal", _ANIMALS),
    ("food", "taxonomic", "it is a kind of food", _FOOD),
    ("vehicle", "taxonomic", "it is a vehicle", _VEHICLES),
    ("clothing", "taxonomic", "it is a piece of clothing",
     "hat coat shirt dress shoe glove sock boot jacket scarf helmet"),
    ("furniture", "taxonomic", "it is a piece of furniture", _FURNITURE),
    ("tool", "taxonomic", "it is a tool", _TOOLS),
    ("instrument", "taxonomic", "it is a musical instrument", _INSTRUMENTS),
    ("building", "taxonomic", "it is a building", _BUILDINGS),
    ("weapon", "taxonomic", "it is a weapon", _WEAPONS),
    ("metal", "perceptual", "it is made of metal",
     """car truck bus bicycle motorcycle train airplane ship tractor helicopter ring hammer saw
     knife axe shovel drill needle screwdriver trumpet flute sword rifle pistol cannon bomb spoon
     fork pan oven refrigerator bucket coin key"""),
    ("wooden", "perceptual", "it is made of wood",
     """chair table bed desk shelf bench cabinet wagon violin guitar piano barn broom ladder boat
     spear"""),
    ("cloth", "perceptual", "it is made of cloth or wool",
     "hat coat shirt dress glove sock jacket scarf pillow blanket umbrella sofa"),
    ("round", "perceptual", "it is round",
     """apple orange lemon cherry onion potato ring drum plate bowl ball balloon coin bomb pizza
     pan clock"""),
    ("sharp", "perceptual", "it is sharp", "saw knife axe needle sword spear fork drill"),
    ("soft", "perceptual", "it is soft",
     """cat rabbit sheep bread cake scarf sock shirt dress blanket pillow feather sofa bed hat
     glove"""),
    ("furry", "perceptual", "it has fur",
     "cat dog rabbit horse bear cow sheep lion tiger wolf fox mouse"),
    ("wheels", "perceptual", "it has wheels",
     "car truck bus bicycle motorcycle train airplane tractor wagon cannon"),
    ("legs", "perceptual", "it has four legs",
     """cat dog rabbit horse bear cow sheep lion tiger wolf fox mouse elephant frog chair table bed
     sofa desk bench"""),
    ("heavy", "perceptual", "it is too heavy to lift",
     """horse bear cow lion tiger elephant shark car truck bus train airplane boat ship tractor
     helicopter wagon bed sofa piano cannon house church barn castle hotel hospital oven
     refrigerator cabinet"""),
    ("tiny", "perceptual", "it is very small",
     "mouse bee ant butterfly cherry ring needle coin feather key"),
    ("loud", "perceptual", "it makes a loud noise",
     """dog lion elephant wolf cow duck chicken car truck bus motorcycle train airplane ship tractor
     helicopter hammer saw drill drum trumpet piano rifle pistol cannon bomb telephone television
     clock"""),
    ("expensive", "abstract", "it costs a lot of money",
     """horse elephant car truck bus motorcycle train airplane boat ship tractor helicopter ring
     piano violin house church barn castle hotel hospital cannon refrigerator computer
     television"""),
    ("dangerous", "abstract", "it is dangerous",
     """bear lion tiger wolf snake shark motorcycle saw knife axe sword rifle pistol cannon spear
     bomb"""),
    ("powered", "abstract", "it needs fuel or electricity",
     """car truck bus motorcycle train airplane ship tractor helicopter drill oven refrigerator
     telephone television computer"""),
    ("kitchen", "abstract", "it belongs in a kitchen",
     """apple banana orange lemon cherry carrot potato onion bread cake cheese egg sandwich pizza
     knife bottle cup plate bowl spoon fork pan oven refrigerator table chair"""),
    ("farm", "abstract", "it belongs on a farm",
     """horse cow sheep duck chicken tractor wagon barn shovel egg potato carrot bucket dog cat"""),
    ("war", "abstract", "it is used in wars",
     "sword rifle pistol cannon spear bomb helmet airplane ship helicopter truck horse"),
    ("childlike", "abstract", "children play with it",
     "ball doll kite balloon cat dog rabbit bicycle drum"),
    ("eat", "affordance", "you can eat it",
     f"{_FOOD} duck chicken salmon"),
    ("ride", "affordance", "you can ride in it or on it",
     f"{_VEHICLES} horse elephant"),
    ("wear", "affordance", "you can wear it", _CLOTHES),
    ("cut", "affordance", "you can cut something with it", "saw knife axe sword"),
    ("hold", "affordance", "you can hold it in one hand",
     f"""mouse bee ant butterfly frog {_FOOD} hat glove sock scarf ring shoe hammer saw knife axe
     drill needle screwdriver flute pistol sword bottle cup plate bowl bag spoon fork ball doll
     balloon book coin stone feather brick telephone umbrella key candle"""),
    ("enter", "affordance", "you can walk into it",
     "house church barn castle hotel hospital bus train airplane ship"),
    ("music", "affordance", "you can play music on it", _INSTRUMENTS),
    ("rest", "affordance", "you can sit or lie on it",
     "chair bed sofa bench blanket horse elephant bicycle motorcycle"),
    ("fill", "affordance", "you can fill it with things",
     """bottle cup bowl bucket box bag basket pan oven refrigerator cabinet shelf car truck wagon
     boat ship barn house"""),
    ("feed", "affordance", "you can feed it", _ANIMALS),
    ("kill", "affordance", "you can kill somebody with it",
     f"{_WEAPONS} knife axe hammer"),
)  # fmt: skip


@dataclass(frozen=True)
class Feature:
    """Something that is true or false of a thing; ``statement`` says it of "it"."""

    name: str
    kind: str
    statement: str


@dataclass(frozen=True)
class Thing:
    """A noun and the names of the features that it has."""

    noun: str
    features: frozenset[str]

    def has(self, feature: Feature) -> bool:
        """True if the thing has the feature."""
        return feature.name in self.features

    @property
    def phrase(self) -> str:
        """The noun with its article: "an apple"."""
        return f"{article(self.noun)} {self.noun}"


FEATURES = tuple(Feature(name, kind, statement) for name, kind, statement, _ in _TABLE)


def features(*kinds: str) -> tuple[Feature, ...]:
    """The features of some kinds, or all of them.

    Raises ValueError for a kind outside :data:`KINDS`.
    """
    if odd := next((kind for kind in kinds if kind not in KINDS), None):
        raise ValueError(f"unknown kind of feature {odd!r}; known: {', '.join(KINDS)}")
    return tuple(f for f in FEATURES if f.kind in (kinds or KINDS))


@lru_cache(maxsize=1)
def things() -> tuple[Thing, ...]:
    """All things, in a fixed order."""
    having = {name: frozenset(nouns.split()) for name, _, _, nouns in _TABLE}
    return tuple(
        Thing(noun, frozenset(name for name, nouns in having.items() if noun in nouns))
        for noun in NOUNS
    )
