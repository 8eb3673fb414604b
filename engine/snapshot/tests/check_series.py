"""Checks a series with xarray: check_series.py SERIES."""

import sys

import numpy as np
import xarray

series = xarray.open_zarr(sys.argv[1])
assert series.attrs == {"format": "nestar-view", "view_kind": "slice"}
assert series["density"].dims == ("time", "y", "x") and series["density"].dtype == np.float32
assert series["time"].values.tolist() == [0.0, 0.5, 1.25]
assert series["step"].values.tolist() == [0, 3, 7] and series["step"].dims == ("time",)
assert series["y"].values.tolist() == [0.25, 0.75] and series["x"].values.tolist() == [0.5, 1.5, 2.5]
assert series["density"].attrs["units"] == "mass/length**3"
values = np.arange(6).reshape(2, 3)
for entry in range(3):
    assert np.array_equal(series["density"].values[entry], values + 10 * entry)
assert series["total"].values.tolist() == [0.0, 1.0, 2.0]
assert np.array_equal(series["density"].sel(time=0.5, x=1.5).values, [11.0, 14.0])
print("python: ok")
