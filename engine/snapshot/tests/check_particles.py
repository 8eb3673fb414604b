"""Checks a snapshot with particles with the public Python tools: check_particles.py SNAPSHOT DIGEST."""

import sys

import numpy as np
import xarray

import nestar

path, digest = sys.argv[1:]
tree = xarray.open_datatree(path, engine="zarr")
stars = tree["particles/stars"].ds
number = np.arange(stars.sizes["particle"], dtype=np.uint64)
assert tree["particles/stars"].attrs == {"count": len(number), "version": 4}
assert stars["id"].dtype == np.uint64 and np.array_equal(stars["id"].values, number**2 + 5)
assert stars["place"].dtype == np.uint32
assert stars["position"].dims == ("particle", "axis") and stars["position"].dtype == np.float64
assert np.array_equal(stars["position"].values, np.arange(3 * len(number)).reshape(-1, 3) / 7)
assert {"units", "cgs_factor", "long_name"} <= set(stars["position"].attrs)
assert tree["state"]["one"].values.tolist() == [[1, 2, 3]] and tree["state"]["other"].shape == (1, 1)
counts = tree["level_0"]["particles_stars"]
assert counts.dims == ("patch",) and counts.values.tolist() == [0, 0, len(number)]
assert nestar.digest(path) == digest, (nestar.digest(path), digest)
found = nestar.open(path, units="code").particles("stars")
assert np.all(found.level == 0) and np.all(found.patch == 2) and found.sizes["particle"] == len(number)
assert np.array_equal(found.position.values, stars["position"].values) and np.array_equal(found.id, stars["id"])
print("python: ok")
