"""Units: texts such as ``"2 kpc"``, code units, and the units in which results are given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import Error, unknown

Powers = tuple[float, float, float, float]
"""Powers of length, mass, time and temperature."""

PARSEC = 3.0856775814913673e18
YEAR = 3.15576e7
SOLAR_MASS = 1.98840987e33
HYDROGEN_MASS = 1.67353284e-24
BOLTZMANN = 1.380649e-16
ELECTRONVOLT = 1.602176634e-12
NEWTON = 6.6743e-8

SYSTEMS = ("astronomical", "comoving", "cgs", "code")
NUMBER: Powers = (0, 0, 0, 0)
LENGTH: Powers = (1, 0, 0, 0)
MASS: Powers = (0, 1, 0, 0)
TIME: Powers = (0, 0, 1, 0)
SPEED: Powers = (1, 0, -1, 0)
ENERGY: Powers = (2, 1, -2, 0)
_VOLUME: Powers = (3, 0, 0, 0)

_WORDS: dict[str, tuple[float, Powers]] = {
    "cm": (1.0, LENGTH),
    "m": (1e2, LENGTH),
    "km": (1e5, LENGTH),
    "Rsun": (6.957e10, LENGTH),
    "au": (1.495978707e13, LENGTH),
    "pc": (PARSEC, LENGTH),
    "kpc": (1e3 * PARSEC, LENGTH),
    "Mpc": (1e6 * PARSEC, LENGTH),
    "g": (1.0, MASS),
    "kg": (1e3, MASS),
    "mH": (HYDROGEN_MASS, MASS),
    "m_H": (HYDROGEN_MASS, MASS),
    "m_p": (1.67262192369e-24, MASS),
    "Msun": (SOLAR_MASS, MASS),
    "s": (1.0, TIME),
    "yr": (YEAR, TIME),
    "kyr": (1e3 * YEAR, TIME),
    "Myr": (1e6 * YEAR, TIME),
    "Gyr": (1e9 * YEAR, TIME),
    "kms": (1e5, SPEED),
    "c": (2.99792458e10, SPEED),
    "erg": (1.0, ENERGY),
    "eV": (ELECTRONVOLT, ENERGY),
    "keV": (1e3 * ELECTRONVOLT, ENERGY),
    "k_B": (BOLTZMANN, ENERGY),
    "G": (NEWTON, (3, -1, -2, 0)),
    "K": (1.0, (0, 0, 0, 1)),
    "cell": (1.0, NUMBER),
}
_SCALES = {LENGTH: ("cm", "km", "au", "pc", "kpc", "Mpc"), TIME: ("s", "yr", "kyr", "Myr", "Gyr")}
_FIXED: dict[Powers, str] = {
    MASS: "Msun",
    SPEED: "km/s",
    (2, 0, -2, 0): "km**2/s**2",
    (-3, 1, 0, 0): "g/cm**3",
    (-3, 0, 0, 0): "1/cm**3",
    (-2, 1, 0, 0): "Msun/pc**2",
    (-2, 0, 0, 0): "1/cm**2",
    (-1, 1, -2, 0): "erg/cm**3",
    ENERGY: "erg",
    (2, 1, -3, 0): "erg/s",
}
_PROPER: frozenset[Powers] = frozenset({
    NUMBER, TIME, (0, 0, -1, 0), MASS, (0, 1, -1, 0), SPEED, (1, 0, -2, 0), (2, 0, -2, 0), (2, 0, -3, 0), (1, 1, -1, 0), ENERGY,
    (2, 1, -3, 0),
})  # fmt: skip
"""Quantities without a comoving form: times, masses, velocities, accelerations, momenta, energies, powers."""
_COMOVING = "cm"
"""Ending of comoving units of length, as in yt."""
_TOKEN = re.compile(r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]+)|(?P<sign>\*\*|[-+*/^()·]))")


class Quantity(float):
    """A number with the name of its unit; otherwise a plain float."""

    units: str

    def __new__(cls, value: float, units: str) -> Quantity:
        quantity = super().__new__(cls, value)
        quantity.units = units
        return quantity

    def __repr__(self) -> str:
        return f"{float(self):.9g} {self.units}".removesuffix(" 1")

    __str__ = __repr__


def multiply(a: Powers, b: Powers, power: float = 1) -> Powers:
    """Returns the powers of a product a * b**power."""
    return tuple(x + power * y for x, y in zip(a, b))  # type: ignore[return-value]


class _Parser:
    """Reads products and quotients of numbers and words with powers."""

    def __init__(self, text: str, words: dict[str, tuple[float, Powers]]) -> None:
        self.text, self.words = text, words
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise Error(f"`{text}` is no number with a unit")
            self.tokens.append((str(match.lastgroup), match[match.lastgroup or 0]))
            at = match.end()
        self.at = 0

    def next_is(self, *signs: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] in [("sign", sign) for sign in signs]

    def product(self) -> tuple[float, Powers]:
        value, powers = self.factor()
        while self.at < len(self.tokens) and not self.next_is(")"):
            if self.next_is("+", "-"):
                raise Error(f"`{self.text}` is no number with a unit")
            divides = self.next_is("/")
            self.at += self.next_is("/", "*", "·")
            other, own = self.factor()
            value = value / other if divides else value * other
            powers = multiply(powers, own, -1 if divides else 1)
        return value, powers

    def factor(self) -> tuple[float, Powers]:
        if self.next_is("-"):
            self.at += 1
            value, powers = self.factor()
            return -value, powers
        if self.at >= len(self.tokens):
            raise Error(f"`{self.text}`: a unit is missing")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "word":
            if token not in self.words:
                if token in _WORDS:
                    raise Error(f"`{self.text}`: the run has no units; give a plain number in code units")
                raise Error(str(unknown("unit", token, self.words)) + f" (in `{self.text}`)")
            value, powers = self.words[token]
            # `cm3` is the third power
            follows = self.tokens[self.at : self.at + 1]
            bare = follows and follows[0][0] == "number" and f"{token}{follows[0][1]}" in self.text
            return self.raised(value, powers, bool(bare))
        if kind == "number":
            return self.raised(float(token), NUMBER, False)
        if token == "(":
            value, powers = self.product()
            if not self.next_is(")"):
                raise Error(f"`{self.text}`: a parenthesis is missing")
            self.at += 1
            return self.raised(value, powers, False)
        raise Error(f"`{self.text}` is no number with a unit")

    def raised(self, value: float, powers: Powers, bare: bool) -> tuple[float, Powers]:
        if not bare:
            if not self.next_is("**", "^"):
                # `cm-3`
                if not self.next_is("-", "+") or powers == NUMBER:
                    return value, powers
            else:
                self.at += 1
        sign = -1.0 if self.next_is("-") else 1.0
        self.at += self.next_is("-", "+")
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "number":
            raise Error(f"`{self.text}`: a power is missing")
        power = sign * float(self.tokens[self.at][1])
        self.at += 1
        return value**power, multiply(NUMBER, powers, power)


def _of_words(names: list[tuple[str, float]]) -> str:
    """Writes a product of powers, such as ``g/(cm*s**2)``, in the order of the alphabet."""
    names = sorted(names)
    text = lambda name, power: name if power == 1 else f"{name}**{power:g}"
    above = [text(name, power) for name, power in names if power > 0]
    below = [text(name, -power) for name, power in names if power < 0]
    head = "*".join(above) or "1"
    if not below:
        return head
    return f"{head}/{below[0]}" if len(below) == 1 else f"{head}/({'*'.join(below)})"


def _times(name: str, factor: str, power: float) -> str:
    """Returns the unit ``name*factor**power``."""
    if power == 0:
        return name
    text = factor if abs(power) == 1 else f"{factor}**{abs(power):g}"
    if power < 0:
        return f"{name}/{text}"
    return text if name == "1" else f"{text}*{name}"


@dataclass(frozen=True)
class Shown:
    """The unit of a result: numbers in code units times `factor` have the unit `name`.

    `factor` belongs to the scale factor of the :class:`Units`, and follows its power `exponent` in a run with `[cosmology]`.
    """

    name: str
    factor: float
    exponent: float = 0.0

    def factors(self, ratio: np.ndarray) -> np.ndarray:
        """Returns the factor for each ratio of another scale factor to that of the units."""
        return self.factor * ratio**self.exponent


class Units:
    """The code units of a snapshot, and the units of results: `system` is astronomical, comoving, cgs or code.

    The code units of a run with `[cosmology]` belong to a scale factor: a length is proportional to it, a time to its square.
    """

    def __init__(self, attrs: dict[str, Any], system: str, width: float, end: float, scale_factor: float = 1.0,
                 h: float = 1.0) -> None:  # fmt: skip
        if system not in SYSTEMS:
            raise unknown("system of units", system, SYSTEMS)
        self.changing = bool(attrs.get("is_changing", False))
        if system == "comoving" and not self.changing:
            raise Error("the run has no table [cosmology], so it has no comoving units")
        self.scale_factor = scale_factor if self.changing else 1.0
        self.length: float = attrs.get("length_cgs", 1.0)
        self.mass: float = attrs.get("mass_cgs", 1.0)
        self.time: float = attrs.get("time_cgs", 1.0)
        self.name: str = attrs.get("name", "")
        self.dimensionless = (self.length, self.mass, self.time) == (1.0, 1.0, 1.0)
        self.system = "code" if self.dimensionless else system
        # the names of units are the same at all times of a run
        a = self.scale_factor
        self._long = {LENGTH: self._longest(LENGTH, width * self.length / a), TIME: self._longest(TIME, end * self.time / a**2)}
        code = {"length": (self.length, LENGTH), "mass": (self.mass, MASS), "time": (self.time, TIME)}
        self._words = code if self.dimensionless else code | _WORDS
        self._known = code | _WORDS | {"expansion": (a, NUMBER)}
        if self.changing:
            self._words |= {name + _COMOVING: (a * _WORDS[name][0], LENGTH) for name in _SCALES[LENGTH]} | {"h": (h, NUMBER)}
        self._exponents = {word: NUMBER for word in _WORDS} | {
            word: (power, 0.0, 0.0, 0.0) for word, power in (("length", 1.0), ("mass", 0.0), ("time", 2.0), ("expansion", 1.0))
        }
        self._code_only = {word: NUMBER for word in (*_WORDS, "expansion")} | {
            "length": LENGTH, "mass": MASS, "time": TIME
        }  # fmt: skip

    @staticmethod
    def _longest(kind: Powers, cgs: float) -> str:
        """Returns the longest unit that is not longer than a value in cgs."""
        fitting = [name for name in _SCALES[kind] if _WORDS[name][0] <= cgs]
        return (fitting or ["cm" if kind == LENGTH else "s"])[-1]

    def __repr__(self) -> str:
        if self.dimensionless:
            return "Units: dimensionless"
        return f"Units: {self.name or 'code'}, results {self.system} ({self.shown('length').name}, {self.shown('time').name})"

    def powers(self, units: str) -> Powers | None:
        """Returns the powers of the unit of an array; `None` if it contains unknown words."""
        try:
            return self._parse(units)[1]
        except Error:
            return None

    def _parse(self, units: str) -> tuple[float, Powers]:
        return _Parser(units, self._known).product()

    def exponent(self, units: str) -> float:
        """Returns the power of the scale factor in `cgs_factor`; 0 if the units are constant or unknown."""
        return self._powers_of(units, self._exponents)[0] if self.changing else 0.0

    def _powers_of(self, units: str, words: dict[str, Powers]) -> Powers:
        """Returns the powers of a unit whose words have these powers; those of a number if it has other words."""
        try:
            return _Parser(units, {word: (1.0, powers) for word, powers in words.items()}).product()[1]
        except Error:
            return NUMBER

    def comoving_lengths(self, units: str) -> float:
        """Returns the power of comoving lengths in a unit: -3 for densities, 1 for lengths, 0 for velocities and times."""
        length, *others = self._powers_of(units, self._code_only)
        for power in (0, -3, -2, 1, 2, 3):
            if (length - power, *others) in _PROPER:
                return power
        return length + others[1]

    def cgs_factor(self, units: str) -> float:
        """Returns the value in cgs of a unit of an array, such as ``mass/length**3``."""
        try:
            return self._parse(units)[0]
        except Error:
            return 1.0

    def cgs_units(self, units: str) -> str:
        """Returns the unit of an array in cgs, such as ``g/cm**3``; ``1`` in a run without units."""
        powers = self.powers(units)
        if self.dimensionless or powers is None:
            return "1"
        length, mass, time, kelvin = powers
        return _of_words([("cm", length), ("g", mass), ("s", time), ("K", kelvin)])

    def product(self, units: str, factor: str) -> str:
        """Returns the unit of a product, such as ``mass/length**2`` for ``mass/length**3`` and ``length``."""
        text = f"({units})*({factor})"
        powers = self.powers(text)
        if powers is None:
            return f"{units}*{factor}"
        words = set(re.findall("[A-Za-z]+", text))
        if not words <= {"length", "mass", "time", "K"}:
            return text
        return _of_words(list(zip(("length", "mass", "time", "K"), powers)))

    def shown(self, units: str) -> Shown:
        """Returns the unit in which numbers of the unit `units`, such as ``mass/length**3``, are given."""
        powers = self.powers(units)
        if powers == NUMBER:
            return Shown("1", 1.0)
        if self.system == "code" or powers is None:
            return Shown(units, 1.0)
        if self.system == "comoving":
            return self.shown_comoving(units)
        factor, exponent = self.cgs_factor(units), self.exponent(units)
        if self.system == "cgs" or powers[3]:
            return Shown(self.cgs_units(units), factor, exponent)
        name = self._astronomical(powers) or self.cgs_units(units)
        return Shown(name, factor / _Parser(name, _WORDS).product()[0], exponent)

    def _astronomical(self, powers: Powers) -> str | None:
        return _FIXED.get(powers) or self._scaled(powers)

    def shown_comoving(self, units: str) -> Shown:
        """Returns the unit with comoving lengths, such as ``Mpccm`` or ``Msun/Mpccm**3``; velocities and times are proper."""
        powers = self.powers(units)
        count = self.comoving_lengths(units)
        if powers is None or powers == NUMBER:
            return Shown("1" if powers else units, 1.0)
        proper = multiply(powers, LENGTH, -count)
        length = self._long[LENGTH]
        name = self._astronomical(proper) or _of_words(list(zip(("cm", "g", "s", "K"), proper)))
        size = _Parser(name, _WORDS).product()[0] * (self.scale_factor * _WORDS[length][0]) ** count
        return Shown(_times(name, length + _COMOVING, count), self.cgs_factor(units) / size, self.exponent(units) - count)

    def _scaled(self, powers: Powers) -> str | None:
        for kind in (LENGTH, TIME):
            place = kind.index(1)
            if powers[place] and not any(power for n, power in enumerate(powers) if n != place):
                return _of_words([(self._long[kind], powers[place])])
        return None

    def clock(self, time: float) -> Quantity:
        """Returns a time of the clock, which is in code units in a run with `[cosmology]`: it is no proper time."""
        return Quantity(time, "time") if self.changing else self.quantity(time, "time")

    def quantity(self, value: float, units: str) -> Quantity:
        """Returns a number in code units as a number in the unit of results."""
        shown = self.shown(units)
        return Quantity(value * shown.factor, shown.name)

    def read(self, value: Any, units: str, what: str) -> float:
        """Returns a number in code units from a number in code units, a text with a unit, or a value with `units`."""
        own = getattr(value, "units", None) or getattr(value, "attrs", {}).get("units")
        if own is not None and not isinstance(value, str):
            value = f"{float(getattr(value, 'magnitude', value))!r} ({own})"
        if not isinstance(value, str):
            try:
                return float(value)
            except (TypeError, ValueError):
                raise Error(f"{what}: {value!r} is no number") from None
        try:
            return float(value)
        except ValueError:
            pass
        found, powers = _Parser(value, self._words).product()
        expected = self.powers(units)
        if expected is not None and powers != expected:
            raise Error(f"{what}: `{value}` has the unit {_cgs_name(powers)}, but {_cgs_name(expected)} is needed")
        return found / self.cgs_factor(units)


def _cgs_name(powers: Powers) -> str:
    return _of_words(list(zip(("cm", "g", "s", "K"), powers)))


def pint_registry() -> Any:
    """Returns a registry of pint that knows all units of results; pint itself lacks the solar mass."""
    try:
        import pint
    except ImportError:
        raise Error("a registry of pint needs pint: pip install pint") from None
    registry: Any = pint.UnitRegistry()
    registry.define(f"Msun = {SOLAR_MASS!r} gram")
    return registry
