"""Compares runs of radiative-shock.toml from time FROM to TO with theory. EXPONENT, MACH and COOLED (0: a wall) are those of make_shock.py.

`measure_shock.py length EXPONENT MACH COOLED FROM TO RUN` prints the distance from the shock to half the postshock temperature, averaged over the
snapshots. The position of the shock follows from the mass of the cells around it and the postshock density.

`measure_shock.py modes EXPONENT MACH COOLED FROM TO RUN OPPOSITE ...` prints growth rates and frequencies of three modes. They are fitted to the
differences of mass, momentum and energy between pairs of runs with opposite initial displacements, in which grid effects and terms of second
order cancel. Needs numpy and zarr.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from make_shock import NAMES, Flow


def profile(snapshot):
    """Returns density and temperature (pressure/density) along x, and the cell width."""
    import zarr

    level = zarr.open_group(snapshot, mode="r")["level_0"]
    origin = level["origin"][:]
    line = sorted((o[0], n) for n, o in enumerate(origin) if o[1] == o[2] == 0)
    fields = [np.concatenate([level[name][n, 0, 0] for _, n in line]) for name in ("density", "momentum_x", "energy")]
    density, momentum, energy = fields
    return density, (energy - momentum**2 / density / 2) * 2 / 3 / density, level.attrs["cell_width"][0]


def length(snapshot, half):
    """Returns the distance from the shock to the temperature `half`."""
    density, temperature, width = profile(snapshot)
    last = np.nonzero(density > 2)[0][-1]
    behind = np.arange(last - 9, last - 3)
    fit = np.polyfit(behind - last, density[behind], 2)
    excess = np.polyint(fit - [0, 0, 1])
    mass = np.sum(density[last - 5 : last + 8] - 1) + np.polyval(excess, -5.5)
    place = 0.0
    for _ in range(20):
        place = np.clip(place - (np.polyval(excess, place) - mass) / (np.polyval(fit, place) - 1), -2.5, 2.5)
    n = last - 2
    while temperature[n] > half:
        n -= 1
    return (last + place - n - (half - temperature[n]) / (temperature[n + 1] - temperature[n])) * width


def totals(run, times):
    """Returns total mass, momentum and energy of a run, interpolated to `times`."""
    with open(run / "diagnostics.csv") as file:
        rows = list(csv.DictReader(file))
    at = [float(row["time"]) for row in rows]
    names = ("density", "momentum_x", "energy")
    return np.array([np.interp(times, at, [float(row["total_" + name]) for row in rows]) for name in names]).T


def residual(times, values, numbers):
    """Returns the residual of the linear fit of a constant and of modes with these growth rates and frequencies."""
    sigma = numbers[::2] + 1j * numbers[1::2]
    waves = np.exp(np.outer(times - times[0], sigma))
    basis = np.hstack([np.ones((len(times), 1)), waves.real, waves.imag])
    return (values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]).ravel()


def fit(times, values, sigma):
    """Returns the growth rates of the least-squares fit by the Levenberg-Marquardt method, and the root-mean-square residual."""
    values = (values - values.mean(0)) / values.std(0)
    numbers, damping = np.array([sigma.real, sigma.imag]).T.ravel(), 1e-3
    now = residual(times, values, numbers)
    for _ in range(200):
        slopes = np.array([residual(times, values, numbers + one) - now for one in 1e-6 * np.eye(len(numbers))]).T / 1e-6
        square = slopes.T @ slopes
        step = np.linalg.solve(square + damping * np.diag(np.diag(square)), -slopes.T @ now)
        after = residual(times, values, numbers + step)
        better = after @ after < now @ now
        damping *= 0.2 if better else 5
        if better:
            numbers, now = numbers + step, after
        if damping > 1e8 or (better and max(abs(step)) < 1e-7):
            break
    return numbers[::2] + 1j * numbers[1::2], np.sqrt(np.mean(now**2))


def main(what, exponent, mach, cooled, start, end, *runs):
    flow, runs = Flow(float(exponent), float(mach), float(cooled)), [Path(run) for run in runs]
    start, end = float(start), float(end)
    if what == "length":
        import zarr

        snapshots = sorted((runs[0] / "snapshots").iterdir())
        snapshots = [each for each in snapshots if start <= zarr.open_group(each, mode="r").attrs["time"] <= end]
        mean = np.mean([length(each, flow.temperature / 2) for each in snapshots])
        print(f"{len(snapshots)} snapshots, {mean:.4f}, steady {flow.half():.4f}, {100 * (mean / flow.half() - 1):+.2f}%")
        return
    times, theory = np.arange(start, end, 0.05), flow.modes()
    values = np.hstack([totals(one, times) - totals(other, times) for one, other in zip(runs[::2], runs[1::2])])
    found, left = fit(times, values, theory)
    for name, a, b in zip(NAMES, found, theory):
        one, other = (f"{s.real:+.4f} {s.imag:+.4f} i, period {2 * np.pi / s.imag:.2f}" for s in (a, b))
        print(f"{name}: {one}; theory {other}")
    print(f"residual of the fit: {100 * left:.1f}% of the variation")


if __name__ == "__main__":
    main(*sys.argv[1:])
