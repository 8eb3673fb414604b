"""Arrays that are read when they are used, in the units of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing

from .fields import PATCH, Field
from .store import Array
from .units import Shown

if TYPE_CHECKING:
    from .snapshot import Level, Snapshot


class _Rows(BackendArray):
    """An array that a function reads by rows."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, read: Callable[[np.ndarray], np.ndarray]) -> None:
        self.shape, self.dtype, self._read = shape, np.dtype(dtype), read

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._get)

    def _get(self, key: tuple[Any, ...]) -> Any:
        first = key[0]
        rows = np.arange(self.shape[0])[first]
        whole = self._ascending(np.atleast_1d(rows))
        # an outer index applies to each axis on its own
        for axis, part in reversed(list(enumerate(key[1:], 1))):
            whole = whole[(slice(None),) * axis + (part,)]
        return whole[0] if np.ndim(rows) == 0 else whole

    def _ascending(self, rows: np.ndarray) -> np.ndarray:
        if np.all(np.diff(rows) > 0):
            return self._read(rows)
        unique, inverse = np.unique(rows, return_inverse=True)
        return self._read(unique)[inverse]


def _variable(dims: tuple[str, ...], rows: _Rows, attrs: dict[str, Any]) -> xarray.Variable:
    return xarray.Variable(dims, indexing.LazilyIndexedArray(rows), attrs)


def scaled_rows(array: xarray.Variable, shown: Shown, ratio: np.ndarray) -> xarray.Variable:
    """Returns an array whose rows, along its first dimension, belong to scale factors with these ratios to that of `shown`."""
    factors = shown.factors(ratio).reshape(-1, *[1] * (array.ndim - 1))

    def read(rows: np.ndarray) -> np.ndarray:
        return array[rows].values * factors[rows]

    attrs = dict(array.attrs) | {"units": shown.name}
    return _variable(tuple(map(str, array.dims)), _Rows(array.shape, np.float64, read), attrs)


def field_of_level(level: Level, field: Field) -> xarray.DataArray:
    """Returns a field on a level, `[patch, z, y, x]`."""
    from .snapshot import Block

    snapshot = level.snapshot
    shown = snapshot.units.shown(field.units)

    def read(rows: np.ndarray) -> np.ndarray:
        return Block(level, rows)[field.name] * shown.factor

    rows = _Rows((len(level), PATCH, PATCH, PATCH), np.float64, read)
    attrs = {"units": shown.name, "long_name": field.long_name}
    length = snapshot.units.shown("length")
    coords: dict[str, Any] = {"leaf": ("patch", level.leaf)}
    for axis, name in enumerate("xyz"):
        index = level.origin[:, axis, None] + np.arange(PATCH) + 0.5
        centres = (snapshot.left_edge[axis] + index * level.cell_width[axis]) * length.factor
        coords[f"{name}_centre"] = (("patch", name), centres, {"units": length.name})
    variable = _variable(("patch", "z", "y", "x"), rows, attrs)
    return xarray.DataArray(variable, coords, name=field.name)


def _column(snapshot: Snapshot, array: Array, axis: int | None) -> xarray.Variable:
    """Returns an array of particles, or one component of it."""
    shown = snapshot.units.shown(array.attrs.get("units", "1"))
    whole = shown.factor == 1.0

    def read(rows: np.ndarray) -> np.ndarray:
        values = array.read(rows)
        values = values if axis is None else values[:, axis]
        return values if whole else values * shown.factor

    dtype = array.dtype if whole or array.dtype.kind == "f" else np.float64
    shape = array.shape if axis is None else array.shape[:1]
    attrs = {"units": shown.name, "long_name": array.attrs.get("long_name", array.name)}
    return _variable(("particle", "axis")[: len(shape)], _Rows(shape, dtype, read), attrs)


def particles(snapshot: Snapshot, species: str) -> xarray.Dataset:
    """Returns the arrays of a species; vectors have the components x, y, z as variables, too."""
    variables: dict[str, Any] = {}
    for name, array in snapshot.store.children(f"particles/{species}").items():
        variables[name] = _column(snapshot, array, None)
        if array.dims == ("particle", "axis") and name != "offset":
            for axis, letter in enumerate("xyz"):
                variables[letter if name == "position" else f"{name}_{letter}"] = _column(snapshot, array, axis)
    counts = [level.array(f"particles_{species}").read() for level in snapshot._levels]
    numbers = np.array(snapshot.levels, dtype=np.int16)
    variables["level"] = ("particle", np.repeat(numbers, [int(count.sum()) for count in counts]))
    of_patch = [np.repeat(np.arange(len(count)), count) for count in counts]
    variables["patch"] = ("particle", np.concatenate(of_patch) if of_patch else np.empty(0, np.int64))
    time = ((), float(snapshot.time), {"units": snapshot.time.units})
    attrs = dict(snapshot.store.groups[f"particles/{species}"])
    return xarray.Dataset(variables, {"axis": ["x", "y", "z"], "time": time}, attrs)
