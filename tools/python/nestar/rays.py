"""Values along a straight line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from .errors import Error
from .fields import PATCH

if TYPE_CHECKING:
    from .snapshot import Block, Level, Snapshot


def _point(snapshot: Snapshot, point: Sequence[Any], what: str) -> np.ndarray:
    if isinstance(point, str) or len(point) != 3:
        raise Error(f"{what}: three lengths")
    found = np.array([snapshot.units.read(part, "length", what) for part in point])
    if np.any(found < snapshot.left_edge) or np.any(found > snapshot.right_edge):
        raise Error(f"{what}: ({', '.join(f'{part:g}' for part in found)}) is outside the box (code units)")
    return found


def _spans(low: np.ndarray, high: np.ndarray, start: np.ndarray, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the parts of the line, from 0 to 1, that are in boxes; the first is not before the second if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (low - start) / along, (high - start) / along
    inside = (low <= start) & (start < high)
    entry = np.where(along == 0, np.where(inside, 0.0, 2.0), np.minimum(first, second))
    leave = np.where(along == 0, np.where(inside, 1.0, -1.0), np.maximum(first, second))
    return np.clip(entry.max(axis=1), 0, 1), np.clip(leave.min(axis=1), 0, 1)


def ray(self: Snapshot, field: str, start: Sequence[Any], end: Sequence[Any]) -> xarray.DataArray:
    """Returns the values of all cells on the line from `start` to `end`.

    The coordinates are the distance from `start` to the middle of the part of the line in each cell, the length `path` of
    this part, and the position; ``(ray * ray.path).sum()`` is the integral along the line.
    """
    found = self.field(field)
    first, last = _point(self, start, "start"), _point(self, end, "end")
    along = last - first
    length = float(np.sqrt((along**2).sum()))
    if length == 0:
        raise Error("the ends of the line are the same point")
    # a line in the upper face of the box is in the last cells
    upper = np.nextafter(self.right_edge, self.left_edge)
    begin = np.where((along == 0) & (first == self.right_edge), upper, first)

    def hit(level: Level) -> np.ndarray:
        low = self.left_edge + level.origin * level.cell_width
        entry, leave = _spans(low, low + PATCH * level.cell_width, begin, along)
        return level.leaf & (leave > entry)

    def cells(block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low = self.left_edge + block.origin * block.cell_width
        entry, leave = _spans(low, low + PATCH * block.cell_width, begin, along)
        faces = low[:, :, None] + np.arange(PATCH + 1) * block.cell_width[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossed = (faces - begin[:, None]) / along[:, None]
        crossed = np.where(np.isfinite(crossed), crossed, 0.0).reshape(len(entry), -1)
        crossed = np.sort(np.clip(crossed, entry[:, None], leave[:, None]), axis=1)
        crossed = np.concatenate([entry[:, None], crossed, leave[:, None]], axis=1)
        middle, path = 0.5 * (crossed[:, 1:] + crossed[:, :-1]), np.diff(crossed, axis=1)
        patch, segment = np.nonzero(path > 1e-13)
        middle, path = middle[patch, segment], path[patch, segment]
        position = begin + middle[:, None] * along
        index = np.floor((position - low[patch]) / block.cell_width).astype(np.int64)
        i, j, k = np.clip(index, 0, PATCH - 1).T
        return middle, path, block[field][patch, k, j, i]

    parts = list(self.map(cells, list(self.blocks(hit))))
    middle, path, values = (np.concatenate([part[n] for part in parts]) for n in range(3))
    order = np.argsort(middle, kind="stable")
    middle, path, values = middle[order], path[order], values[order]
    shown, unit = self.units.shown(found.units), self.units.shown("length")
    coords: dict[str, Any] = {
        "distance": ("distance", middle * length * unit.factor, {"units": unit.name}),
        "path": ("distance", path * length * unit.factor, {"units": unit.name, "long_name": "length in the cell"}),
        "time": ((), float(self.time), {"units": self.time.units}),
    }
    for axis, name in enumerate("xyz"):
        coords[name] = ("distance", (first[axis] + middle * along[axis]) * unit.factor, {"units": unit.name})
    attrs = {"units": shown.name, "long_name": found.long_name}
    return xarray.DataArray(values * shown.factor, coords, ["distance"], field, attrs)
