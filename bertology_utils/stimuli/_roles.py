"""Events with a typical doer and undergoer, for role-reversal items (after Ettinger 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli.lexicon import Lexicon

# doer | participle | undergoer | plural of the undergoer: the reverse event is hard to imagine
_EVENTS = """
teacher | taught | student | students
doctor | cured | patient | patients
nurse | treated | patient | patients
officer | arrested | thief | thieves
detective | questioned | suspect | suspects
judge | punished | criminal | criminals
lawyer | defended | client | clients
guard | guarded | prisoner | prisoners
hunter | hunted | deer | deer
hunter | shot | duck | ducks
mother | fed | baby | babies
father | raised | son | sons
photographer | photographed | model | models
artist | painted | model | models
manager | hired | worker | workers
boss | fired | employee | employees
coach | trained | player | players
guide | guided | tourist | tourists
general | commanded | soldier | soldiers
king | ruled | nation | nations
rider | rode | horse | horses
fisherman | caught | fish | fish
fox | ate | rabbit | rabbits
wolf | killed | sheep | sheep
lion | ate | goat | goats
cat | chased | mouse | mice
owl | caught | mouse | mice
spider | trapped | fly | flies
snake | swallowed | frog | frogs
bird | swallowed | worm | worms
ghost | haunted | house | houses
merchant | sold | rug | rugs
driver | drove | taxi | taxis
landlord | evicted | tenant | tenants
voters | elected | senator | senators
priest | blessed | baby | babies
priest | married | couple | couples
couple | adopted | orphan | orphans
host | welcomed | guest | guests
director | directed | actress | actresses
fans | adored | singer | singers
comedian | amused | audience | audiences
surgeon | examined | patient | patients
sheriff | captured | outlaw | outlaws
engineer | built | robot | robots
farmer | sold | cow | cows
chef | cooked | chicken | chickens
shark | attacked | sailor | sailors
pilot | flew | plane | planes
judge | sentenced | murderer | murderers
"""

_OPENINGS = (
    "{observer} remembered which {y} the {x} had",
    "{observer} forgot which {y} the {x} had",
    "{observer} asked which {y} the {x} had",
    "{observer} knew which {y} the {x} had",
    "{observer} found out which {y} the {x} had",
    "{observer} told us which {y} the {x} had",
    "{observer} never learned which {y} the {x} had",
    "{observer} wrote down which {y} the {x} had",
)
_ENDINGS = ("", " last year", " that day", " before")


@dataclass(frozen=True)
class Event:
    """A doer, a past participle and the typical undergoer (singular and plural)."""

    doer: str
    participle: str
    undergoer: str
    undergoers: str


def _read() -> tuple[Event, ...]:
    rows = [[c.strip() for c in line.split("|")] for line in _EVENTS.strip().splitlines()]
    return tuple(Event(*row) for row in rows)


EVENTS = _read()


def reversal(draw: Draw, words: Lexicon) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """(good words, bad words, index of the participle): doer and undergoer change places."""
    event = draw.pick(EVENTS)
    observers = [n for n in words.nouns_of("person")
                 if n.lemma not in (event.doer, event.undergoer)]  # fmt: skip
    if draw.chance(0.5):
        observer = "The " + draw.pick(observers).singular
    else:
        observer = draw.pick(words.names).lemma.capitalize()
    plural = draw.chance(0.4)
    patient = event.undergoers if plural else event.undergoer
    opening = draw.pick(_OPENINGS)
    ending = draw.pick(_ENDINGS)
    sides = []
    for x, y in ((event.doer, patient), (patient, event.doer)):
        text = opening.format(observer=observer, x=x, y=y)
        sides.append((*text.split(), event.participle, *ending.split(), "."))
    return sides[0], sides[1], len(sides[0]) - len(ending.split()) - 2
