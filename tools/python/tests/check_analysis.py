"""Compares slices, projections, profiles and the rest with plain loops over cells, on runs that it makes."""

from __future__ import annotations

import numpy as np
from brute import DECK, ONE_PATCH, Cells, close

import nestar


def slices(snapshot, cells):
    finest = snapshot.levels[-1]
    random = np.random.default_rng(3)
    for axis, name in enumerate("xyz"):
        for position in [*random.uniform(cells.left[axis], cells.right[axis], 3), cells.left[axis]]:
            for level in (None, 0, finest + 1):
                found = snapshot.slice("density", **{name: position}, level=level)
                if level == 0:
                    assert found.attrs["level"] == 0
                    continue
                dims = found.dims
                points = np.zeros((*found.shape, 3))
                points[..., axis] = position
                for dim in dims:
                    points[..., "xyz".index(dim)] = found[dim].broadcast_like(found).transpose(*dims)
                close(found.values.ravel(), cells.at(points.reshape(-1, 3)), 0)
    middle = snapshot.slice("density")
    assert float(middle.z) == 0.5 * (cells.left[2] + cells.right[2])
    assert snapshot.slice("density", z=float(cells.right[2])).shape == middle.shape
    low, high = cells.left[0] + 0.3 * np.ptp([cells.left[0], cells.right[0]]), cells.right[0] - 0.2
    part = snapshot.slice("density", y=0.5, x=(low, high))
    whole = snapshot.slice("density", y=0.5)
    close(part.values, whole.sel(x=part.x).values, 0)
    width = float(whole.x[1] - whole.x[0])
    assert part.x[0] - width / 2 <= low + 1e-12 < part.x[0] + width / 2
    assert part.x[-1] - width / 2 < high - 1e-12 <= part.x[-1] + width / 2


def covering_grid(snapshot, cells):
    finest = snapshot.levels[-1]
    grid = snapshot.uniform("density", finest)
    z, y, x = np.meshgrid(grid.z, grid.y, grid.x, indexing="ij")
    chosen = np.random.default_rng(4).integers(0, grid.size, 3000)
    points = np.stack([x, y, z], -1).reshape(-1, 3)[chosen]
    close(grid.values.ravel()[chosen], cells.at(points), 0)
    for level in range(finest):
        factor = 2 ** (finest - level)
        shape = [n for length in grid.shape for n in (length // factor, factor)]
        close(snapshot.uniform("density", level), grid.values.reshape(shape).mean(axis=(1, 3, 5)))
    part = snapshot.uniform("density", finest, x=(0.21, 0.6), z=(float(cells.left[2]), float(cells.left[2]) + 0.3))
    close(part.values, grid.sel(x=part.x, z=part.z).values, 0)
    return grid


def projections(snapshot, cells, grid):
    mass = (cells.value * cells.volume).sum()
    for axis, name in enumerate("xyz"):
        width = np.array([float(grid[dim][1] - grid[dim][0]) for dim in "xyz"])
        brute = grid.values.sum(axis=2 - axis) * width[axis]
        for level in range(snapshot.levels[-1] + 2):
            found = snapshot.project("density", name, level=level)
            area = np.prod([float(found[dim][1] - found[dim][0]) for dim in found.dims])
            close(float(found.sum()) * area, mass, 1e-13)
            if level == snapshot.levels[-1]:
                close(found.values, brute)
        mean = snapshot.project("velocity_x", name, weight="mass", level=snapshot.levels[-1])
        momentum = snapshot.uniform("momentum_x", snapshot.levels[-1]).values
        close(mean.values, momentum.sum(axis=2 - axis) / grid.values.sum(axis=2 - axis), 1e-11)
    # parts of the picture, with edges within coarse cells
    for level in range(snapshot.levels[-1] + 2):
        whole = snapshot.project("density", "z", level=level)
        parts = {dim: (float(whole[dim][n]), float(whole[dim][-1 - n])) for dim, n in (("x", 3), ("y", 1))}
        part = snapshot.project("density", "z", level=level, **parts)
        close(part.values, whole.sel(x=part.x, y=part.y).values, 1e-14)
        assert abs(part.sizes["x"] - (whole.sizes["x"] - 6)) <= 1
    # a part of the depth that begins and ends within cells
    low, high = float(cells.left[2]) + 0.217, float(cells.left[2]) + 0.871
    found = snapshot.project("density", "z", z=(low, high), level=snapshot.levels[-1])
    edges = np.append(grid.z.values - width[2] / 2, grid.z.values[-1] + width[2] / 2)
    path = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0, None)
    close(found.values, np.tensordot(path, grid.values, (0, 0)))


def profiles(snapshot, cells):
    centre = cells.left + [0.31, 0.42, 0.53]
    apart = np.abs(cells.position - centre)
    # the nearest image
    wrapped = np.minimum(apart, np.abs(cells.right - cells.left - apart))
    radius = np.sqrt((np.where(snapshot.periodic, wrapped, apart) ** 2).sum(axis=1))
    speed_cells = Cells(snapshot.path, "momentum_y")
    for logarithmic in (False, True):
        limits = (0.05, 0.9)
        found = snapshot.profile("density", centre=centre, bins=11, range=limits, logarithmic=logarithmic)
        edges = np.geomspace(*limits, 12) if logarithmic else np.linspace(*limits, 12)
        edges[[0, -1]] = limits
        weight = np.histogram(radius, edges, weights=cells.volume)[0]
        total = np.histogram(radius, edges, weights=cells.volume * cells.value)[0]
        close(found.values, total / weight)
        close(found["weight"].values, weight)
        by_mass = snapshot.profile("velocity_y", centre=centre, bins=edges, weight="mass")
        momentum = np.histogram(radius, edges, weights=cells.volume * speed_cells.value)[0]
        close(by_mass.values, momentum / total, 1e-11)
    along = snapshot.profile("density", "x", bins=5)
    count = np.histogram(cells.position[:, 0], 5, weights=cells.volume)[0]
    close(along["weight"].values, count)
    close(float((along * along["weight"]).sum()), (cells.volume * cells.value).sum())


def distributions(snapshot, cells):
    found = snapshot.pdf("density", bins=9, normalise=False)
    close(found.values, np.histogram(cells.value, 9, weights=cells.volume)[0])
    shares = snapshot.pdf("density", bins=9)
    close(float((shares * (shares.density_high - shares.density_low)).sum()), 1.0)
    momentum = Cells(snapshot.path, "momentum_y").value
    edges = [np.linspace(cells.value.min(), cells.value.max(), 6), np.linspace(momentum.min() - 1, momentum.max() / 2, 8)]
    both = snapshot.pdf(("density", "momentum_y"), bins=(5, edges[1]), weight="mass", normalise=False)
    brute = np.histogram2d(cells.value, momentum, edges, weights=cells.volume * cells.value)[0]
    assert both.dims == ("momentum_y", "density")
    close(both.values, brute.T)


def edges_of_bins():
    """Each value is in the bin that its comparison with the edges gives."""
    random = np.random.default_rng(8)
    for low, high in ((0.1, 3.7), (1e-30, 1e30), (1e-300, 1e300), (1.0, 1.0001)):
        for logarithmic, count in ((False, 1), (False, 1000), (True, 1), (True, 64), (True, 1000)):
            bins = nestar.statistics.Bins(low, high, count, logarithmic, "density")
            edges = bins.edges
            inside = random.uniform(low, high, 1000), np.exp(random.uniform(np.log(low), np.log(high), 1000))
            near = [edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)]
            values = np.concatenate([*inside, *near, [np.nan, np.inf, -np.inf, 0.0, -1.0, 2 * high]])
            expected = np.clip(np.searchsorted(edges, values, "right") - 1, 0, count - 1)
            expected[~((values >= low) & (values <= high))] = count
            assert np.array_equal(bins.index(values), expected), (low, high, logarithmic, count)


