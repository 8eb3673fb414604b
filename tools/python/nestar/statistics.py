"""Profiles and distributions of the cells that no finer cells cover."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from .errors import Error
from .fields import Field

if TYPE_CHECKING:
    from .snapshot import Block, Snapshot

_CLOSE = 1e-6
"""Distance from an edge, over the width of a bin, within which round-off may put a value into the wrong bin."""
_MOST_KEPT = 2**30
"""Bytes of fields that are kept between the search for their range and the sums."""
RADIUS = "radius"


class Bins:
    """Bins of a quantity in code units: uniform, logarithmic, or between given edges."""

    def __init__(self, low: float, high: float, bins: Any, logarithmic: bool, name: str) -> None:
        self.logarithmic, self.name = logarithmic, name
        if isinstance(bins, (int, np.integer)):
            self._check(low, high, int(bins))
            self.edges = np.geomspace(low, high, bins + 1) if logarithmic else np.linspace(low, high, bins + 1)
            # the ends to the bit
            self.edges[[0, -1]] = low, high
        else:
            self.edges = np.asarray(bins, dtype=np.float64)
            if self.edges.ndim != 1 or len(self.edges) < 2 or not np.all(np.diff(self.edges) > 0):
                raise Error(f"bins of {name}: edges must be at least two ascending numbers")
        self.count = len(self.edges) - 1
        self._uniform = isinstance(bins, (int, np.integer))

    def _check(self, low: float, high: float, bins: int) -> None:
        if bins < 1:
            raise Error(f"bins of {self.name}: {bins} is not at least 1")
        if self.logarithmic and low <= 0:
            raise Error(f"logarithmic bins of {self.name} need positive values; the least is {low:g}; give a range")
        if not (np.isfinite(low) and np.isfinite(high)) or low >= high:
            raise Error(f"bins of {self.name}: the range from {low:g} to {high:g} is empty or infinite; give another one")

    def index(self, values: np.ndarray) -> np.ndarray:
        """Returns the bin of each value, as numpy.histogram; `count` for values outside."""
        edges, last = self.edges, self.count - 1
        if not self._uniform:
            inside = (values >= edges[0]) & (values <= edges[-1])
            index = np.clip(np.searchsorted(edges, values, "right") - 1, 0, last)
            index[~inside] = self.count
            return index
        place, close = self._place(values)
        # also `True` for values that are not numbers
        outside = ~((place > -close) & (place < self.count + close))
        if outside.any():
            place[outside] = 0.5
        index = place.astype(np.int32).astype(np.intp)
        place -= index
        place -= 0.5
        # the comparison with the edges decides about values near them
        near = np.abs(place, out=place) > 0.5 - close
        if near.any():
            own = values[near]
            exact = np.clip(np.searchsorted(edges, own, "right") - 1, 0, last)
            exact[(own < edges[0]) | (own > edges[-1])] = self.count
            index[near] = exact
        if outside.any():
            index[outside] = self.count
        return index

    def _place(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns the places of values in uniform bins, in widths of a bin from the first edge, and their largest error."""
        low, high = self.edges[0], self.edges[-1]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            if not self.logarithmic:
                place = values - low
                place *= self.count / (high - low)
                return place, _CLOSE
            # logarithms in single precision take a tenth of the time
            width = (np.log(high) - np.log(low)) / self.count
            close = 4 * 1.2e-7 * (1 / width + self.count)
            if close < 0.01 and width * self.count < 85:
                place = np.log(np.divide(values, low, dtype=np.float64).astype(np.float32))
                place *= np.float32(1 / width)
                return place, close
            place = np.log(values)
            place -= np.log(low)
            place /= width
            return place, _CLOSE

    @property
    def centres(self) -> np.ndarray:
        """Centres of the bins, in the logarithm for logarithmic bins."""
        low, high = self.edges[:-1], self.edges[1:]
        return np.sqrt(low * high) if self.logarithmic else 0.5 * (low + high)

    @property
    def widths(self) -> np.ndarray:
        """Widths of the bins, in powers of ten for logarithmic bins."""
        return np.diff(np.log10(self.edges)) if self.logarithmic else np.diff(self.edges)


def _radius(snapshot: Snapshot, centre: np.ndarray) -> Callable[[Block], np.ndarray]:
    """Returns the distance to a point, or to its nearest image in periodic boxes."""
    width = snapshot.right_edge - snapshot.left_edge

    def radius(block: Block) -> np.ndarray:
        squares = []
        for axis in range(3):
            distance = np.abs(block.coordinate(axis) - centre[axis])
            if snapshot.periodic[axis]:
                distance = np.minimum(distance, np.abs(width[axis] - distance))
            squares.append(distance**2)
        return np.sqrt(squares[0] + squares[1] + squares[2])

    return radius


