"""Errors of this package: one line each, which says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Error(Exception):
    """A file, a name or a unit that cannot be used."""


def unknown(what: str, name: str, known: Iterable[str]) -> Error:
    """Returns the error about an unknown name, with the nearest known one."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return Error(f"no {what} `{name}`; did you mean `{near[0]}`?")
    return Error(f"no {what} `{name}`; there are {', '.join(names) or 'none'}")
