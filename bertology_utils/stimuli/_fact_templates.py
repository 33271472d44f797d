"""Relations and their templates: (positive, negated), with [X] the subject and [Y] the object."""

from __future__ import annotations

# relation -> (cardinality, noun phrase naming the object, templates)
RELATIONS: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "capital": ("1-1", "the capital of [X]", (
        ("The capital of [X] is [Y].", "The capital of [X] is not [Y]."),
        ("The capital city of [X] is [Y].", "The capital city of [X] is not [Y]."),
        ("[X] has its capital at [Y].", "[X] does not have its capital at [Y]."),
        ("[X]'s capital is [Y].", "[X]'s capital is not [Y]."),
        ("[Y] is the capital of [X].", "[Y] is not the capital of [X]."),
    )),
    "capital_country": ("1-1", "the country whose capital is [X]", (
        ("[X] is the capital of [Y].", "[X] is not the capital of [Y]."),
        ("[X] is the capital city of [Y].", "[X] is not the capital city of [Y]."),
        ("[X], the capital of [Y].", "[X], not the capital of [Y]."),
        ("The city of [X] is the capital of [Y].", "The city of [X] is not the capital of [Y]."),
    )),
    "city_country": ("N-1", "the country in which [X] lies", (
        ("[X] is a city in [Y].", "[X] is not a city in [Y]."),
        ("The city of [X] is in [Y].", "The city of [X] is not in [Y]."),
        ("[X] is one of the largest cities in [Y].",
         "[X] is not one of the largest cities in [Y]."),
        ("People who live in [X] live in [Y].", "People who live in [X] do not live in [Y]."),
    )),
    "language": ("N-1", "the official language of [X]", (
        ("The official language of [X] is [Y].", "The official language of [X] is not [Y]."),
        ("People in [X] speak [Y].", "People in [X] do not speak [Y]."),
        ("The language spoken in [X] is [Y].", "The language spoken in [X] is not [Y]."),
        ("In [X], most newspapers are written in [Y].",
         "In [X], most newspapers are not written in [Y]."),
    )),
    "currency": ("N-1", "the currency of [X]", (
        ("The currency of [X] is the [Y].", "The currency of [X] is not the [Y]."),
        ("The money used in [X] is called the [Y].",
         "The money used in [X] is not called the [Y]."),
        ("In [X], people pay with the [Y].", "In [X], people do not pay with the [Y]."),
        ("[X] uses the [Y] as its currency.", "[X] does not use the [Y] as its currency."),
    )),
    "continent": ("N-1", "the continent of [X]", (
        ("[X] is a country in [Y].", "[X] is not a country in [Y]."),
        ("[X] is located in [Y].", "[X] is not located in [Y]."),
        ("The continent of [X] is [Y].", "The continent of [X] is not [Y]."),
        ("[X] belongs to the continent of [Y].", "[X] does not belong to the continent of [Y]."),
    )),
    "demonym": ("1-1", "the word for someone from [X]", (
        ("A person from [X] is [Y].", "A person from [X] is not [Y]."),
        ("If you were born in [X], you are [Y].", "If you were born in [X], you are not [Y]."),
        ("The government of [X] is the [Y] government.",
         "The government of [X] is not the [Y] government."),
        ("The army of [X] is the [Y] army.", "The army of [X] is not the [Y] army."),
    )),
    "border": ("N-M", "a neighbor of [X]", (
        ("[X] has a border with [Y].", "[X] does not have a border with [Y]."),
        ("[X] is a neighbor of [Y].", "[X] is not a neighbor of [Y]."),
        ("You can cross the border from [X] to [Y].",
         "You cannot cross the border from [X] to [Y]."),
        ("The countries next to [X] include [Y].",
         "The countries next to [X] do not include [Y]."),
    )),
    "language_country": ("N-M", "a country where [X] is spoken", (
        ("[X] is the official language of [Y].", "[X] is not the official language of [Y]."),
        ("[X] is spoken in [Y].", "[X] is not spoken in [Y]."),
        ("Most people in [Y] speak [X].", "Most people in [Y] do not speak [X]."),
        ("A country where people speak [X] is [Y].",
         "A country where people do not speak [X] is [Y]."),
    )),
    "country_city": ("N-M", "a large city in [X]", (
        ("A large city in [X] is [Y].", "A city that is not in [X] is [Y]."),
        ("[X] has a city called [Y].", "[X] does not have a city called [Y]."),
        ("One of the largest cities in [X] is [Y].",
         "One of the cities outside [X] is [Y]."),
        ("They flew to [X] and landed in [Y].", "They did not fly to [X] but landed in [Y]."),
    )),
    "symbol": ("1-1", "the chemical symbol for [X]", (
        ("The chemical symbol for [X] is [Y].", "The chemical symbol for [X] is not [Y]."),
        ("The symbol of the element [X] is [Y].", "The symbol of the element [X] is not [Y]."),
        ("In chemistry, [X] is written as [Y].", "In chemistry, [X] is not written as [Y]."),
        ("The element [X] has the symbol [Y].", "The element [X] does not have the symbol [Y]."),
    )),
    "symbol_element": ("1-1", "the element with the symbol [X]", (
        ("[X] is the chemical symbol for [Y].", "[X] is not the chemical symbol for [Y]."),
        ("[X] is the symbol of the element [Y].", "[X] is not the symbol of the element [Y]."),
        ("In chemistry, [X] stands for [Y].", "In chemistry, [X] does not stand for [Y]."),
        ("The element with the symbol [X] is [Y].",
         "The element with the symbol [X] is not [Y]."),
    )),
    "author": ("N-1", "the author of [X]", (
        ("[X] was written by [Y].", "[X] was not written by [Y]."),
        ("The author of [X] is [Y].", "The author of [X] is not [Y]."),
        ("[X] is a work by [Y].", "[X] is not a work by [Y]."),
        ("The person who wrote [X] was [Y].", "The person who wrote [X] was not [Y]."),
    )),
    "inventor": ("N-1", "the inventor of [X]", (
        ("The inventor of [X] was [Y].", "The inventor of [X] was not [Y]."),
        ("The person who invented [X] was [Y].", "The person who invented [X] was not [Y]."),
        ("It was [Y] who invented [X].", "It was not [Y] who invented [X]."),
        ("The world owes [X] to [Y].", "The world does not owe [X] to [Y]."),
    )),
    "discoverer": ("N-1", "the discoverer of [X]", (
        ("The person who discovered [X] was [Y].", "The person who discovered [X] was not [Y]."),
        ("The discovery of [X] is due to [Y].", "The discovery of [X] is not due to [Y]."),
        ("It was [Y] who discovered [X].", "It was not [Y] who discovered [X]."),
        ("In science, [X] is the great discovery of [Y].",
         "In science, [X] is not the great discovery of [Y]."),
    )),
    "composer": ("N-1", "the composer of [X]", (
        ("[X] was composed by [Y].", "[X] was not composed by [Y]."),
        ("The composer of [X] was [Y].", "The composer of [X] was not [Y]."),
        ("The music of [X] is by [Y].", "The music of [X] is not by [Y]."),
        ("The person who composed [X] was [Y].", "The person who composed [X] was not [Y]."),
    )),
    "painter": ("N-1", "the painter of [X]", (
        ("[X] was painted by [Y].", "[X] was not painted by [Y]."),
        ("The painter of [X] was [Y].", "The painter of [X] was not [Y]."),
        ("The artist who painted [X] was [Y].", "The artist who painted [X] was not [Y]."),
        ("[X] is a picture by [Y].", "[X] is not a picture by [Y]."),
    )),
    "born_in": ("N-1", "the country where [X] was born", (
        ("[X] was born in [Y].", "[X] was not born in [Y]."),
        ("[X] came from [Y].", "[X] did not come from [Y]."),
        ("The birthplace of [X] is in [Y].", "The birthplace of [X] is not in [Y]."),
        ("[X] was a native of [Y].", "[X] was not a native of [Y]."),
    )),
    "occupation": ("N-M", "the occupation of [X]", (
        ("[X] was a famous [Y].", "[X] was not a famous [Y]."),
        ("[X] worked as a [Y].", "[X] did not work as a [Y]."),
        ("The occupation of [X] was [Y].", "The occupation of [X] was not [Y]."),
        ("[X] is remembered as a great [Y].", "[X] is not remembered as a great [Y]."),
    )),
}  # fmt: skip
