"""Comoving runs: units at each time, redshifts, yt, exports for Gadget, and initial conditions of other codes."""

from __future__ import annotations

import sys

import h5py
import numpy as np
from brute import close
from check_runs import refused

import nestar

MEGAPARSEC = 3.0856775814913673e24
SOLAR_MASS = 1.98840987e33
GYR = 3.15576e16
H, MATTER, DARK_ENERGY = 0.7, 0.3, 0.6
LENGTH = MEGAPARSEC / H
"""Comoving unit of length, cm."""
HUBBLE = H * 1e7 / MEGAPARSEC
"""Hubble constant, 1/s."""
DENSITY = MATTER * 3 * HUBBLE**2 / (8 * np.pi * 6.6743e-8)
"""Mean density of matter today, g/cm^3."""
VIEWS = [
    {"name": "cut", "kind": "slice", "axis": "z", "position": 1.0, "steps": 5,
     "fields": ["density", "velocity_x", "pressure", "potential", "temperature_k"]},
    {"name": "column", "kind": "projection", "axis": "x", "output_times": True, "fields": ["density"]},
    {"name": "power", "kind": "spectrum", "output_times": True, "species": ["dark"]},
    {"name": "halos", "kind": "halos", "output_times": True, "least": 2, "linking_length": 0.9},
]  # fmt: skip
DECK = {
    "scenario": "cosmological",
    "cosmology": {
        "start_redshift": 9, "end_redshift": 1, "redshifts": [4.0], "omega_m": MATTER, "omega_lambda": DARK_ENERGY, "h": H
    },
    "domain": {"cells": [16, 8, 8], "right_edge": ["32 Mpc/h", "16 Mpc/h", "16 Mpc/h"]},
    "mesh": {"max_level": 0},
    "perturbations": {"sigma8": 0.8},
    "hydro": {"dual_energy": True},
    "gravity": {},
    "output": {"derived": ["temperature_k"], "view": [view | {"precision": "double"} for view in VIEWS]},
    "particles": {
        "species": {"dark": {"mass": 6.5, "initial": {"kind": "lattice", "points": [16, 8, 8], "perturbed": True}}}
    },
    "run": {"precision": "double"},
}  # fmt: skip


def power_of(a, length=0, mass=0, time=0):
    """The value in cgs of a unit at a scale factor."""
    return (a * LENGTH) ** length * (DENSITY * LENGTH**3) ** mass * (a**2 / HUBBLE) ** time


