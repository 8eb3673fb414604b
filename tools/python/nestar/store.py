"""Reads the Zarr stores of snapshots: metadata without a library, chunks by the codecs that Nestar writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numcodecs.zstd import decompress

from .errors import Error

FORMAT = "nestar-snapshot"
NEWEST_VERSION = 2
"""The newest version of the snapshot format that this package reads."""

_ABSENT = 2**64 - 1


def starts(values: np.ndarray) -> list[int]:
    """Returns where runs of equal values begin."""
    if not len(values):
        return []
    return [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]


class Array:
    """An array of a store, whose rows are read on demand."""

    def __init__(self, store: Store, name: str, metadata: dict[str, Any]) -> None:
        self.store, self.name = store, name
        self.attrs: dict[str, Any] = metadata.get("attributes", {})
        self.shape: tuple[int, ...] = tuple(metadata["shape"])
        self.dims: tuple[str, ...] = tuple(metadata.get("dimension_names") or ())
        self.dtype = np.dtype(metadata["data_type"]).newbyteorder("<")
        fill = metadata.get("fill_value", 0)
        self.fill = float(fill) if isinstance(fill, str) else fill
        self.shard_rows: int = metadata["chunk_grid"]["configuration"]["chunk_shape"][0]
        keys = metadata["chunk_key_encoding"]
        self.separator: str = keys.get("configuration", {}).get("separator", "/")
        # 0 if only the zarr package can read the array
        self.chunk_rows = self._chunk_rows(metadata) if keys["name"] == "default" else 0

    def _chunk_rows(self, metadata: dict[str, Any]) -> int:
        """Returns the number of rows of a chunk; 0 for codecs and layouts that the program does not write."""
        codec = metadata["codecs"][0]
        if len(metadata["codecs"]) != 1 or codec["name"] != "sharding_indexed":
            return 0
        sharding = codec["configuration"]
        inner = [codec["name"] for codec in sharding["codecs"]]
        index = [codec["name"] for codec in sharding["index_codecs"]]
        endian = sharding["codecs"][0].get("configuration", {}).get("endian", "little")
        known = inner == ["bytes", "zstd", "crc32c"] and index == ["bytes", "crc32c"] and endian == "little"
        whole = tuple(sharding["chunk_shape"][1:]) == self.shape[1:]
        whole = whole and tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"][1:]) == self.shape[1:]
        at_end = sharding.get("index_location", "end") == "end"
        return sharding["chunk_shape"][0] if known and whole and at_end else 0

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: np.ndarray | None = None, dtype: Any = None) -> np.ndarray:
        """Returns these rows, in ascending order, or all rows; reads only the chunks that contain them.

        The values are converted to `dtype`, chunk by chunk.
        """
        if not self.chunk_rows:
            return self._read_by_zarr(rows).astype(dtype or self.dtype, copy=False)
        rows = np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64)
        values = np.empty((len(rows), *self.shape[1:]), dtype or self.dtype)
        chunks = rows // self.chunk_rows
        begins = starts(chunks)
        shards = chunks[begins] * self.chunk_rows // self.shard_rows
        firsts = starts(shards)
        within = rows % self.chunk_rows
        for first, end in zip(firsts, [*firsts[1:], len(begins)]):
            edges = [*begins[first:end], *(begins[end : end + 1] or [len(rows)])]
            parts = [within[low:high] for low, high in zip(edges, edges[1:])]
            self._read_shard(int(shards[first]), chunks[begins[first:end]], parts, values[edges[0] :])
        return values

    def _read_shard(self, shard: int, numbers: np.ndarray, parts: list[np.ndarray], values: np.ndarray) -> None:
        """Reads rows of chunks of a shard, one after the other, into the first rows of `values`."""
        key = self.separator.join(["c", str(shard)] + ["0"] * (len(self.shape) - 1))
        path = self.store.path / self.name / key
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            values[: sum(map(len, parts))] = self.fill
            return
        except OSError as error:
            raise Error(f"{path}: {error.strerror}") from None
        try:
            try:
                self._decode(file, numbers % (self.shard_rows // self.chunk_rows), parts, values)
            except (ValueError, RuntimeError, OSError) as error:
                raise Error(f"{path} is damaged ({error}); `nestar verify` checks all files") from None
        finally:
            os.close(file)

    def _decode(self, file: int, numbers: np.ndarray, parts: list[np.ndarray], values: np.ndarray) -> None:
        per_shard = self.shard_rows // self.chunk_rows
        length = 16 * per_shard + 4
        size = os.fstat(file).st_size
        if size < length:
            raise ValueError("it is too short")
        index = os.pread(file, length, size - length)
        if google_crc32c.value(index[:-4]) != int.from_bytes(index[-4:], "little"):
            raise ValueError("checksum of the index")
        spans = np.frombuffer(index[:-4], "<u8").reshape(per_shard, 2)[numbers]
        present = spans[spans[:, 0] != _ABSENT]
        begin, end = (int(present[:, 0].min()), int(present.sum(axis=1).max())) if len(present) else (0, 0)
        if end > size:
            raise ValueError("a chunk is outside")
        # one read of the part of the file that contains the chunks
        whole = end - begin <= 2 * int(present[:, 1].sum())
        data = memoryview(os.pread(file, end - begin, begin)) if whole else None
        # stays in the cache of a core
        chunk_values = np.empty((self.chunk_rows, *self.shape[1:]), self.dtype)
        first = 0
        for (offset, count), rows in zip(spans.tolist(), parts):
            target = values[first : first + len(rows)]
            first += len(rows)
            if offset == _ABSENT:
                target[...] = self.fill
                continue
            chunk = data[offset - begin : offset - begin + count] if data else os.pread(file, count, offset)
            body = bytes(chunk[:-4])
            if google_crc32c.value(body) != int.from_bytes(chunk[-4:], "little"):
                raise ValueError("checksum of a chunk")
            decompress(body, chunk_values)
            if rows[-1] - rows[0] == len(rows) - 1:
                target[...] = chunk_values[rows[0] : rows[-1] + 1]
            else:
                target[...] = chunk_values[rows]

    def _read_by_zarr(self, rows: np.ndarray | None) -> np.ndarray:
        import zarr

        try:
            array = zarr.open_array(str(self.store.path / self.name), mode="r")
            return np.asarray(array[:] if rows is None else array.oindex[np.asarray(rows)])
        except Exception as error:
            raise Error(f"{self.store.path / self.name} cannot be read ({error})") from None


class Store:
    """A Zarr store on disk: attributes of its groups, and arrays by path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        root = self._document(self.path / "zarr.json")
        self.attrs: dict[str, Any] = root.get("attributes", {})
        self.groups: dict[str, dict[str, Any]] = {}
        self.arrays: dict[str, Array] = {}
        self._check_version()
        nodes = root.get("consolidated_metadata") or {}
        nodes = nodes.get("metadata") or self._walk()
        for name, node in nodes.items():
            try:
                if node["node_type"] == "group":
                    self.groups[name] = node.get("attributes", {})
                else:
                    self.arrays[name] = Array(self, name, node)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise Error(f"{self.path / name}: the metadata are damaged ({error!r})") from None

    def _document(self, path: Path) -> dict[str, Any]:
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            reason = "is not a snapshot of Nestar" if self.path.exists() else "no such snapshot"
            raise Error(f"{self.path}: {reason}") from None
        except (OSError, ValueError) as error:
            raise Error(f"{path} is damaged ({error}); `nestar verify` checks all files") from None

    def _check_version(self) -> None:
        if self.attrs.get("format") != FORMAT:
            raise Error(f"{self.path}: is not a snapshot of Nestar")
        version = self.attrs.get("format_version")
        if not isinstance(version, int) or not 1 <= version <= NEWEST_VERSION:
            raise Error(
                f"{self.path} has the format version {version}, but this package reads versions up to {NEWEST_VERSION}; "
                "pip install --upgrade nestar"
            )

    def _walk(self) -> dict[str, Any]:
        """Returns the metadata of all nodes of a store without consolidated metadata."""
        paths = sorted(self.path.glob("**/zarr.json"))
        return {str(path.parent.relative_to(self.path)): self._document(path) for path in paths if path.parent != self.path}

    def children(self, group: str) -> dict[str, Array]:
        """Returns the arrays of a group by name."""
        head = f"{group}/"
        names = [name for name in self.arrays if name.startswith(head) and "/" not in name[len(head) :]]
        return {name[len(head) :]: self.arrays[name] for name in sorted(names)}
