"""Writes initial states as others would: write_uniform.py FOLDER makes FOLDER/v3 with zarr's defaults, FOLDER/v2 with zstd."""

import sys
from pathlib import Path

import numcodecs
import numpy as np
import zarr

folder = Path(sys.argv[1])
density = np.arange(24.0).reshape(2, 3, 4) / 3
for version in (2, 3):
    group = zarr.open_group(folder / f"v{version}", mode="w", zarr_format=version)
    options = {"compressors": numcodecs.Zstd()} if version == 2 else {}
    group.create_array("density", data=density, chunks=(1, 2, 4), **options)
    group.create_array("pressure", data=density.astype("f4"), **options)
