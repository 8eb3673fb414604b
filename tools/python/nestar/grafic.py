"""Initial perturbations in the format of GRAFIC2, which decks with ``perturbations.grafic`` read."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import Error
from .initial import _checked


def write_grafic(path: str | os.PathLike[str], edge: float, cosmology: Mapping[str, float], *, density: Any = None,
                 gas_velocity: Sequence[Any] | None = None, velocity: Sequence[Any] | None = None,
                 displacement: Sequence[Any] | None = None, big_endian: bool = False) -> dict[str, Any]:  # fmt: skip
    """Writes the files of a folder; returns the keys of the table ``[perturbations]`` that reads them.

    All arrays have the shape ``[z, y, x]`` and are stored with 4 bytes a number. `density` is the density contrast of the gas and
    `gas_velocity` its velocity, `velocity` and `displacement` those of particles: three arrays each, along x, y, z. Velocities are
    peculiar velocities in km/s, displacements comoving ones in Mpc/h. `edge` is the comoving length of the box along x in Mpc/h, and
    `cosmology` has the numbers ``redshift`` (of the start), ``omega_m``, ``omega_lambda`` and ``h``.
    """
    names = ("redshift", "omega_m", "omega_lambda", "h")
    if missing := [name for name in names if name not in cosmology]:
        raise Error(f"cosmology has no {missing[0]}; it needs {', '.join(names)}")
    files = {} if density is None else {"ic_deltab": _checked("density", density, None)}
    for name, stem, vector in (
        ("gas_velocity", "ic_velb", gas_velocity),
        ("velocity", "ic_velc", velocity),
        ("displacement", "ic_posc", displacement),
    ):
        if vector is None:
            continue
        if len(vector) != 3:
            raise Error(f"{name}: three arrays, along x, y, z")
        files |= {stem + axis: _checked(name, values, None) for axis, values in zip("xyz", vector)}
    shapes = {values.shape for values in files.values()}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 3:
        raise Error("give arrays with the axes z, y, x, all of one shape")
    order = ">" if big_endian else "<"
    z, y, x = shape
    redshift, omega_m, omega_lambda, h = (float(cosmology[name]) for name in names)
    header = struct.pack(
        f"{order}3i8f", x, y, z, edge / x / h, 0, 0, 0, 1 / (1 + redshift), omega_m, omega_lambda, 100 * h
    )
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in files.items():
        planes = values.astype(f"{order}f4")
        if not np.isfinite(planes).all():
            raise Error(f"{name}: a number is too large for 4 bytes")
        with (folder / name).open("wb") as file:
            for record in [header, *(plane.tobytes() for plane in planes)]:
                mark = struct.pack(f"{order}i", len(record))
                file.write(mark + record + mark)
    return {"grafic": str(folder.absolute())}
