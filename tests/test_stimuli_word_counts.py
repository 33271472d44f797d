"""The table of word counts: how it is made, and what the shipped one looks like."""

import lzma
import math
from collections import Counter

import pytest

from bertology_utils.stimuli.build_word_counts import count, sample
from bertology_utils.stimuli.word_counts import word_counts


def test_words_are_counted_across_plain_and_packed_files(tmp_path):
    (tmp_path / "a.txt").write_text("The cat's cat.\nA the", encoding="utf-8")
    with lzma.open(tmp_path / "b.txt.xz", "wt", encoding="utf-8") as out:
        out.write("the dog 42")
    total, spread = count(tmp_path)
    assert total == {"the": 3, "cat": 2, "dog": 1}
    assert spread["the"] == 2 and spread["cat"] == 1


def test_a_folder_without_text_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=tmp_path.name):
        count(tmp_path)


def test_the_sample_is_level_over_frequencies_and_skips_words_of_one_file():
    total = Counter({f"common{i}": 500 + i for i in range(50)})
    total |= Counter({f"rare{i}": 2 for i in range(50)})
    spread = Counter(dict.fromkeys(total, 2))
    spread["common49"] = 1
    found = sample(total, spread, per_band=10)
    assert sum(word.startswith("rare") for word in found) == 10
    assert "common49" not in sample(total, spread, per_band=100)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found == sample(total, spread, per_band=10)


def test_the_shipped_table_spans_five_orders_of_magnitude():
    table = word_counts()
    assert len(table.counts) > 2000
    assert list(table.counts.values()) == sorted(table.counts.values(), reverse=True)
    assert min(table.counts.values()) >= 2 and max(table.counts.values()) > 500_000
    assert sum(table.counts.values()) < table.total
    bands = Counter(int(2 * math.log10(n)) for n in table.counts.values())
    assert max(bands.values()) == 250 and sum(size == 250 for size in bands.values()) >= 7
    assert all(word.isalpha() and word.islower() for word in table.counts)


def test_frequency_is_given_in_a_million_words():
    table = word_counts()
    assert table.per_million("the") == pytest.approx(table.counts["the"] / table.total * 1e6)
    assert 40_000 < table.per_million("the") < 80_000
    with pytest.raises(KeyError, match="xyzzy"):
        table.per_million("xyzzy")
