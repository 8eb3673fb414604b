"""Exports read by other libraries: VTK opens all levels, h5py the uniform grid and the particles, with values, places and units."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
from brute import DECK, ONE_PATCH, Cells, close
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOHDF import vtkHDFReader

import nestar

REFINED = 8
"""Bit of VTK's ghost array for cells that finer grids cover."""


def refused(work, *words):
    """Requires an error of one line with these words."""
    try:
        work()
    except nestar.Error as error:
        assert "\n" not in str(error), error
        for word in words:
            assert word in str(error), (word, str(error))
        return
    raise AssertionError(f"no error; expected {words}")


def opened(path):
    """Returns the hierarchy as VTK reads it."""
    reader = vtkHDFReader()
    reader.SetFileName(str(path))
    reader.SetMaximumLevelsToReadByDefaultForAMR(0)
    reader.Update()
    data = reader.GetOutput()
    assert data.IsA("vtkOverlappingAMR"), data.GetClassName()
    return data


def boxes(data):
    """Yields level, grid and the mask of its uncovered cells."""
    for level in range(data.GetNumberOfLevels()):
        for index in range(data.GetNumberOfBlocks(level)):
            grid = data.GetDataSetAsImageData(level, index)
            ghost = grid.GetCellData().GetArray("vtkGhostType")
            count = grid.GetNumberOfCells()
            yield level, grid, np.ones(count, bool) if ghost is None else vtk_to_numpy(ghost) & REFINED == 0


def amr(path, units):
    snapshot, cells = nestar.open(path, units=units), Cells(path)
    target = snapshot.export("all.vtkhdf", force=True)
    data = opened(target)
    length = snapshot.units.shown("length").factor
    assert data.GetNumberOfLevels() == len(snapshot.levels)
    bounds = np.zeros(6)
    data.GetBounds(bounds)
    bounds = bounds.reshape(3, 2)
    close(bounds[:, 0], snapshot.left_edge * length)
    close(bounds[:, 1], snapshot.right_edge * length)
    density = snapshot.units.shown("mass/length**3").factor
    momentum = snapshot.units.shown("mass/(length**2*time)").factor
    other = Cells(path, "momentum_y")
    seen, mass = 0, 0.0
    for level, grid, visible in boxes(data):
        spacing, dims = np.array(grid.GetSpacing()), np.array(grid.GetDimensions()) - 1
        close(spacing, cells.width[level] * length)
        assert np.all((dims == 8) | (dims == 16)), dims
        origin = np.array(grid.GetOrigin()) + spacing * np.array(grid.GetExtent())[::2]
        index = np.stack(np.meshgrid(*[np.arange(n) for n in dims[::-1]], indexing="ij"), -1).reshape(-1, 3)[:, ::-1]
        points = (origin + (index + 0.5) * spacing)[visible] / length
        found = vtk_to_numpy(grid.GetCellData().GetArray("density"))[visible]
        vector = vtk_to_numpy(grid.GetCellData().GetArray("momentum"))[visible]
        assert vector.shape == (len(found), 3)
        close(found, cells.at(points) * density)
        close(vector[:, 1], other.at(points) * momentum)
        seen += len(found)
        mass += float(found.sum()) * spacing.prod()
    assert seen == len(cells.value), (seen, len(cells.value))
    close(mass, (cells.value * cells.volume).sum() * density * length**3)
    with h5py.File(target) as file:
        assert file["VTKHDF"].attrs["Type"] == b"OverlappingAMR"
        assert file["VTKHDF/Level0/CellData/density"].attrs["units"] == snapshot.units.shown("mass/length**3").name
        if len(snapshot.levels) > 1:
            sizes = np.diff(file["VTKHDF/Level1/AMRBox"][:].reshape(-1, 3, 2), axis=2) + 1
            assert (sizes == 16).all(), "siblings are not one box"


def uniform(path):
    snapshot = nestar.open(path)
    for level in (0, 2):
        names = ["density", "temperature_k", "velocity_x"]
        snapshot.export(f"grid{level}.h5", fields=names, level=level)
        with h5py.File(f"grid{level}.h5") as file:
            assert sorted(file) == sorted([*names, "x", "y", "z"])
            assert file.attrs["level"] == level and file.attrs["time"] == float(snapshot.time)
            for name in names:
                wanted, found = snapshot.uniform(name, level), file[name]
                close(found[:], wanted.values)
                assert found.attrs["units"] == wanted.attrs["units"], name
                for axis, letter in enumerate("zyx"):
                    assert found.dims[axis][letter] == file[letter]
                    close(file[letter][:], wanted[letter].values)
                    assert file[letter].attrs["units"] == wanted[letter].attrs["units"]
    # parts of a few planes
    whole = nestar.exports._CELLS
    nestar.exports._CELLS = 1
    snapshot.export("parts.h5", fields="density", level=2)
    nestar.exports._CELLS = whole
    with h5py.File("parts.h5") as parts, h5py.File("grid2.h5") as grid:
        assert np.array_equal(parts["density"][:], grid["density"][:])


