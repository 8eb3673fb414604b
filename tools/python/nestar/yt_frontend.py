"""The frontend of yt: ``yt.load("run/snapshots/000010.zarr")``.

yt finds it by the entry point `yt.frontends` of this package. Eight sibling patches are one grid of 16^3 cells.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from yt.data_objects.index_subobjects.grid_patch import AMRGridPatch
from yt.data_objects.static_output import Dataset
from yt.fields.field_info_container import FieldInfoContainer
from yt.funcs import setdefaultattr
from yt.geometry.api import Geometry
from yt.geometry.grid_geometry_handler import GridIndex
from yt.utilities.io_handler import BaseIOHandler

from .fields import PATCH
from .snapshot import Snapshot
from .store import FORMAT
from .units import BOLTZMANN, HYDROGEN_MASS

GRID = 2 * PATCH
"""Number of cells of a grid along each axis, if all eight siblings exist."""
MAGNETIC_FIELD = "(mass/length)**0.5/time"
"""Unit of magnetic fields over the square root of 4 pi, which yt gives in gauss."""
_CODE = re.compile("length|mass|time")
_ALIASES = {
    "density": "density",
    "pressure": "pressure",
    "temperature_k": "temperature",
    "sound_speed": "sound_speed",
    "energy": "total_energy_density",
    "internal_energy": "thermal_energy_density",
    "potential": "gravitational_potential",
    "scalar_metal": "metal_density",
    **{f"velocity_{axis}": f"velocity_{axis}" for axis in "xyz"},
    **{f"momentum_{axis}": f"momentum_density_{axis}" for axis in "xyz"},
    **{f"magnetic_{axis}": f"magnetic_field_{axis}" for axis in "xyz"},
}


def _yt_units(snapshot: Snapshot, units: str) -> str:
    """Returns the unit of an array in the notation of yt."""
    if units == "length/time":
        return "code_velocity"
    if units == MAGNETIC_FIELD:
        return "code_magnetic"
    if units == "1" or snapshot.units.powers(units) is None or "cell" in units:
        return ""
    # numbers that are stored without the scale factor
    units = units.replace("expansion", repr(snapshot.units.scale_factor))
    return _CODE.sub(lambda word: f"code_{word.group()}", units)


class NestarGrid(AMRGridPatch):
    """Eight sibling patches, or one patch."""

    _id_offset = 0

    def __init__(self, id: int, index: NestarHierarchy, level: int) -> None:
        super().__init__(id, filename=index.index_filename, index=index)
        self.Parent: NestarGrid | None = None
        self.Children: list[NestarGrid] = []
        self.Level = level

    def _setup_dx(self) -> None:
        self.dds = self.ds.arr(self.index.cell_widths[self.Level], "code_length")
        self.field_data["dx"], self.field_data["dy"], self.field_data["dz"] = self.dds

    def get_global_startindex(self) -> np.ndarray:
        return self.index.starts[self.id]

    @property
    def child_mask(self) -> np.ndarray:
        # one flag per patch, in the order x, y, z
        mask = self.index.leaves[self.id]
        for axis in range(3):
            mask = mask.repeat(PATCH, axis)
        return mask


class NestarHierarchy(GridIndex):
    """Grids of a snapshot, level after level."""

    grid = NestarGrid

    def __init__(self, ds: NestarDataset, dataset_type: str = "nestar") -> None:
        self.dataset_type = dataset_type
        self.dataset = weakref.proxy(ds)
        self.index_filename = ds.parameter_filename
        self.directory = os.path.dirname(ds.parameter_filename)
        self.snapshot = ds.snapshot
        super().__init__(ds, dataset_type)

    def _detect_output_fields(self) -> None:
        self.field_list = [("nestar", name) for name in sorted(self.snapshot.stored)]
        for species in self.snapshot.species:
            self.field_list += [(species, name) for name in self.dataset.particle_columns(species)]

    def _count_grids(self) -> None:
        """Groups the patches: the rows of a grid's patches are `rows[first:first + count]`, in the order of the octet."""
        starts, levels, sizes, rows, leaves = [], [], [], [], []
        for level in self.snapshot._levels:
            octet = level.origin // GRID
            key = np.ravel_multi_index(tuple(octet.T), tuple(octet.max(axis=0) + 1))
            corner = (level.origin // PATCH % 2 * [1, 2, 4]).sum(axis=1)
            order = np.lexsort((corner, key))
            _, first, inverse, count = np.unique(key[order], return_index=True, return_inverse=True, return_counts=True)
            whole = count == 8
            # a grid begins at each whole octet and at each other patch
            begins = np.flatnonzero(~whole[inverse] | (np.arange(len(order)) == first[inverse]))
            starts.append(level.origin[order[begins]])
            levels.append(np.full(len(begins), level.number))
            sizes.append(np.where(whole[inverse[begins]], 8, 1))
            rows.append(order)
            leaves.append(level.leaf[order])
        self.starts = np.concatenate(starts)
        self.levels, self.sizes = np.concatenate(levels), np.concatenate(sizes)
        self.rows, flags = np.concatenate(rows), np.concatenate(leaves)
        self.first_row = np.cumsum(self.sizes) - self.sizes
        # [x, y, z] flags of the patches of each grid
        self.leaves = [
            flags[first : first + size].reshape((2, 2, 2) if size == 8 else (1, 1, 1)).T
            for first, size in zip(self.first_row.tolist(), self.sizes.tolist())
        ]
        self.num_grids = len(self.starts)
        self.cell_widths = {level.number: level.cell_width for level in self.snapshot._levels}

    def _parse_index(self) -> None:
        cells = np.where(self.sizes == 8, GRID, PATCH)[:, None]
        width = np.array([self.cell_widths[level] for level in self.levels.tolist()])
        self.grid_dimensions[:] = cells
        self.grid_left_edge.d[:] = self.snapshot.left_edge + self.starts * width
        self.grid_right_edge.d[:] = self.snapshot.left_edge + (self.starts + cells) * width
        self.grid_levels[:, 0] = self.levels
        self.max_level = int(self.levels.max())
        self.particle_counts: dict[str, np.ndarray] = {}
        for species in self.snapshot.species:
            counts = [level.array(f"particles_{species}").read().astype(np.int64) for level in self.snapshot._levels]
            self.particle_counts[species] = np.concatenate(counts)
        self.level_begin = np.cumsum([0] + [len(level) for level in self.snapshot._levels])
        self.place = {level: n for n, level in enumerate(self.snapshot.levels)}
        if self.particle_counts:
            total = np.sum(list(self.particle_counts.values()), axis=0)
            of_patch = self.rows + np.repeat([self.level_begin[self.place[n]] for n in self.levels.tolist()], self.sizes)
            self.grid_particle_count[:, 0] = np.add.reduceat(total[of_patch], self.first_row)

    def _populate_grid_objects(self) -> None:
        self.grids = np.empty(self.num_grids, dtype="object")
        for n, level in enumerate(self.levels.tolist()):
            self.grids[n] = self.grid(n, self, level)
        self._set_parents()
        for grid in self.grids:
            grid._prepare_grid()
            grid._setup_dx()

    def _set_parents(self) -> None:
        """Finds the parent of each grid by the place of the patch that it refines."""
        cells = self.snapshot.root_cells // PATCH
        grid_of_row = np.repeat(np.arange(self.num_grids), self.sizes)
        first = np.cumsum([0] + [int((self.levels == level).sum()) for level in self.snapshot.levels])
        for n, level in list(enumerate(self.snapshot.levels))[1:]:
            own = slice(first[n], first[n + 1])
            coarse = self.snapshot._levels[n - 1]
            shape = tuple(cells * 2**coarse.number)
            begin = self.first_row[first[n - 1]]
            order = self.rows[begin : begin + len(coarse)]
            key = np.ravel_multi_index(tuple((coarse.origin[order] // PATCH).T), shape)
            sort = np.argsort(key)
            wanted = np.ravel_multi_index(tuple((self.starts[own] // 2 // PATCH).T), shape)
            found = sort[np.searchsorted(key[sort], wanted)]
            for child, parent in zip(self.grids[own], self.grids[grid_of_row[begin + found]]):
                child.Parent = parent
                parent.Children.append(child)

    def patches_of(self, grids: list[NestarGrid]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Returns the rows of the patches of these grids by level, and for each the index of its grid in the list."""
        ids = np.array([grid.id for grid in grids], dtype=np.int64)
        found = {}
        for level in np.unique(self.levels[ids]).tolist():
            chosen = np.flatnonzero(self.levels[ids] == level)
            sizes = self.sizes[ids[chosen]]
            rows = self.rows[_ranges(self.first_row[ids[chosen]], sizes)]
            found[level] = rows, np.repeat(chosen, sizes)
        return found


def _ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Returns the numbers of all ranges that begin at `first`, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - count), count)


class NestarIOHandler(BaseIOHandler):
    """Reads fields and particles of grids."""

    _dataset_type = "nestar"

    def _grids(self, grids: list[NestarGrid], name: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the index of each grid and its field, `[x, y, z]`; grids of one level are read together."""
        index: NestarHierarchy = self.ds.index
        snapshot: Snapshot = self.ds.snapshot
        for level, (rows, _) in index.patches_of(grids).items():
            array = snapshot.store.arrays.get(f"level_{level}/{name}")
            order = np.argsort(rows)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            if array is None:
                values = np.full((len(rows), PATCH, PATCH, PATCH), np.nan)
            else:
                values = array.read(rows[order])
            at = 0
            for n, grid in enumerate(grids):
                if grid.Level != level:
                    continue
                size = int(index.sizes[grid.id])
                patches = values[place[at : at + size]].astype(np.float64, copy=False)
                at += size
                side = 2 if size == 8 else 1
                # z and y of the patches, then those of the cells
                block = patches.reshape(side, side, side, PATCH, PATCH, PATCH).transpose(0, 3, 1, 4, 2, 5)
                yield n, block.reshape([side * PATCH] * 3).transpose(2, 1, 0)

    def _read_fluid_selection(self, chunks: Any, selector: Any, fields: list[Any], size: int) -> dict[Any, np.ndarray]:
        found = {field: np.empty(size, dtype="float64") for field in fields}
        at = 0
        for chunk in chunks:
            grids = list(chunk.objs)
            counts = np.array([grid.count(selector) for grid in grids], dtype=np.int64)
            begin = at + np.cumsum(counts) - counts
            wanted = [grid for grid, count in zip(grids, counts) if count]
            begin = begin[counts > 0]
            for field in fields:
                for n, values in self._grids(wanted, field[1]):
                    wanted[n].select(selector, values, found[field], begin[n])
            at += int(counts.sum())
        return found

    def _read_chunk_data(self, chunk: Any, fields: list[Any]) -> dict[int, dict[Any, np.ndarray]]:
        grids = list(chunk.objs)
        found: dict[int, dict[Any, np.ndarray]] = {grid.id: {} for grid in grids}
        for field in fields:
            for n, values in self._grids(grids, field[1]):
                found[grids[n].id][field] = values
        return found

    def _rows_of_particles(self, grids: list[NestarGrid], species: str) -> np.ndarray | None:
        """Returns the particles of grids, ascending; `None` if they are all."""
        index: NestarHierarchy = self.ds.index
        counts = index.particle_counts[species]
        patches = [rows + index.level_begin[index.place[level]] for level, (rows, _) in index.patches_of(grids).items()]
        chosen = np.sort(np.concatenate(patches)) if patches else np.empty(0, np.int64)
        first = np.cumsum(counts) - counts
        rows = _ranges(first[chosen], counts[chosen])
        return None if len(rows) == counts.sum() else rows

    def _column(self, species: str, name: str, rows: np.ndarray | None) -> np.ndarray:
        source, axis = self.ds.particle_columns(species)[name]
        values = self.ds.snapshot.store.arrays[f"particles/{species}/{source}"].read(rows)
        values = values if axis is None else values[:, axis]
        return np.ascontiguousarray(values, dtype=np.float64)

    def _coordinates(self, grids: list[NestarGrid], species: str) -> tuple[np.ndarray | None, list[np.ndarray]]:
        rows = self._rows_of_particles(grids, species)
        position = self.ds.snapshot.store.arrays[f"particles/{species}/position"].read(rows)
        return rows, [np.ascontiguousarray(position[:, axis], dtype=np.float64) for axis in range(3)]

    def _read_particle_coords(self, chunks: Any, ptf: dict[str, list[str]]) -> Iterator[Any]:
        for chunk in chunks:
            for species in sorted(ptf):
                yield species, tuple(self._coordinates(list(chunk.objs), species)[1]), 0.0

    def _read_particle_fields(self, chunks: Any, ptf: dict[str, list[str]], selector: Any) -> Iterator[Any]:
        for chunk in chunks:
            for species, names in sorted(ptf.items()):
                rows, position = self._coordinates(list(chunk.objs), species)
                if not len(position[0]):
                    continue
                mask = selector.select_points(*position, 0.0)
                if mask is None:
                    continue
                for name in names:
                    yield (species, name), self._column(species, name, rows)[mask]


class NestarFieldInfo(FieldInfoContainer):
    """Names and units of the fields; velocity, pressure, temperature and others follow from the stored ones."""

    def __init__(self, ds: NestarDataset, field_list: list[Any]) -> None:
        snapshot: Snapshot = ds.snapshot
        known = []
        for name, attrs in snapshot.stored.items():
            aliases = [_ALIASES[name]] if name in _ALIASES else []
            known.append((name, (_yt_units(snapshot, attrs.get("units", "1")), aliases, None)))
        self.known_other_fields = tuple(known)
        particles: dict[str, tuple[str, list[str], None]] = {}
        for species in snapshot.species:
            arrays = snapshot.store.children(f"particles/{species}")
            for name, (source, _) in ds.particle_columns(species).items():
                units = _yt_units(snapshot, arrays[source].attrs.get("units", "1"))
                particles[name] = (units, ["particle_identifier"] if name == "particle_index" else [], None)
        self.known_particle_fields = tuple(particles.items())
        super().__init__(ds, field_list)

    def setup_fluid_fields(self) -> None:
        names = {name for kind, name in self.field_list if kind == "nestar"}
        if {"density", "momentum_x", "momentum_y", "momentum_z"} <= names:
            for axis in "xyz":
                if ("gas", f"velocity_{axis}") not in self:
                    self._add(f"velocity_{axis}", "velocity", _velocity(axis))
            if "gamma" in self.ds.snapshot.attrs:
                self._set_up_thermal(names)
        for name in sorted(names):
            if name.startswith("scalar_") and "density" in names:
                self._add(f"fraction_{name.removeprefix('scalar_')}", "dimensionless", _fraction(name))

    def _set_up_thermal(self, names: set[str]) -> None:
        constant = self.ds.snapshot.attrs.get("polytropic_constant")
        if {"energy", "internal_energy"} & names:
            self._set_up_energy(names)
        elif constant is not None and ("gas", "pressure") not in self:
            self._add("pressure", "pressure", _polytropic_pressure(constant, self.ds.gamma))
        # yt derives the sound speed from the pressure
        if ("gas", "pressure") in self:
            self._set_up_temperature()

    def _set_up_energy(self, names: set[str]) -> None:
        if "internal_energy" not in names:
            self._add("thermal_energy_density", "pressure", _thermal_energy)
        gamma = self.ds.gamma
        if ("gas", "pressure") not in self:
            pressure = lambda field, data: (gamma - 1.0) * data["gas", "thermal_energy_density"]
            self._add("pressure", "pressure", pressure)
        specific = lambda field, data: data["gas", "thermal_energy_density"] / data["gas", "density"]
        self._add("specific_thermal_energy", "specific_energy", specific)

    def _set_up_temperature(self) -> None:
        weight = self.ds.snapshot.attrs.get("mean_molecular_weight")
        if ("gas", "temperature") not in self and weight is not None and not self.ds.snapshot.units.dimensionless:
            constant = self.ds.quan(weight * HYDROGEN_MASS / BOLTZMANN, "K*s**2/cm**2")
            temperature = lambda field, data: data["gas", "pressure"] / data["gas", "density"] * constant
            self._add("temperature", "temperature", temperature)

    def _add(self, name: str, kind: str, function: Any) -> None:
        units = "" if kind == "dimensionless" else self.ds.unit_system[kind]
        self.add_field(("gas", name), sampling_type="cell", function=function, units=units)


def _velocity(axis: str) -> Any:
    return lambda field, data: data["nestar", f"momentum_{axis}"] / data["nestar", "density"]


def _fraction(name: str) -> Any:
    return lambda field, data: data["nestar", name] / data["nestar", "density"]


def _polytropic_pressure(constant: float, gamma: float) -> Any:
    """Returns the pressure of gas without energy; the constant is in code units."""

    def pressure(field: Any, data: Any) -> Any:
        density = data["nestar", "density"].to("code_mass/code_length**3").d
        return data.ds.arr(constant * density**gamma, "code_mass/(code_length*code_time**2)")

    return pressure


def _thermal_energy(field: Any, data: Any) -> Any:
    momentum = sum(data["nestar", f"momentum_{axis}"] ** 2 for axis in "xyz")
    return data["nestar", "energy"] - 0.5 * momentum / data["nestar", "density"]


class NestarDataset(Dataset):
    """A snapshot of Nestar."""

    _index_class = NestarHierarchy
    _field_info_class = NestarFieldInfo
    _dataset_type = "nestar"

    def __init__(self, filename: str, dataset_type: str = "nestar", units_override: Any = None,
                 unit_system: Any = "cgs", default_species_fields: Any = None) -> None:  # fmt: skip
        self.fluid_types += ("nestar",)
        self.snapshot = Snapshot(filename, "code")
        super().__init__(filename, dataset_type, units_override=units_override, unit_system=unit_system,
                         default_species_fields=default_species_fields)  # fmt: skip
        self.storage_filename = None

    def particle_columns(self, species: str) -> dict[str, tuple[str, int | None]]:
        """Returns the names of the particle fields of yt, with the array and the axis of each."""
        found: dict[str, tuple[str, int | None]] = {}
        for name, array in self.snapshot.store.children(f"particles/{species}").items():
            if array.dims == ("particle", "axis"):
                found |= {f"particle_{name}_{axis}": (name, n) for n, axis in enumerate("xyz")}
            else:
                found["particle_index" if name == "id" else f"particle_{name}"] = (name, None)
        return found

    def _set_code_unit_attributes(self) -> None:
        units = self.snapshot.units
        setdefaultattr(self, "length_unit", self.quan(units.length, "cm"))
        setdefaultattr(self, "mass_unit", self.quan(units.mass, "g"))
        setdefaultattr(self, "time_unit", self.quan(units.time, "s"))
        pressure = units.mass / (units.length * units.time**2)
        setdefaultattr(self, "magnetic_unit", self.quan(np.sqrt(4 * np.pi * pressure), "gauss"))
        setdefaultattr(self, "velocity_unit", self.quan(units.length / units.time, "cm/s"))

    def _parse_parameter_file(self) -> None:
        snapshot = self.snapshot
        self.parameters.update({key: value for key, value in snapshot.attrs.items() if key not in ("config", "restart")})
        self.domain_left_edge, self.domain_right_edge = snapshot.left_edge.copy(), snapshot.right_edge.copy()
        self.domain_dimensions = snapshot.root_cells.astype(np.int32)
        self.dimensionality, self.refine_by = 3, 2
        self.geometry = Geometry.CARTESIAN
        self.current_time = snapshot.attrs["time"]
        self._periodicity = tuple(snapshot.periodic)
        self.gamma = snapshot.attrs.get("gamma", 5.0 / 3.0)
        self.mu = snapshot.attrs.get("mean_molecular_weight", 0.6)
        self.particle_types = self.particle_types_raw = tuple(snapshot.species)
        self.cosmological_simulation = 0
        cosmology, scale_factor = snapshot.cosmology, snapshot.scale_factor
        if cosmology is not None and scale_factor is not None:
            self.cosmological_simulation = 1
            self.current_redshift, self.hubble_constant = snapshot.redshift, cosmology.h
            self.omega_matter, self.omega_lambda = cosmology.omega_m, cosmology.omega_lambda
            self.omega_radiation = cosmology.omega_r
            self.w_0, self.w_a = cosmology.w0, cosmology.wa
            self.use_dark_factor = (cosmology.w0, cosmology.wa) != (-1.0, 0.0)
            # the age, in the unit of time of the snapshot, not that of the Hubble time
            self.current_time = snapshot.attrs["age"] / scale_factor**2

    @classmethod
    def _is_valid(cls, filename: str, *args: Any, **kwargs: Any) -> bool:
        document = Path(filename) / "zarr.json"
        try:
            attributes = json.loads(document.read_text()).get("attributes", {})
        except (OSError, ValueError, AttributeError):
            return False
        return bool(attributes.get("format") == FORMAT)

    def __str__(self) -> str:
        return os.path.basename(self.parameter_filename.rstrip("/")).removesuffix(".zarr")
