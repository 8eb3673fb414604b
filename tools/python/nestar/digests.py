"""The digest of a snapshot, computed without the program."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .errors import Error
from .store import Array, Store


class _Hasher(Protocol):
    def update(self, data: Any, /) -> Any: ...


def _encode(value: Any) -> bytes:
    """Returns the encoding of a JSON value that the digest hashes."""
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, (int, float)):
        return b"d" + struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode()
        return b"s" + struct.pack("<Q", len(text)) + text
    if isinstance(value, list):
        return b"a" + struct.pack("<Q", len(value)) + b"".join(map(_encode, value))
    entries = sorted((key.encode(), entry) for key, entry in value.items())
    parts = (b"s" + struct.pack("<Q", len(key)) + key + _encode(entry) for key, entry in entries)
    return b"o" + struct.pack("<Q", len(value)) + b"".join(parts)


def _hash_arrays(hasher: _Hasher, arrays: Mapping[str, Array]) -> None:
    """Hashes the arrays of a group except derived ones."""
    for name, array in sorted(arrays.items()):
        if array.attrs.get("derived"):
            continue
        dtype = str(array.dtype.newbyteorder("="))
        hasher.update(_encode({"name": name, "dtype": dtype, "shape": list(array.shape)}))
        for first in range(0, len(array), array.shard_rows):
            rows = np.arange(first, min(first + array.shard_rows, len(array)))
            hasher.update(np.ascontiguousarray(array.read(rows)).tobytes())


def digest(path: str | os.PathLike[str]) -> str:
    """Returns the digest of a snapshot, equal to that of ``nestar digest``; needs blake3."""
    try:
        import blake3
    except ImportError:
        raise Error("the digest needs blake3: pip install blake3") from None
    store, hasher = Store(path), blake3.blake3()
    attrs = store.attrs
    keys = ["format_version", "time", "step", "domain_left_edge", "domain_right_edge", "root_cells", "boundary"]
    facts = {key: value for key, value in attrs.items() if isinstance(value, float)}
    hasher.update(_encode({key: attrs[key] for key in keys} | facts))
    for number in attrs["levels"]:
        header = store.groups[f"level_{number}"]
        hasher.update(_encode({key: header[key] for key in ["level", "time", "cell_width"]}))
        _hash_arrays(hasher, store.children(f"level_{number}"))
    records = [name for name, group in store.groups.items() if "/" in name and "count" in group]
    for name in sorted(records):
        header = store.groups[name]
        hasher.update(_encode({"path": name, "version": header["version"], "count": header["count"]}))
        _hash_arrays(hasher, store.children(name))
    for parent in ["components", "state"]:
        for name, array in store.children(parent).items():
            known = {key: array.attrs[key] for key in ["version", "length"]}
            if array.attrs["in_digest"]:
                hasher.update(_encode(known | {"path": f"{parent}/{name}"}))
                hasher.update(array.read()[0, : known["length"]].tobytes())
    return str(hasher.hexdigest())
