"""Regions of zoom simulations: the first places of the particles around a halo, which lattices of a deck read as ``inside`` and ``outside``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .errors import Error
from .runs import Run
from .snapshot import Snapshot


def _lattices(run: Run, wanted: str | None) -> dict[str, np.ndarray]:
    """Returns the numbers of points of the lattices of a run by species."""
    species = run.deck.get("particles", {}).get("species", {})
    lattices = {
        name: np.array(table["initial"]["points"], dtype=np.int64)
        for name, table in species.items()
        if table.get("initial", {}).get("kind") == "lattice"
    }
    if wanted is None and lattices:
        return lattices
    if wanted not in lattices:
        raise Error(
            f"{run.path}: the identities of particles tell their first places only on a lattice; {wanted or 'no species'} is none, "
            f"there are {', '.join(sorted(lattices)) or 'none'}"
        )
    return {wanted: lattices[wanted]}


def _entry(run: Run, view: str, snapshot: Snapshot | None) -> tuple[Any, Snapshot]:
    """Returns the catalogue of the step of a snapshot; by default of the last one that has both."""
    steps = [int(step) for step in np.atleast_1d(run.views[view]["step"].values)]
    snapshots = [snapshot] if snapshot is not None else list(run.snapshots)
    for one in reversed(snapshots):
        if one.step in steps:
            return run.views.rows(view, steps.index(one.step)), one
    raise Error(
        f"{run.path}: the view `{view}` has entries at the steps {steps}, and snapshots are of the steps {[one.step for one in snapshots]}: "
        "give the view `output_times = true`, so that both are written at the same time"
    )


def _widened(inside: np.ndarray, margin: int) -> np.ndarray:
    """Adds all cells that are not farther than `margin` cells along each axis, across the borders of the box."""
    for axis in range(3):
        wide = inside.copy()
        for by in range(1, margin + 1):
            wide |= np.roll(inside, by, axis) | np.roll(inside, -by, axis)
        inside = wide
    return inside


def zoom_region(run: Run, halo: int, path: str | os.PathLike[str], *, radius_in_r200m: float = 3.0, margin: int = 1,
                view: str = "halos", snapshot: Snapshot | None = None, species: str | None = None,
                cells: tuple[int, int, int] | None = None) -> np.ndarray:  # fmt: skip
    """Writes the cells of the initial lattice whose particles are near a halo; returns their numbers along x, y, z as rows.

    `halo` is the row of the halo in the catalogue `view` at the time of `snapshot`, by default of the last one: 0 has the largest mass. The
    particles are those within `radius_in_r200m` times its ``r200m`` around its position, of all species on lattices or of one `species`.
    `cells` are the numbers of cells of the box along x, y, z, by default the points of the coarsest of these lattices. The region is
    widened by `margin` cells to all sides.
    """
    run = Run(run.path, "code")
    if snapshot is not None:
        snapshot = Snapshot(snapshot.path, "code")
    lattices = _lattices(run, species)
    halos, at = _entry(run, view, snapshot)
    if not 0 <= halo < len(halos.mass):
        raise Error(f"the catalogue `{view}` has no halo {halo}; it has {len(halos.mass)}, counted from 0")
    if not radius_in_r200m > 0 or margin < 0:
        raise Error("radius_in_r200m must be above 0, and margin at least 0")
    centre, r200m = halos.position.values[halo], float(halos.r200m.values[halo])
    if not np.isfinite(r200m):
        raise Error(f"halo {halo} has no r200m, because it is larger than half of the box: choose another halo")
    box = np.array(min(lattices.values(), key=lambda points: points.prod()) if cells is None else cells, dtype=np.int64)
    if box.shape != (3,) or (box < 1).any():
        raise Error(f"cells: three numbers above 0, found {cells}")
    inside = np.zeros(box, dtype=bool)
    width = at.right_edge - at.left_edge
    for name, points in lattices.items():
        if (points % box).any():
            raise Error(f"the {points.tolist()} points of {name} do not divide into {box.tolist()} cells: give others as `cells`")
        particles = at.particles(name)
        way = particles.position.values - centre
        way -= np.where(at.periodic, np.round(way / width), 0) * width
        near = (way**2).sum(axis=1) <= (radius_in_r200m * r200m) ** 2
        numbers = particles.id.values[near].astype(np.int64)
        place = np.stack([numbers % points[0], numbers // points[0] % points[1], numbers // (points[0] * points[1])], axis=1)
        inside[tuple((place // (points // box)).T)] = True
    if not inside.any():
        raise Error(f"no particles are within {radius_in_r200m} r200m of halo {halo}: give a larger radius_in_r200m")
    inside = _widened(inside, margin)
    region = np.argwhere(inside.transpose(2, 1, 0))[:, ::-1]
    rows = [
        f"# {len(region)} cells around halo {halo} (id {int(halos.id.values[halo])}) of {Path(run.path).name}, step {at.step}",
        f"# particles within {radius_in_r200m:g} r200m; margin of {margin}",
        "x,y,z",
        "{},{},{} # cells of the box".format(*box),
        *("{},{},{}".format(*cell) for cell in region),
    ]
    Path(path).write_text("\n".join(rows) + "\n")
    return region
