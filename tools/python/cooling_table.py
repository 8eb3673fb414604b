"""Converts a cooling table in HDF5, in the format of the Cloudy tables of Grackle, to the Zarr group that `cooling.table` reads.

    python tools/python/cooling_table.py CloudyData_UVB=HM2012.h5 table.zarr

The HDF5 file has the groups /CoolingRates/Primordial and /CoolingRates/Metals with the data sets Cooling and Heating (erg cm^3/s); the first group
also has MMW. Their shape is [density, redshift, temperature] or has fewer axes. Each data set has the attributes Parameter1 (log10 of hydrogen nuclei
per cm^3), Parameter2 (redshift) and Temperature (K). Heating is converted to erg/s per hydrogen nucleus, see docs/cooling.md. Needs h5py, numpy and zarr.
"""

import sys

import h5py
import numpy
import zarr

GROUPS = {"Primordial": "primordial", "Metals": "metal"}


def axes_of(data):
    """Returns the axes of a data set as pairs of name and values, in order."""
    attributes = data.attrs
    names = [("log_density", "Parameter1"), ("redshift", "Parameter2")]
    axes = [(name, numpy.asarray(attributes[key], float)) for name, key in names if key in attributes]
    temperature = numpy.asarray(attributes["Temperature"], float)
    axes = axes[: data.ndim - 1] + [("log_temperature", numpy.log10(temperature))]
    shape = tuple(len(values) for _, values in axes)
    if shape != data.shape:
        raise SystemExit(f"{data.name} has shape {data.shape}, but its axes have {shape} values")
    return axes


def arrays_of(source):
    """Returns axes and rates, with the names of `cooling.table`."""
    found = {}
    for group, part in GROUPS.items():
        if group not in source["CoolingRates"]:
            continue
        data = source["CoolingRates"][group]
        axes = axes_of(data["Cooling"])
        if axes[0][0] != "log_density":
            axes = [("log_density", numpy.zeros(1))] + axes
        shape = tuple(len(values) for _, values in axes)
        for name, values in axes:
            if name in found and not numpy.array_equal(found[name], values):
                raise SystemExit(f"the groups of the table have different axes {name}")
            found[name] = values
        density = 10.0 ** axes[0][1].reshape((-1,) + (1,) * (len(axes) - 1))
        found[f"cooling_{part}"] = numpy.reshape(data["Cooling"], shape).astype(float)
        found[f"heating_{part}"] = numpy.reshape(data["Heating"], shape).astype(float) * density
        if "MMW" in data:
            found["mean_molecular_weight"] = numpy.reshape(data["MMW"], shape).astype(float)
    return found


def main(path, target):
    with h5py.File(path) as source:
        arrays = arrays_of(source)
    zarr.config.set({"array.write_empty_chunks": True})
    group = zarr.open_group(target, mode="w")
    for name, values in arrays.items():
        group.create_array(name, shape=values.shape, dtype="float64")[...] = values
        print(name, values.shape)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
