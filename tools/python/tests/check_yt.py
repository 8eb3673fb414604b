"""The frontend of yt, found by its entry point: masses, units, fields and particles, compared with `nestar info`."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess

import numpy as np
import yt
from brute import DECK, ONE_PATCH, Cells, close

import nestar


def totals(path):
    """Returns the totals that `nestar info` prints, in code units, by name."""
    command = [os.environ["NESTAR_PROGRAM"], "info", path]
    text = subprocess.run([*command, "--units", "code"], capture_output=True, text=True, check=False)
    if text.returncode != 0:
        text = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = re.findall(r"^(\w+)\s+\S+\s+\S+\s+\S+\s+([-+.\de]+)", text.stdout, re.MULTILINE)
    # columns of particles begin after those of fields
    found, group = {}, []
    for line in text.stdout.splitlines():
        if line.startswith("particles/"):
            group.append(line.split(":")[0].removeprefix("particles/"))
        row = re.match(r"(\w+)\s+\S+\s+\S+\s+\S+\s+([-+.\de]+)", line)
        if row and row[1] not in ("field", "column"):
            found[(group[-1] if group else "gas", row[1])] = float(row[2])
    assert rows and found
    return found


def gas(path, ds):
    data, known, ours = ds.all_data(), totals(path), nestar.open(path, units="code")
    close(float(data["gas", "cell_mass"].sum().to("code_mass")), known["gas", "density"], 1e-12)
    cells = Cells(path)
    close(np.sort(data["gas", "density"].to("code_mass/code_length**3").d), np.sort(cells.value), 1e-14)
    widths = [np.unique(ours.level(int(level)).cell_width[0]) for level in np.unique(cells.level)]
    close(np.unique(data["index", "dx"].to("code_length").d), np.unique(widths))
    for name, unit in [
        ("velocity_x", "code_velocity"),
        ("pressure", "code_pressure"),
        ("mach_number", "dimensionless"),
        ("sound_speed", "code_velocity"),
        ("total_energy_density", "code_pressure"),
    ]:
        array = {"mach_number": "mach", "total_energy_density": "energy"}.get(name, name)
        grid = ds.covering_grid(ours.levels[-1], ds.domain_left_edge, ds.domain_dimensions * 2 ** ours.levels[-1])
        theirs = grid["gas", name].to(unit).d.transpose(2, 1, 0)
        close(theirs, ours.uniform(array, ours.levels[-1]).values, 1e-11)
    projected = ds.proj(("gas", "density"), "z")
    area = (2 * projected["pdx"]) * (2 * projected["pdy"])
    close(float((projected["gas", "density"] * area).sum().to("code_mass")), known["gas", "density"], 1e-12)
    position = 0.37 * (ours.right_edge + ours.left_edge)
    plane = ds.slice("x", ds.quan(position[0], "code_length"))
    brute = cells.at(np.stack([np.full(len(plane["py"]), position[0]), plane["px"].d, plane["py"].d], -1))
    close(plane["gas", "density"].to("code_mass/code_length**3").d, brute, 1e-14)


def units(path, ds):
    """Fields in physical units."""
    ours = nestar.open(path, units="cgs")
    grid = ds.covering_grid(1, ds.domain_left_edge, ds.domain_dimensions * 2)
    for name, array, unit in [
        ("density", "density", "g/cm**3"),
        ("velocity_y", "velocity_y", "cm/s"),
        ("pressure", "pressure", "dyn/cm**2"),
        ("temperature", "temperature_k", "K"),
        ("metallicity", "metallicity", "Zsun"),
        ("fraction_metal", "fraction_metal", "dimensionless"),
    ]:
        theirs = grid["gas", name].to(unit).d.transpose(2, 1, 0)
        close(theirs, ours.uniform(array, 1).values, 1e-4 if unit in ("K", "Zsun") else 1e-11)
    assert abs(float(ds.current_time.to("s")) / float(ours.time) - 1) < 1e-12
    assert abs(float(ds.quan(1, "code_velocity").to("km/s")) - 1) < 1e-9


def without_energy():
    """Pressure, temperature, sound speed and Mach number of gas without energy follow from the density."""
    initial = {key: value for key, value in DECK["initial"].items() if key != "pressure"}
    isothermal = {"eos": "isothermal", "sound_speed": 5.0}
    polytropic = {"eos": "polytropic", "polytropic_constant": 300.0, "gamma": 1.4}
    for law in (isothermal, polytropic):
        deck = DECK | {"initial": initial, "hydro": DECK["hydro"] | law}
        directory = str(law["eos"])
        path = nestar.run(deck, watch=False, set={"output.directory": directory}).snapshots[-1].path
        ds, ours = yt.load(str(path)), nestar.open(path, units="cgs")
        grid = ds.covering_grid(1, ds.domain_left_edge, ds.domain_dimensions * 2)
        found = {}
        for name, array, unit in [
            ("pressure", "pressure", "dyn/cm**2"),
            ("temperature", "temperature_k", "K"),
            ("sound_speed", "sound_speed", "cm/s"),
            ("mach_number", "mach", "dimensionless"),
        ]:
            found[name] = grid["gas", name].to(unit).d.transpose(2, 1, 0)
            close(found[name], ours.uniform(array, 1).values, 1e-4 if unit == "K" else 1e-11)
        known = [name for kind, name in ds.derived_field_list if kind == "gas"]
        assert "thermal_energy_density" not in known and "specific_thermal_energy" not in known
        if law is isothermal:
            close(found["sound_speed"], np.full_like(found["sound_speed"], 5e5), 1e-9)
        else:
            assert np.ptp(found["sound_speed"]) > 0


def particles(path, ds):
    data, known, ours = ds.all_data(), totals(path), nestar.open(path, units="code")
    assert set(ds.particle_types_raw) == {"dark", "stars"} and {"all", "nbody"} <= set(ds.particle_types)
    total = 0.0
    for species in ("dark", "stars"):
        table = ours.particles(species)
        mass = float(data[species, "particle_mass"].sum().to("code_mass"))
        close(mass, known[species, "mass"], 1e-12)
        total += mass
        order, theirs = np.argsort(table.id.values), np.argsort(data[species, "particle_index"].d)
        for axis in "xyz":
            velocity = data[species, f"particle_velocity_{axis}"]
            assert str(velocity.to("code_velocity").units) == "code_velocity"
            close(velocity.to("code_velocity").d[theirs], table[f"velocity_{axis}"].values[order], 1e-14)
            place = data[species, f"particle_position_{axis}"].to("code_length").d
            close(place[theirs], table[axis].values[order], 1e-14)
    for union in ("all", "nbody"):
        close(float(data[union, "particle_mass"].sum().to("code_mass")), total, 1e-12)
    radius = 0.4
    ball = ds.sphere(ds.arr([0.4, 0.3, 3.3], "code_length"), (radius, "code_length"))
    table = ours.particles("dark")
    apart = [np.abs(table[axis].values - centre) for axis, centre in zip("xyz", (0.4, 0.3, 3.3))]
    widths = ours.right_edge - ours.left_edge
    near = [np.where(p, np.minimum(a, w - a), a) for a, w, p in zip(apart, widths, ours.periodic)]
    inside = sum(a**2 for a in near) < radius**2
    assert len(ball["dark", "particle_mass"]) == inside.sum() > 0
    grid = ds.arbitrary_grid(ds.domain_left_edge, ds.domain_right_edge, ds.domain_dimensions)
    for source in (grid, data):
        close(float(source["deposit", "dark_mass"].sum().to("code_mass")), known["dark", "mass"], 1e-12)


def main():
    yt.set_log_level("error")
    found = importlib.metadata.entry_points(group="yt.frontends")
    assert "nestar" in [entry.name for entry in found], "the package nestar is not installed"
    path = nestar.run(DECK, watch=False, set={"output.directory": "oblong"}).snapshots[-1].path
    single = nestar.run(ONE_PATCH, watch=False, set={"output.directory": "single"}).snapshots[-1].path
    large = ONE_PATCH | {"domain": DECK["domain"] | {"cells": [32, 16, 24]}}
    mixed = nestar.run(large, watch=False, set={"output.directory": "mixed"}).snapshots[-1].path
    for snapshot in (path, single, mixed):
        gas(snapshot, yt.load(str(snapshot)))
    dataset = yt.load(f"{path}/")
    assert len(dataset.index.grids) < sum(len(nestar.open(path).level(level)) for level in (0, 1, 2))
    units(path, dataset)
    without_energy()
    particles(path, dataset)
    picture = yt.ProjectionPlot(dataset, "z", ("gas", "density"))
    picture.save("picture.png")
    assert os.path.getsize("picture.png") > 10_000
    series = yt.load(f"{path.parent}/*.zarr")
    assert len(series) == 2
    print("python: ok")


if __name__ == "__main__":
    main()
