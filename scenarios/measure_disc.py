"""Prints the structure of a disc of particles in each snapshot of a run: `measure_disc.py RUN [SPECIES]`, by default the species `disc`.

Columns: time in Myr; scale length (half the mean radius) in kpc; height (of sech^2, from the median of |z| within 3 scale lengths) in
kpc; mean rotation and the dispersions along R, phi and z at 2 to 3 scale lengths in km/s; and the amplitude of m = 2 relative to m = 0
within 2 scale lengths, which a bar raises above 0.2. The units of the deck must be kpc and km/s. Needs the Python package of Nestar.
"""

import sys

import nestar
import numpy as np


def measure(particles):
    """Returns the columns after the time from the particles; code units must be kpc and km/s."""
    x, y, z, vx, vy, vz = (
        np.asarray(particles[name].values) for name in ("x", "y", "z", "velocity_x", "velocity_y", "velocity_z")
    )
    radius = np.hypot(x, y)
    length = radius.mean() / 2
    height = np.median(np.abs(z[radius < 3 * length])) / np.arctanh(0.5)
    ring = np.abs(radius / length - 2.5) < 0.5
    out = ((x * vx + y * vy) / radius)[ring]
    around = ((x * vy - y * vx) / radius)[ring]
    inner = radius < 2 * length
    bar = abs(np.exp(2j * np.arctan2(y, x)[inner]).mean())
    return length, height, around.mean(), out.std(), around.std(), vz[ring].std(), bar


def main(run, species="disc"):
    print("  Myr  length height rotation sigma_R sigma_phi sigma_z   A_2")
    for snapshot in nestar.open(run, units="code").snapshots:
        myr = snapshot.attrs["time"] * snapshot.units.time / 3.15576e13
        row = measure(snapshot.particles(species))
        print(f"{myr:5.0f} {row[0]:7.3f} {row[1]:6.3f} {row[2]:8.1f} {row[3]:7.1f} {row[4]:9.1f} {row[5]:7.1f} {row[6]:5.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
