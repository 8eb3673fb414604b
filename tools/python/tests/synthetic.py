"""Writes large snapshots without the program, for measurements: nested balls of refined patches around the middle."""

from __future__ import annotations

import json
from pathlib import Path

import google_crc32c
import numpy as np
from numcodecs.zstd import Zstd

PATCH = 8
LENGTH = {"length_cgs": 3.0856775814913673e21, "mass_cgs": 1.98840987e43, "time_cgs": 3.15576e13, "name": "kpc"}
_CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1}}]


def _checksum(data: bytes) -> bytes:
    return google_crc32c.value(data).to_bytes(4, "little")


def write_array(folder: Path, values: np.ndarray, dims: list[str], attrs: dict, shard: int, chunk: int) -> dict:
    """Writes an array with shards as the program does; returns its metadata."""
    folder.mkdir(parents=True)
    rows = len(values)
    chunk = max(1, min(rows, chunk))
    shard = -(-min(shard, max(rows, 1)) // chunk) * chunk
    rest = list(values.shape[1:])
    for first in range(0, rows, shard):
        parts: list[bytes] = []
        index = np.full((shard // chunk, 2), 2**64 - 1, "<u8")
        for n, begin in enumerate(range(first, min(first + shard, rows), chunk)):
            part = np.zeros([chunk, *rest], values.dtype)
            part[: len(values[begin : begin + chunk])] = values[begin : begin + chunk]
            packed = Zstd(1).encode(np.ascontiguousarray(part))
            parts.append(packed + _checksum(packed))
            index[n] = index[n - 1].sum() if n else 0, len(parts[-1])
        data = b"".join(parts)
        name = ".".join(["c", str(first // shard)] + ["0"] * len(rest))
        (folder / name).write_bytes(data + index.tobytes() + _checksum(index.tobytes()))
    sharding = {
        "chunk_shape": [chunk, *rest],
        "codecs": [*_CODECS, {"name": "crc32c"}],
        "index_codecs": [_CODECS[0], {"name": "crc32c"}],
        "index_location": "end",
    }
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(values.shape),
        "data_type": str(values.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [shard, *rest]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": attrs,
        "dimension_names": dims,
    }
    (folder / "zarr.json").write_text(json.dumps(document))
    return document


def _morton(origin: np.ndarray) -> np.ndarray:
    """Returns the order of patches along a curve that keeps neighbours together."""
    place, key = origin // PATCH, np.zeros(len(origin), np.int64)
    for bit in range(20):
        for axis in range(3):
            key |= ((place[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(key)


def hierarchy(root: int, counts: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns origin and leaf of the patches of each level: the `counts[l]` innermost patches of level l have children."""
    line = np.arange(0, root, PATCH)
    origin = np.stack([part.ravel() for part in np.meshgrid(line, line, line, indexing="ij")], 1)
    found = []
    for level in range(len(counts) + 1):
        origin = origin[_morton(origin)]
        leaf = np.ones(len(origin), bool)
        if level < len(counts):
            distance = ((origin + PATCH / 2 - root * 2**level / 2) ** 2).sum(axis=1)
            leaf[np.argsort(distance, kind="stable")[: counts[level]]] = False
        found.append((origin, leaf))
        parents = origin[~leaf] * 2
        corners = np.array([[i, j, k] for k in (0, 8) for j in (0, 8) for i in (0, 8)])
        origin = (parents[:, None] + corners).reshape(-1, 3)
    return found


def write(path: Path, root: int, counts: list[int], dtype: str = "float64", particles: int = 0) -> None:
    """Writes a snapshot of a box of 1 kpc with gas and, if asked for, particles of the species `dark`."""
    random = np.random.default_rng(1)
    levels = hierarchy(root, counts)
    nodes: dict[str, dict] = {}
    path.mkdir(parents=True)
    fields = {"density": "mass/length**3", "energy": "mass/(length*time**2)"}
    fields |= {f"momentum_{axis}": "mass/(length**2*time)" for axis in "xyz"}
    share = np.array([leaf.sum() / 8.0**level for level, (_, leaf) in enumerate(levels)])
    numbers = np.floor(particles * share / share.sum()).astype(int)
    numbers[0] += particles - numbers.sum()
    columns: list[np.ndarray] = []
    for level, (origin, leaf) in enumerate(levels):
        head, width = path / f"level_{level}", 1.0 / (root * 2**level)
        attrs = {"level": level, "time": 0.5, "dt": 0.1, "cell_width": [width] * 3, "patches": len(origin)}
        nodes[f"level_{level}"] = {"zarr_format": 3, "node_type": "group", "attributes": attrs}

        def store(name: str, values: np.ndarray, dims: list[str], units: str, head: Path = head) -> None:
            nodes[f"{head.name}/{name}"] = write_array(head / name, values, dims, {"units": units}, 1024, 32)

        store("origin", origin.astype(np.int32), ["patch", "axis"], "cell")
        store("leaf", leaf.astype(np.uint8), ["patch"], "1")
        centre = [(origin[:, axis, None] + np.arange(PATCH) + 0.5) * width - 0.5 for axis in range(3)]
        x, y, z = centre[0][:, None, None, :], centre[1][:, None, :, None], centre[2][:, :, None, None]
        radius = x**2 + y**2 + z**2
        density = (0.01 / (radius + 0.01)) * random.uniform(0.8, 1.2, radius.shape)
        values = {"density": density, "energy": 2 + density, "momentum_x": -y * density, "momentum_y": x * density}
        values["momentum_z"] = 0.1 * density * random.uniform(-1, 1, radius.shape)
        for name, units in fields.items():
            store(name, values[name].astype(dtype), ["patch", "z", "y", "x"], units)
        if particles:
            owner = np.sort(random.choice(np.flatnonzero(leaf), numbers[level]))
            store("particles_dark", np.bincount(owner, minlength=len(leaf)).astype(np.uint32), ["patch"], "1")
            inside = random.uniform(0, PATCH, (len(owner), 3))
            columns.append((origin[owner] + inside) * width)
    if particles:
        _write_particles(path, nodes, np.concatenate(columns), random)
    attrs = {
        "format": "nestar-snapshot", "format_version": 2, "time": 0.5, "step": 10, "domain_left_edge": [0.0] * 3,
        "domain_right_edge": [1.0] * 3, "root_cells": [root] * 3, "patch_size": 8, "refinement_ratio": 2,
        "boundary": {axis: ["periodic", "periodic"] for axis in "xyz"}, "precision": "double", "units": LENGTH,
        "gamma": 5 / 3, "mean_molecular_weight": 0.6, "levels": list(range(len(levels))), "config": "[time]\nend = 1.0\n",
    }  # fmt: skip
    document = {"zarr_format": 3, "node_type": "group", "attributes": attrs}
    document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": nodes}
    (path / "zarr.json").write_text(json.dumps(document))


def _write_particles(path: Path, nodes: dict, position: np.ndarray, random: np.random.Generator) -> None:
    count = len(position)
    attrs = {"count": count, "version": 1}
    nodes["particles"] = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    nodes["particles/dark"] = {"zarr_format": 3, "node_type": "group", "attributes": attrs}
    arrays = {
        "id": (np.arange(count, dtype=np.uint64), "1"),
        "position": (position, "length"),
        "velocity": (random.standard_normal((count, 3)), "length/time"),
        "mass": (np.full(count, 0.37 / count), "mass"),
    }
    for name, (values, units) in arrays.items():
        dims = ["particle", "axis"][: values.ndim]
        folder = path / "particles/dark" / name
        nodes[f"particles/dark/{name}"] = write_array(folder, values, dims, {"units": units}, 1 << 18, 1 << 14)