def snapshots(path):
    """Snapshots have the units of their own time; comoving units are those of today."""
    for number, a in enumerate((0.1, 0.2, 0.5)):
        code, cgs, comoving = (nestar.open(path, units=units).snapshots[number] for units in ("code", "cgs", "comoving"))
        close(cgs.scale_factor, a, 1e-12)
        close(cgs.redshift, 1 / a - 1, 1e-12)
        density = code.uniform("density").values
        assert cgs.uniform("density").attrs["units"] == "g/cm**3"
        close(cgs.uniform("density").values, density * DENSITY / a**3, 1e-12)
        assert comoving.uniform("density").attrs["units"] == "Msun/Mpccm**3"
        close(comoving.uniform("density").values, density * DENSITY * MEGAPARSEC**3 / SOLAR_MASS, 1e-12)
        # peculiar velocities in both, and without the factor `a` of the code
        speed = code.uniform("velocity_x").values * 100 / a
        assert comoving.uniform("velocity_x").attrs["units"] == "km/s"
        close(comoving.uniform("velocity_x").values, speed, 1e-12)
        close(cgs.uniform("velocity_x").values, speed * 1e5, 1e-12)
        close(comoving.uniform("temperature_k").values, code.uniform("temperature_k").values)
        stored = code.uniform("potential").values
        close(cgs.uniform("potential").values, a * stored * power_of(a, 2, 0, -2), 1e-12)
        x = comoving.slice("density").x
        assert x.attrs["units"] == "Mpccm"
        close(x.values, code.slice("density").x.values / H)
        close(cgs.slice("density").x.values, x.values * a * MEGAPARSEC)
        dark = comoving.particles("dark")
        close(dark.x.values, code.particles("dark").x.values / H)
        close(dark.acceleration.values, code.particles("dark").acceleration.values * a * power_of(a, 1, 0, -2), 1e-12)
        profile = comoving.profile("pressure", centre=(8, 8, 8), bins=4)
        assert (profile.attrs["units"], profile.radius.attrs["units"]) == ("erg/Mpccm**3", "Mpccm")
        assert comoving.project("density", axis="z").attrs["units"] == "Msun/Mpccm**2"
        assert cgs.time.units == "time" and cgs.time == cgs.attrs["time"]
        # lengths as arguments are proper, or comoving with the ending of yt
        middle = comoving.slice("density", z="5 Mpccm").attrs, comoving.slice("density", z=f"{5 * a!r} Mpc").attrs
        assert middle[0] == middle[1]
    headers = code.stored
    for name, exponent in (("density", -3), ("momentum_x", -4), ("energy", -5), ("potential", -1), ("temperature_k", 0)):
        assert headers[name]["scale_factor_exponent"] == exponent, (name, headers[name])
    close(headers["potential"]["cgs_factor"], a * power_of(a, 2, 0, -2), 1e-12)
    close(headers["density"]["cgs_factor"], DENSITY / a**3, 1e-12)
    columns = code.store.children("particles/dark")
    found = [columns[name].attrs["scale_factor_exponent"] for name in ("position", "velocity", "acceleration")]
    assert found == [1, -1, -2], found


def universe(path):
    """Parameters and ages."""
    run = nestar.open(path)
    assert run.snapshots.redshifts == [9.0, 4.0, 1.0] and (run.redshift, run.scale_factor) == (1.0, 0.5)
    assert run.cosmology == nestar.Cosmology(H, MATTER, DARK_ENERGY, 0.0, -1.0, 0.0)
    assert run.snapshots.at(redshift=3.5).redshift == 4.0
    refused(lambda: run.snapshots.at("1 Gyr"), "redshift")
    refused(lambda: run.snapshots.at(1.0, redshift=2), "time or the redshift")
    a = np.linspace(0, 0.5, 200001)[1:]
    # age by the integral of da/(a H); the curvature is what is missing to 1
    rate = np.sqrt(MATTER / a**3 + (1 - MATTER - DARK_ENERGY) / a**2 + DARK_ENERGY)
    age = np.trapezoid(np.concatenate([[0], 1 / (a * rate)]), np.concatenate([[0], a])) / HUBBLE / GYR
    assert run.snapshots[-1].age.units == "Gyr"
    close(float(run.snapshots[-1].age), age, 1e-6)


