"""Initial conditions of other codes: particles of Gadget files, and grids of MUSIC."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import Error, unknown
from .exports import _h5py
from .grafic import write_grafic
from .initial import write_particles
from .units import NEWTON, PARSEC, SOLAR_MASS

_LENGTHS = {"Mpc/h": 1.0, "kpc/h": 1e-3}
"""Units of length of files, in Mpc/h."""
_GRID = re.compile(r"level_(\d{3})_(DM|BA)_(rho|[dv][xyz])")
_PARAMETERS = ("redshift", "omega_m", "omega_lambda", "h")


def _opened(path: Path) -> Any:
    h5py = _h5py()
    try:
        return h5py.File(path, "r")
    except OSError as error:
        reason = "no such file" if not path.exists() else str(error).splitlines()[0]
        raise Error(f"{path} cannot be read: {reason}") from None


def convert_ic(path: str | os.PathLike[str], folder: str | os.PathLike[str], *, species: Mapping[str, int] | None = None,
               length: str | None = None, level: int | None = None, edge: float | None = None,
               cosmology: Mapping[str, float] | None = None) -> dict[str, Any]:  # fmt: skip
    """Converts an HDF5 file with initial conditions of another code to a folder; returns the tables of the deck that read it.

    Particles of a file in the format of Gadget (MUSIC, monofonIC, N-GenIC) become a store for each of `species`, names with the
    number of their `PartType`, by default ``{"dark": 1}``. `length` is their unit of length, ``Mpc/h`` or ``kpc/h``; by default it
    follows from the attribute `UnitLength_in_cm` of the header.

    Grids of the format `generic` of MUSIC become files of GRAFIC2: those of `level`, by default the only one that fills the box.
    Their file tells neither box nor universe: `edge` is the comoving length of the box in Mpc/h, and `cosmology` has the numbers
    ``redshift`` (of the start), ``omega_m``, ``omega_lambda`` and ``h``.

    Raises:
        Error: the file is incomplete or of another kind, or a number is missing; h5py is not installed.
    """
    source, target = Path(path), Path(folder)
    with _opened(source) as file:
        if any(_GRID.fullmatch(name) for name in file):
            if species is not None or length is not None:
                raise Error(f"{source} has grids: `species` and `length` are for files with particles")
            return _convert_grids(source, file, target, level, edge, cosmology)
        if "Header" in file:
            if level is not None or edge is not None or cosmology is not None:
                raise Error(f"{source} has particles: `level`, `edge` and `cosmology` are for files with grids")
            return _convert_particles(source, file, target, species, length)
    raise Error(f"{source} has neither a group `Header`, as files of Gadget, nor grids as those of MUSIC (`level_008_DM_dx`)")


# particles


def _number(source: Path, header: Any, *names: str) -> float:
    """Returns the first of these attributes."""
    for name in names:
        if name in header:
            return float(np.ravel(header[name])[0])
    raise Error(f"{source}: the header has no attribute `{names[0]}`")


def _unit_of_length(source: Path, file: Any, given: str | None) -> float:
    """Returns the unit of length of a file in Mpc/h."""
    if given is not None:
        if given not in _LENGTHS:
            raise unknown("unit of length", given, _LENGTHS)
        return _LENGTHS[given]
    for group in ("Header", "Units", "Parameters"):
        if group in file and "UnitLength_in_cm" in file[group].attrs:
            ratio = _number(source, file[group].attrs, "UnitLength_in_cm") / (1e6 * PARSEC)
            for size in _LENGTHS.values():
                if abs(ratio / size - 1) < 1e-3:
                    return size
            raise Error(f"{source}: UnitLength_in_cm is neither that of Mpc nor that of kpc; give the argument `length`")
    raise Error(f'{source}: the file tells no unit of length; give the argument `length`, "Mpc/h" or "kpc/h"')


def _parts(source: Path, header: Any) -> list[Path]:
    """Returns all files of a set, of which `source` is one."""
    count = int(_number(source, header, "NumFilesPerSnapshot")) if "NumFilesPerSnapshot" in header else 1
    if count == 1:
        return [source]
    match = re.fullmatch(r"(.*\.)\d+(\.[^.]+)", source.name)
    if match is None:
        raise Error(f"{source}: the header tells {count} files, whose names must end as in `ics.0.hdf5`")
    return [source.with_name(f"{match[1]}{n}{match[2]}") for n in range(count)]


def _read_type(paths: list[Path], kind: int) -> dict[str, np.ndarray]:
    """Returns positions, velocities, masses and identities of a particle type in the units of the files."""
    found: dict[str, list[np.ndarray]] = {}
    for path in paths:
        with _opened(path) as file:
            header = file["Header"].attrs
            if f"PartType{kind}" not in file:
                continue
            group = file[f"PartType{kind}"]
            for name in ("Coordinates", "Velocities"):
                if name not in group:
                    raise Error(f"{path}: PartType{kind} has no `{name}`")
                found.setdefault(name, []).append(group[name][:].astype(np.float64))
            count = len(group["Coordinates"])
            if "Masses" in group:
                masses = group["Masses"][:].astype(np.float64)
            else:
                table = np.ravel(header["MassTable"]) if "MassTable" in header else np.zeros(6)
                if kind >= len(table) or not table[kind] > 0:
                    raise Error(f"{path}: PartType{kind} has neither `Masses` nor a mass in `MassTable`")
                masses = np.full(count, float(table[kind]))
            found.setdefault("Masses", []).append(masses)
            if "ParticleIDs" in group:
                found.setdefault("ParticleIDs", []).append(group["ParticleIDs"][:].astype(np.int64))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _convert_particles(source: Path, file: Any, target: Path, species: Mapping[str, int] | None,
                       length: str | None) -> dict[str, Any]:  # fmt: skip
    header = file["Header"].attrs
    size = _unit_of_length(source, file, length)
    a = 1 / (1 + _number(source, header, "Redshift"))
    box = _number(source, header, "BoxSize") * size
    omega_m = _number(source, header, "Omega0", "OmegaMatter")
    paths = _parts(source, header)
    total = np.ravel(header["NumPart_Total"]) if "NumPart_Total" in header else np.zeros(6)
    if species is None:
        if len(total) and total[0] > 0:
            raise Error(
                f'{source} has particles of gas (PartType0). Give species={{"dark": 1}} to leave them out, or '
                '{"dark": 1, "baryons": 0} to make them particles without pressure'
            )
        species = {"dark": 1}
    # mass in the unit of length^3 at the mean density of matter, in g/h
    megaparsec = 1e6 * PARSEC
    density = omega_m * 3 * (1e7 / megaparsec) ** 2 / (8 * np.pi * NEWTON)
    code_mass = density * megaparsec**3
    tables = {}
    for name, kind in species.items():
        values = _read_type(paths, kind)
        if not values:
            raise Error(f"{source} has no particles of PartType{kind} for the species `{name}`")
        expected = int(total[kind]) if kind < len(total) else 0
        if expected and expected != len(values["Masses"]):
            count = len(values["Masses"])
            raise Error(f"{source}: the header tells {expected} particles of PartType{kind}, but there are {count}")
        position = np.mod(values["Coordinates"] * size, box)
        position[position == box] = 0.0
        # velocities of files are peculiar ones over the root of the scale factor, those of decks times the scale factor
        velocity = values["Velocities"] * (np.sqrt(a) * a / 100)
        target.mkdir(parents=True, exist_ok=True)
        table = write_particles(
            target / f"{name}.zarr", position, velocity=velocity, mass=values["Masses"] * (1e10 * SOLAR_MASS / code_mass),
            id=values.get("ParticleIDs"),
        )  # fmt: skip
        tables[name] = {"initial": table}
    universe = {
        "omega_m": omega_m,
        "omega_lambda": _number(source, header, "OmegaLambda"),
        "h": _number(source, header, "HubbleParam"),
        "start_redshift": _number(source, header, "Redshift"),
    }
    return {
        "cosmology": universe,
        "domain": {"left_edge": [0.0] * 3, "right_edge": [box] * 3, "boundary": "periodic"},
        "particles": {"species": tables},
    }


# grids


def _convert_grids(source: Path, file: Any, target: Path, level: int | None, edge: float | None,
                   cosmology: Mapping[str, float] | None) -> dict[str, Any]:  # fmt: skip
    if edge is None or cosmology is None:
        raise Error(f"{source} tells neither box nor universe; give the arguments `edge` and `cosmology`")
    if missing := [name for name in _PARAMETERS if name not in cosmology]:
        raise Error(f"cosmology has no {missing[0]}; it needs {', '.join(_PARAMETERS)}")
    arrays: dict[int, dict[str, Any]] = {}
    for name in file:
        if match := _GRID.fullmatch(name):
            arrays.setdefault(int(match[1]), {})[f"{match[2]}_{match[3]}"] = file[name]
    full = _full_levels(file, arrays)
    if level is None:
        if not full:
            raise Error(f"{source} has no level that fills the box")
        level = max(full)
    if level not in arrays:
        raise Error(f"{source} has no level {level}; there are {sorted(arrays)}")
    if level not in full:
        raise Error(f"{source}: level {level} fills only a part of the box; choose one of {sorted(full)}")
    cells = 2**level
    grids = {name: _inner(source, name, grid, cells) for name, grid in arrays[level].items()}

    def vector(head: str) -> list[np.ndarray] | None:
        names = [f"{head}{axis}" for axis in "xyz"]
        present = [name for name in names if name in grids]
        if present and len(present) < 3:
            raise Error(f"{source} has only {', '.join(present)} of {', '.join(names)}")
        # MUSIC gives lengths in units of the box, and velocities in km/s for a box of 1 Mpc/h
        return [grids[name] * edge for name in names] if present else None

    table = write_grafic(
        target, edge, cosmology, density=grids.get("BA_rho"), gas_velocity=vector("BA_v"), velocity=vector("DM_v"),
        displacement=vector("DM_d"),
    )  # fmt: skip
    universe = {name: float(cosmology[name]) for name in _PARAMETERS[1:]} | {"start_redshift": float(cosmology["redshift"])}
    return {
        "cosmology": universe,
        "domain": {
            "cells": [cells] * 3, "left_edge": [0.0] * 3, "right_edge": [float(edge)] * 3, "boundary": "periodic"
        },
        "perturbations": table,
    }  # fmt: skip


def _full_levels(file: Any, arrays: Mapping[int, Any]) -> list[int]:
    """Returns the levels whose grids fill the box."""
    if "header" in file and "grid_len_x" in file["header"]:
        lengths = [file["header"][f"grid_len_{axis}"][:].astype(int) for axis in "xyz"]
        # their last numbers are those of the finest level
        from_end = {number: number - max(arrays) - 1 for number in arrays}
        known = [number for number, n in from_end.items() if -n <= min(map(len, lengths))]
        return [number for number in known if all(own[from_end[number]] == 2**number for own in lengths)]
    return [number for number, grids in arrays.items() if all(min(grid.shape) >= 2**number for grid in grids.values())]


def _inner(source: Path, name: str, grid: Any, cells: int) -> np.ndarray:
    """Returns the cells of a grid without its margins, `[z, y, x]`."""
    margin, odd = divmod(grid.shape[0] - cells, 2)
    if grid.shape != (cells + 2 * margin,) * 3 or odd or margin < 0:
        raise Error(f"{source}: {name} has the shape {grid.shape}; it must be a cube of {cells} cells with equal margins")
    inner = slice(margin, margin + cells)
    return np.ascontiguousarray(grid[inner, inner, inner].T.astype(np.float64))