def rays(snapshot, cells):
    random = np.random.default_rng(5)
    ends = [(cells.left, cells.right), (cells.left + [0.1, 0.2, 0.3], cells.left + [0.1, 0.2, 0.9])]
    ends += [random.uniform(cells.left, cells.right, (2, 3)) for _ in range(5)]
    for start, end in ends:
        start, end = np.asarray(start, float), np.asarray(end, float)
        found = snapshot.ray("density", start, end)
        length = np.sqrt(((end - start) ** 2).sum())
        close(float(found.path.sum()), length)
        assert np.all(np.diff(found.distance) > 0)
        half = 0.5 * found.path.values * (1 - 1e-6)
        seen = []
        for distance, reach, value in zip(found.distance.values, half, found.values):
            ahead, behind = (start + (distance + s * reach) / length * (end - start) for s in (-1, 1))
            if reach > 1e-9:
                assert cells.cell_at(ahead)[:2] == cells.cell_at(behind)[:2]
                assert cells.cell_at(ahead)[2] == value
                seen.append(cells.cell_at(ahead)[:2])
        assert len(set(seen)) == len(seen), "a cell appears twice"


def levels(snapshot):
    for number in snapshot.levels:
        level = snapshot.level(number)
        field = level["density"]
        raw = level.array("density").read()
        close(field.values, raw * snapshot.units.shown("mass/length**3").factor, 0)
        chosen = level["density"].isel(patch=[len(level) - 1, 0], z=3, x=slice(2, 5))
        close(chosen.values, field.values[[len(level) - 1, 0], 3, :, 2:5], 0)
        assert float(field[0, 1, 2, 3]) == field.values[0, 1, 2, 3]
        assert int(field.leaf.sum()) == int(level.leaf.sum())


