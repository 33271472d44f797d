"""Commonsense triples (head, relation, tail) with a template each, and corrupted partners.

For telling true triples from corrupted ones by the score of a sentence, as Davison et al. (2019)
do; the triples are our own and general knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli.pairs import MASK

# relation -> (template, "tail: heads; tail: heads; ...")
_RELATIONS = {
    "is a kind of": ("[X] is a kind of [Y].", """
bird: a robin, an eagle, an owl, a hawk, a pigeon; fish: a salmon, a trout, a tuna;
fruit: a banana, a pear, a cherry, a peach; vegetable: a carrot, a cabbage, an onion;
tool: a hammer, a drill, a shovel; weapon: a rifle, a spear, a pistol; metal: copper, iron, zinc;
furniture: a chair, a sofa, a desk; clothing: a shirt, a coat, a dress; insect: a bee, an ant;
flower: a rose, a daisy, an orchid; tree: an oak, a pine, an elm; vehicle: a truck, a bus, a taxi;
disease: malaria, cholera, cancer; sport: tennis, hockey, football; drink: tea, coffee, wine;
instrument: a violin, a piano, a flute; dance: the waltz, the tango; gas: oxygen, hydrogen;
building: a castle, a cathedral, a cottage"""),
    "is found in": ("You find [X] in a [Y].", """
kitchen: a stove, a pan, a cook; barn: a cow, a tractor, hay; church: an altar, a priest, a choir;
library: a librarian, a bookshelf; hospital: a nurse, a surgeon, an operating table;
school: a pupil, a blackboard; bathroom: a towel, a shower; theater: an actor, a stage;
prison: a prisoner, a guard; bank: a safe, a cashier; desert: a camel, a cactus, sand;
forest: a deer, a fox, a mushroom; museum: a painting, a sculpture; garden: a rose, a hedge;
palace: a throne, a king; river: a trout, a beaver; courtroom: a judge, a lawyer;
cave: a bat, a bear; mouth: a tongue, a tooth; restaurant: a waiter, a menu"""),
    "is used to": ("[X] is used to [Y].", """
cut: a knife, a saw, an axe; write: a pen, a pencil; sweep: a broom; wash: soap, a sponge;
open: a key; shoot: a gun, a pistol; dig: a shovel, a spade; cook: a stove, a pan, an oven;
sleep: a bed, a pillow; paint: a brush; dry: a towel; weigh: a scale; fly: an airplane;
sail: a yacht, a boat; kill: poison, a sword; carry: a bag, a basket; smoke: a pipe;
count: a calculator; climb: a ladder; fish: a net; fight: a spear; pay: money; heal: medicine"""),
    "is made of": ("[X] is made of [Y].", """
rubber: a tire; glass: a window, a bottle; paper: a book, a newspaper; wool: a sweater, a scarf;
leather: a boot, a saddle, a belt; wax: a candle; grapes: wine; flour: bread; milk: cheese, butter;
gold: a crown; steel: a sword, a rail; sand: a beach, a dune; clay: a brick, a pot;
wood: a table, a fence; snow: a snowman; cotton: a shirt; stone: a castle, a cathedral;
iron: a chain, an anchor; silk: a kimono; ice: a glacier; water: an ocean, a lake;
bones: a skeleton; words: a sentence; letters: a word"""),
    "can": ("[X] can [Y].", """
fly: a bird, a butterfly, a helicopter; swim: a fish, a duck, a whale; bark: a dog;
bite: a snake, a mosquito; jump: a frog, a kangaroo; ring: a bell, a telephone; cry: a baby;
burn: wood, a candle, paper; sing: a choir, a nightingale; melt: ice, snow, butter;
grow: a tree, a child, a plant; read: a student, a scholar; explode: a bomb, a grenade;
float: a boat, a cork; bloom: a rose, a tulip; shine: the sun, a lamp; crawl: a worm, a snail;
teach: a professor; heal: a wound, a doctor; break: a glass, a bone; drive: a chauffeur;
hunt: a wolf, a lion; drown: a sailor; rust: iron"""),
    "is": ("[X] is usually [Y].", """
hot: fire, an oven, lava; cold: ice, winter; white: snow, milk; green: grass, a leaf; red: blood;
sweet: sugar, honey, a cake; hard: a rock, a diamond; soft: a pillow, a cushion; dark: night;
bright: the sun; sharp: a knife, a razor; wet: rain, a sponge; dry: a desert; slow: a snail;
fast: a race car, a rocket; black: coal, a raven; deep: the ocean, a well;
loud: thunder, an explosion; heavy: an anchor, lead; poor: a beggar; rich: a millionaire;
old: a ruin, a fossil; strong: a giant, a bull; dangerous: a bomb, a shark;
blue: the sky; empty: a wasteland; sick: a patient; young: a puppy, a baby"""),
    "is part of": ("[X] is part of a [Y].", """
