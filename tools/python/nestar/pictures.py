"""Slices, projections and uniform grids: the finest data of each place, without loops over patches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from .errors import Error
from .fields import PATCH

if TYPE_CHECKING:
    from .snapshot import Block, Level, Snapshot

PIXELS = 4096
"""Pictures have the finest level with at most this number of pixels along each axis, unless a level is chosen."""
_MOST_CELLS = 2**31
_BAND = 64
"""Rows of pixels of a projection that are computed together."""


@dataclass
class Window:
    """A part of the box in cells of one level: for each axis the first cell and the cell after the last one."""

    level: int
    low: np.ndarray
    high: np.ndarray

    def at(self, level: int) -> Window:
        """Returns the smallest window of whole patches of a coarser level, or of this level, that contains this one."""
        size = PATCH * 2 ** (self.level - level)
        return Window(level, self.low // size * PATCH, -(-self.high // size) * PATCH)

    def contains(self, level: Level, axes: tuple[int, ...]) -> np.ndarray:
        """Returns which patches of a level overlap with the window along these axes."""
        scale = 2.0 ** (self.level - level.number)
        low, high = level.origin * scale, (level.origin + PATCH) * scale
        inside = np.ones(len(level.origin), dtype=bool)
        for axis in axes:
            inside &= (low[:, axis] < self.high[axis]) & (high[:, axis] > self.low[axis])
        return inside


def _range(snapshot: Snapshot, axis: int, value: Any) -> tuple[float, float]:
    """Returns the range along an axis in code units: the box, or the part of it within the two limits of `value`."""
    low, high = snapshot.left_edge[axis], snapshot.right_edge[axis]
    if value is None:
        return low, high
    try:
        first, last = value
    except (TypeError, ValueError):
        raise Error(f"{'xyz'[axis]}: a range is a pair of lengths") from None
    first, last = (snapshot.units.read(limit, "length", "xyz"[axis]) for limit in (first, last))
    if not (first < last and first < high and last > low):
        raise Error(f"{'xyz'[axis]}: the range from {first:g} to {last:g} is empty or outside the box from {low:g} to {high:g}")
    return max(first, low), min(last, high)


def _window(snapshot: Snapshot, ranges: list[tuple[float, float]], axes: tuple[int, ...], level: int | None) -> Window:
    """Returns the window of a region; `level` defaults to the finest one with at most `PIXELS` cells along the axes."""
    edges = np.array(ranges)
    root = (snapshot.right_edge - snapshot.left_edge) / snapshot.root_cells
    parts = (edges - snapshot.left_edge[:, None]) / root[:, None]
    if level is None:
        finest = snapshot.levels[-1]
        cells = max(parts[axis, 1] - parts[axis, 0] for axis in axes)
        level = next((n for n in range(finest, 0, -1) if cells * 2**n <= PIXELS), 0)
    elif not 0 <= level <= 30:
        raise Error(f"level {level}: a level is a number from 0 to 30")
    parts = parts * 2**level
    near = np.round(parts)
    parts = np.where(np.abs(parts - near) < 1e-9 * np.maximum(1, np.abs(near)), near, parts)
    low = np.floor(parts[:, 0]).astype(np.int64)
    return Window(level, low, np.maximum(np.ceil(parts[:, 1]).astype(np.int64), low + 1))


def _blocks_of(image: np.ndarray, size: int) -> np.ndarray:
    """Returns an image as an array of tiles of `size` pixels: `[tile, pixel]` for each axis."""
    shape = [n for length in image.shape for n in (length // size, size)]
    return image.reshape(shape)


def _put(image: np.ndarray, place: np.ndarray, values: np.ndarray, add: bool = False) -> None:
    """Writes tiles at their places, `[tile, axis]`, or adds them; the places are distinct."""
    tiles = _blocks_of(image, values.shape[1])
    key: list[Any] = []
    for axis in range(image.ndim):
        key += [place[:, axis], slice(None)]
    if add:
        tiles[tuple(key)] += values
    else:
        tiles[tuple(key)] = values


def _upsampled(image: np.ndarray, coarse: Window, fine: Window, axes: tuple[int, ...]) -> np.ndarray:
    """Returns an image with twice the resolution, cut to the finer window."""
    cut = tuple(slice(fine.low[a] // 2 - coarse.low[a], fine.high[a] // 2 - coarse.low[a]) for a in axes)
    image = image[cut]
    whole = np.empty([n for length in image.shape for n in (length, 2)], image.dtype)
    whole[...] = image[tuple(n for _ in axes for n in (slice(None), None))]
    return whole.reshape([2 * length for length in image.shape])


def _cover(snapshot: Snapshot, window: Window, axes: tuple[int, ...], choose: Callable[[Level], np.ndarray],
           values_of: Callable[[Block], np.ndarray]) -> np.ndarray:  # fmt: skip
    """Returns the image of the finest data in a window; its axes are `axes`, of which 0 is x."""
    image = None
    previous = window
    for number in range(window.level + 1):
        part = window.at(number)
        if image is None:
            image = np.full([part.high[a] - part.low[a] for a in axes], np.nan)
        else:
            image = _upsampled(image, previous, part, axes)
        previous = part
        if number not in snapshot.levels:
            continue
        is_last = number == window.level

        def chosen(level: Level, number: int = number, is_last: bool = is_last) -> np.ndarray:
            if level.number != number:
                return np.zeros(len(level), dtype=bool)
            return choose(level) & (level.leaf | is_last)

        blocks = list(snapshot.blocks(chosen))
        for block, values in zip(blocks, snapshot.map(values_of, blocks)):
            place = (block.origin[:, axes] - part.low[list(axes)]) // PATCH
            _put(image, place, values)
    assert image is not None
    return _trimmed(image, window, previous, axes)


def _trimmed(image: np.ndarray, window: Window, whole: Window, axes: tuple[int, ...]) -> np.ndarray:
    return image[tuple(slice(window.low[a] - whole.low[a], window.high[a] - whole.low[a]) for a in axes)]


def _labelled(snapshot: Snapshot, image: np.ndarray, window: Window, axes: tuple[int, ...], units: str,
              names: tuple[str, str]) -> xarray.DataArray:  # fmt: skip
    """Returns an image with coordinates and units; `names` are the name and the long name. Changes `image`."""
    length, shown = snapshot.units.shown("length"), snapshot.units.shown(units)
    width = (snapshot.right_edge - snapshot.left_edge) / (snapshot.root_cells * 2**window.level)
    coords: dict[str, Any] = {}
    for axis in axes:
        index = np.arange(window.low[axis], window.high[axis]) + 0.5
        centres = (snapshot.left_edge[axis] + index * width[axis]) * length.factor
        coords["xyz"[axis]] = ("xyz"[axis], centres, {"units": length.name})
    coords["time"] = ((), float(snapshot.time), {"units": snapshot.time.units})
    if shown.factor != 1.0:
        # large arrays are slow to allocate
        image *= shown.factor
    dims = ["xyz"[axis] for axis in axes]
    attrs = {"units": shown.name, "long_name": names[1], "level": window.level}
    return xarray.DataArray(image, coords, dims, names[0], attrs)


def slice_(self: Snapshot, field: str, *, x: Any = None, y: Any = None, z: Any = None,
           level: int | None = None) -> xarray.DataArray:  # fmt: skip
    """Returns the values in a plane: at ``z="2 kpc"``, or at a position along x or y; the middle along z by default.

    The other two arguments may be ranges, ``x=("1 kpc", "2 kpc")``. The resolution is that of the finest level, or of the
    finest one with at most 4096 pixels along each axis; `level` chooses another one.
    """
    given = [x, y, z]
    planes = [axis for axis in range(3) if given[axis] is not None and not isinstance(given[axis], (tuple, list))]
    if len(planes) > 1:
        raise Error("a slice needs one position along x, y or z; the other arguments are ranges")
    if not planes:
        planes = [axis for axis in (2, 1, 0) if given[axis] is None][:1]
        if not planes:
            raise Error("a slice needs one position along x, y or z; the other arguments are ranges")
    normal = planes[0]
    found = self.field(field)
    low, high = self.left_edge[normal], self.right_edge[normal]
    position = given[normal]
    position = 0.5 * (low + high) if position is None else self.units.read(position, "length", "xyz"[normal])
    if not low <= position <= high:
        raise Error(f"{'xyz'[normal]} = {position:g} is outside the box from {low:g} to {high:g} (code units)")
    axes = tuple(axis for axis in (2, 1, 0) if axis != normal)
    ranges = [_range(self, axis, None if axis == normal else given[axis]) for axis in range(3)]
    window = _window(self, ranges, axes, level)

    def index_at(number: int) -> int:
        cells = int(self.root_cells[normal]) * 2**number
        return min(int((position - low) / (high - low) * cells), cells - 1)

    def choose(own: Level) -> np.ndarray:
        index = index_at(own.number)
        return window.contains(own, axes) & (own.origin[:, normal] == index // PATCH * PATCH)

    def plane(block: Block) -> np.ndarray:
        return np.take(block[field], index_at(block.level) % PATCH, axis=3 - normal)

    image = _cover(self, window, axes, choose, plane)
    result = _labelled(self, image, window, axes, found.units, (field, found.long_name))
    length = self.units.shown("length")
    return result.assign_coords({"xyz"[normal]: ((), position * length.factor, {"units": length.name})})


def uniform(self: Snapshot, field: str, level: int = 0, *, x: Any = None, y: Any = None, z: Any = None) -> xarray.DataArray:
    """Returns the field on the uniform grid of a level, ``[z, y, x]``, in the box or in ranges of it.

    Values of coarser patches are repeated where there are no patches of the level. Patches with children have the mean of
    their children.
    """
    found = self.field(field)
    axes = (2, 1, 0)
    window = _window(self, [_range(self, axis, part) for axis, part in enumerate((x, y, z))], axes, level)
    if np.prod((window.high - window.low).astype(float)) > _MOST_CELLS:
        raise Error(f"the uniform grid of level {level} has more than 2^31 cells; choose ranges of x, y, z or a coarser level")
    image = _cover(self, window, axes, lambda own: window.contains(own, axes), lambda block: block[field])
    return _labelled(self, image, window, axes, found.units, (field, found.long_name))


class _Columns:
    """Sums along an axis on the pixels of a window; each level has its own images, of the part where it has patches."""

    def __init__(self, window: Window, axes: tuple[int, ...], count: int) -> None:
        self.axes, self.count, self.window = axes, count, window
        self.parts: dict[int, Window] = {}
        self.images: dict[int, list[np.ndarray]] = {}

    def open(self, level: int, blocks: Sequence[Block]) -> None:
        """Makes the images of a level from 0 to that of the window for the patches that will be added."""
        origin = np.concatenate([block.origin * 2.0 ** (level - block.level) for block in blocks])
        whole = self.window.at(level)
        low = np.maximum(np.floor(origin.min(axis=0) / PATCH).astype(np.int64) * PATCH, whole.low)
        high = np.minimum(np.floor(origin.max(axis=0) / PATCH).astype(np.int64) * PATCH + PATCH, whole.high)
        self.parts[level] = Window(level, low, high)
        shape = [high[a] - low[a] for a in self.axes]
        self.images[level] = [np.zeros(shape) for _ in range(self.count)]

    def add(self, block: Block, sums: list[np.ndarray]) -> None:
        """Adds sums of patches along the axis, `[patch, pixel, pixel]`."""
        level = min(block.level, self.window.level)
        finer = 2 ** (block.level - level)
        within = min(finer, PATCH)
        size = PATCH // within
        place = block.origin[:, self.axes] // finer // size - self.parts[level].low[list(self.axes)] // size
        # patches of one column are added first
        order = np.lexsort((place[:, 1], place[:, 0]))
        place = place[order]
        starts = np.flatnonzero(np.r_[True, np.any(np.diff(place, axis=0) != 0, axis=1)])
        for image, values in zip(self.images[level], sums):
            if finer > 1:
                values = values.reshape(-1, size, within, size, within).mean(axis=(2, 4)) * (within / finer) ** 2
            _put(image, place[starts], np.add.reduceat(values[order], starts, axis=0), add=True)

    def finish(self, combine: Callable[[list[np.ndarray]], np.ndarray]) -> np.ndarray:
        """Returns the image in which each pixel is `combine` of its sums; threads make bands of it."""
        low, high = ([int(edge[a]) for a in self.axes] for edge in (self.window.low, self.window.high))
        image = np.empty([last - first for first, last in zip(low, high)])

        def band(first: int) -> None:
            last = min(first + _BAND, high[0])
            sums = [np.zeros((last - first, image.shape[1])) for _ in range(self.count)]
            for level, part in self.parts.items():
                for total, own in zip(sums, self.images[level]):
                    self._add_band(total, own, part, [first, low[1]])
            image[first - low[0] : last - low[0]] = combine(sums)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(band, range(low[0], high[0], _BAND)))
        return image

    def _add_band(self, total: np.ndarray, image: np.ndarray, part: Window, corner: list[int]) -> None:
        """Adds the image of a level to a part of the window whose first pixel is `corner`."""
        factor = 2 ** (self.window.level - part.level)
        own = [int(part.low[a]) for a in self.axes]
        first = [max(edge, o * factor) for edge, o in zip(corner, own)]
        last = [
            min(edge + n, (o + m) * factor) for edge, n, o, m in zip(corner, total.shape, own, image.shape)
        ]
        if first[0] >= last[0] or first[1] >= last[1]:
            return
        rows = np.arange(first[0], last[0]) // factor - own[0]
        begin, end = first[1] // factor - own[1], -(-last[1] // factor) - own[1]
        row, inverse = np.unique(rows, return_inverse=True)
        wide = np.repeat(image[row[0] : row[-1] + 1, begin:end], factor, axis=1)
        cut = first[1] - (begin + own[1]) * factor
        wide = wide[:, cut : cut + last[1] - first[1]]
        target = total[first[0] - corner[0] : last[0] - corner[0], first[1] - corner[1] : last[1] - corner[1]]
        target += wide[inverse]


def project(self: Snapshot, field: str, axis: str = "z", weight: str | None = None, level: int | None = None, *,
            x: Any = None, y: Any = None, z: Any = None) -> xarray.DataArray:  # fmt: skip
    """Returns the integral along an axis, or with a weight the mean along it, within the box or ranges of it.

    `weight` is ``"volume"``, ``"mass"`` or a field. Every pixel is the exact mean over its area, so that the integral of
    the picture is that of the box. `field` may be ``"particles/NAME"``, the mass of particles per area.
    """
    if axis not in ("x", "y", "z"):
        raise Error(f"axis {axis!r}: must be x, y or z")
    normal = "xyz".index(axis)
    axes = tuple(n for n in (2, 1, 0) if n != normal)
    ranges = [_range(self, n, part) for n, part in enumerate((x, y, z))]
    window = _window(self, ranges, axes, level)
    if field.startswith("particles/"):
        return _project_particles(self, field, normal, ranges, window)
    found = self.field(field)
    weighted = {"mass": "density", "volume": None}.get(weight or "volume", weight)
    if weighted is not None:
        self.field(weighted)
    first, last = ranges[normal]

    def path(block: Block) -> np.ndarray:
        """Returns the length of the part of each cell within the range along the axis."""
        width = block.cell_width[normal]
        if (first, last) == (self.left_edge[normal], self.right_edge[normal]):
            return np.full((1, 1, 1, 1), width)
        centre = block.coordinate(normal)
        return np.clip(np.minimum(centre + width / 2, last) - np.maximum(centre - width / 2, first), 0, None)

    def sums(block: Block) -> list[np.ndarray]:
        values, length = block[field], path(block)
        share = length if weighted is None else block[weighted] * length
        found = [(values * share).sum(axis=3 - normal)]
        if weight is not None:
            found.append(np.broadcast_to(share, block.shape).sum(axis=3 - normal))
        return found

    columns = _Columns(window, axes, 1 if weight is None else 2)
    whole = window.at(window.level)
    blocks = list(self.blocks(lambda own: own.leaf & whole.contains(own, (0, 1, 2))))
    for level, of_level in groupby(blocks, lambda block: min(block.level, window.level)):
        columns.open(level, list(of_level))
    for block, own in zip(blocks, self.map(sums, blocks)):
        columns.add(block, own)
    if weight is None:
        units, name = self.units.product(found.units, "length"), f"{found.long_name} integrated along {axis}"
        return _labelled(self, columns.finish(lambda totals: totals[0]), window, axes, units, (field, name))

    def mean(totals: list[np.ndarray]) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.divide(totals[0], totals[1], out=totals[0])

    name = f"{found.long_name}, mean along {axis} by {weight}"
    return _labelled(self, columns.finish(mean), window, axes, found.units, (field, name))


def _project_particles(snapshot: Snapshot, field: str, normal: int, ranges: list[tuple[float, float]],
                       window: Window) -> xarray.DataArray:  # fmt: skip
    """Returns the mass of particles per area, or their number per area if they have no mass."""
    species = field.partition("/")[2]
    table = snapshot.store.children(f"particles/{species}")
    if not table:
        from .errors import unknown

        raise unknown("particle species", species, snapshot.species)
    position = table["position"].read()
    axes = tuple(n for n in (2, 1, 0) if n != normal)
    width = (snapshot.right_edge - snapshot.left_edge) / (snapshot.root_cells * 2**window.level)
    first, last = ranges[normal]
    inside = (position[:, normal] >= first) & (position[:, normal] <= last)
    shape = [int(window.high[a] - window.low[a]) for a in axes]
    flat = np.zeros(len(position), dtype=np.int64)
    for a, length in zip(axes, shape):
        index = ((position[:, a] - snapshot.left_edge[a]) / width[a]).astype(np.int64)
        most = int(snapshot.root_cells[a]) * 2**window.level - 1
        index = np.minimum(index, most) - window.low[a]
        inside &= (index >= 0) & (index < length)
        flat = flat * length + index
    mass = table["mass"].read().astype(np.float64)[inside] if "mass" in table else None
    image = np.bincount(flat[inside], mass, minlength=shape[0] * shape[1]).reshape(shape)
    area = float(np.prod([width[a] for a in axes]))
    units = "mass/length**2" if mass is not None else "1/length**2"
    name = f"{'mass' if mass is not None else 'number'} of {species} per area"
    return _labelled(snapshot, np.divide(image, area, dtype=np.float64), window, axes, units, (field, name))
