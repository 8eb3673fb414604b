"""Writes the initial state of zarr.toml: `make_zarr.py [CELLS]` writes turbulence.zarr to its own folder.

The state is a divergence-free turbulent velocity field in gas of uniform pressure and log-normal density. Any program that
writes Zarr arrays of shape [z, y, x] can make such input. Needs numpy and zarr (version 3).
"""

import sys
from pathlib import Path

import numpy as np
import zarr

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 16
random = np.random.default_rng(1)
k = np.stack(np.meshgrid(*3 * [np.fft.fftfreq(cells, 1 / cells)], indexing="ij"))  # wave numbers along z, y, x
k2 = np.maximum((k**2).sum(axis=0), 1)
large = (k2 >= 1) & (k2 <= 9) & (np.abs(k).sum(axis=0) > 0)


def field():
    """Returns a random field of large-scale waves, with mean 0 and root mean square 1."""
    noise = np.fft.fftn(random.standard_normal(3 * [cells])) * large / k2
    value = np.fft.ifftn(noise).real
    return value / value.std()


potential = [np.fft.fftn(field()) for _ in range(3)]  # along z, y, x
curl = [k[(a + 1) % 3] * potential[(a + 2) % 3] - k[(a + 2) % 3] * potential[(a + 1) % 3] for a in range(3)]
velocity = np.stack([np.fft.ifftn(1j * c).real for c in curl])
velocity *= 1 / np.sqrt((velocity**2).sum(axis=0).mean())  # root mean square speed 1

density = np.exp(0.5 * field())
arrays = {"density": density / density.mean(), "pressure": np.full(3 * [cells], 0.6)}
arrays |= {f"velocity_{name}": v for name, v in zip("zyx", velocity)}
group = zarr.open_group(Path(__file__).with_name("turbulence.zarr"), mode="w")
for name, values in arrays.items():
    group.create_array(name, data=values.astype("f4"), dimension_names=["z", "y", "x"])