def units(path):
    code, shown, cgs = (nestar.open(path, units=system) for system in ("code", "astronomical", "cgs"))
    for name in ("density", "momentum_x", "energy"):
        attrs = code.stored[name]
        assert abs(code.units.cgs_factor(attrs["units"]) / attrs["cgs_factor"] - 1) < 1e-14
        if "cgs_units" in attrs:
            assert attrs["cgs_units"] == cgs.slice(name, level=0).attrs["units"]
        close(cgs.slice(name, level=0).values, code.slice(name, level=0).values * attrs["cgs_factor"], 1e-14)
    import pint
    import unyt

    registry = nestar.pint_registry()
    for field in ("density", "pressure", "velocity_x", "temperature_k", "number_density", "mach", "momentum_z", "cell_mass"):
        ours = [open.project(field, weight="volume", level=0) for open in (shown, cgs)]
        ours.append(shown.project(field, level=0))
        ours.append(cgs.project(field, level=0))
        for first, second in (ours[:2], ours[2:]):
            for parse in (lambda a: (a.values * unyt.Unit(a.units)), lambda a: pint_value(registry, a)):
                a, b = parse(first), parse(second)
                ratio = (a / b).to("dimensionless")
                ratio = np.asarray(getattr(ratio, "magnitude", ratio))
                assert np.all(np.abs(ratio[np.isfinite(ratio)] - 1) < 1e-4), (field, ratio)
    assert shown.slice("density").x.attrs["units"] == "kpc" and cgs.slice("density").x.attrs["units"] == "cm"
    assert shown.project("density").attrs["units"] == "Msun/pc**2" and shown.slice("pressure").attrs["units"] == "erg/cm**3"
    assert shown.time.units in ("Myr", "kyr", "yr", "Gyr") and cgs.time.units == "s"
    near = shown.slice("density", z="2500 pc")
    close(near.values, shown.slice("density", z=2.5).values, 0)
    close(shown.slice("density", z=shown.slice("density", z=2.5).z).values, near.values, 0)
    assert isinstance(pint, object)


def pint_value(registry, array):
    return registry.Quantity(array.values, array.units)


def derived(path, stored):
    """Fields computed in Python agree with those that the program stored."""
    ours, theirs = nestar.open(path), nestar.open(stored)
    for name in ("temperature_k", "mach", "pressure", "velocity_y", "number_density_cm3", "fraction_metal", "sound_speed"):
        assert name in theirs.stored and name not in ours.stored
        close(ours.uniform(name, 1).values, theirs.uniform(name, 1).values, 1e-11)
        assert ours.slice(name).attrs["units"] == theirs.slice(name).attrs["units"], name
    close(ours.slice("metallicity").values, ours.slice("fraction_metal").values / 0.01295)


def particles(snapshot):
    dark, stars = snapshot.particles("dark"), snapshot.particles("stars")
    assert dark.sizes["particle"] == 12 * 7 * 9 and stars.sizes["particle"] == 2
    factor = snapshot.units.shown("mass").factor
    close(float(dark.mass.sum()), 12 * 7 * 9 * 0.01 * factor)
    close(np.sort(stars.mass.values), np.array([0.25, 0.5]) * factor)
    close(dark.position.values[:, 1], dark.y.values, 0)
    for name in ("x", "y", "z"):
        found = snapshot.project("particles/dark", name)
        area = np.prod([float(found[dim][1] - found[dim][0]) for dim in found.dims])
        kpc2 = 1e6 if found.attrs["units"].endswith("pc**2") else 1.0
        close(float(found.sum()) * area * kpc2, float(dark.mass.sum()))
    # each particle is in its patch
    for level, patch, *point in zip(dark.level.values, dark.patch.values, dark.x.values, dark.y.values, dark.z.values):
        own = snapshot.level(int(level))
        index = np.floor((np.array(point) - snapshot.left_edge) / own.cell_width).astype(int) // 8 * 8
        assert index.tolist() == own.origin[patch].tolist()


def main():
    # bins without cells
    np.seterr(invalid="ignore")
    path = nestar.run(DECK, watch=False, set={"output.directory": "oblong"}).snapshots[-1].path
    names = ["temperature_k", "mach", "pressure", "velocity_y", "number_density_cm3", "fraction_metal", "sound_speed"]
    stored = nestar.run(DECK, watch=False, set={"output": {"directory": "stored", "derived": names}}).snapshots[-1].path
    single = nestar.run(ONE_PATCH, watch=False, set={"output.directory": "single"}).snapshots[-1].path
    derived(path, stored)
    units(path)
    edges_of_bins()
    particles(nestar.open(path))
    for own in (path, single):
        snapshot, cells = nestar.open(own, units="code"), Cells(own)
        slices(snapshot, cells)
        projections(snapshot, cells, covering_grid(snapshot, cells))
        profiles(snapshot, cells)
        distributions(snapshot, cells)
        rays(snapshot, cells)
        levels(snapshot)
    print("python: ok")


if __name__ == "__main__":
    main()
