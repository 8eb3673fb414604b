"""Reads Nestar snapshots with numpy and zarr.

A snapshot is a plain Zarr v3 store: ``zarr.open_group(path, mode="r")`` and
``xarray.open_datatree(path, engine="zarr")`` read it without this file. This file adds the geometry: coordinates of
cells, a covering grid, and the conversion to a yt dataset.

    import nestar_reader
    snapshot = nestar_reader.open("out/sedov/snapshots/000010.zarr")
    snapshot.attrs["time"], snapshot.levels
    density = nestar_reader.uniform(snapshot.path, "density", level=2)      # [z, y, x]
    stars = nestar_reader.particles(snapshot.path, "stars")                 # arrays by name, with level and patch
    dataset = nestar_reader.load_yt(snapshot.path)                          # needs yt

``python nestar_reader.py SNAPSHOT`` prints the levels and the digest.
"""

import re
import struct
import sys
from dataclasses import dataclass

import numpy as np
import zarr

PATCH = 8
"""Number of cells of a patch along each axis."""


@dataclass
class Level:
    """One refinement level; arrays are read when indexed: ``level.group["density"][:]``."""

    number: int
    group: zarr.Group

    @property
    def origin(self):
        """Global index of each patch's first cell in this level's index space: ``[patch, axis]``, order x, y, z."""
        return self.group["origin"][:].astype(np.int64)

    @property
    def leaf(self):
        """``True`` for each patch without children: ``[patch]``, bool."""
        return self.group["leaf"][:] == 1

    @property
    def cell_width(self):
        """Width of a cell along x, y, z, code length."""
        return np.array(self.group.attrs["cell_width"])

    @property
    def fields(self):
        """Names of the arrays with one value per cell, ``[patch, z, y, x]``."""
        names = ("patch", "z", "y", "x")
        return sorted(name for name, array in self.group.arrays() if array.metadata.dimension_names == names)

    def centres(self, left_edge):
        """Coordinates of the cell centres as three arrays x ``[patch, x]``, y ``[patch, y]``, z ``[patch, z]``."""
        index = self.origin[:, :, None] + np.arange(PATCH) + 0.5
        position = np.asarray(left_edge)[:, None] + index * self.cell_width[:, None]
        return position[:, 0], position[:, 1], position[:, 2]


@dataclass
class Snapshot:
    """An open snapshot: ``attrs`` of the run, the list ``levels``, coarse to fine, and ``items``, groups of arrays by path."""

    path: str
    attrs: dict
    levels: list
    items: dict

    def level(self, number):
        """Returns the level with this number; raises ``KeyError`` if there is none."""
        for level in self.levels:
            if level.number == number:
                return level
        raise KeyError(f"{self.path} has no level {number}; it has {[level.number for level in self.levels]}")


def open(path):
    """Opens the snapshot directory ``path`` (``.../NNNNNN.zarr``) for reading."""
    root = zarr.open_group(str(path), mode="r")
    attrs = dict(root.attrs)
    if attrs.get("format") != "nestar-snapshot":
        raise ValueError(f"{path} is not a Nestar snapshot")
    if attrs["format_version"] not in (1, 2):
        raise ValueError(f"{path} has format version {attrs['format_version']}; this reader knows versions 1 and 2")
    levels = [Level(number, root[f"level_{number}"]) for number in attrs["levels"]]
    items = {f"{name}/{kind}": group for name, parent in root.groups() for kind, group in parent.groups()}
    return Snapshot(str(path), attrs, levels, items)


def particles(path, species, group="particles"):
    """Returns the arrays of a particle species as a dict by name.

    The arrays ``level`` and ``patch`` are added; ``patch`` is the index of the particle's patch in the arrays of its level.
    """
    snapshot = open(path)
    kind = f"{group}/{species}"
    if kind not in snapshot.items:
        raise KeyError(f"{path} has no {kind}; it has {sorted(snapshot.items)}")
    counts = [level.group[f"{group}_{species}"][:] for level in snapshot.levels]
    columns = {name: array[:] for name, array in snapshot.items[kind].arrays()}
    columns["level"] = np.repeat([level.number for level in snapshot.levels], [count.sum() for count in counts])
    columns["patch"] = np.concatenate([np.repeat(np.arange(len(count)), count) for count in counts])
    return columns


def uniform(path, field, level=0):
    """Returns the field on the uniform grid of one level, ``[z, y, x]``.

    Values of the finest coarser patch are repeated in regions without patches of the level. Finer levels are not read:
    a patch with children holds their average.
    """
    snapshot = open(path)
    cells = np.array(snapshot.attrs["root_cells"]) * 2**level
    dtype = snapshot.levels[0].group[field].dtype
    grid = np.full(tuple(cells[::-1]), np.nan, dtype=dtype)
    for source in snapshot.levels:
        if source.number > level:
            break
        factor = 2 ** (level - source.number)
        values, size = source.group[field][:], PATCH * factor
        for patch, (i, j, k) in enumerate(source.origin * factor):
            block = values[patch].repeat(factor, 0).repeat(factor, 1).repeat(factor, 2)
            grid[k : k + size, j : j + size, i : i + size] = block
    return grid