def rows(path):
    """Rows of the diagnostics and entries of views have the units of their own time."""
    code, cgs, comoving, astronomical = (
        nestar.open(path, units=units) for units in ("code", "cgs", "comoving", "astronomical")
    )
    plain, table = code.diagnostics, cgs.diagnostics
    a = plain.scale_factor.values
    assert a[0] < 0.11 and a[-1] > 0.49
    for name, factor in (
        ("dt", power_of(a, time=1)),
        ("energy_kinetic", power_of(a, 2, 1, -2)),
        ("energy_potential", a * power_of(a, 2, 1, -2)),
        ("particles_energy_potential", a * power_of(a, 2, 1, -2)),
        ("dark_mass", power_of(a, mass=1)),
        ("total_momentum_x", power_of(a, 1, 1, -1)),
        ("time", 1.0),
    ):
        close(table[name].values, plain[name].values * factor, 1e-12)
    assert table.time.attrs.get("units") is None and table.dt.attrs["units"] == "s"
    assert astronomical.diagnostics.dt.attrs["units"] == "Gyr"
    cuts = code.views["cut"], cgs.views["cut"], comoving.views["cut"]
    own = cuts[0].scale_factor.values
    assert len(own) > 5
    close(own, [a[list(plain.step.values).index(step)] for step in cuts[0].step.values])
    close(cuts[1].redshift.values, 1 / own - 1, 1e-11)
    at = own[:, None, None]
    for name, factor in (
        ("density", power_of(at, -3, 1)),
        ("velocity_x", power_of(at, 1, 0, -1)),
        ("pressure", power_of(at, -1, 1, -2)),
        ("potential", at * power_of(at, 2, 0, -2)),
        ("temperature_k", 1.0),
    ):
        close(cuts[1][name].values, cuts[0][name].values * factor, 1e-12)
        # a part of an array that is read when it is used
        close(cuts[1][name][2, 1].values, (cuts[0][name].values * factor)[2, 1], 1e-12)
    assert cuts[2].density.attrs["units"] == "Msun/Mpccm**3"
    close(cuts[2].density.values, cuts[0].density.values * DENSITY * MEGAPARSEC**3 / SOLAR_MASS, 1e-12)
    for views in cuts[1:]:
        assert views.x.attrs["units"] == "Mpccm"
        close(views.x.values, cuts[0].x.values / H)
    assert cuts[0].x.attrs["units"] == "length"
    last, other = cgs.snapshots[-1].project("density", axis="x"), cgs.views["column"].density[-1]
    assert last.attrs["units"] == other.attrs["units"] == "g/cm**2"
    close(other.values, last.values, 1e-12)
    for entry, scale_factor in enumerate((0.1, 0.2, 0.5)):
        halos = [run.views.rows("halos", entry) for run in (code, cgs, comoving)]
        assert len(halos[0].mass) > 0 and halos[1].id.dtype.kind == "u"
        close(float(halos[1].scale_factor), scale_factor)
        close(halos[1].position.values, halos[0].position.values * scale_factor * LENGTH, 1e-12)
        close(halos[1].vmax.values, halos[0].vmax.values * power_of(scale_factor, 1, 0, -1), 1e-12)
        close(halos[2].position.values, halos[0].position.values / H, 1e-12)
        assert (halos[1].position.attrs["units"], halos[2].position.attrs["units"]) == ("cm", "Mpccm")
        power = [run.views["power"].isel(time=entry) for run in (code, cgs, comoving)]
        close(power[1].power_dark.values, power[0].power_dark.values * (scale_factor * LENGTH) ** 3, 1e-12)
        close(power[2].power_dark.values, power[0].power_dark.values / H**3, 1e-12)
        assert power[1].wavenumber.attrs["units"] == "1/Mpccm"
        close(power[1].wavenumber.values, power[0].wavenumber.values * H, 1e-12)


def by_yt(path):
    """yt knows redshift, universe, age and comoving units."""
    import yt

    yt.set_log_level(50)
    snapshot = nestar.open(path, units="code").snapshots[1]
    data = yt.load(str(snapshot.path))
    assert data.cosmological_simulation == 1 and data.current_redshift == 4.0
    assert (data.hubble_constant, data.omega_matter, data.omega_lambda) == (H, MATTER, DARK_ENERGY)
    close(float(data.current_time.to("Gyr")), float(snapshot.age), 1e-6)
    close(data.domain_width.to("Mpccm/h").d, [32, 16, 16], 1e-6)
    close(data.domain_width.to("Mpc").d, np.array([32, 16, 16]) / H * 0.2, 1e-6)
    close(data.arr(1.0, "Mpccm").to("Mpc").d, 0.2, 1e-12)
    everything = data.all_data()
    volume = 32 * 16 * 16 * (0.2 * LENGTH) ** 3
    mean = DENSITY / 0.2**3
    close(float(everything["gas", "cell_mass"].sum().to("g")) / volume, mean * snapshot.uniform("density").values.mean(), 1e-5)
    stored = snapshot.uniform("potential").values
    potential = everything["gas", "gravitational_potential"].to("cm**2/s**2").d
    close(np.sort(potential), np.sort((0.2 * stored * power_of(0.2, 2, 0, -2)).ravel()), 1e-6)
    # the functions of yt take the universe as flat
    close(float(data.cosmology.hubble_constant.to("km/s/Mpc")), 100 * H, 1e-6)
    rate = HUBBLE * np.sqrt(MATTER * 125 + DARK_ENERGY)
    close(float(data.cosmology.hubble_parameter(4.0).to("1/s")), rate, 1e-6)


