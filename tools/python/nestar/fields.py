"""Fields of cells: the arrays of a snapshot, and fields that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Error, unknown
from .units import BOLTZMANN, HYDROGEN_MASS

if TYPE_CHECKING:
    from .snapshot import Block, Snapshot

PATCH = 8
"""Number of cells of a patch along each axis."""
CELLS = ("patch", "z", "y", "x")
SOLAR_METALS = 0.01295
"""Mass fraction of metals in gas of solar metallicity, as in the cooling tables."""

_SPEED = "length/time"
_PRESSURE = "mass/(length*time**2)"
_FIELD = "(mass/length)**0.5/time"
_MOMENTUM = ("momentum_x", "momentum_y", "momentum_z")
_MAGNETIC = ("magnetic_x", "magnetic_y", "magnetic_z")


@dataclass(frozen=True)
class Field:
    """A field with one value per cell. `evaluate` computes it in code units, `[patch, z, y, x]`."""

    name: str
    units: str
    long_name: str
    evaluate: Callable[[Block], np.ndarray]
    stored: bool = False


def _stored(name: str, attrs: dict[str, Any]) -> Field:
    return Field(name, attrs.get("units", "1"), attrs.get("long_name", name), lambda block: block.array(name), True)


def _square(block: Block, names: tuple[str, ...]) -> np.ndarray:
    """Returns the sum of squares of fields."""
    total = np.square(block[names[0]])
    square = np.empty_like(total)
    for name in names[1:]:
        total += np.square(block[name], out=square)
    return total


def _velocity(name: str) -> Callable[[Block], np.ndarray]:
    return lambda block: block[name] / block["density"]


def _fraction(name: str) -> Callable[[Block], np.ndarray]:
    return lambda block: block[f"scalar_{name}"] / block["density"]


def _thermal_energy(block: Block) -> np.ndarray:
    """Returns a new array with the thermal energy density: that of dual energy, otherwise a difference of energies."""
    if "internal_energy" in block.snapshot.stored:
        return block["internal_energy"].copy()
    thermal = _square(block, _MOMENTUM)
    thermal *= -0.5
    thermal /= block["density"]
    thermal += block["energy"]
    return thermal


def _polytropic_pressure(constant: float, gamma: float) -> Callable[[Block], np.ndarray]:
    return lambda block: constant * block["density"] ** gamma


def _pressure(gamma: float) -> Callable[[Block], np.ndarray]:
    def pressure(block: Block) -> np.ndarray:
        thermal = _thermal_energy(block)
        thermal *= gamma - 1.0
        return thermal

    return pressure


def _coordinate(axis: int) -> Callable[[Block], np.ndarray]:
    return lambda block: np.broadcast_to(block.coordinate(axis), block.shape)


def _gas(stored: dict[str, Any]) -> list[Field]:
    """Returns the fields that follow from the density and the momentum."""
    found = [
        Field(f"velocity_{axis}", _SPEED, f"velocity along {axis}", _velocity(name)) for axis, name in zip("xyz", _MOMENTUM)
    ]
    speed = lambda block: np.sqrt(_square(block, _MOMENTUM)) / block["density"]
    found.append(Field("speed", _SPEED, "speed", speed))
    scalars = [name.removeprefix("scalar_") for name in stored if name.startswith("scalar_")]
    found += [Field(f"fraction_{name}", "1", f"mass fraction of {name}", _fraction(name)) for name in scalars]
    if "metal" in scalars:
        metallicity = lambda block: block["fraction_metal"] / SOLAR_METALS
        found.append(Field("metallicity", "1", "metallicity in solar units", metallicity))
    return found


def _thermal(gamma: float, pressure: Callable[[Block], np.ndarray]) -> list[Field]:
    """Returns the fields that follow from the pressure."""
    return [
        Field("pressure", _PRESSURE, "pressure", pressure),
        Field("temperature", "length**2/time**2", "pressure over density", lambda block: block["pressure"] / block["density"]),
        Field("sound_speed", _SPEED, "sound speed", lambda block: np.sqrt(gamma * block["temperature"])),
        Field("mach", "1", "speed over sound speed", lambda block: block["speed"] / block["sound_speed"]),
        Field("entropy", "code", "pressure over density**gamma", lambda block: block["pressure"] / block["density"] ** gamma),
    ]


def _magnetic() -> list[Field]:
    """Returns the fields that follow from the magnetic field, in units in which its pressure is half of its square."""
    return [
        Field("magnetic_energy", _PRESSURE, "magnetic energy density", lambda block: 0.5 * _square(block, _MAGNETIC)),
        Field("magnetic_field", _FIELD, "magnetic field over sqrt(4 pi)", lambda block: np.sqrt(_square(block, _MAGNETIC))),
        Field("alfven_speed", _SPEED, "Alfven speed", lambda block: block["magnetic_field"] / np.sqrt(block["density"])),
    ]


def _beta(block: Block) -> np.ndarray:
    """Returns gas pressure over magnetic pressure, which is infinite without a field."""
    with np.errstate(divide="ignore"):
        return block["pressure"] / block["magnetic_energy"]


def _kelvin(snapshot: Snapshot) -> list[Field]:
    """Returns temperature and number density of gas with a constant mean molecular weight."""
    weight = snapshot.attrs["mean_molecular_weight"]
    kelvin = weight * HYDROGEN_MASS / BOLTZMANN * (snapshot.units.length / snapshot.units.time) ** 2
    per_cm3 = snapshot.units.mass / snapshot.units.length**3 / (weight * HYDROGEN_MASS)
    return [
        Field("temperature_k", "K", "temperature", lambda block: kelvin * block["temperature"]),
        Field("number_density_cm3", "cm**-3", "number density", lambda block: per_cm3 * block["density"]),
    ]


def fields_of(snapshot: Snapshot) -> dict[str, Field]:
    """Returns all fields of a snapshot by name; stored arrays take precedence."""
    stored = snapshot.stored
    found = [Field(axis, "length", f"{axis} of the cell centre", _coordinate(n)) for n, axis in enumerate("xyz")]
    found.append(Field("level", "1", "refinement level", lambda block: np.full(block.shape, float(block.level))))
    volume = lambda block: np.full(block.shape, block.cell_volume)
    found.append(Field("cell_volume", "length**3", "volume of the cell", volume))
    if "density" in stored:
        found.append(Field("cell_mass", "mass", "mass of the cell", lambda block: block["density"] * block.cell_volume))
    if {"density", *_MOMENTUM} <= stored.keys():
        found += _gas(stored)
        if set(_MAGNETIC) <= stored.keys():
            found += _magnetic()
        energies = {"energy", "internal_energy", "pressure"} & stored.keys()
        constant = snapshot.attrs.get("polytropic_constant")
        if "gamma" in snapshot.attrs and (energies or constant is not None):
            gamma = snapshot.attrs["gamma"]
            pressure = _pressure(gamma) if constant is None else _polytropic_pressure(constant, gamma)
            # gas without energy has no entropy of its own
            found += [field for field in _thermal(gamma, pressure) if constant is None or field.name != "entropy"]
            if set(_MAGNETIC) <= stored.keys():
                found.append(Field("plasma_beta", "1", "gas pressure over magnetic pressure", _beta))
            if "mean_molecular_weight" in snapshot.attrs and not snapshot.units.dimensionless:
                found += _kelvin(snapshot)
    fields = {field.name: field for field in found}
    fields |= {name: _stored(name, attrs) for name, attrs in stored.items()}
    for alias, name in [("number_density", "number_density_cm3"), ("mass", "cell_mass"), ("volume", "cell_volume")]:
        if name in fields and alias not in fields:
            fields[alias] = fields[name]
    return fields


def find(fields: dict[str, Field], name: str) -> Field:
    """Returns a field; the error names the nearest one."""
    if name in fields:
        return fields[name]
    if name in ("temperature_k", "number_density_cm3", "number_density"):
        raise Error(
            f"no field `{name}`: the mean molecular weight is not constant or there are no units; "
            f'the deck can store it by output.derived = ["{name.replace("density", "density_cm3", 1) if name == "number_density" else name}"]'
        )
    raise unknown("field", name, fields)
