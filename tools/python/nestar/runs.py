"""A run: its snapshots, diagnostics, deck and views."""

from __future__ import annotations

import csv
import json
import os
import re
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import xarray

from . import lazy
from .cosmology import Cosmology
from .errors import Error, unknown
from .snapshot import Snapshot
from .units import Quantity, Shown, Units

_NAME = re.compile(r"(\d{6,})\.zarr")


class Snapshots(Sequence[Snapshot]):
    """The snapshots of a run in the order of their numbers; those written later are seen, too."""

    def __init__(self, directory: Path, units: str) -> None:
        self._directory, self._units = directory, units

    @property
    def numbers(self) -> list[int]:
        """Numbers of the snapshots."""
        names = [_NAME.fullmatch(path.name) for path in self._directory.glob("*.zarr")]
        return sorted(int(name[1]) for name in names if name)

    @property
    def times(self) -> list[Quantity]:
        """Times of the snapshots."""
        return [snapshot.time for snapshot in self]

    def number(self, number: int) -> Snapshot:
        """Returns the snapshot with this number."""
        path = self._directory / f"{number:06}.zarr"
        if not path.exists():
            raise Error(f"no snapshot {number}; there are {self._listed()}")
        return Snapshot(path, self._units)

    @property
    def redshifts(self) -> list[float | None]:
        """Redshifts of the snapshots; `None` without `[cosmology]`."""
        return [snapshot.redshift for snapshot in self]

    def at(self, time: Any = None, *, redshift: float | None = None) -> Snapshot:
        """Returns the snapshot that is nearest to a time, a number in code units or a text such as ``"10 Myr"``, or to a redshift.

        Times of a run with `[cosmology]` are numbers in code units.
        """
        if (time is None) == (redshift is None):
            raise Error("give the time or the redshift")
        best, least = None, np.inf
        for number in self.numbers:
            snapshot = self.number(number)
            if redshift is not None:
                if snapshot.redshift is None:
                    raise Error(f"{snapshot.path} has no redshift: the run has no table [cosmology]")
                distance = abs(snapshot.redshift - redshift)
            elif snapshot.units.changing and isinstance(time, str):
                raise Error(f"time `{time}`: the unit of time changes during the run; give a redshift, or a number in code units")
            else:
                distance = abs(snapshot.attrs["time"] - snapshot.units.read(time, "time", "time"))
            if distance < least:
                best, least = snapshot, distance
        if best is None:
            raise Error(f"{self._directory}: there are no snapshots yet")
        return best

    def _listed(self) -> str:
        numbers = self.numbers
        return f"{len(numbers)}, from {numbers[0]} to {numbers[-1]}" if numbers else "none"

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Snapshot]: ...
    def __getitem__(self, index: int | slice) -> Snapshot | list[Snapshot]:
        numbers = self.numbers
        if isinstance(index, slice):
            return [self.number(number) for number in numbers[index]]
        if not -len(numbers) <= index < len(numbers):
            # ends a loop, so it must be an index error
            raise IndexError(f"no snapshot with index {index}; there are {self._listed()}")
        return self.number(numbers[index])

    def __repr__(self) -> str:
        return f"<{self._listed()} snapshots in {self._directory}>"


def _convert(array: xarray.Variable, shown: Shown) -> None:
    """Converts an array when its values are loaded."""
    array.attrs.update(scale_factor=shown.factor, units=shown.name)