def gadget(path):
    """Particles are exported by the conventions of Gadget, and come back as they were."""
    snapshot = nestar.open(path, units="code").snapshots[1]
    file = snapshot.export_particles("out.hdf5")
    with h5py.File(file) as written:
        header, group = written["Header"].attrs, written["PartType1"]
        assert header["Redshift"] == 4.0
        for name, number in (("Time", 0.2), ("BoxSize", 32e3), ("HubbleParam", H), ("Omega0", MATTER), ("OmegaLambda", DARK_ENERGY)):
            close(header[name], number, 1e-12)
        dark = snapshot.particles("dark")
        close(group["Coordinates"][:], dark.position.values * 1e3, 1e-12)
        close(group["Velocities"][:], dark.velocity.values * 100 / 0.2 / np.sqrt(0.2), 1e-12)
        close(group["Masses"][:].sum() * 1e10 * SOLAR_MASS / H, dark.mass.values.sum() * power_of(1, mass=1), 1e-12)
    tables = nestar.convert_ic(file, "again")
    close(tables["cosmology"]["start_redshift"], 4.0)
    import zarr

    table = tables["particles"]["species"]["dark"]["initial"]
    store = zarr.open_group(table["file"], mode="r")
    close(store["position"][:], dark.position.values, 1e-12)
    close(store["velocity"][:], dark.velocity.values, 1e-12)
    close(store["mass"][:], np.broadcast_to(dark.mass.values, len(dark.id)), 1e-12)


def write_gadget(path, unit=1.0, parts=1, **changes):
    """Writes particles as MUSIC does, in files of Gadget; `unit` is the length of a unit in Mpc/h."""
    random = np.random.default_rng(3)
    count, box = 512, 20.0
    values = {
        "position": random.uniform(0, box, (count, 3)),
        "velocity": random.uniform(-200, 200, (count, 3)),
        "id": random.permutation(count) + 1,
    }
    values["position"][0] = [0.0, box, 1.0]
    # mean density 1: 512 particles in 8000 (Mpc/h)^3
    mass = DENSITY / H**2 * MEGAPARSEC**3 / (1e10 * SOLAR_MASS) * box**3 / count
    for part, rows in enumerate(np.array_split(np.arange(count), parts)):
        name = f"{path}.{part}.hdf5" if parts > 1 else f"{path}.hdf5"
        with h5py.File(name, "w") as file:
            header = file.create_group("Header").attrs
            attributes = {
                "Time": 1 / 31, "Redshift": 30.0, "BoxSize": box / unit, "Omega0": MATTER, "OmegaLambda": DARK_ENERGY, "HubbleParam": H,
                "MassTable": [0, mass, 0, 0, 0, 0], "NumPart_ThisFile": [0, len(rows), 0, 0, 0, 0], "NumPart_Total": [0, count, 0, 0, 0, 0],
                "NumFilesPerSnapshot": parts, "UnitLength_in_cm": unit * MEGAPARSEC,
            } | changes  # fmt: skip
            for key, value in attributes.items():
                if value is not None:
                    header[key] = value
            group = file.create_group("PartType1")
            group["Coordinates"] = values["position"][rows] / unit
            # files have the peculiar velocity over the root of the scale factor
            group["Velocities"] = values["velocity"][rows] * np.sqrt(31)
            group["ParticleIDs"] = values["id"][rows]
    return values


