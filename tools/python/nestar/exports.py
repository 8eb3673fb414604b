"""Files for other programs: VTKHDF for ParaView, uniform grids in HDF5, and particles as Gadget snapshots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Error, unknown
from .fields import PATCH, Field
from .units import NUMBER, PARSEC, SOLAR_MASS

if TYPE_CHECKING:
    from .snapshot import Level, Snapshot

OCTET = 2 * PATCH
"""Number of cells of a box along each axis, if all eight siblings exist."""
_BOXES = 64
"""Number of boxes that are written together."""
_CELLS = 1 << 24
"""Largest number of cells of a part of a uniform grid that is in memory."""
_MOST_CELLS = 1 << 33


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise Error("HDF5 files need the package h5py: pip install h5py") from None
    return h5py


@contextmanager
def _new_file(path: str | os.PathLike[str], force: bool) -> Iterator[Any]:
    """Creates an HDF5 file under a temporary name and renames it when it is complete."""
    h5py = _h5py()
    target = Path(path)
    if target.is_dir():
        raise Error(f"{target} is a directory")
    if target.exists() and not force:
        raise Error(f"{target} exists; choose another name, or force that it is replaced")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with h5py.File(temporary, "w") as file:
            yield file
        os.replace(temporary, target)
    except OSError as error:
        raise Error(f"{target} cannot be written: {str(error).splitlines()[0]}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _chosen(snapshot: Snapshot, names: Sequence[str] | None) -> list[Field]:
    """Returns the named fields, or the stored ones."""
    if names is None:
        names = sorted(snapshot.stored)
    if isinstance(names, str):
        names = [names]
    found = {name: snapshot.field(name) for name in names}
    if not found:
        raise Error(f"{snapshot.path} has no fields of cells")
    return list(found.values())


def _describe(snapshot: Snapshot, file: Any) -> None:
    """Writes what is common to all files."""
    file.attrs["time"] = float(snapshot.time)
    file.attrs["time_units"] = snapshot.time.units
    file.attrs["length_units"] = snapshot.units.shown("length").name
    file.attrs["step"] = snapshot.step
    if snapshot.redshift is not None:
        file.attrs["redshift"], file.attrs["scale_factor"] = snapshot.redshift, snapshot.scale_factor
    file.attrs["source"] = f"Nestar snapshot {snapshot.path.resolve()}"


def export(self: Snapshot, path: str | os.PathLike[str], *, fields: Sequence[str] | None = None,
           level: int | None = None, force: bool = False) -> Path:  # fmt: skip
    """Writes fields of cells for other programs, in the units of `snapshot.units`, and returns the path.

    ``x.vtkhdf`` has all levels and opens in ParaView (VTKHDF, overlapping AMR). ``x.h5`` has the uniform grid of a level, with
    coordinates. `fields` defaults to the stored fields; three fields ``NAME_x``, ``NAME_y``, ``NAME_z`` are one vector of a
    ``.vtkhdf``. An existing file is replaced only with `force`.
    """
    suffix = Path(path).suffix
    chosen = _chosen(self, fields)
    if suffix == ".vtkhdf":
        if level is not None:
            raise Error("a .vtkhdf file has all levels; the uniform grid of one level is written to a .h5 file")
        with _new_file(path, force) as file:
            _write_amr(self, file, chosen)
    elif suffix in (".h5", ".hdf5"):
        if level is None:
            raise Error(f"a uniform grid needs a level, 0 to {self.levels[-1]} or finer; all levels are written to a .vtkhdf file")
        with _new_file(path, force) as file:
            _write_uniform(self, file, chosen, level)
    else:
        raise Error(f"{path}: the name must end in .vtkhdf (all levels) or .h5 (a uniform grid)")
    return Path(path)


# overlapping AMR


def _boxes(level: Level) -> list[tuple[int, np.ndarray]]:
    """Returns the rows of patches of each box, `[box, corner]`, once for octets and once for other patches, with their width."""
    octet = level.origin // OCTET
    key = np.ravel_multi_index(tuple(octet.T), tuple(octet.max(axis=0, initial=0) + 1))
    corner = (level.origin // PATCH % 2 * [1, 2, 4]).sum(axis=1)
    order = np.lexsort((corner, key))
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    whole = order[first[count == 8][:, None] + np.arange(8)]
    single = np.setdiff1d(np.arange(len(level)), whole)
    # in the order of the file
    whole = whole[np.argsort(whole.min(axis=1))] if len(whole) else whole
    return [(OCTET, whole), (PATCH, single[:, None])]


def _joined(values: np.ndarray, width: int) -> np.ndarray:
    """Returns the cells of boxes of `width`, x fastest, from those of their patches, `[box, corner, z, y, x]`."""
    side = width // PATCH
    values = values.reshape(-1, side, side, side, PATCH, PATCH, PATCH)
    return values.transpose(0, 1, 4, 2, 5, 3, 6).reshape(-1)


def _arrays(fields: list[Field]) -> dict[str, list[Field]]:
    """Groups the components of vectors; the keys are the names of the arrays."""
    by_name = {field.name: field for field in fields}
    groups: dict[str, list[Field]] = {}
    for name, field in by_name.items():
        base = name[:-2]
        vector = [by_name.get(f"{base}_{axis}") for axis in "xyz"]
        if name[-2:] in ("_x", "_y", "_z") and all(vector):
            groups[base] = [component for component in vector if component]
        else:
            groups[name] = [field]
    return groups


def _write_amr(snapshot: Snapshot, file: Any, fields: list[Field]) -> None:
    if snapshot.levels != list(range(len(snapshot.levels))):
        raise Error(f"{snapshot.path} has the levels {snapshot.levels}; an AMR file needs all levels from 0")
    length = snapshot.units.shown("length").factor
    root = file.create_group("VTKHDF")
    root.attrs["Version"] = np.array([2, 0], dtype=np.int64)
    for name, text in (("Type", "OverlappingAMR"), ("GridDescription", "XYZ")):
        root.attrs.create(name, np.bytes_(text))
    root.attrs["Origin"] = snapshot.left_edge * length
    _describe(snapshot, root)
    for level in snapshot._levels:
        _write_level(level, root.create_group(f"Level{level.number}"), _arrays(fields), length)


def _write_level(level: Level, group: Any, arrays: dict[str, list[Field]], length: float) -> None:
    """Writes the boxes and arrays of a level."""
    units = level.snapshot.units
    boxes = _boxes(level)
    group.attrs["Spacing"] = level.cell_width * length
    lows = [(width, level.origin[rows[:, 0]]) for width, rows in boxes]
    limits = [np.stack([low, low + width - 1], axis=2).reshape(-1, 6) for width, low in lows]
    group.create_dataset("AMRBox", data=np.concatenate(limits).astype(np.int32))
    for name in ("PointData", "FieldData"):
        group.create_group(name)
    cells = group.create_group("CellData")
    total = len(level) * PATCH**3
    for name, parts in arrays.items():
        kinds = [level.snapshot.store.arrays.get(f"{level.group}/{part.name}") for part in parts]
        kind = np.result_type(*[own.dtype if own and part.stored else np.float64 for own, part in zip(kinds, parts)])
        shape = (total,) if len(parts) == 1 else (total, len(parts))
        # not compressed: readers take one box at a time
        dataset = cells.create_dataset(name, shape, kind)
        dataset.attrs["units"] = units.shown(parts[0].units).name
        dataset.attrs["long_name"] = parts[0].long_name if len(parts) == 1 else name
    first = 0
    for width, rows in boxes:
        for begin in range(0, len(rows), _BOXES):
            part = rows[begin : begin + _BOXES]
            _write_part(level, cells, arrays, width, part, first)
            first += part.size * PATCH**3


def _write_part(level: Level, cells: Any, arrays: dict[str, list[Field]], width: int, rows: np.ndarray, first: int) -> None:
    from .snapshot import Block

    ascending, place = np.unique(rows, return_inverse=True)
    block = Block(level, ascending)
    last = first + rows.size * PATCH**3
    for name, parts in arrays.items():
        columns = []
        for part in parts:
            values = np.broadcast_to(block[part.name], block.shape) * level.snapshot.units.shown(part.units).factor
            columns.append(_joined(values[place.reshape(rows.shape)], width))
        cells[name][first:last] = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


# uniform grid


def _write_uniform(snapshot: Snapshot, file: Any, fields: list[Field], level: int) -> None:
    """Writes the grid plane by plane, so that only a part is in memory."""
    if not 0 <= level <= 30:
        raise Error(f"level {level}: a level is a number from 0 to 30")
    counts = snapshot.root_cells * 2**level
    if np.prod(counts.astype(float)) > _MOST_CELLS:
        raise Error(f"the uniform grid of level {level} has {' x '.join(map(str, counts))} cells; choose a coarser level")
    _describe(snapshot, file)
    file.attrs["level"] = level
    length = snapshot.units.shown("length")
    width = (snapshot.right_edge - snapshot.left_edge) / counts
    for axis, name in enumerate("xyz"):
        centres = snapshot.left_edge[axis] + (np.arange(counts[axis]) + 0.5) * width[axis]
        file[name] = centres * length.factor
        file[name].attrs["units"] = length.name
        file[name].attrs["long_name"] = f"{name} of the cell centre"
        file[name].make_scale(name)
    planes = max(PATCH, int(_CELLS // (counts[0] * counts[1])) // PATCH * PATCH)
    for field in fields:
        if field.name in ("x", "y", "z"):
            continue
        shown = snapshot.units.shown(field.units)
        dataset = file.create_dataset(field.name, tuple(counts[::-1]), np.float64)
        dataset.attrs["units"] = shown.name
        dataset.attrs["long_name"] = field.long_name
        for axis, name in enumerate("zyx"):
            dataset.dims[axis].attach_scale(file[name])
        for first in range(0, int(counts[2]), planes):
            last = min(first + planes, int(counts[2]))
            low, high = (snapshot.left_edge[2] + n * width[2] for n in (first, last))
            dataset[first:last] = snapshot.uniform(field.name, level, z=(low, high)).values


# particles

_STARS, _OTHERS = 4, (1, 2, 3, 5, 0)
"""Particle types of Gadget: stars, and the types of other species in their order."""
_COLUMNS = {"position": "Coordinates", "velocity": "Velocities", "mass": "Masses", "id": "ParticleIDs"}


def _types(species: Sequence[str]) -> dict[str, int]:
    """Returns the particle type of each species."""
    stars = next((name for name in species if "star" in name.lower()), None)
    others = [name for name in species if name != stars]
    if len(others) > len(_OTHERS):
        raise Error(f"a Gadget file has at most {len(_OTHERS)} species besides stars; choose some of {', '.join(species)}")
    types = dict(zip(others, _OTHERS))
    return types if stars is None else types | {stars: _STARS}


def export_particles(self: Snapshot, path: str | os.PathLike[str], *, species: Sequence[str] | None = None,
                     force: bool = False) -> Path:  # fmt: skip
    """Writes particles as an HDF5 snapshot of Gadget, which halo finders read, and returns the path.

    A run with units is written in kpc, 1e10 Msun and km/s, others in code units; the header has the units in cgs. A run with
    `[cosmology]` follows the conventions of Gadget: comoving kpc/h, 1e10 Msun/h, peculiar velocities over the root of the scale
    factor, and the scale factor as `Time`. The lower corner of the box is at 0. The species whose name contains ``star`` is `PartType4`; others are `PartType1`, `2`, `3`, `5`
    and `0` in the order of `species`, by default the alphabet. Species without masses are left out by default.
    """
    if species is None:
        species = [name for name in self.species if f"particles/{name}/mass" in self.store.arrays]
    if isinstance(species, str):
        species = [species]
    for name in species:
        if name not in self.species:
            raise unknown("particle species", name, self.species)
        if f"particles/{name}/mass" not in self.store.arrays:
            raise Error(f"the particles of the species `{name}` have no mass")
    if not species:
        raise Error(f"{self.path} has no particles with masses")
    if Path(path).suffix not in (".h5", ".hdf5"):
        raise Error(f"{path}: the name of a file with particles must end in .hdf5 or .h5")
    with _new_file(path, force) as file:
        _write_gadget(self, file, _types(species))
    return Path(path)


def _write_gadget(snapshot: Snapshot, file: Any, types: dict[str, int]) -> None:
    units = snapshot.units
    length, mass = (units.length, units.mass) if units.dimensionless else (1e3 * PARSEC, 1e10 * SOLAR_MASS)
    speed = units.length / units.time if units.dimensionless else 1e5
    universe = snapshot.cosmology
    a, h = (1.0, 1.0) if universe is None else (float(snapshot.attrs["scale_factor"]), universe.h)
    cgs = {"length": length * a / h, "mass": mass / h, "length/time": speed * np.sqrt(a)}
    counts = np.zeros(6, np.uint64)
    for name, kind in types.items():
        group = file.create_group(f"PartType{kind}")
        group.attrs["species"] = name
        arrays = snapshot.store.children(f"particles/{name}")
        for own, theirs in _COLUMNS.items():
            values = arrays[own].read()
            unit = str(arrays[own].attrs.get("units", "1"))
            if own == "position":
                values = values - snapshot.left_edge
            if own != "id":
                values = values * (units.cgs_factor(unit) / cgs[unit] if unit in cgs else 1.0)
            group[theirs] = values
        counts[kind] = len(group["ParticleIDs"])
        others = [own for own in arrays if own not in _COLUMNS and arrays[own].dims == ("particle",)]
        for own in others:
            shown = units.shown(arrays[own].attrs.get("units", "1"))
            factor = 1 if units.powers(arrays[own].attrs.get("units", "1")) == NUMBER else shown.factor
            group[own] = arrays[own].read() * factor
            group[own].attrs["units"] = shown.name
    edges = (snapshot.right_edge - snapshot.left_edge) * units.length / cgs["length"]
    header = file.create_group("Header").attrs
    header["NumPart_ThisFile"] = counts.astype(np.uint32)
    header["NumPart_Total"] = (counts & 0xFFFFFFFF).astype(np.uint32)
    header["NumPart_Total_HighWord"] = (counts >> 32).astype(np.uint32)
    header["MassTable"] = np.zeros(6)
    header["Time"] = snapshot.attrs["time"] * units.time / (length / speed) if universe is None else a
    header["BoxSize"] = float(edges.max())
    header["BoxSizes"] = edges
    header["NumFilesPerSnapshot"] = np.int32(1)
    matter, dark_energy = (0.0, 0.0) if universe is None else (universe.omega_m, universe.omega_lambda)
    numbers = {"Redshift": snapshot.redshift or 0.0, "Omega0": matter, "OmegaLambda": dark_energy, "HubbleParam": h}
    for name, number in numbers.items():
        header[name] = number
    for name in ("Sfr", "Cooling", "StellarAge", "Metals", "Feedback"):
        header[f"Flag_{name}"] = np.int32(0)
    header["Flag_DoublePrecision"] = np.int32(1)
    header["UnitLength_in_cm"], header["UnitMass_in_g"], header["UnitVelocity_in_cm_per_s"] = length, mass, speed
    file.attrs["source"] = f"Nestar snapshot {snapshot.path.resolve()}"
