"""A snapshot: its levels, fields and particles, and what can be computed from them."""

from __future__ import annotations

import os
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import exports, fields, lazy, pictures, rays, statistics
from .cosmology import Cosmology
from .errors import Error, unknown
from .fields import CELLS, PATCH, Field
from .store import Array, Store, starts
from .units import Quantity, Units

if TYPE_CHECKING:
    import xarray

T = TypeVar("T")

ROWS = 256
"""Number of patches that are processed together."""


_NEEDED = ("time", "step", "domain_left_edge", "domain_right_edge", "root_cells", "levels")
"""Attributes of every snapshot."""


class Block:
    """Some patches of a level, whose fields are read or computed when they are needed."""

    def __init__(self, level: Level, rows: np.ndarray) -> None:
        self.snapshot, self.level, self.rows = level.snapshot, level.number, rows
        self.origin = level.origin[rows]
        self.cell_width = level.cell_width
        self.cell_volume = float(np.prod(level.cell_width))
        self.shape = (len(rows), PATCH, PATCH, PATCH)
        self._left = level.snapshot.left_edge
        self._group = level.group
        self._values: dict[str, np.ndarray] = {}

    def array(self, name: str) -> np.ndarray:
        """Returns a stored array in double precision."""
        array = self.snapshot.store.arrays.get(f"{self._group}/{name}")
        if array is None:
            return np.full(self.shape, np.nan)
        return array.read(self.rows, np.float64)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._values:
            self._values[name] = self.snapshot.field(name).evaluate(self)
        return self._values[name]

    def forget(self, keep: Sequence[str]) -> None:
        """Forgets all fields except some."""
        self._values = {name: values for name, values in self._values.items() if name in keep}

    def coordinate(self, axis: int) -> np.ndarray:
        """Returns the coordinate of the cell centres along an axis (0 is x), which broadcasts with fields."""
        index = self.origin[:, axis, None] + np.arange(PATCH) + 0.5
        shape = [len(index), 1, 1, 1]
        shape[3 - axis] = PATCH
        return (self._left[axis] + index * self.cell_width[axis]).reshape(shape)


class Level:
    """One refinement level. `level["density"]` is an array `[patch, z, y, x]` that is read when it is used."""

    def __init__(self, snapshot: Snapshot, number: int) -> None:
        self.snapshot, self.number, self.group = snapshot, number, f"level_{number}"
        self.attrs = snapshot.store.groups[self.group]
        self.cell_width = np.array(self.attrs["cell_width"])

    @cached_property
    def origin(self) -> np.ndarray:
        """Index of the first cell of each patch in the index space of the level, `[patch, axis]`, order x, y, z."""
        return self.array("origin").read().astype(np.int64)

    @cached_property
    def leaf(self) -> np.ndarray:
        """`True` for each patch without children."""
        return self.array("leaf").read() == 1

    @cached_property
    def chunk_rows(self) -> int:
        """Largest number of patches in a chunk of a field."""
        arrays = self.snapshot.store.children(self.group).values()
        return max((array.chunk_rows for array in arrays if array.dims == CELLS), default=0) or 1

    def array(self, name: str) -> Array:
        """Returns an array of the level as it is stored."""
        arrays = self.snapshot.store.children(self.group)
        if name not in arrays:
            raise unknown(f"array of level {self.number}", name, arrays)
        return arrays[name]

    def __len__(self) -> int:
        return int(self.attrs["patches"])

    def __getitem__(self, name: str) -> xarray.DataArray:
        return lazy.field_of_level(self, self.snapshot.field(name))

    def __repr__(self) -> str:
        return f"<level {self.number}: {len(self)} patches, {int(self.leaf.sum())} leaf patches>"