def _centre(snapshot: Snapshot, centre: Any) -> np.ndarray:
    """Returns a position in code units: the middle of the box, three lengths, or ``"max"``, the densest cell."""
    if centre is None:
        return 0.5 * (snapshot.left_edge + snapshot.right_edge)
    if isinstance(centre, str) and centre == "max":
        return _densest(snapshot)
    if isinstance(centre, str) or len(centre) != 3:
        raise Error('centre: three lengths, or "max" for the densest cell')
    return np.array([snapshot.units.read(part, "length", "centre") for part in centre])


def _densest(snapshot: Snapshot) -> np.ndarray:
    def largest(block: Block) -> tuple[float, list[float]]:
        density = block["density"]
        place = np.unravel_index(np.argmax(density), density.shape)
        axes = [block.coordinate(axis) for axis in range(3)]
        return float(density[place]), [float(np.broadcast_to(axis, block.shape)[place]) for axis in axes]

    best = max(snapshot.map(largest, list(snapshot.blocks())), key=lambda found: found[0])
    return np.array(best[1])


class _Axis:
    """A quantity that is binned: a field, or the radius."""

    def __init__(self, snapshot: Snapshot, name: str, centre: Any) -> None:
        self.snapshot, self.name = snapshot, name
        if name == RADIUS and name not in snapshot.fields:
            evaluate = _radius(snapshot, _centre(snapshot, centre))
            self.field = Field(RADIUS, "length", "distance to the centre", evaluate)
        else:
            self.field = snapshot.field(name)

    def values(self, block: Block) -> np.ndarray:
        return self.field.evaluate(block) if self.field.name == RADIUS else block[self.name]

    def given_range(self, limits: Any, logarithmic: bool) -> tuple[float, float] | None:
        """Returns the range that is known without reading fields."""
        if limits is not None:
            try:
                low, high = limits
            except (TypeError, ValueError):
                raise Error(f"the range of {self.name} is a pair of values") from None
            return tuple(self.snapshot.units.read(v, self.field.units, self.name) for v in (low, high))  # type: ignore
        if self.field.name == RADIUS:
            snapshot = self.snapshot
            low = float(snapshot.level(snapshot.levels[-1]).cell_width.min()) if logarithmic else 0.0
            return low, 0.5 * float((snapshot.right_edge - snapshot.left_edge).min())
        return None

    def coordinate(self, bins: Bins) -> tuple[str, np.ndarray, dict[str, str]]:
        shown = self.snapshot.units.shown(self.field.units)
        return self.name, bins.centres * shown.factor, {"units": shown.name, "long_name": self.field.long_name}

    def edges(self, bins: Bins) -> dict[str, Any]:
        """Returns the lower and upper edges of the bins as coordinates."""
        shown = self.snapshot.units.shown(self.field.units)
        ends = {"low": bins.edges[:-1], "high": bins.edges[1:]}
        return {f"{self.name}_{end}": (self.name, v * shown.factor, {"units": shown.name}) for end, v in ends.items()}


def _bins_of(snapshot: Snapshot, axes: Sequence[_Axis], blocks: Sequence[Block], bins: Any, limits: Any,
             logarithmic: bool, keep: Sequence[str]) -> list[Bins]:  # fmt: skip
    """Returns the bins of each axis; ranges that are not given are those of the leaf cells."""
    per_axis = list(zip(axes, _each(bins, len(axes), "bins"), _each(limits, len(axes), "range")))
    known: list[Any] = []
    for axis, own, limit in per_axis:
        given = isinstance(own, (int, np.integer))
        known.append(axis.given_range(limit, logarithmic) if given else (0.0, 1.0))

    def extremes(block: Block) -> list[tuple[float, float]]:
        found = []
        for axis, pair in zip(axes, known):
            values = axis.values(block) if pair is None else np.zeros(1)
            # values that are not numbers are in no bin
            found.append((float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None))))
        return found

    if any(pair is None for pair in known):
        cells = sum(len(block.rows) for block in blocks) * 512
        kept = keep if 8 * cells * len(keep) < _MOST_KEPT else ()
        found = np.array(list(snapshot.map(extremes, blocks, kept)))
        least, largest = np.fmin.reduce(found[..., 0]), np.fmax.reduce(found[..., 1])
        known = [pair or (float(least[n]), float(largest[n])) for n, pair in enumerate(known)]
    return [Bins(low, high, own, logarithmic, axis.name) for (axis, own, _), (low, high) in zip(per_axis, known)]


def _each(value: Any, count: int, what: str) -> list[Any]:
    """Returns one value per axis."""
    if count == 1 or value is None or isinstance(value, (int, np.integer)):
        return [value] * count
    if len(value) != count:
        raise Error(f"{what}: give one for each of the {count} fields")
    return list(value)


def _weight(snapshot: Snapshot, name: str) -> tuple[Callable[[Block], np.ndarray | None], str]:
    """Returns the weight of cells beside their volume (`None` is 1), and the unit of its sum."""
    if name == "volume":
        return lambda block: None, "length**3"
    field = snapshot.field("density" if name == "mass" else name)
    units = "mass" if name == "mass" else snapshot.units.product(field.units, "length**3")
    return lambda block: block[field.name], units