def particles(path):
    snapshot, code = nestar.open(path), nestar.open(path, units="code")
    snapshot.export_particles("particles.hdf5")
    with h5py.File("particles.hdf5") as file:
        header = file["Header"].attrs
        assert header["NumPart_Total"].tolist() == [0, 12 * 7 * 9, 0, 0, 2, 0]
        assert header["NumPart_ThisFile"].tolist() == header["NumPart_Total"].tolist()
        assert header["MassTable"].tolist() == [0] * 6 and header["NumFilesPerSnapshot"] == 1
        units = snapshot.units
        close(header["UnitLength_in_cm"], 3.0856775814913673e21)
        close(header["UnitMass_in_g"], 1.98840987e43)
        close(header["UnitVelocity_in_cm_per_s"], 1e5)
        close(header["BoxSize"], 3.0)
        seconds = header["Time"] * header["UnitLength_in_cm"] / header["UnitVelocity_in_cm_per_s"]
        close(seconds, code.attrs["time"] * units.time)
        for kind, name in ((1, "dark"), (4, "stars")):
            group, own = file[f"PartType{kind}"], code.particles(name)
            assert group["ParticleIDs"][:].tolist() == own.id.values.tolist()
            close(group["Masses"][:].sum() * header["UnitMass_in_g"], own.mass.values.sum() * units.mass)
            place = (own.position.values - code.left_edge) * units.length
            close(group["Coordinates"][:] * header["UnitLength_in_cm"], place)
            assert (group["Coordinates"][:] >= 0).all() and (group["Coordinates"][:] < header["BoxSizes"]).all()
            close(group["Velocities"][:] * 1e5, own.velocity.values * units.length / units.time)
    snapshot.export_particles("dark.h5", species="dark")
    with h5py.File("dark.h5") as file:
        assert sorted(file) == ["Header", "PartType1"]


def refusals(path, single):
    snapshot = nestar.open(path)
    before = Path("grid0.h5").read_bytes()
    refused(lambda: snapshot.export("grid0.h5", level=0), "grid0.h5 exists", "force")
    refused(lambda: snapshot.export_particles("grid0.h5"), "grid0.h5 exists")
    assert Path("grid0.h5").read_bytes() == before
    snapshot.export("grid0.h5", level=0, fields="energy", force=True)
    with h5py.File("grid0.h5") as file:
        assert "energy" in file and "density" not in file
    refused(lambda: snapshot.export("new.h5"), "level")
    refused(lambda: snapshot.export("new.vtk"), ".vtkhdf", ".h5")
    refused(lambda: snapshot.export("new.vtkhdf", level=1), ".h5")
    refused(lambda: snapshot.export("new.h5", level=25), "cells", "coarser")
    refused(lambda: snapshot.export("new.h5", level=0, fields=["densty"]), "did you mean `density`")
    refused(lambda: snapshot.export("no/folder/new.vtkhdf"), "new.vtkhdf cannot be written")
    refused(lambda: snapshot.export_particles("new.h5", species=["drak"]), "did you mean `dark`")
    refused(lambda: nestar.open(single).export_particles("new.h5"), "no particles")
    installed, sys.modules["h5py"] = sys.modules["h5py"], None
    refused(lambda: snapshot.export("new.vtkhdf"), "pip install h5py")
    sys.modules["h5py"] = installed
    # a failure in the middle leaves nothing
    uniform_of = type(snapshot).uniform

    def failing(*arguments, **named):
        raise nestar.Error("a chunk is damaged")

    type(snapshot).uniform = failing
    refused(lambda: snapshot.export("new.h5", level=0), "damaged")
    type(snapshot).uniform = uniform_of
    left = [name for name in os.listdir(".") if "new" in name or name.endswith(".tmp")]
    assert not left, left


def commands(path):
    """`nestar export` starts the package."""
    program = os.environ["NESTAR_PROGRAM"]
    environment = os.environ | {"NESTAR_PYTHON": sys.executable}

    def run(*arguments, **changes):
        return subprocess.run([program, "export", *arguments], capture_output=True, text=True, env=environment | changes)

    for arguments in (["c.vtkhdf"], ["c.h5", "--uniform", "1", "--fields", "density"], ["c.hdf5", "--particles"]):
        done = run(str(path), *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{arguments[0]}: "), done.stdout
    assert opened("c.vtkhdf").GetNumberOfLevels() == 3
    again = run(str(path), "c.vtkhdf")
    assert again.returncode == 1 and again.stderr.startswith("error: c.vtkhdf exists") and again.stderr.count("\n") == 1, again
    assert run(str(path), "c.vtkhdf", "--force").returncode == 0
    missing = run(str(path), "d.vtkhdf", NESTAR_PYTHON="/nowhere/python3")
    assert missing.returncode == 1 and "NESTAR_PYTHON" in missing.stderr and missing.stderr.count("\n") == 1, missing
    # an interpreter without the package
    bare = run(str(path), "d.vtkhdf", PYTHONPATH="", NESTAR_PYTHON=str(Path("bare").absolute()))
    assert bare.returncode == 1 and "pip install" in bare.stderr and bare.stderr.count("\n") == 1, bare
    assert not Path("d.vtkhdf").exists()


def main():
    path = nestar.run(DECK, watch=False, set={"output.directory": "oblong"}).snapshots[-1].path
    single = nestar.run(ONE_PATCH, watch=False, set={"output.directory": "single"}).snapshots[-1].path
    for own in (path, single):
        for units in ("astronomical", "code"):
            amr(own, units)
    uniform(path)
    particles(path)
    refusals(path, single)
    Path("bare").write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    Path("bare").chmod(0o755)
    commands(path)
    print("python: ok")


if __name__ == "__main__":
    main()
