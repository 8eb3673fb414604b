"""Checks a snapshot with the public Python tools: check_snapshot.py SNAPSHOT FOLDER DIGEST.

FOLDER holds what was written, as NAME.LEVEL.bin in little-endian row-major order.
"""

import sys
from pathlib import Path

import numpy as np
import xarray
import zarr

import nestar

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
exponents = [tree["level_0"][name].attrs.get("scale_factor_exponent") for name in ("density", "magnetic_x_face")]
assert exponents == [None, -2.5], exponents
assert tree["level_0"]["density"].dims == ("patch", "z", "y", "x")
assert tree["level_0"]["density"].attrs["units"] == "mass/length**3"

# Our own package: digest, arrays and places.
assert nestar.digest(path) == digest, (nestar.digest(path), digest)
snapshot = nestar.open(path, units="code")
fine = snapshot.level(1)
density = fine.array("density").read()
assert np.array_equal(density, root["level_1/density"][:])
assert np.array_equal(fine.array("density").read(np.array([1, 4, 7])), density[[1, 4, 7]])
lazy = fine["density"]
assert np.array_equal(lazy.values, density.astype(np.float64)) and lazy.attrs["units"] == "mass/length**3"
for patch, origin in enumerate(fine.origin):
    assert np.isclose(lazy.x_centre[patch, 0], -0.5 + (origin[0] + 0.5) * fine.cell_width[0])
grid = snapshot.uniform("density", 1)
assert grid.shape == (32, 64, 128), grid.shape
for patch, (i, j, k) in enumerate(fine.origin):
    assert np.array_equal(grid.values[k : k + 8, j : j + 8, i : i + 8], density[patch].astype(np.float64))
assert np.isnan(grid.values[-1, -1, -1])
print("python: ok")
