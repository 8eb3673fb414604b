"""Checks a snapshot with the public Python tools: check_snapshot.py SNAPSHOT FOLDER DIGEST.

FOLDER holds what was written, as NAME.LEVEL.bin in little-endian row-major order.
"""

import sys
from pathlib import Path

import numpy as np
import xarray
import zarr

import nestar_reader

path, folder, digest = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

# zarr and xarray alone, through the consolidated metadata.
root = zarr.open_group(path, mode="r", use_consolidated=True)
tree = xarray.open_datatree(path, engine="zarr")
assert root.attrs["time"] == 0.1 + 0.2, root.attrs["time"]
assert root.attrs["patch_size"] == 8 and root.attrs["refinement_ratio"] == 2
files = sorted(folder.glob("*.bin"))
assert len(files) == 18, files
for file in files:
    name, level = file.stem.split(".")
    array = root[f"level_{level}/{name}"]
    written = np.fromfile(file, array.dtype).reshape(array.shape)
    assert np.array_equal(array[:], written), file
    data = tree[f"level_{level}"][name]
    assert np.array_equal(data.values, written), file
    assert data.dims == array.metadata.dimension_names, data.dims
    assert {"units", "cgs_factor", "long_name"} <= set(data.attrs), data.attrs
assert tree["level_1"]["hot"].attrs["derived"] and "derived" not in tree["level_1"]["density"].attrs
assert tree["level_0"]["density"].dims == ("patch", "z", "y", "x")
assert tree["level_0"]["density"].attrs["units"] == "mass/length**3"

# Our own reader: a covering grid of values that tell where they are, and the digest.
assert nestar_reader.digest(path) == digest, (nestar_reader.digest(path), digest)
snapshot = nestar_reader.open(path)
fine = snapshot.level(1)
grid = nestar_reader.uniform(path, "density", 1)
assert grid.shape == (32, 64, 128), grid.shape
x, y, z = fine.centres(snapshot.attrs["domain_left_edge"])
density = fine.group["density"][:]
for patch, (i, j, k) in enumerate(fine.origin):
    assert np.array_equal(grid[k : k + 8, j : j + 8, i : i + 8], density[patch])
    assert np.isclose(x[patch, 0], -0.5 + (i + 0.5) * fine.cell_width[0])
coarse = snapshot.level(0).group["density"][0]
assert np.array_equal(grid[::2, ::2, ::2][0:8, 0:8, 0:8], coarse)
assert np.isnan(grid[-1, -1, -1])
print("python: ok")
