"""What running a chapter cost at the last build, in words: for its page, and for its notebook."""

from __future__ import annotations

from collections.abc import Mapping

#: by language, as Sphinx writes it
_WORDS = {
    "en": {
        "measured": "Measured at the last build: {time} of one core's time and {memory} of memory "
        "at most.",
        "unmeasured": "Time and memory were not measured in this build.",
        "seconds": "{:.0f} seconds",
        "minutes": "{:.1f} minutes",
    },
    "zh_CN": {
        "measured": "上次构建时实测：单核用时 {time}，内存峰值 {memory}。",
        "unmeasured": "此次构建没有测量用时和内存。",
        "seconds": "{:.0f} 秒",
        "minutes": "{:.1f} 分钟",
    },
}
#: from here on in minutes
_SECONDS_AT_MOST = 90


def measured_cost(cost: Mapping[str, float] | None, language: str = "en") -> str:
    """Say in one sentence what running a chapter cost at the last build.

    Args:
        cost: the chapter's entry in the build's ``executions.json``, or None without one.
        language: of the sentence; English where it is none of the book's.
    """
    words = _WORDS.get(language, _WORDS["en"])
    if cost is None:
        return words["unmeasured"]
    seconds = cost["cpu_seconds"]
    time = (
        words["seconds"].format(seconds)
        if seconds < _SECONDS_AT_MOST
        else minutes(cost, language)
    )
    return words["measured"].format(time=time, memory=memory(cost))


def minutes(cost: Mapping[str, float], language: str = "en") -> str:
    """One core's time, in minutes."""
    words = _WORDS.get(language, _WORDS["en"])
    return words["minutes"].format(cost["cpu_seconds"] / 60)


def memory(cost: Mapping[str, float]) -> str:
    """The peak of memory, in units of 10^9 bytes."""
    return f"{cost['peak_memory_mb'] / 1000:.1f} GB"
