"""Runs the Python of README and the book: check_book.py ROOT, the root of the repository."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from check_cosmology import write_music

import nestar

VIEWS = [
    {"name": "column", "kind": "projection", "axis": "x", "steps": 10, "fields": ["density"]},
    {"name": "core", "kind": "snapshot", "interval": 0.001, "fields": ["density", "temperature"]},
    {"name": "movie", "kind": "picture", "steps": 10, "fields": ["density"]},
]
COARSE = {
    "domain.cells": [16, 16, 16],
    "mesh.max_level": 0,
    "particles.species.dark.mass": 6.739,
    "particles.species.dark.initial.points": [16, 16, 16],
    "output.view": [
        {"name": "halos", "kind": "halos", "output_times": True, "precision": "double"},
        {"name": "power", "kind": "spectrum", "output_times": True, "species": ["dark", "matter"], "interlaced": True},
    ],
}
"""Changes of the deck `lcdm`: a quarter of its particles along each axis, and the views of the page on cosmology."""
DECKS = {
    "sedov": ("sedov", {"mesh.max_level": 2, "time.end": 0.002, "output.interval": 0.001, "output.view": VIEWS}),
    "collapse": ("nfw", {"constants.n": 2000, "mesh.max_level": 1, "time.end": 0.02, "output.interval": 0.01}),
    "lcdm": ("lcdm", COARSE),
}
"""Small runs in the directories of the documents: deck and changes."""


def blocks(page):
    """Yields line and text of each block of Python."""
    lines = page.read_text().splitlines()
    begin = None
    for n, line in enumerate(lines):
        if line == "```python":
            begin = n + 1
        elif line.startswith("```") and begin is not None:
            yield begin, "\n".join(lines[begin:n])
            begin = None


def main(root):
    os.environ["MPLBACKEND"] = "Agg"
    os.symlink(root / "scenarios", "scenarios")
    for name, (deck, changes) in DECKS.items():
        nestar.run(f"scenarios/{deck}.toml", watch=False, set=changes | {"output.directory": f"out/{name}"})
    # a file that the page on cosmology converts
    write_music("music.hdf5", 4)
    count = 0
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        names = {}
        for line, text in blocks(page):
            # the place of a failure is that in the document
            exec(compile("\n" * line + text, str(page), "exec"), names)
            count += 1
    assert count >= 11, f"{count} blocks of Python were found"
    print("python: ok")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