car: a steering wheel, a windshield; flower: a petal, a stem; tree: a branch, a trunk;
house: a roof, a bedroom; book: a page, a chapter; guitar: a fret; computer: a keyboard, a screen;
ship: a mast, a deck; bird: a beak, a feather; hand: a finger, a thumb; foot: a toe, a heel;
camera: a lens; church: a steeple, an altar; face: a nose, a cheek; song: a chorus, a verse;
bicycle: a pedal; army: a regiment, a platoon; gun: a trigger, a barrel; week: sunday, monday;
family: a daughter, an uncle; clock: a pendulum; play: an act, a scene; fish: a fin;
shoe: a lace"""),
    "is the opposite of": ("The opposite of [X] is [Y].", """
cold: hot; small: big; bad: good; down: up; right: left; black: white; night: day; old: young;
poor: rich; hate: love; peace: war; death: life; slow: fast; closed: open; late: early;
weak: strong; empty: full; false: true; last: first; south: north; enemy: friend; bottom: top;
end: beginning; sell: buy; winter: summer; dark: light; dry: wet; soft: hard; low: high;
short: long; sad: happy; lose: win; outside: inside; after: before; defense: attack;
woman: man; queen: king; sister: brother; west: east;
ugly: beautiful; wrong: correct; present: absent"""),
}  # fmt: skip


@dataclass(frozen=True)
class Triple:
    """A true triple, its corrupted tail, and the template that says it.

    ``corrupted`` is the tail of another triple of the same relation and not listed for this head;
    it may still be true by chance, which costs every method alike.
    """

    head: str
    relation: str
    tail: str
    corrupted: str
    template: str

    @property
    def query(self) -> str:
        """The sentence with [MASK] for the tail."""
        return self._say(self.head, MASK)

    @property
    def headless(self) -> str:
        """The sentence with [MASK] for the head and for the tail."""
        return self._say(MASK, MASK)

    @property
    def tail_comes_last(self) -> bool:
        """True if the tail stands after the head in the sentence."""
        return self.template.index("[Y]") > self.template.index("[X]")

    def _say(self, head: str, tail: str) -> str:
        text = self.template.replace("[X]", head).replace("[Y]", tail)
        return text[0].upper() + text[1:]


@lru_cache(maxsize=1)
def _listed() -> tuple[tuple[str, str, str], ...]:
    rows = []
    for relation, (_, table) in _RELATIONS.items():
        for entry in table.split(";"):
            tail, heads = entry.split(":")
            rows += [(" ".join(head.split()), relation, tail.strip()) for head in heads.split(",")]
    return tuple(rows)


def triples(seed: int = 0) -> tuple[Triple, ...]:
    """All triples, in a fixed order, each with a corrupted tail drawn by ``seed``.

    Tails are handed out again inside their relation, so that a tail is the corrupted one about as
    often as it is the true one, and how common it is gives nothing away.
    """
    known: dict[tuple[str, str], set[str]] = {}
    by_relation: dict[str, list[tuple[str, str]]] = {}
    for head, relation, tail in _listed():
        known.setdefault((head, relation), set()).add(tail)
        by_relation.setdefault(relation, []).append((head, tail))
    out = []
    for relation, pairs in by_relation.items():
        tails = _deranged(pairs, known, relation, Draw("triples", seed, relation))
        template = _RELATIONS[relation][0]
        out += [
            Triple(head, relation, tail, wrong, template)
            for (head, tail), wrong in zip(pairs, tails, strict=True)
        ]
    return tuple(out)


def _deranged(
    pairs: list[tuple[str, str]], known: dict[tuple[str, str], set[str]], relation: str, draw: Draw
) -> list[str]:
    """The tails in another order, in which no head has one of its own."""
    tails = draw.shuffled([tail for _, tail in pairs])
    for i, (head, _) in enumerate(pairs):
        if tails[i] not in known[head, relation]:
            continue
        # Exchange with any place where both tails are then wrong; there always is one, since no
        # tail belongs to half of the heads.
        for j in draw.shuffled(range(len(pairs))):
            other = pairs[j][0]
            if tails[j] in known[head, relation] or tails[i] in known[other, relation]:
                continue
            tails[i], tails[j] = tails[j], tails[i]
            break
    return tails
