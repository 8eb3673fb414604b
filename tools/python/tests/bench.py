"""Measures the analysis on large snapshots: bench.py FOLDER [yt]. FOLDER keeps the snapshots, 2 GB."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import synthetic

import nestar


def measure(name: str, work: Callable[[], object], repeats: int = 3) -> None:
    """Prints the least wall time and processor time of some repeats."""
    best = [1e9, 1e9]
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        best = [min(a, b) for a, b in zip(best, (time.perf_counter() - wall, time.process_time() - cpu))]
    print(f"{name:<32} {best[0]:6.2f} s wall, {best[1]:6.2f} s processor")


def analysis(path: Path) -> None:
    """Slices, projections, profiles and distributions of 256^3 root cells in 5 levels."""
    snapshot = nestar.open(path)
    print({level: len(snapshot.level(level)) for level in snapshot.levels})
    measure("open", lambda: nestar.open(path))
    measure("slice density", lambda: snapshot.slice("density", z="0.4 kpc"))
    measure("slice temperature_k", lambda: snapshot.slice("temperature_k", z="0.4 kpc"))
    measure("project density", lambda: snapshot.project("density"))
    measure("project temperature_k by mass", lambda: snapshot.project("temperature_k", weight="mass"))
    measure("profile density", lambda: snapshot.profile("density"))
    measure("profile speed by mass", lambda: snapshot.profile("speed", weight="mass"))
    measure("pdf density", lambda: snapshot.pdf("density", logarithmic=True))
    measure("pdf density temperature_k", lambda: snapshot.pdf(("density", "temperature_k"), weight="mass", logarithmic=True))
    measure("uniform density, level 0", lambda: snapshot.uniform("density"))
    measure("ray", lambda: snapshot.ray("density", ("0 kpc",) * 3, ("1 kpc",) * 3))


def of_yt(path: Path) -> None:
    """Index and projection by yt with 30,000 patches and 10^7 particles."""
    import yt

    yt.set_log_level("error")

    def index() -> None:
        yt.load(str(path)).index  # noqa: B018

    measure("yt: load and index", index)
    print(len(yt.load(str(path)).index.grids), "grids")
    gas, mass = ("gas", "density"), ("dark", "particle_mass")

    def project() -> None:
        data = yt.load(str(path))
        data.proj(gas, "z")[gas]

    def sum_of(field: tuple[str, str]) -> None:
        data = yt.load(str(path))
        print(repr(float(data.all_data()[field].sum().to("code_mass"))))

    measure("yt: load, index and project", project)
    measure("yt: load, index, mass of gas", lambda: sum_of(("gas", "cell_mass")))
    measure("yt: load, index, mass of particles", lambda: sum_of(mass))


def main(folder: Path, kind: str = "all") -> None:
    large, wide = folder / "256.zarr", folder / "yt.zarr"
    if not large.exists():
        synthetic.write(large, 256, [500, 500, 500, 500])
    if not wide.exists():
        synthetic.write(wide, 128, [1000, 1200, 1040], particles=10**7)
    if kind in ("all", "analysis"):
        analysis(large)
    if kind in ("all", "yt"):
        of_yt(wide)
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