class Snapshot:
    """A snapshot of a run. Results have the units of `snapshot.units`; plain numbers as arguments are in code units."""

    slice = pictures.slice_
    project = pictures.project
    uniform = pictures.uniform
    profile = statistics.profile
    pdf = statistics.pdf
    ray = rays.ray
    export = exports.export
    export_particles = exports.export_particles

    def __init__(self, path: str | os.PathLike[str], units: str = "astronomical") -> None:
        self.store = Store(path)
        self.path = self.store.path
        self.attrs = self.store.attrs
        missing = [key for key in _NEEDED if key not in self.attrs]
        missing += [f"level_{number}" for number in self.attrs.get("levels", []) if f"level_{number}" not in self.store.groups]
        if missing:
            raise Error(f"{self.path}: the metadata are damaged; `{missing[0]}` is missing")
        self.step: int = self.attrs["step"]
        self.left_edge = np.array(self.attrs["domain_left_edge"], dtype=np.float64)
        self.right_edge = np.array(self.attrs["domain_right_edge"], dtype=np.float64)
        self.root_cells = np.array(self.attrs["root_cells"], dtype=np.int64)
        width = float((self.right_edge - self.left_edge).max())
        end = self.deck.get("time", {}).get("end", 0.0)
        end = end if isinstance(end, (int, float)) else 0.0
        scale_factor, h = self.attrs.get("scale_factor", 1.0), self.attrs.get("hubble", 100.0) / 100
        end = max(float(end), self.attrs["time"])
        self.units = Units(self.attrs.get("units", {}), units, width, end, scale_factor, h)
        self._levels = [Level(self, number) for number in self.attrs["levels"]]
        self.stored: dict[str, dict[str, Any]] = {}
        for name, array in self.store.arrays.items():
            if name.startswith("level_") and array.dims == CELLS:
                self.stored[name.partition("/")[2]] = array.attrs
        self._fields = fields.fields_of(self)

    @cached_property
    def periodic(self) -> list[bool]:
        """Which axes are periodic, in the order x, y, z."""
        boundary = self.attrs.get("boundary", {})
        faces = [boundary.get(axis) if isinstance(boundary, dict) else boundary for axis in "xyz"]
        return [face == "periodic" or (isinstance(face, list) and set(face) == {"periodic"}) for face in faces]

    @cached_property
    def deck(self) -> dict[str, Any]:
        """The deck of the run with all values."""
        try:
            return tomllib.loads(self.attrs.get("config", ""))
        except tomllib.TOMLDecodeError:
            return {}

    @property
    def time(self) -> Quantity:
        """Time of the snapshot; in a run with `[cosmology]` that of the clock in code units, see :attr:`age`."""
        return self.units.clock(self.attrs["time"])

    @property
    def scale_factor(self) -> float | None:
        """Scale factor of the universe, 1 today; `None` without `[cosmology]`."""
        return self.attrs.get("scale_factor")

    @property
    def redshift(self) -> float | None:
        """Redshift; `None` without `[cosmology]`."""
        return self.attrs.get("redshift")

    @property
    def age(self) -> Quantity | None:
        """Age of the universe in Gyr; `None` without `[cosmology]`."""
        if self.cosmology is None:
            return None
        return Quantity(self.attrs["age"] * self.cosmology.hubble_time, "Gyr")

    @cached_property
    def cosmology(self) -> Cosmology | None:
        """Parameters of the universe; `None` without `[cosmology]`."""
        return Cosmology.of(self.attrs, self.deck) if "scale_factor" in self.attrs else None

    @property
    def fields(self) -> list[str]:
        """Names of all fields, stored ones and those that follow from them."""
        return sorted(self._fields)

    @property
    def levels(self) -> list[int]:
        """Numbers of the levels."""
        return [level.number for level in self._levels]

    @property
    def species(self) -> list[str]:
        """Names of the particle species."""
        return sorted(name.partition("/")[2] for name in self.store.groups if name.startswith("particles/"))

    def level(self, number: int) -> Level:
        """Returns a level."""
        for level in self._levels:
            if level.number == number:
                return level
        raise Error(f"{self.path} has no level {number}; it has the levels {self.levels}")

    def field(self, name: str) -> Field:
        """Returns a field; the error names the nearest one."""
        return fields.find(self._fields, name)

    def particles(self, species: str) -> xarray.Dataset:
        """Returns the particles of a species: a dataset with the dimension `particle`, whose variables are read when used."""
        if species not in self.species:
            raise unknown("particle species", species, self.species)
        return lazy.particles(self, species)

    def blocks(self, chosen: Callable[[Level], np.ndarray] | None = None) -> Iterator[Block]:
        """Yields all leaf patches, or those for which `chosen` is true, in groups of one level."""
        for level in self._levels:
            rows = np.flatnonzero(level.leaf if chosen is None else chosen(level))
            if not len(rows):
                continue
            # all rows of a chunk are in one block, so that it is decoded once
            ends = [*starts(rows // level.chunk_rows)[1:], len(rows)]
            first = 0
            for end, following in zip(ends, [*ends[1:], np.inf]):
                if following - first > ROWS:
                    yield Block(level, rows[first:end])
                    first = end

    def map(self, work: Callable[[Block], T], blocks: Sequence[Block], keep: Sequence[str] = ()) -> Iterator[T]:
        """Yields the results of a function for each block in their order; threads compute some blocks ahead.

        Blocks forget their fields afterwards, except those named by `keep`.
        """

        def one(block: Block) -> T:
            result = work(block)
            block.forget(keep)
            return result

        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            ahead: deque[Future[T]] = deque()
            for block in blocks:
                ahead.append(pool.submit(one, block))
                if len(ahead) > 4 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def __repr__(self) -> str:
        lines = [f"<nestar.Snapshot {self.path}>", f"time {self.time}, step {self.step}, {self.units}"]
        lines += [f"level {level.number}: {len(level)} patches" for level in self._levels]
        lines += [f"particles: {species}" for species in self.species]
        return "\n".join([*lines, f"fields: {', '.join(self.fields)}"])
