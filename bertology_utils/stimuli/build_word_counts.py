"""Rebuild ``data/word_counts.tsv`` from a folder of plain text (``.txt`` or ``.txt.xz``).

    python -m bertology_utils.stimuli.build_word_counts FOLDER

The table in the repository was counted in eight collections in the public domain or under Creative
Commons licences: Standard Ebooks, sentences and biographies of Wikipedia, MedQuAD, Open English
WordNet glosses, Digital.gov, the World Factbook and addresses of US presidents. Only counts are
kept, of a sample of words that is equally large in every half power of ten.
"""

from __future__ import annotations

import argparse
import lzma
import math
import re
from collections import Counter
from pathlib import Path

from bertology_utils.stimuli._draw import Draw

DATA = Path(__file__).parent / "data" / "word_counts.tsv"
PER_BAND = 250
#: typing errors and words run together rarely occur in two collections
MIN_FILES = 2
_WORD = re.compile(r"[a-z]{2,}")


def count(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """(occurrences, number of files) of every word, lower-cased, letters a to z only.

    Raises:
        FileNotFoundError: no text files in the folder.
    """
    paths = sorted(p for p in folder.iterdir() if p.name.endswith((".txt", ".txt.xz")))
    if not paths:
        raise FileNotFoundError(f"no .txt or .txt.xz file in {folder.name!r}")
    total: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for path in paths:
        opener = lzma.open if path.suffix == ".xz" else open
        here: Counter[str] = Counter()
        with opener(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                here.update(_WORD.findall(line.lower()))
        total.update(here)
        spread.update(here.keys())
    return total, spread


def sample(total: Counter[str], spread: Counter[str], per_band: int = PER_BAND) -> dict[str, int]:
    """At most ``per_band`` words of each half power of ten, most frequent first."""
    bands: dict[int, list[str]] = {}
    for word in sorted(total):
        if spread[word] >= MIN_FILES:
            bands.setdefault(int(2 * math.log10(total[word])), []).append(word)
    kept = [
        w for band, words in bands.items() for w in Draw("counts", band).shuffled(words)[:per_band]
    ]
    return {word: total[word] for word in sorted(kept, key=lambda w: (-total[w], w))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    total, spread = count(parser.parse_args().folder)
    lines = [f"# {total.total()} words counted in all"]
    lines += [f"{word}\t{n}" for word, n in sample(total, spread).items()]
    DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
