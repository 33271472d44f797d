"""Gaps that everyday knowledge fills, and short scenes whose last word has to be inferred."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bertology_utils.stimuli.pairs import MASK

# sentence | the same without what it is about | accepted answers
_GAPS = """
Cats like to chase _. | They like to chase _. | mice mouse rats rat birds
Cows eat _. | They eat _. | grass hay
Birds build their nests in _. | They build them in _. | trees
Fish live in the _. | They live in the _. | water sea ocean river
Bees make _. | They make _. | honey wax
A spider sits in its _. | It sits in its _. | web nest
A baby dog is called a _. | It is called a _. | puppy pup
A dog wags its _. | It wags its _. | tail
An elephant has a long _. | It has a long _. | trunk nose tail
Wolves hunt in _. | They hunt in _. | packs groups
A spider has eight _. | It has eight _. | legs eyes
Sheep are kept for their _. | They are kept for their _. | wool meat milk
You see with your _. | You do it with your _. | eyes
You hear with your _. | You do that with your _. | ears
The heart pumps _. | It pumps _. | blood
A hand has five _. | It has five _. | fingers
The brain is inside the _. | It is inside the _. | head skull
You breathe through your _. | You do it through your _. | nose mouth lungs
A week has seven _. | It has seven _. | days
A year has twelve _. | It has twelve _. | months
An hour has sixty _. | It has sixty _. | minutes
The day after Monday is _. | The one after it is _. | tuesday
The month before January is _. | The one before it is _. | december
After winter comes _. | After that comes _. | spring
Snow is _. | It is _. | white cold
Grass is _. | It is _. | green
Blood is _. | It is _. | red
Coal is _. | It is _. | black
Sugar tastes _. | It tastes _. | sweet
Fire is _. | It is _. | hot
Ice is frozen _. | It is frozen _. | water
Rain falls from the _. | It falls from the _. | sky clouds heavens
The sun rises in the _. | It rises in the _. | east morning sky
At night you can see the moon and the _. | There you can see the _. | stars
The earth turns around the _. | It turns around the _. | sun
Bread is made from _. | It is made from _. | flour wheat grain
Wine is made from _. | It is made from _. | grapes grape
Paper is made from _. | It is made from _. | wood trees
Cheese is made from _. | It is made from _. | milk
Windows are made of _. | They are made of _. | glass
Tires are made of _. | They are made of _. | rubber
A bakery sells _. | It sells _. | bread cakes
A library lends _. | It lends _. | books
A farmer milks the _. | He has the _. | cows cow goats
A teacher works in a _. | She works in a _. | school classroom
A doctor works in a _. | She works in a _. | hospital clinic
A pilot flies a _. | He has a _. | plane helicopter jet
A judge works in a _. | She works there in a _. | court courtroom
A king wears a _. | He wears a _. | crown
A soldier carries a _. | He carries a _. | gun rifle weapon
A fisherman catches _. | He catches _. | fish
A carpenter works with _. | He works with _. | wood
A writer writes _. | She does _. | books stories novels
You open a door with a _. | You do it with a _. | key
You cut bread with a _. | You do that with a _. | knife
You eat soup with a _. | You do so with a _. | spoon
You write a letter with a _. | You did it with a _. | pen pencil
You wash your hands with _. | You did that with _. | soap water
You sleep in a _. | You did so in a _. | bed
People pay with _. | They do it with _. | money cash
When you are hungry, you _. | When you are there, you _. | eat
When you are thirsty, you _. | When you are here, you _. | drink
When it rains, the streets get _. | When that happens, they get _. | wet
Two plus two is _. | That plus that is _. | four
"""

# scene | expected word | a word from the same field that does not fit
_SCENES = """
He had lost his key and the door was locked. In the end he climbed in through the _. | window | roof
Her fingers were freezing in the snow. She put on a thick pair of _. | gloves | boots
The girl blew out seven candles and everybody sang. Then they cut the _. | cake | bread
It was raining and she did not want to get wet. Before she went out, she took her _. | umbrella | hat
The baby was hungry and could not chew yet. Its mother warmed a bottle of _. | milk | wine
There was no light in the cellar. To find his way down he lit a _. | candle | cigarette
The soup had no taste at all. The cook added a little more _. | salt | sugar
The coffee was too bitter for the boy. He stirred in another spoon of _. | sugar | salt
The logs had to be split before winter. The old man went to the shed and fetched his _. | axe | saw
The nail would not go into the wall. She needed a heavier _. | hammer | drill
His tooth had been hurting for three days. At last he went to see a _. | dentist | nurse
The car stopped in the middle of the road because the tank was empty. They had run out of _. | gas | oil
It had not rained for weeks and the flowers were dying. Every evening she gave them some _. | water | milk
The river was too deep to walk through. The people on both sides decided to build a _. | bridge | house
The thief ran out of the shop with the money. The owner ran to the telephone and called the _. | police | doctor
The bride came slowly up the aisle in white. Beside the priest waited the _. | groom | king
The letter was written and the envelope was closed. All that was missing was a _. | stamp | pen
He could no longer read small print. The doctor told him to wear _. | glasses | gloves
The hen had been sitting on her nest all night. In the morning the boy found a fresh _. | egg | apple
He kicked with all his strength and the keeper jumped too late. The crowd shouted, for it was a _. | goal | ball
The old king was dead and had only one child. The crown went to his _. | son | cook
It was past midnight and she was tired. She turned off the lamp and went to _. | bed | work
The floor was covered with dust and crumbs. She went to get a _. | broom | spoon
He smelled smoke and remembered the bread. He ran into the kitchen and opened the _. | oven | bottle
The bell rang and the children shut their books. Laughing, they ran out of the _. | school | church
The judge found him guilty of murder. He will spend the rest of his life in _. | prison | court
The captain saw the rocks too late. Soon water was pouring into the _. | ship | car
The dog had eaten all the meat. It dug a hole in the garden and buried the _. | bone | ball
His hair had grown down to his shoulders. On Saturday his wife sent him to the _. | barber | baker
He was on his knees before her with a ring in his hand. He asked if she would _ him. | marry | pay
The sky turned black and there was a bright flash. A moment later they heard the _. | thunder | music
The milk had been standing in the sun for two days. When she tasted it, it was _. | sour | sweet
The hunter saw a deer between the trees. Without a sound he raised his _. | rifle | hat
The spider waited without moving. Before long a fly was caught in its _. | web | nest
She wanted to know whether she was late. She took a look at her _. | watch | ring
The bees had been busy all summer. In autumn the farmer sold forty jars of _. | honey | butter
She had put everything she needed into her basket. At the front of the shop she opened her purse to _. | pay | eat
The boat was sinking far from the shore. They jumped off, and everyone had to _. | swim | walk
The night was clear and there was no moon. Above the desert they saw thousands of _. | stars | lamps
He had not studied, and almost all his answers were wrong. So he failed the _. | exam | race
The rain came in through a hole in the roof. To keep the floor dry they put a _ under it. | bucket | carpet
The lamb had lost its mother in the storm. The farmer found it and carried it back to the other _. | sheep | cows
"""  # noqa: E501


@dataclass(frozen=True)
class Gap:
    """A sentence with a gap that everybody can fill.

    ``bare`` asks the same without what the sentence is about; ``accepted`` are the right words.
    """

    text: str
    bare: str
    accepted: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """Two sentences whose missing word follows only from picturing the scene.

    ``expected`` is the right word, ``related`` one from the same field that does not fit (after the
    design of the passages in Ettinger 2020, arXiv 1907.13528; our own words).
    """

    text: str
    expected: str
    related: str


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@lru_cache(maxsize=1)
def everyday_gaps() -> tuple[Gap, ...]:
    """All gaps, in a fixed order."""
    return tuple(
        Gap(text.replace("_", MASK), bare.replace("_", MASK), tuple(accepted.split()))
        for text, bare, accepted in _rows(_GAPS)
    )


@lru_cache(maxsize=1)
def scenes() -> tuple[Scene, ...]:
    """All scenes, in a fixed order."""
    return tuple(
        Scene(text.replace("_", MASK), expected, related)
        for text, expected, related in _rows(_SCENES)
    )
