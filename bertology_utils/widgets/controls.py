"""What a reader can turn: one control is a name and the settings it offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True)
class Control:
    """A control and its settings.

    Attributes:
        name: the keyword argument it sets.
        options: the settings, in order.
        labels: how each setting is written; the same length as ``options``.
    """

    name: str
    options: tuple[Any, ...]
    labels: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name as written above the control."""
        return self.name.replace("_", " ")

    @property
    def is_slider(self) -> bool:
        """Three or more rising numbers make a slider; anything else makes a list."""
        numbers = self.options
        if len(numbers) < 3:
            return False
        if any(isinstance(n, bool) or not isinstance(n, Real) for n in numbers):
            return False
        return all(a < b for a, b in zip(numbers, numbers[1:], strict=False))

    def only(self, wanted: Sequence[Any]) -> Control:
        """Return the control with the ``wanted`` settings alone.

        Raises:
            ValueError: one of them is not among the options, or none is wanted.
        """
        if not len(wanted):
            raise ValueError(f"control {self.name!r} is left without a setting")
        for option in wanted:
            if option not in self.options:
                raise ValueError(
                    f"{option!r} is not a setting of {self.name!r}; settings: {list(self.options)}"
                )
        places = [self.options.index(option) for option in wanted]
        return Control(
            self.name,
            tuple(self.options[i] for i in places),
            tuple(self.labels[i] for i in places),
        )


def as_controls(controls: Mapping[str, Sequence[Any] | Mapping[str, Any]]) -> tuple[Control, ...]:
    """Return the controls of a mapping name -> options, or name -> {label: option}.

    Raises:
        ValueError: there is no control, a control has no option or the same one twice, or its
            name cannot be an argument.
    """
    if not controls:
        raise ValueError("there is no control to turn")
    made = []
    for name, given in controls.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"{name!r} cannot name an argument of the function")
        if isinstance(given, str):
            raise ValueError(f"the options of {name!r} are one string; give a list of settings")
        if isinstance(given, Mapping):
            labels, options = tuple(str(label) for label in given), tuple(given.values())
        else:
            options = tuple(given)
            labels = tuple(_label(option) for option in options)
        if not options:
            raise ValueError(f"control {name!r} has no setting")
        if len(set(labels)) != len(labels):
            raise ValueError(f"two settings of {name!r} are written the same: {list(labels)}")
        made.append(Control(name, options, labels))
    return tuple(made)


def _label(option: Any) -> str:
    if isinstance(option, bool):
        return "yes" if option else "no"
    return f"{option:g}" if isinstance(option, float) else str(option)