def _sum(index: np.ndarray, values: np.ndarray | None, count: int) -> np.ndarray:
    flat = None if values is None else np.ascontiguousarray(values).ravel()
    return np.bincount(index.ravel(), flat, minlength=count + 1)[:count]


def profile(self: Snapshot, field: str, by: str = RADIUS, *, centre: Any = None, bins: Any = 64, range: Any = None,
            weight: str = "volume", logarithmic: bool = False) -> xarray.DataArray:  # fmt: skip
    """Returns the mean of a field in bins of the radius, of x, y, z or of another field.

    `centre` is three lengths or ``"max"``, the densest cell. `weight` is ``"volume"``, ``"mass"`` or a field. `bins` is a
    number or the edges in code units. The coordinate `weight` is the sum of the weights of each bin.
    """
    found, axis = self.field(field), _Axis(self, by, centre)
    share, share_units = _weight(self, weight)
    blocks = list(self.blocks())
    chosen = _bins_of(self, [axis], blocks, bins, range, logarithmic, (by, field))[0]

    def sums(block: Block) -> np.ndarray:
        index = chosen.index(axis.values(block))
        own, values = share(block), block[field]
        weights = _sum(index, own, chosen.count)
        products = _sum(index, values if own is None else own * values, chosen.count)
        return np.array([weights, products]) * block.cell_volume

    total = np.zeros((2, chosen.count))
    for own in self.map(sums, blocks):
        total += own
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total[1] / total[0]
    shown, shown_weight = self.units.shown(found.units), self.units.shown(share_units)
    coords = {by: axis.coordinate(chosen), **axis.edges(chosen)}
    coords["weight"] = (by, total[0] * shown_weight.factor, {"units": shown_weight.name, "long_name": f"sum of {weight}"})
    coords["time"] = ((), float(self.time), {"units": self.time.units})
    attrs = {"units": shown.name, "long_name": f"{found.long_name}, mean by {weight}"}
    return xarray.DataArray(mean * shown.factor, coords, [by], field, attrs)


def pdf(self: Snapshot, field: str | Sequence[str], *, weight: str = "volume", bins: Any = 64, range: Any = None,
        logarithmic: bool = False, centre: Any = None, normalise: bool = True) -> xarray.DataArray:  # fmt: skip
    """Returns the distribution of a field, or the joint one of two fields (the first is the x axis).

    It is a density per unit of the field, or per power of ten if `logarithmic`; its integral is the fraction of the weight in
    the bins. Without `normalise` it is the sum of the weights of each bin.
    """
    names = [field] if isinstance(field, str) else list(field)
    if not 1 <= len(names) <= 2:
        raise Error("a distribution has one or two fields")
    axes = [_Axis(self, name, centre) for name in names]
    share, share_units = _weight(self, weight)
    blocks = list(self.blocks())
    chosen = _bins_of(self, axes, blocks, bins, range, logarithmic, names)
    counts = [own.count for own in chosen]

    def sums(block: Block) -> tuple[np.ndarray, float]:
        index = chosen[0].index(axes[0].values(block))
        outside = index == counts[0]
        for own, axis in zip(chosen[1:], axes[1:]):
            second = own.index(axis.values(block))
            outside |= second == own.count
            index = second * counts[0] + index
        size = int(np.prod(counts))
        index[outside] = size
        weights = share(block)
        whole = float(index.size if weights is None else weights.sum())
        return _sum(index, weights, size) * block.cell_volume, whole * block.cell_volume

    total, whole = np.zeros(int(np.prod(counts))), 0.0
    for part, weight_of_block in self.map(sums, blocks):
        total += part
        whole += weight_of_block
    result = total.reshape(counts[::-1])
    shown = [self.units.shown(axis.field.units) for axis in axes]
    units = self.units.shown(share_units)
    name, label = units.name, f"{weight} per bin"
    if normalise:
        result = result / whole
        for n, (own, unit) in enumerate(zip(chosen, shown)):
            width = own.widths * (1.0 if logarithmic else unit.factor)
            result = result / (width if n == 0 else width[:, None])
        per = [f"({unit.name})" for unit in shown if unit.name != "1" and not logarithmic]
        name = "1/" + (per[0] if len(per) == 1 else f"({'*'.join(per)})") if per else "1"
        label = f"fraction of the {weight}" + (" per power of ten" if logarithmic else "")
    else:
        result = result * units.factor
    coords: dict[str, Any] = {"time": ((), float(self.time), {"units": self.time.units})}
    for axis, own in zip(axes, chosen):
        coords |= {axis.name: axis.coordinate(own), **axis.edges(own)}
    attrs = {"units": name, "long_name": label}
    return xarray.DataArray(result, coords, names[::-1], "pdf", attrs)
