"""Runs of the program from Python: decks, progress, initial states, diagnostics, and errors of one line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from brute import DECK, ONE_PATCH, close

import nestar


def refused(work, *words):
    """Requires an error of one line with these words."""
    try:
        work()
    except nestar.Error as error:
        text = str(error)
        assert "\n" not in text and error.__cause__ is None and error.__suppress_context__ | (error.__context__ is None), text
        for word in words:
            assert word in text, (word, text)
        return text
    raise AssertionError(f"no error; expected {words}")


def magnetic_fields():
    """Gas with a magnetic field has its thermal pressure, and fields that follow from the magnetic one."""
    initial = {
        "density": "2",
        "pressure": "1 + 0.1*sin(2*pi*x)",
        "velocity_y": "0.3",
        "magnetic_x": "0.5",
        "magnetic_y": "cos(2*pi*x)",
    }
    deck = {
        "scenario": "formula",
        "initial": initial,
        "mhd": {"method": "glm"},
        "domain": {"cells": [8, 8, 8]},
        "mesh": {},
        "time": {"end": 1e-6},
        "run": {"precision": "double"},
    }
    run = nestar.run(deck, watch=False, set={"output.directory": "magnetic"})
    first = run.snapshots[0]
    x = (np.arange(8) + 0.5) / 8
    pressure, square = 1 + 0.1 * np.sin(2 * np.pi * x), 0.25 + np.cos(2 * np.pi * x) ** 2
    everywhere = lambda along_x: np.broadcast_to(along_x, (8, 8, 8))
    close(first.uniform("pressure").values, everywhere(pressure), 1e-12)
    close(first.uniform("magnetic_energy").values, everywhere(0.5 * square), 1e-12)
    close(first.uniform("plasma_beta").values, everywhere(2 * pressure / square), 1e-12)
    close(first.uniform("alfven_speed").values, everywhere(np.sqrt(0.5 * square)), 1e-12)
    assert run.diagnostics["divergence_error"].values[0] < 1e-12


def initial_states():
    """A run begins with the numbers that were written."""
    random = np.random.default_rng(6)
    shape = (8, 16, 24)
    density, pressure = random.uniform(1, 2, shape), random.uniform(1, 2, shape)
    velocity, metal = random.uniform(-1, 1, (3, *shape)), random.uniform(0, 1, shape)
    tables = nestar.write_initial(
        "gas.zarr", density, pressure=pressure, velocity=velocity, scalars={"metal": metal}
    )
    position = random.uniform([0, 0, 0], [3, 2, 1], (500, 3))
    speed, mass = random.uniform(-1, 1, (500, 3)), random.uniform(1, 2, 500)
    age, number = random.uniform(0, 1, 500), random.permutation(5000)[:500]
    table = nestar.write_particles("stars.zarr", position, velocity=speed, mass=mass, id=number, age=age)
    deck = tables | {
        "domain": {"cells": [24, 16, 8], "left_edge": [0, 0, 0], "right_edge": [3, 2, 1], "boundary": "outflow"},
        "hydro": {"scalars": ["metal"]},
        "particles": {"species": {"stars": {"scalars": {"age": {"units": "time"}}, "initial": table}}},
        "time": {"end": 1e-6},
        "run": {"precision": "double"},
    }
    try:
        run = nestar.run(deck, watch=False, set={"output.directory": "from-arrays"})
    except nestar.Error as error:
        if "scalars" not in str(error):
            raise
        del deck["particles"]["species"]["stars"]["scalars"]
        run = nestar.run(deck, watch=False, set={"output.directory": "from-arrays"})
    first = run.snapshots[0]
    close(first.uniform("density").values, density)
    close(first.uniform("pressure").values, pressure, 1e-12)
    close(first.uniform("fraction_metal").values, metal)
    for axis, values in zip("xyz", velocity):
        close(first.uniform(f"velocity_{axis}").values, values)
    stars = first.particles("stars")
    order, ours = np.argsort(stars.id.values), np.argsort(number)
    assert np.array_equal(stars.id.values[order], number[ours])
    close(stars.mass.values[order], mass[ours])
    close(stars.position.values[order], position[ours], 1e-9)
    close(stars.velocity.values[order], speed[ours])
    assert not [path for path in os.listdir(".") if path.startswith("nestar-")], "the temporary deck is still there"
    refused(lambda: nestar.write_initial("a.zarr", density, pressure=pressure[1:]), "pressure", "(7, 16, 24)")
    refused(lambda: nestar.write_initial("a.zarr", density), "pressure or the energy")
    refused(lambda: nestar.write_initial("a.zarr", density * np.nan, pressure=pressure), "density", "not a number")
    refused(lambda: nestar.write_particles("a.zarr", position[:, :2]), "[particle, 3]")
    refused(lambda: nestar.write_particles("a.zarr", position, id=np.zeros(500, int)), "distinct")
    Path("occupied").mkdir()
    Path("occupied/file").write_text("")
    refused(lambda: nestar.write_initial("occupied", density, pressure=pressure), "not a Zarr store")


def grafic():
    """A run begins with the numbers of files of GRAFIC2, to the bit of their 4 bytes."""
    random = np.random.default_rng(7)
    shape = (8, 8, 16)
    density = random.uniform(-0.1, 0.1, shape)
    flow, velocity = random.uniform(-30, 30, (2, 3, *shape))
    displacement = random.uniform(-0.2, 0.2, (3, *shape))
    cosmology = {"redshift": 49, "omega_m": 0.3111, "omega_lambda": 0.6889, "h": 0.6766}
    mass = 0.8
    for big_endian in (False, True):
        table = nestar.write_grafic(
            f"grafic-{big_endian}", 32, cosmology, density=density, gas_velocity=flow, velocity=velocity,
            displacement=displacement, big_endian=big_endian,
        )  # fmt: skip
        deck = {
            "scenario": "cosmological",
            "cosmology": {"start_redshift": 49},
            "perturbations": table,
            "domain": {"cells": [16, 8, 8], "right_edge": ["32 Mpc/h", "16 Mpc/h", "16 Mpc/h"]},
            "cosmological": {"gas": 1.0},
            "hydro": {"dual_energy": True},
            "gravity": {},
            "particles": {
                "species": {
                    "dark": {"mass": mass, "initial": {"kind": "lattice", "points": [16, 8, 8], "perturbed": True}}
                }
            },
            "time": {"max_steps": 1},
            "run": {"precision": "double"},
        }
        run = nestar.run(deck, watch=False, set={"output.directory": f"from-grafic-{big_endian}"})
        first = nestar.open(f"from-grafic-{big_endian}", units="code").snapshots[0]
        assert np.array_equal(first.uniform("density").values, 1 + density.astype("f4").astype(float))
        # peculiar velocity times the scale factor, in units of 100 km/s
        for axis, values in zip("xyz", flow):
            close(first.uniform(f"velocity_{axis}").values, values.astype("f4").astype(float) * (0.02 / 100), 1e-14)
        dark = first.particles("dark")
        order = np.argsort(dark.id.values)
        ours = np.stack([values.astype("f4").ravel() for values in velocity], 1).astype(float)
        close(dark.velocity.values[order], ours * (0.02 / 100), 1e-14)
        place = np.stack(np.meshgrid(*(2 * np.arange(n) + 1.0 for n in shape), indexing="ij")[::-1], -1).reshape(-1, 3)
        place += np.stack([values.astype("f4").ravel() for values in displacement], 1)
        close(dark.position.values[order], place, 1e-9)
        assert run.snapshots
    refused(lambda: nestar.write_grafic("bad", 32, {"redshift": 49}, density=density), "omega_m")
    refused(lambda: nestar.write_grafic("bad", 32, cosmology, density=density, velocity=velocity[:2]), "three arrays")
    refused(lambda: nestar.write_grafic("bad", 32, cosmology, density=density, velocity=flow[:, 1:]), "one shape")
    refused(lambda: nestar.write_grafic("bad", 32, cosmology), "axes z, y, x")


def runs():
    """What a run consists of."""
    shown = io.StringIO()
    deck = DECK | {"time": {"end": 1.0, "max_steps": 4}, "output": {"directory": "run", "steps": 2}}
    with contextlib.redirect_stdout(shown):
        run = nestar.run(deck)
    assert "done: step 4" in shown.getvalue(), shown.getvalue()
    assert run.path == Path("run") and len(run.snapshots) == 3 and run.snapshots.numbers == [0, 1, 2]
    assert [snapshot.step for snapshot in run.snapshots] == [0, 2, 4]
    assert [snapshot.step for snapshot in run.snapshots[1:]] == [2, 4] and run.snapshots[-1].step == 4
    assert run.snapshots.number(1).step == 2
    times = run.snapshots.times
    assert times[0] == 0 and times[0].units == times[2].units
    assert run.snapshots.at(f"{float(times[1]) * 1.1} {times[1].units}").step == 2
    assert run.deck["hydro"]["scalars"] == ["metal"] and run.deck["time"]["max_steps"] == 4
    assert "version" in json.dumps(run.info)
    table = run.diagnostics
    assert table.step.values.tolist() == [0, 1, 2, 3, 4] and table.time.attrs["units"] == times[0].units
    close(float(table.time[4]), float(times[2]))
    last = run.snapshots[-1]
    area = [float(value[1] - value[0]) for value in (last.project("density").x, last.project("density").y)]
    mass = float(last.project("density").sum()) * area[0] * area[1] * 1e6
    assert table.total_density.attrs["units"] == "Msun" and table.dark_mass.attrs["units"] == "Msun"
    close(float(table.total_density[4]), mass)
    close(float(table.dark_mass[4]), float(last.particles("dark").mass.sum()))
    assert table.seconds_hydro.attrs["units"] == "s" and table.total_energy.attrs["units"] == "erg"
    assert table.limiter.values[0] == "initial" and len(run.views) == 0
    assert table.drift_density.attrs["units"] == "1" and "units" not in table.patches_0.attrs
    units = np.genfromtxt("run/diagnostics.units.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    plain = np.genfromtxt("run/diagnostics.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert list(units["column"]) == list(plain.dtype.names)
    row = units[list(units["column"]).index("total_density")]
    assert row["units"] == "Msun"
    close(float(plain["total_density"][4] * row["factor"]), mass)
    in_code = nestar.open("run", units="code").diagnostics
    close(float(in_code.total_density[0] * last.units.shown("mass").factor), float(table.total_density[0]))
    without_units(run, plain, table)
    assert str(Path("run/snapshots/000001.zarr")) in repr(nestar.open("run/snapshots/000001.zarr"))
    assert nestar.digest("run/snapshots/000002.zarr") == digest_of_program("run/snapshots/000002.zarr")
    resumed = nestar.run("deck.toml" if Path("deck.toml").exists() else deck, watch=False, set={"time.max_steps": 6},
                         arguments=["--resume"])  # fmt: skip
    assert resumed.snapshots[-1].step == 6
    return run


def without_units(run, plain, table):
    """The columns of a run of an older program, which has written no units, are numbers in code units."""
    units = Path("run/diagnostics.units.csv")
    units.rename("units.csv")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        older = run.diagnostics
    assert [str(units) in str(warning.message) for warning in found] == [True], found
    assert list(older.variables) == list(table.variables) and older.seconds_hydro.attrs["units"] == "s"
    for name in ("time", "total_density", "dark_mass"):
        assert not older[name].attrs
        close(older[name].values, plain[name])
    Path("units.csv").rename(units)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run.diagnostics.total_density.attrs == table.total_density.attrs


def digest_of_program(path):
    import subprocess

    done = subprocess.run([os.environ["NESTAR_PROGRAM"], "digest", path], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def interrupt():
    """An interrupt ends the run with a snapshot, from which it can be resumed."""
    # programs in the background of a script begin with interrupts ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    deck = ONE_PATCH | {"time": {"end": 1e9, "max_step": 1e-4, "max_steps": 50000}, "output": {"directory": "long"}}

    def stop():
        while not Path("long/snapshots/000000.zarr").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=stop, daemon=True).start()
    try:
        nestar.run(deck, watch=False)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("the run was not interrupted")
    last = nestar.open("long").snapshots[-1]
    assert last.step > 0
    more = nestar.run(deck, watch=False, set={"time.max_steps": last.step + 3}, arguments=["--resume"])
    assert more.snapshots[-1].step == last.step + 3


def views():
    """Views have the values and units of the analysis of a snapshot."""
    common = {"steps": 1, "precision": "double"}
    deck = DECK | {
        "output": {
            "directory": "views",
            "view": [
                common | {"name": "cut", "kind": "slice", "axis": "z", "position": "3.3 kpc", "fields": ["density", "velocity_x"]},
                common | {"name": "column", "kind": "projection", "axis": "x", "fields": ["density"]},
                common | {"name": "hot", "kind": "projection", "axis": "y", "weight": "density", "fields": ["temperature_k"]},
                common | {"name": "shells", "kind": "profile", "centre": [0.4, 0.3, 3.3], "range": [0, 0.3], "bins": 7,
                          "fields": ["pressure"]},
                common | {"name": "part", "kind": "snapshot", "region": {"left": [0, 0, 3.1], "right": [0.3, 0.3, 3.4]},
                          "fields": ["density", "velocity_x", "temperature_k"]},
                {"steps": 1, "name": "drawn", "kind": "picture", "fields": ["temperature_k"], "width": 300},
            ],
        }
    }  # fmt: skip
    run = nestar.run(deck, watch=False)
    last = run.snapshots[-1]
    assert list(run.views) == ["column", "cut", "hot", "shells"]
    assert run.views["cut"].sizes["time"] == 3 and run.views["cut"].step.values.tolist() == [0, 1, 2]
    expected = {
        ("cut", "density"): last.slice("density", z="3.3 kpc"),
        ("cut", "velocity_x"): last.slice("velocity_x", z="3.3 kpc"),
        ("column", "density"): last.project("density", axis="x"),
        ("hot", "temperature_k"): last.project("temperature_k", axis="y", weight="mass"),
        ("shells", "pressure"): last.profile("pressure", centre=(0.4, 0.3, 3.3), bins=7, range=(0, 0.3)),
    }
    for (name, field), other in expected.items():
        array = run.views[name][field]
        assert array.attrs["units"] == other.attrs["units"] and array.dims == ("time", *other.dims), (name, array, other)
        close(array[-1].values, other.values, 1e-12)
        for axis in other.dims:
            close(array[axis].values, other[axis].values, 1e-12)
            assert array[axis].attrs["units"] == other[axis].attrs["units"], (name, axis)
    close(float(run.views["cut"].time[-1]), float(last.time))
    assert run.views["cut"].time.attrs["units"] == last.time.units
    in_code = nestar.open("views", units="code").views["cut"]
    assert in_code.velocity_x.attrs["units"] == "length/time"
    refused(lambda: run.views["cutt"], "`cutt`", "`cut`")
    part = run.views.snapshots("part")
    assert part.numbers == [0, 1, 2] and part[-1].step == last.step
    inside = {"y": 0.15, "x": 0.15}
    for field in ("density", "velocity_x", "temperature_k"):
        one, other = (own.slice(field, z="3.3 kpc") for own in (part[-1], last))
        assert one.attrs["units"] == other.attrs["units"]
        close(float(one.sel(inside, method="nearest")), float(other.sel(inside, method="nearest")), 1e-12)
    pictures = run.views.pictures("drawn")
    assert [path.name for path in pictures] == ["000000.png", "000001.png", "000002.png"]
    assert pictures[0].read_bytes()[:4] == b"\x89PNG"
    refused(lambda: run.views.snapshots("prt"), "`prt`", "`part`")


def halos():
    """The rows of an entry are the groups of the particles of its snapshot."""
    random = np.random.default_rng(8)
    # groups of 40, 30 and 25 particles, which do not move, the first one across a corner of the box, and one that is too small
    centres = np.repeat([[0, 0, 0], [2, 0.5, 0.5], [1, 0.5, 0.75], [0.5, 0.25, 0.25]], [40, 30, 25, 9], axis=0)
    position = (centres + random.uniform(-0.01, 0.01, centres.shape)) % [3, 1, 1]
    number = random.permutation(10**12 + np.arange(len(position)))
    table = nestar.write_particles("clumps.zarr", position, velocity=0 * position, mass=np.full(len(position), 0.5), id=number)
    view = {"name": "halos", "kind": "halos", "steps": 1, "precision": "double"}
    deck = {
        "scenario": "formula",
        "initial": {"density": "1e-9", "pressure": "1e-9"},
        "hydro": {"frozen": True},
        "gravity": {"constant": 1e-12},
        "domain": {"cells": [24, 8, 8], "left_edge": [0, 0, 0], "right_edge": [3, 1, 1], "boundary": "periodic"},
        "particles": {"species": {"dark": {"initial": table}}},
        "time": {"end": 1e-6, "max_steps": 2},
        "run": {"precision": "double"},
        "output": {"directory": "halos", "view": [view | {"linking_length": 0.1}]},
    }
    run = nestar.run(deck, watch=False)
    assert run.views["halos"]["count"].values[:2].tolist() == [3, 3]
    for entry in (0, -1):
        groups = run.views.rows("halos", entry)
        assert groups.sizes["halo"] == 3 and groups.number.values.tolist() == [40, 30, 25]
        assert groups.id.dtype == np.uint64
        members = np.split(number, np.cumsum([40, 30, 25]))
        assert groups.id.values.tolist() == [int(own.min()) for own in members[:3]]
        close(groups.mass.values, [20, 15, 12.5], 1e-12)
        close(groups.centre_of_mass.values[1], position[40:70].mean(axis=0), 1e-6)
        assert groups.position.dims == ("halo", "axis") and groups.r200m.attrs["units"] == "length"
    assert int(groups.step) == run.views["halos"].step.values[-1]
    refused(lambda: run.views.rows("halos", 9), "no entry 9", "there are")
    refused(lambda: nestar.open("views").views.rows("cut"), "`cut` has no lists")


def zooms():
    """The region of a zoom has the first places of the particles around a halo, and lattices of a deck fill it or the rest."""
    deck = {
        "scenario": "formula",
        "constants": {"k": "2*pi"},
        "initial": {"density": "0.25", "pressure": "1"},
        "domain": {"cells": [16, 16, 16], "boundary": "periodic"},
        "gravity": {"constant": 1.0},
        "particles": {
            "species": {
                "dark": {
                    "mass": 1e-4,
                    # to the border of the box along y
                    "initial": {
                        "kind": "lattice",
                        "points": [16, 8, 16],
                        "displacement": ["0.95/k*sin(k*x)", "-0.95/k*sin(k*y)", "0.9/k*sin(k*z)"],
                    },
                }
            }
        },
        "output": {"view": [{"name": "halos", "kind": "halos", "steps": 1, "precision": "double"}]},
        "time": {"end": 1.0, "max_steps": 2},
        "run": {"precision": "double"},
    }
    run = nestar.run(deck, watch=False, set={"output.directory": "parent"})
    region = nestar.zoom_region(run, 0, "region.csv", radius_in_r200m=3, margin=0)
    halo = nestar.open("parent", units="code").views.rows("halos")
    dark = nestar.open("parent", units="code").snapshots[-1].particles("dark")
    way = (dark.position.values - halo.position.values[0] + 0.5) % 1 - 0.5
    near = dark.id.values[np.sqrt((way**2).sum(axis=1)) <= 3 * float(halo.r200m[0])].astype(int)
    expected = {(n % 16, n // 16 % 8, n // 128) for n in near}
    assert {tuple(cell) for cell in region} == expected and 20 < len(region) < 1024, len(region)
    wide = nestar.zoom_region(run, 0, "wide.csv", radius_in_r200m=3, margin=1)
    steps = (-1, 0, 1)
    around = {((x + i) % 16, (y + j) % 8, (z + k) % 16) for x, y, z in expected for i in steps for j in steps for k in steps}
    assert {tuple(cell) for cell in wide} == around
    rows = [line for line in Path("region.csv").read_text().splitlines() if not line.startswith("#")]
    assert rows[:2] == ["x,y,z", "16,8,16 # cells of the box"] and len(rows) == 2 + len(region)
    text = Path("region.csv").read_bytes()
    nestar.zoom_region(run, 0, "region.csv", radius_in_r200m=3, margin=0)
    assert Path("region.csv").read_bytes() == text
    coarse = nestar.zoom_region(run, 0, "coarse.csv", radius_in_r200m=3, margin=0, cells=(8, 8, 8))
    assert {tuple(cell) for cell in coarse} == {(x // 2, y, z // 2) for x, y, z in expected}
    file = str(Path("region.csv").absolute())
    lattice = deck["particles"]["species"]["dark"]["initial"]
    deck["particles"] = {
        "species": {
            "coarse": {"mass": 1e-4, "initial": lattice | {"outside": file}},
            "fine": {"mass": 1.25e-5, "initial": lattice | {"inside": file, "points": [32, 16, 32]}},
        }
    }
    zoom = nestar.run(deck, watch=False, set={"output.directory": "zoom", "time.max_steps": 1})
    counts = [len(zoom.snapshots[0].particles(name).id) for name in ("coarse", "fine")]
    assert counts == [2048 - len(region), 8 * len(region)], counts
    refused(lambda: nestar.zoom_region(run, 10**6, "none.csv"), "has no halo", "counted from 0")
    refused(lambda: nestar.zoom_region(run, 0, "none.csv", species="stars"), "stars", "dark")
    refused(lambda: nestar.zoom_region(run, 0, "none.csv", cells=(5, 8, 8)), "[16, 8, 16]", "cells")
    refused(lambda: nestar.zoom_region(run, 0, "none.csv", radius_in_r200m=0), "radius_in_r200m")
    refused(lambda: nestar.zoom_region(run, 0, "none.csv", view="groups"), "groups")
    shutil.rmtree("parent/snapshots/000000.zarr")
    shutil.rmtree("parent/snapshots/000001.zarr")
    refused(lambda: nestar.zoom_region(run, 0, "none.csv"), "output_times")


def wrong_decks():
    """The message of the program is the error."""
    text = error_of(lambda: nestar.run(ONE_PATCH, watch=False, set={"hydro.gamm": 1.5}))
    assert "unknown key `gamm`" in text and "gamma" in text, text
    assert "no such file" in error_of(lambda: nestar.run("missing.toml", watch=False))
    refused(lambda: nestar.run(ONE_PATCH, program="no-such-program"), "no-such-program", "NESTAR_PROGRAM")


def error_of(work):
    try:
        work()
    except nestar.Error as error:
        return str(error)
    raise AssertionError("no error")


def wrong_names(run):
    """Names, units and places that do not exist."""
    last = run.snapshots[-1]
    refused(lambda: nestar.open("nowhere"), "nowhere", "no such")
    refused(lambda: nestar.open("nowhere.zarr"), "nowhere.zarr", "no such")
    refused(lambda: nestar.open("."), "no directory of a run")
    refused(lambda: run.snapshots.number(99), "no snapshot 99", "from 0 to")
    refused(lambda: last.slice("densty"), "`densty`", "`density`")
    refused(lambda: last.slice("density", z="3 kpp"), "`kpp`", "`kpc`")
    refused(lambda: last.slice("density", z="3 Myr"), "3 Myr", "cm is needed")
    refused(lambda: last.slice("density", z="9 kpc"), "outside the box")
    refused(lambda: last.slice("density", z="kpc +"), "kpc +")
    refused(lambda: last.slice("density", z=3, x=0), "one position")
    refused(lambda: last.slice("density", x=(9, 10)), "x", "outside the box")
    refused(lambda: last.project("density", "w"), "must be x, y or z")
    refused(lambda: last.project("density", weight="mas"), "`mas`", "`mass`")
    refused(lambda: last.project("particles/drak"), "`drak`", "`dark`")
    refused(lambda: last.particles("drak"), "`drak`", "`dark`")
    refused(lambda: last.profile("density", bins=0), "not at least 1")
    refused(lambda: last.profile("density", "velocity_x", logarithmic=True), "positive")
    refused(lambda: last.profile("density", bins=[1, 1]), "ascending")
    refused(lambda: last.pdf(("density", "mach", "level")), "one or two")
    refused(lambda: last.ray("density", (0, 0, 0), (0, 0.5, 3)), "outside the box")
    refused(lambda: last.ray("density", (0, 0.5, 3), (0, 0.5, 3)), "same point")
    refused(lambda: last.level(7), "no level 7")
    refused(lambda: last.uniform("density", 20), "2^31")
    refused(lambda: nestar.open("run", units="imperial").snapshots[0], "imperial")
    plain = nestar.run(ONE_PATCH, watch=False, set={"output.directory": "plain"}).snapshots[0]
    refused(lambda: plain.slice("density", z="0.1 kpc"), "kpc", "no units")
    refused(lambda: plain.slice("temperature_k"), "temperature_k", "output.derived")


def damage(run):
    """Damaged files are reported with their path."""
    source = run.snapshots[-1].path
    newer = Path("newer.zarr")
    shutil.copytree(source, newer)
    document = json.loads((newer / "zarr.json").read_text())
    document["attributes"]["format_version"] = 9
    (newer / "zarr.json").write_text(json.dumps(document))
    refused(lambda: nestar.open(newer), "format version 9", "pip install --upgrade")
    document["attributes"]["format"] = "other"
    (newer / "zarr.json").write_text(json.dumps(document))
    refused(lambda: nestar.open(newer), "not a snapshot")
    document["attributes"] |= {"format": "nestar-snapshot", "format_version": 2}
    for change in (
        lambda d: d["attributes"].pop("step"),
        lambda d: d["consolidated_metadata"]["metadata"].pop("level_1"),
        lambda d: d["consolidated_metadata"]["metadata"]["level_1/density"].pop("codecs"),
    ):
        broken = json.loads(json.dumps(document))
        change(broken)
        (newer / "zarr.json").write_text(json.dumps(broken))
        refused(lambda: nestar.open(newer), "damaged")
    (newer / "zarr.json").write_text("{")
    refused(lambda: nestar.open(newer), "zarr.json", "damaged")
    chunk = next((source / "level_2/density").glob("c.*"))
    data = chunk.read_bytes()
    random = np.random.default_rng(7)
    for n in range(60):
        # every byte of the file is covered by a checksum
        place = int(random.integers(0, len(data)))
        broken = bytearray(data)
        broken[place] ^= 1 << int(random.integers(0, 8))
        chunk.write_bytes(broken)
        refused(lambda: nestar.open(source).level(2).array("density").read(), "is damaged", str(chunk))
    for length in (0, 3, len(data) // 2, len(data) - 1):
        chunk.write_bytes(data[:length])
        refused(lambda: nestar.open(source).slice("density"), "is damaged", "nestar verify")
    chunk.write_bytes(data)
    nestar.open(source).slice("density")


def main():
    initial_states()
    grafic()
    magnetic_fields()
    run = runs()
    interrupt()
    views()
    halos()
    zooms()
    wrong_decks()
    wrong_names(run)
    damage(run)
    print("python: ok")


if __name__ == "__main__":
    main()
