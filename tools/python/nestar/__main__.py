"""Commands of the package, which the program starts: ``python3 -m nestar export SNAPSHOT FILE``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from . import Error
from .snapshot import Snapshot
from .units import SYSTEMS


def _terminated(number: int, frame: FrameType | None) -> None:
    # temporary files are removed
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m nestar", description="Commands of the Python package nestar.")
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="write a snapshot for other programs")
    export.add_argument("snapshot", help="directory of the snapshot")
    export.add_argument("file", help="x.vtkhdf: all levels; x.h5: a uniform grid, or particles")
    kind = export.add_mutually_exclusive_group()
    kind.add_argument("--uniform", type=int, metavar="LEVEL", help="write the uniform grid of a level")
    kind.add_argument("--particles", action="store_true", help="write particles as a snapshot of Gadget")
    export.add_argument("--fields", help="fields or, with --particles, species, separated by commas")
    export.add_argument("--units", default="astronomical", choices=SYSTEMS, help="units of the file")
    export.add_argument("--force", action="store_true", help="replace an existing file")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its status."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    names = given.fields.split(",") if given.fields else None
    try:
        snapshot = Snapshot(given.snapshot, given.units)
        if given.particles:
            path = snapshot.export_particles(given.file, species=names, force=given.force)
        else:
            path = snapshot.export(given.file, fields=names, level=given.uniform, force=given.force)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