def particles_of_other_codes():
    """A run begins with the particles of a file of Gadget, in double precision."""
    for name, unit, parts in (("mpc", 1.0, 1), ("kpc", 1e-3, 3)):
        values = write_gadget(name, unit, parts)
        file = f"{name}.0.hdf5" if parts > 1 else f"{name}.hdf5"
        tables = nestar.convert_ic(file, f"from-{name}")
        tables["domain"]["cells"] = [16, 16, 16]
        deck = tables | {
            "gravity": {}, "hydro": {"dual_energy": True}, "run": {"precision": "double"}, "time": {"max_steps": 1},
            "scenario": "formula", "initial": {"density": "1e-9", "pressure": "1e-12"},
        }  # fmt: skip
        nestar.run(deck, watch=False, set={"output.directory": f"out-{name}"})
        first = nestar.open(f"out-{name}", units="code").snapshots[0]
        close(first.redshift, 30.0, 1e-12)
        dark = first.particles("dark")
        order, ours = np.argsort(dark.id.values), np.argsort(values["id"])
        assert np.array_equal(dark.id.values[order], values["id"][ours])
        close(dark.position.values[order], np.mod(values["position"], 20.0)[ours], 1e-9)
        # peculiar velocity times the scale factor, in units of 100 km/s
        close(dark.velocity.values[order], values["velocity"][ours] / 31 / 100, 1e-14)
        close(dark.mass.values.sum() / 8000, 1.0, 1e-12)
        # the unit of length may be an argument
        again = nestar.convert_ic(file, f"again-{name}", length="Mpc/h" if parts == 1 else "kpc/h")
        assert again["domain"]["right_edge"] == tables["domain"]["right_edge"]
    write_gadget("bad", UnitLength_in_cm=None)
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad"), "bad.hdf5", "length", "Mpc/h")
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad", length="pc/h"), "kpc/h")
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad", level=3), "level")
    write_gadget("bad", NumPart_Total=[64, 512, 0, 0, 0, 0])
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad"), "PartType0", "species")
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad", species={"dark": 1, "baryons": 0}), "PartType0", "baryons")
    write_gadget("bad", MassTable=None)
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad"), "MassTable")
    write_gadget("bad", NumPart_Total=[0, 600, 0, 0, 0, 0])
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad"), "600", "512")
    write_gadget("bad", Omega0=None)
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad"), "Omega0")
    refused(lambda: nestar.convert_ic("none.hdf5", "bad"), "none.hdf5", "no such file")
    installed, sys.modules["h5py"] = sys.modules["h5py"], None
    refused(lambda: nestar.convert_ic("bad.hdf5", "bad"), "pip install h5py")
    sys.modules["h5py"] = installed


def write_music(path, margin, header=True):
    """Writes grids as the format `generic` of MUSIC: `[x, y, z]` with margins, lengths in units of the box."""
    random = np.random.default_rng(4)
    values = {"DM_d": random.uniform(-0.01, 0.01, (3, 8, 8, 8)), "DM_v": random.uniform(-2, 2, (3, 8, 8, 8))}
    values |= {"BA_v": random.uniform(-2, 2, (3, 8, 8, 8)), "BA_rho": random.uniform(-0.1, 0.1, (8, 8, 8))}
    with h5py.File(path, "w") as file:
        if header:
            for axis in "xyz":
                file[f"header/grid_len_{axis}"] = np.array([8, 4])
        for name, own in values.items():
            for axis, grid in zip("xyz", own) if own.ndim == 4 else [("", own)]:
                file[f"level_003_{name}{axis}"] = np.pad(grid, margin, constant_values=7.0)
                # a part of the box
                file[f"level_004_{name}{axis}"] = np.pad(grid[:4, :4, :4], margin, constant_values=7.0)
    return values


