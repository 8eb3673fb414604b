"""Decks as TOML text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import Error

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else value_text(key)


def value_text(value: Any) -> str:
    """Returns a value as TOML."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        text = repr(float(value))
        return text if re.search(r"[.en]", text) else f"{text}.0"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {value_text(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(value_text(entry) for entry in value) + "]"
    raise Error(f"{value!r} is no value of a deck")


def deck_text(deck: Mapping[str, Any]) -> str:
    """Returns a deck, a dict of tables, as TOML."""
    plain = [f"{_key(key)} = {value_text(value)}" for key, value in deck.items() if not isinstance(value, Mapping)]
    lines = [*plain, ""]
    for name, table in deck.items():
        if isinstance(table, Mapping):
            lines += [f"[{_key(name)}]", *(f"{_key(key)} = {value_text(value)}" for key, value in table.items()), ""]
    return "\n".join(lines)


def settings(values: Mapping[str, Any], head: str = "") -> list[str]:
    """Returns ``TABLE.KEY=VALUE`` for each value of a dict with keys such as ``time.end``, or with tables."""
    found = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            found += settings(value, f"{head}{key}.")
        else:
            found.append(f"{head}{key}={value_text(value)}")
    return found
