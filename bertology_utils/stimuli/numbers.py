"""Number stimuli: written numbers, decoding, addition, list maximum."""

from __future__ import annotations

from dataclasses import dataclass

from bertology_utils.stimuli._draw import Draw

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen".split()
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
FORMS = ("digits", "words", "decimal")


class NumberError(ValueError):
    """A number out of range, an unknown form or an impossible count."""


@dataclass(frozen=True)
class NumberExample:
    """A number as text inside a carrier sentence; ``start``/``end`` are character offsets."""

    text: str
    value: float
    start: int
    end: int

    @property
    def surface(self) -> str:
        """The number as written."""
        return self.text[self.start : self.end]


@dataclass(frozen=True)
class AdditionExample:
    """Two numbers and their sum; ``text`` names both."""

    text: str
    left: int
    right: int
    total: int


@dataclass(frozen=True)
class MaximumExample:
    """A list of numbers as written and the position of the largest."""

    surfaces: tuple[str, ...]
    values: tuple[float, ...]
    largest: int


def spell(number: int) -> str:
    """An integer from 0 to 999,999 in words: 342 -> "three hundred forty two".

    Raises NumberError outside that range.
    """
    if not 0 <= number < 1_000_000:
        raise NumberError(f"can spell 0 to 999999, not {number}")
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens - 2] + (f" {_ONES[rest]}" if rest else "")
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    high, rest = divmod(number, unit)
    return f"{spell(high)} {name}" + (f" {spell(rest)}" if rest else "")


def write(value: float, form: str = "digits") -> str:
    """A number as "digits" (17), "words" (seventeen) or with one "decimal" (17.0).

    Raises NumberError for an unknown form.
    """
    if form == "digits":
        return str(int(value))
    if form == "words":
        return spell(int(value))
    if form == "decimal":
        return f"{value:.1f}"
    raise NumberError(f"unknown form {form!r}; known: {', '.join(FORMS)}")


def number_examples(
    low: int, high: int, *, form: str = "digits", carrier: str = "The number is {}."
) -> list[NumberExample]:
    """Every number from ``low`` to ``high`` (exclusive) in a carrier sentence, in order.

    The form "decimal" gives tenths: low, low + 0.1, ...  Raises NumberError for an empty range or
    a carrier without exactly one ``{}``.
    """
    if low >= high:
        raise NumberError(f"empty range {low}..{high}")
    if carrier.count("{}") != 1:
        raise NumberError(f"the carrier needs exactly one {{}}: {carrier!r}")
    start = carrier.index("{}")
    values: list[float]
    if form == "decimal":
        values = [tenth / 10 for tenth in range(10 * low, 10 * high)]
    else:
        values = [float(value) for value in range(low, high)]
    out = []
    for value in values:
        surface = write(value, form)
        out.append(NumberExample(carrier.format(surface), value, start, start + len(surface)))
    return out


def addition(
    n: int, low: int, high: int, seed: int = 0, *, form: str = "digits"
) -> list[AdditionExample]:
    """``n`` different sums of two numbers in ``low`` to ``high`` (exclusive).

    Raises NumberError when there are fewer than ``n`` different pairs.
    """
    size = high - low
    if size < 1 or not 1 <= n <= size * size:
        raise NumberError(f"there are {max(size, 0) ** 2} pairs in {low}..{high}, not {n}")
    draw = Draw("addition", seed, low, high, form)
    pairs: dict[tuple[int, int], None] = {}
    if n > size * size // 2:
        every = [(a, b) for a in range(low, high) for b in range(low, high)]
        pairs = dict.fromkeys(draw.sample(every, n))
    while len(pairs) < n:
        pairs[(low + draw.below(size), low + draw.below(size))] = None
    return [
        AdditionExample(f"{write(a, form)} plus {write(b, form)}", a, b, a + b) for a, b in pairs
    ]


def maximum(
    n: int, low: int, high: int, seed: int = 0, *, length: int = 5, form: str = "digits"
) -> list[MaximumExample]:
    """``n`` lists of ``length`` different numbers; which is the largest? (Wallace et al. 2019)

    Raises NumberError when the range has fewer than ``length`` numbers.
    """
    if length < 2 or high - low < length:
        raise NumberError(f"cannot draw {length} different numbers from {low}..{high}")
    out = []
    for i in range(n):
        draw = Draw("maximum", seed, low, high, length, i)
        values: dict[int, None] = {}
        while len(values) < length:
            values[low + draw.below(high - low)] = None
        found = tuple(values)
        out.append(
            MaximumExample(
                tuple(write(v, form) for v in found),
                tuple(float(v) for v in found),
                found.index(max(found)),
            )
        )
    return out
