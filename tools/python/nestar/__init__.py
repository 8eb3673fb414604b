"""Analysis of runs of Nestar: snapshots, diagnostics and decks as xarray objects with units.

    import nestar

    run = nestar.open("out/sedov")
    snapshot = run.snapshots[-1]
    snapshot.slice("density").plot()
"""

from __future__ import annotations

import os
from pathlib import Path

from .conditions import convert_ic
from .cosmology import Cosmology
from .decks import deck_text
from .digests import digest
from .errors import Error
from .grafic import write_grafic
from .initial import write_initial, write_particles
from .program import run
from .runs import Run
from .snapshot import Level, Snapshot
from .units import Quantity, Units, pint_registry
from .zoom import zoom_region

__all__ = [
    "Cosmology", "Error", "Level", "Quantity", "Run", "Snapshot", "Units", "convert_ic", "deck_text", "digest", "open", "pint_registry", "run",
    "write_grafic", "write_initial", "write_particles", "zoom_region",
]  # fmt: skip
__version__ = "0.1.0"


def open(path: str | os.PathLike[str], units: str = "astronomical") -> Run | Snapshot:
    """Opens the directory of a run, or a snapshot.

    Results are in the units of astronomy (kpc, Msun, Myr, km/s), in `cgs` or in `code` units; those of a run without units
    are always in code units. In a run with `[cosmology]`, these are proper lengths and densities, and `comoving` gives comoving ones.
    """
    place = Path(path)
    if place.suffix == ".zarr" or (place / "zarr.json").exists():
        return Snapshot(place, units)
    return Run(place, units)
