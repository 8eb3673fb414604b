"""Initial states and particle tables from NumPy arrays, as stores that decks read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import Error


def _group(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], dims: Sequence[str]) -> None:
    import zarr

    # a new name first, so that an incomplete store is never read
    target = Path(path)
    if target.exists() and not any((target / name).exists() for name in ("zarr.json", ".zgroup")):
        raise Error(f"{target} exists and is not a Zarr store")
    group = zarr.open_group(str(target), mode="w")
    for name, values in arrays.items():
        # also chunks of zeros, which the program does not accept as missing
        config = {"write_empty_chunks": True}
        group.create_array(name, data=values, dimension_names=list(dims)[: values.ndim], config=config)


def _checked(name: str, values: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise Error(f"{name}: the values are no numbers but {array.dtype}")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if shape is not None and array.shape != shape:
        raise Error(f"{name} has the shape {array.shape}, but {shape} is needed")
    if not np.isfinite(array).all():
        raise Error(f"{name}: a value is infinite or not a number")
    return array


def write_initial(path: str | os.PathLike[str], density: Any, *, pressure: Any = None, energy: Any = None,
                  velocity: Sequence[Any] | None = None, momentum: Sequence[Any] | None = None,
                  scalars: Mapping[str, Any] | None = None) -> dict[str, Any]:  # fmt: skip
    """Writes an initial state on a uniform grid over the box; returns the tables of the deck that read it.

    All arrays have the shape ``[z, y, x]`` and are in code units; `velocity` or `momentum` are three arrays, along x, y, z.
    `scalars` are mass fractions by name.
    """
    density = _checked("density", density, None)
    if density.ndim != 3:
        raise Error(f"density has the shape {density.shape}; it must have the axes z, y, x")
    if (pressure is None) == (energy is None):
        raise Error("give the pressure or the energy")
    if velocity is not None and momentum is not None:
        raise Error("give the velocity or the momentum, not both")
    arrays = {"density": density}
    table: dict[str, Any] = {"path": str(Path(path).absolute()), "density": "density"}
    for name, values in (("pressure", pressure), ("energy", energy)):
        if values is not None:
            arrays[name] = _checked(name, values, density.shape)
            table[name] = name
    for name, vector in (("velocity", velocity), ("momentum", momentum)):
        if vector is None:
            continue
        if len(vector) != 3:
            raise Error(f"{name}: three arrays, along x, y, z")
        table[name] = [f"{name}_{axis}" for axis in "xyz"]
        arrays |= {key: _checked(key, values, density.shape) for key, values in zip(table[name], vector)}
    if scalars:
        table["scalars"] = {name: f"scalar_{name}" for name in scalars}
        arrays |= {f"scalar_{name}": _checked(name, values, density.shape) for name, values in scalars.items()}
    _group(path, arrays, ["z", "y", "x"])
    return {"scenario": "zarr", "zarr": table}


def write_particles(path: str | os.PathLike[str], position: Any, *, velocity: Any = None, mass: Any = None,
                    id: Any = None, **scalars: Any) -> dict[str, Any]:  # fmt: skip
    """Writes a particle table; returns the value of ``particles.species.NAME.initial`` that reads it.

    `position` and `velocity` have the shape ``[particle, 3]`` and are in code units, `id` are distinct integers.
    """
    position = _checked("position", position, None)
    if position.ndim != 2 or position.shape[1] != 3:
        raise Error(f"position has the shape {position.shape}; it must be [particle, 3]")
    count = len(position)
    arrays = {"position": position}
    table: dict[str, Any] = {"kind": "table", "file": str(Path(path).absolute())}
    table["position"] = [f"position_{axis}" for axis in "xyz"]
    if velocity is not None:
        arrays["velocity"] = _checked("velocity", velocity, (count, 3))
        table["velocity"] = [f"velocity_{axis}" for axis in "xyz"]
    if mass is not None:
        arrays["mass"] = np.broadcast_to(_checked("mass", mass, None), (count,)).copy()
    if id is not None:
        identity = np.asarray(id)
        if identity.dtype.kind not in "iu" or identity.shape != (count,) or len(np.unique(identity)) != count:
            raise Error("id: the identities must be distinct integers, one for each particle")
        arrays["id"] = identity.astype(np.int64)
    for name, values in scalars.items():
        arrays[name] = _checked(name, values, (count,))
    _group(path, arrays, ["particle", "axis"])
    return table