def grids_of_other_codes():
    """A run begins with the grids of a file of MUSIC."""
    cosmology = {"redshift": 30.0, "omega_m": MATTER, "omega_lambda": DARK_ENERGY, "h": H}
    for margin in (0, 4):
        values = write_music("music.hdf5", margin)
        tables = nestar.convert_ic("music.hdf5", f"grafic-{margin}", edge=20.0, cosmology=cosmology)
        assert tables["domain"]["cells"] == [8, 8, 8]
        lattice = {"kind": "lattice", "points": [8, 8, 8], "perturbed": True}
        deck = tables | {
            "scenario": "cosmological", "cosmological": {"gas": 0.2}, "gravity": {}, "hydro": {"dual_energy": True},
            "particles": {"species": {"dark": {"mass": 0.8 * 8000 / 512, "initial": lattice}}},
            "run": {"precision": "double"}, "time": {"max_steps": 1},
        }  # fmt: skip
        nestar.run(deck, watch=False, set={"output.directory": f"out-music-{margin}"})
        first = nestar.open(f"out-music-{margin}", units="code").snapshots[0]
        # files of GRAFIC2 have 4 bytes for a number
        single = lambda own: own.astype("f4").astype(float)
        close(first.uniform("density").values, 0.2 * (1 + single(values["BA_rho"])).T, 1e-14)
        for axis, own in zip("xyz", values["BA_v"]):
            close(first.uniform(f"velocity_{axis}").values, single(own * 20.0).T / 31 / 100, 1e-14)
        dark = first.particles("dark")
        order = np.argsort(dark.id.values)
        flow = np.stack([single(own * 20.0).T.ravel() for own in values["DM_v"]], 1)
        close(dark.velocity.values[order], flow / 31 / 100, 1e-14)
        line = (np.arange(8) + 0.5) * 2.5
        place = np.stack(np.meshgrid(line, line, line, indexing="ij")[::-1], -1).reshape(-1, 3)
        place = place + np.stack([single(own * 20.0).T.ravel() for own in values["DM_d"]], 1)
        close(dark.position.values[order], place, 1e-9)
    refused(lambda: nestar.convert_ic("music.hdf5", "bad", edge=20.0), "edge", "cosmology")
    refused(lambda: nestar.convert_ic("music.hdf5", "bad", edge=20.0, cosmology={"redshift": 30.0}), "omega_m")
    refused(lambda: nestar.convert_ic("music.hdf5", "bad", edge=20.0, cosmology=cosmology, level=4), "part of the box")
    refused(lambda: nestar.convert_ic("music.hdf5", "bad", edge=20.0, cosmology=cosmology, level=7), "no level 7")
    refused(lambda: nestar.convert_ic("music.hdf5", "bad", species={"dark": 1}), "species")
    with h5py.File("other.hdf5", "w") as file:
        file["something"] = 1.0
    refused(lambda: nestar.convert_ic("other.hdf5", "bad"), "other.hdf5", "Header")


def constant_units():
    """A run without `[cosmology]` has neither redshift nor comoving units."""
    initial = {"density": "1", "pressure": "1"}
    deck = {"scenario": "formula", "initial": initial, "domain": {"cells": [8, 8, 8]}, "time": {"end": 1e-6}, "mesh": {}}
    run = nestar.run(deck, watch=False, set={"output.directory": "plain"})
    last = run.snapshots[-1]
    assert (run.redshift, last.redshift, last.scale_factor, last.age, last.cosmology) == (None,) * 5
    assert not [attrs for attrs in last.stored.values() if "scale_factor_exponent" in attrs]
    refused(lambda: nestar.open("plain", units="comoving").snapshots[-1], "[cosmology]")
    refused(lambda: run.snapshots.at(redshift=1), "no redshift")


def main():
    path = nestar.run(DECK, watch=False, set={"output.directory": "comoving"}).path
    universe(path)
    rows(path)
    snapshots(path)
    by_yt(path)
    gadget(path)
    particles_of_other_codes()
    grids_of_other_codes()
    constant_units()
    print("python: ok")


if __name__ == "__main__":
    main()