def load_yt(path, fields=None):
    """Returns the snapshot as a yt dataset (``yt.load_amr_grids``); ``fields`` defaults to all fields with one value per cell.

    Density and derived fields (``output.derived`` of the deck) have units, so yt can derive masses; other fields are in
    code units. Each species is a particle type of yt: ``dataset.all_data()["dark", "particle_mass"]``.
    """
    try:
        import yt
    except ImportError as error:
        raise ImportError("load_yt needs yt: pip install yt") from error
    snapshot = open(path)
    attrs, grids = snapshot.attrs, []
    left_edge, right_edge = np.array(attrs["domain_left_edge"]), np.array(attrs["domain_right_edge"])
    for level in snapshot.levels:
        names = fields or level.fields
        values = {name: level.group[name][:] for name in names}
        units = {name: _yt_unit(level.group[name], name) for name in names}
        lower = left_edge + level.origin * level.cell_width
        for patch in range(len(lower)):
            grid = {
                "left_edge": lower[patch],
                "right_edge": lower[patch] + PATCH * level.cell_width,
                "level": level.number,
                "dimensions": np.array([PATCH] * 3),
            }
            for name in names:
                # the index order of yt is x, y, z
                data = values[name][patch].transpose(2, 1, 0).astype(np.float64)
                grid[name] = (data, units[name]) if units[name] else data
            grids.append(grid)
    for path in snapshot.items:
        _add_particles(snapshot, path, grids)
    units = attrs["units"]
    return yt.load_amr_grids(
        grids,
        np.array(attrs["root_cells"]),
        bbox=np.stack([left_edge, right_edge], axis=1),
        sim_time=attrs["time"],
        length_unit=units["length_cgs"],
        mass_unit=units["mass_cgs"],
        time_unit=units["time_cgs"],
        refine_by=attrs["refinement_ratio"],
        periodicity=tuple(_is_periodic(attrs["boundary"], axis) for axis in "xyz"),
    )


def _yt_unit(array, name):
    """Returns the unit of an array in the notation of yt, or ``None`` for plain code units."""
    if name != "density" and not array.attrs.get("derived"):
        return None
    unit = array.attrs["units"]
    return re.sub("length|mass|time", lambda word: "code_" + word.group(), unit) if unit != "1" else "dimensionless"


def _add_particles(snapshot, path, grids):
    """Adds the particles of a species to the grids for yt, which have the order of the patches."""
    kind, group = path.split("/")[1], snapshot.items[path]
    if "position" not in group:
        return
    counts = np.concatenate([level.group[path.replace("/", "_")][:] for level in snapshot.levels])
    ends = np.cumsum(counts, dtype=np.int64)
    units = {"position": "code_length", "velocity": "code_length/code_time", "mass": "code_mass"}
    for name, array in group.arrays():
        values, unit = array[:], units.get(name, "")
        for grid, end, count in zip(grids, ends, counts):
            here = values[end - count : end]
            if here.ndim == 1:
                name = {"id": "index"}.get(name, name)
                grid[kind, f"particle_{name}"] = (here.astype(np.float64), unit)
                continue
            for axis in range(3):
                grid[kind, f"particle_{name}_{'xyz'[axis]}"] = (here[:, axis].astype(np.float64), unit)


def _is_periodic(boundary, axis):
    """Returns ``True`` if the attribute ``boundary`` makes this axis periodic."""
    faces = boundary.get(axis) if isinstance(boundary, dict) else boundary
    return faces == "periodic" or (isinstance(faces, list) and set(faces) == {"periodic"})


def _encode(value):
    """Returns the encoding of a JSON value that the digest hashes."""
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, (int, float)):
        return b"d" + struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode()
        return b"s" + struct.pack("<Q", len(text)) + text
    if isinstance(value, list):
        return b"a" + struct.pack("<Q", len(value)) + b"".join(map(_encode, value))
    entries = sorted((key.encode(), entry) for key, entry in value.items())
    parts = (b"s" + struct.pack("<Q", len(key)) + key + _encode(entry) for key, entry in entries)
    return b"o" + struct.pack("<Q", len(value)) + b"".join(parts)


def digest(path):
    """Returns the digest of the snapshot, equal to that of ``nestar digest``; needs blake3."""
    import blake3

    snapshot, hasher = open(path), blake3.blake3()
    attrs = snapshot.attrs
    keys = ["format_version", "time", "step", "domain_left_edge", "domain_right_edge", "root_cells", "boundary"]
    facts = {key: value for key, value in attrs.items() if isinstance(value, float)}
    hasher.update(_encode({key: attrs[key] for key in keys} | facts))
    for level in snapshot.levels:
        header = level.group.attrs
        hasher.update(_encode({key: header[key] for key in ["level", "time", "cell_width"]}))
        _hash_arrays(hasher, level.group)
    for path, group in sorted(snapshot.items.items()):
        hasher.update(_encode({"path": path, "version": group.attrs["version"], "count": group.attrs["count"]}))
        _hash_arrays(hasher, group)
    root = zarr.open_group(snapshot.path, mode="r")
    for parent in ["components", "state"]:
        parts = sorted(root[parent].arrays()) if parent in root else []
        for name, array in parts:
            header = {key: array.attrs[key] for key in ["version", "length"]}
            if array.attrs["in_digest"]:
                hasher.update(_encode(header | {"path": f"{parent}/{name}"}))
                hasher.update(array[0, : header["length"]].tobytes())
    return hasher.hexdigest()


def _hash_arrays(hasher, group):
    """Hashes the arrays of a group except derived ones."""
    for name, array in sorted(group.arrays()):
        if array.attrs.get("derived"):
            continue
        hasher.update(_encode({"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}))
        step = array.shards[0]
        for first in range(0, array.shape[0], step):
            values = array[first : first + step]
            hasher.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())


def main(path):
    """Prints the levels and the digest of a snapshot."""
    snapshot = open(path)
    print(f"{path}: time {snapshot.attrs['time']}, step {snapshot.attrs['step']}")
    for level in snapshot.levels:
        print(f"level {level.number}: {len(level.leaf)} patches, {level.leaf.sum()} leaves, {', '.join(level.fields)}")
    for kind, group in snapshot.items.items():
        print(f"{kind}: {group.attrs['count']} with {', '.join(sorted(name for name, _ in group.arrays()))}")
    print(digest(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
