"""Leaf cells of a snapshot by plain loops and the zarr package, to compare the analysis with."""

from __future__ import annotations

import numpy as np
import zarr

PATCH = 8
DECK = {
    "scenario": "formula",
    "units": {"length": "kpc", "mass": "1e6 Msun", "velocity": "km/s"},
    "domain": {"cells": [24, 8, 16], "left_edge": [-1.5, 0.0, 2.0], "right_edge": [1.5, 1.0, 5.0]},
    "initial": {
        "density": "2*mH/cm3*(1 + 5*exp(-((x - 0.4)^2 + (y - 0.3)^2 + (z - 3.3)^2)/0.05))",
        "pressure": "1e4*k_B/cm3*(1 + x^2)",
        "velocity_x": "30*sin(2*x + 3*y)",
        "velocity_y": "20*cos(z)",
        "velocity_z": "10*y",
        "scalars": {"metal": "0.01 + 0.002*x"},
    },
    "hydro": {"scalars": ["metal"], "mean_molecular_weight": 0.6},
    "mesh": {
        "max_level": 2,
        "refine": [{"criterion": "sphere", "centre": [0.4, 0.3, 3.3], "radius": 0.35}],
    },
    "particles": {
        "species": {
            "dark": {"mass": 0.01, "initial": {"kind": "lattice", "points": [12, 7, 9]}},
            "stars": {
                "initial": {
                    "kind": "bodies",
                    "bodies": [
                        {"position": [0.4, 0.3, 3.3], "velocity": [10, 0, 0], "mass": 0.5},
                        {"position": [-1.2, 0.9, 4.9], "velocity": [0, -5, 0], "mass": 0.25},
                    ],
                }
            },
        }
    },
    "time": {"end": 1.0, "max_steps": 2},
}
"""An oblong box with cells that are not cubes, two levels of refinement, units, a scalar and two species of particles."""
ONE_PATCH = {
    "scenario": "formula",
    "domain": {"cells": [8, 8, 8], "left_edge": [0, 0, 0], "right_edge": [1, 1, 1]},
    "initial": {"density": "1 + x + 2*y + 4*z", "pressure": "1"},
    "time": {"end": 0.01},
}


class Cells:
    """All patches of a snapshot, and the leaf cells one after the other."""

    def __init__(self, path, field="density"):
        root = zarr.open_group(str(path), mode="r")
        self.left = np.array(root.attrs["domain_left_edge"])
        self.right = np.array(root.attrs["domain_right_edge"])
        self.levels = list(root.attrs["levels"])
        self.patches, self.width = {}, {}
        parts = []
        for level in self.levels:
            group = root[f"level_{level}"]
            self.width[level] = np.array(group.attrs["cell_width"])
            values, leaf = group[field][:], group["leaf"][:]
            for patch, origin in enumerate(group["origin"][:].tolist()):
                self.patches[level, *origin] = (values[patch], leaf[patch] == 1)
                if leaf[patch]:
                    parts.append(self._cells(level, origin, values[patch]))
        self.position, self.volume, self.value, self.level = (np.concatenate(column) for column in zip(*parts))

    def _cells(self, level, origin, values):
        k, j, i = np.meshgrid(*[np.arange(PATCH)] * 3, indexing="ij")
        index = np.stack([i + origin[0], j + origin[1], k + origin[2]], axis=-1).reshape(-1, 3)
        position = self.left + (index + 0.5) * self.width[level]
        return position, np.full(512, self.width[level].prod()), values.ravel().astype(float), np.full(512, level)

    def cell_at(self, point):
        """Returns level, indices and value of the leaf cell at a point."""
        for level in reversed(self.levels):
            index = np.floor((np.asarray(point) - self.left) / self.width[level]).astype(int)
            origin = index // PATCH * PATCH
            found = self.patches.get((level, *origin.tolist()))
            if found is not None and found[1]:
                i, j, k = index - origin
                return level, tuple(index.tolist()), found[0][k, j, i]
        raise AssertionError(f"no leaf cell at {point}")

    def at(self, points):
        """Returns the values at points, `[point, axis]`."""
        return np.array([self.cell_at(point)[2] for point in points])


def close(a, b, tolerance=1e-12):
    """Requires that numbers agree to a relative tolerance of the largest one."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape, (a.shape, b.shape)
    assert np.array_equal(np.isnan(a), np.isnan(b)), "different values are not numbers"
    scale = np.nanmax(np.abs(b)) if b.size else 0.0
    worst = np.nanmax(np.abs(a - b)) if b.size else 0.0
    assert worst <= tolerance * scale, (worst, scale)