class Views(Mapping[str, xarray.Dataset]):
    """The views of a run by name, with units; values are read when they are used.

    The kinds `snapshot` and `picture` have files, which :meth:`snapshots` and :meth:`pictures` return. Entries of the kind `halos` have
    any number of rows, which :meth:`rows` returns.
    """

    def __init__(self, run: Run, directory: Path) -> None:
        self._run, self._directory = run, directory

    def __getitem__(self, name: str) -> xarray.Dataset:
        path = self._directory / f"{name}.zarr"
        if not path.exists():
            raise unknown("view", name, self)
        try:
            stored = xarray.open_zarr(str(path), chunks=None, consolidated=True, decode_cf=False)
            if self._run.units.changing:
                stored = self._at_own_times(stored)
            else:
                for array in stored.variables.values():
                    if "units" in array.attrs:
                        _convert(array, self._run.units.shown(array.attrs["units"]))
            data = xarray.decode_cf(stored, decode_times=False, decode_timedelta=False)
        except Error:
            raise
        except Exception as error:
            raise Error(f"{path} cannot be read ({error})") from None
        for array in data.variables.values():
            kept = ("long_name", "units", "sample_dimension")
            array.attrs = {key: array.attrs[key] for key in kept if key in array.attrs}
        return data

    def _at_own_times(self, stored: xarray.Dataset) -> xarray.Dataset:
        """Converts each entry by the units at its own time. Coordinates are the same for all entries, so they are comoving."""
        units = self._run.units
        scale_factor = self._run.scale_factors_of(stored["step"].values)
        converted: dict[str, xarray.Variable] = {}
        for name, array in stored.variables.items():
            if name == "time" or array.attrs.get("units", "1") == "1":
                continue
            code, along = str(array.attrs["units"]), str(array.dims[0]) if array.dims else ""
            if along == "time" or self._counts(stored, along) is not None:
                counts = self._counts(stored, along)
                own = scale_factor if counts is None else np.repeat(scale_factor, counts)
                converted[str(name)] = lazy.scaled_rows(array, units.shown(code), own / units.scale_factor)
            elif units.system != "code":
                shown = units.shown_comoving(code)
                if shown.exponent == 0:
                    _convert(array, shown)
        data = stored.assign(converted)
        coords = {"scale_factor": scale_factor, "redshift": np.round(1 / scale_factor - 1, 12)}
        return data.assign_coords({name: ("time", values, {"units": "1"}) for name, values in coords.items()})

    @staticmethod
    def _counts(stored: xarray.Dataset, dimension: str) -> np.ndarray | None:
        """Returns the number of rows of each entry along the dimension of a list; `None` for another dimension."""
        found = [array for array in stored.variables.values() if array.attrs.get("sample_dimension") == dimension]
        return found[0].values.astype(np.int64) if found else None

    def rows(self, name: str, entry: int = -1) -> xarray.Dataset:
        """Returns the rows of an entry of a view with lists, such as a catalogue of the kind `halos`.

        `time` and `step` are those of the entry.
        """
        data = self[name]
        if "count" not in data or "sample_dimension" not in data["count"].attrs:
            raise Error(f"the view `{name}` has no lists; use views[{name!r}]")
        count = data["count"].values
        if not -len(count) <= entry < len(count):
            raise Error(f"the view `{name}` has no entry {entry}; there are {len(count)}")
        number = entry % len(count)
        first = int(count[:number].sum())
        rows = slice(first, first + int(count[number]))
        return data.isel({"time": number, data["count"].attrs["sample_dimension"]: rows})

    def snapshots(self, name: str) -> Snapshots:
        """Returns the entries of a view of the kind `snapshot`."""
        return Snapshots(self._files(name, ".zarr"), self._run._units)

    def pictures(self, name: str) -> list[Path]:
        """Returns the files of a view of the kind `picture`."""
        return sorted(self._files(name, ".png").glob("[0-9]*.png"))

    def _files(self, name: str, ending: str) -> Path:
        """Returns the directory of a view with files of this ending."""
        directory = self._directory / name
        if not directory.is_dir() or not any(directory.glob(f"[0-9]*{ending}")):
            known = {path.parent.name for path in self._directory.glob(f"*/[0-9]*{ending}")}
            raise unknown("view", name, known)
        return directory

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.stem for path in self._directory.glob("*.zarr")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<views: {', '.join(self) or 'none'}>"


class Run:
    """The directory of a run."""

    def __init__(self, path: str | os.PathLike[str], units: str = "astronomical") -> None:
        self.path = Path(path)
        if not (self.path / "run.toml").exists() and not (self.path / "snapshots").is_dir():
            reason = "is no directory of a run" if self.path.exists() else "no such directory"
            raise Error(f"{self.path}: {reason}")
        self.snapshots = Snapshots(self.path / "snapshots", units)
        self.views = Views(self, self.path / "views")
        self._units = units

    @property
    def deck(self) -> dict[str, Any]:
        """The deck with all values, by table and key."""
        try:
            return tomllib.loads((self.path / "run.toml").read_text())
        except (OSError, ValueError) as error:
            raise Error(f"{self.path / 'run.toml'}: {error}") from None

    @property
    def info(self) -> dict[str, Any]:
        """Versions, hosts, devices and command line (`provenance.json`)."""
        try:
            return json.loads((self.path / "provenance.json").read_text())
        except (OSError, ValueError) as error:
            raise Error(f"{self.path / 'provenance.json'}: {error}") from None

    @cached_property
    def units(self) -> Units:
        """Code units, and the units of results. In a run with `[cosmology]`, they are those at the time of the last snapshot."""
        if len(self.snapshots):
            return self.snapshots[-1].units
        deck = self.deck
        if "cosmology" in deck:
            # the scale factor is not known yet
            return Units({}, "code", 1.0, 1.0)
        edges = [np.asarray(deck["domain"][key], dtype=float) for key in ("left_edge", "right_edge")]
        end = deck.get("time", {}).get("end", 0.0)
        return Units(deck.get("units", {}), self._units, float((edges[1] - edges[0]).max()), float(end))

    @property
    def scale_factor(self) -> float | None:
        """Scale factor of the last snapshot; `None` without `[cosmology]`."""
        return self.snapshots[-1].scale_factor if len(self.snapshots) else None

    @property
    def redshift(self) -> float | None:
        """Redshift of the last snapshot; `None` without `[cosmology]`."""
        return self.snapshots[-1].redshift if len(self.snapshots) else None

    @property
    def cosmology(self) -> Cosmology | None:
        """Parameters of the universe; `None` without `[cosmology]`."""
        return self.snapshots[-1].cosmology if len(self.snapshots) else None

    def scale_factors_of(self, steps: np.ndarray) -> np.ndarray:
        """Returns the scale factors after these root steps, from the diagnostics."""
        header, rows = self._diagnostics()
        if not {"step", "scale_factor"} <= set(header):
            raise Error(f"{self.path / 'diagnostics.csv'} has no columns `step` and `scale_factor`")
        step, scale_factor = header.index("step"), header.index("scale_factor")
        known = {int(row[step]): float(row[scale_factor]) for row in rows}
        missing = [int(number) for number in steps if int(number) not in known]
        if missing:
            raise Error(f"{self.path / 'diagnostics.csv'} has no row of step {missing[0]}, whose scale factor is needed")
        return np.array([known[int(number)] for number in steps])

    def _diagnostics(self) -> tuple[list[str], list[list[str]]]:
        """Returns the names and the rows of `diagnostics.csv`."""
        path = self.path / "diagnostics.csv"
        try:
            with path.open(newline="") as file:
                rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
        except OSError as error:
            raise Error(f"{path}: {error.strerror}") from None
        if not rows:
            raise Error(f"{path} is empty")
        return rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]

    @property
    def diagnostics(self) -> xarray.Dataset:
        """The columns of `diagnostics.csv`, by root step, with the units that the run has written.

        In a run with `[cosmology]`, each row is converted by the units at its own time.
        """
        header, rows = self._diagnostics()
        known = self._units_of_columns()
        ratio = np.ones(len(rows))
        if self.units.changing and "scale_factor" in header:
            n = header.index("scale_factor")
            ratio = np.array([float(row[n]) for row in rows]) / self.units.scale_factor
            # the clock is no proper time
            known["time"] = ""
        variables: dict[str, Any] = {}
        for n, name in enumerate(header):
            variables[name] = self._column(name, [row[n] for row in rows], known.get(name), ratio)
        steps = variables.pop("step")[1]
        data = xarray.Dataset(variables, {"step": ("step", steps)})
        return data.set_coords([name for name in ("time",) if name in data])

    def _units_of_columns(self) -> dict[str, str]:
        """Returns the units that the run has written for its columns; runs of older programs have none."""
        path = self.path / "diagnostics.units.csv"
        try:
            with path.open(newline="") as file:
                # times of the machine have no code units
                return {row["column"]: row["code_units"] or row["units"] for row in csv.DictReader(file)}
        except (OSError, KeyError, csv.Error):
            warnings.warn(f"{path} is missing or damaged, so the columns of the diagnostics are in code units", stacklevel=3)
            return {}

    def _column(self, name: str, texts: list[str], units: str | None,
                ratio: np.ndarray) -> tuple[str, np.ndarray, dict[str, str]]:  # fmt: skip
        try:
            values: np.ndarray = np.array([float(text) if text else np.nan for text in texts])
        except ValueError:
            return "step", np.array(texts), {}
        if values.size and np.all(values == np.round(values)) and not any(set(".eE") & set(text) for text in texts):
            return "step", values.astype(np.int64), {}
        if name.startswith("seconds"):
            # of the machine, in any run
            return "step", values, {"units": "s"}
        if not units:
            return "step", values, {}
        shown = self.units.shown(units)
        return "step", values * shown.factors(ratio), {"units": shown.name}
