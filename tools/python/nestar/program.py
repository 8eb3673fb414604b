"""Starts the program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .decks import deck_text, settings
from .errors import Error
from .runs import Run

PROGRAM = "NESTAR_PROGRAM"
"""Environment variable with the path of the program."""
_ERROR = "error:"


def find_program(program: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of the program: the given one, that of `NESTAR_PROGRAM`, or `nestar` on the path."""
    named = os.fspath(program) if program is not None else os.environ.get(PROGRAM) or "nestar"
    found = shutil.which(named)
    if found is None:
        raise Error(f"the program `{named}` was not found; install it, or name it by {PROGRAM} or the argument `program`")
    return found


def _execute(command: Sequence[str], watch: bool) -> tuple[int, list[str]]:
    """Runs a command; returns its status and its lines. An interrupt is passed to it."""
    # a group of its own, so that an interrupt by the keyboard reaches it once, from here
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             process_group=0)  # fmt: skip
    lines: list[str] = []
    failed = False
    assert child.stdout is not None
    with child.stdout as stream:
        try:
            for line in stream:
                lines.append(line.rstrip("\n"))
                failed |= line.startswith(_ERROR)
                if watch and not failed:
                    sys.stdout.write(line)
                    sys.stdout.flush()
        except BaseException:
            # the run writes a snapshot and ends; a second interrupt ends it at once
            child.send_signal(signal.SIGINT)
            try:
                stream.read()
            except KeyboardInterrupt:
                child.send_signal(signal.SIGINT)
            child.wait()
            raise
    return child.wait(), lines


def _message(status: int, lines: Sequence[str]) -> str:
    """Returns the message of a run that failed."""
    if status < 0:
        return f"the run was killed by signal {-status}"
    begin = next((n for n, line in enumerate(lines) if line.startswith(_ERROR)), None)
    if begin is None:
        return f"the run ended with status {status}: {lines[-1] if lines else 'no output'}"
    return "\n".join(lines[begin:]).removeprefix(_ERROR).strip()


def _directory(lines: Sequence[str], deck: Mapping[str, Any], chosen: Mapping[str, Any]) -> Path:
    """Returns the directory of the run: the program prints it in its last line."""
    for line in reversed(lines):
        if line.startswith("done:"):
            return Path(line.rsplit(", ", 1)[-1])
    output = chosen.get("output", {})
    given = chosen.get("output.directory") or (output.get("directory") if isinstance(output, Mapping) else None)
    return Path(given or deck.get("output", {}).get("directory", "out"))


def run(deck: str | os.PathLike[str] | Mapping[str, Any], *, watch: bool = True, set: Mapping[str, Any] | None = None,
        arguments: Sequence[str] = (), program: str | os.PathLike[str] | None = None, units: str = "astronomical",
        ) -> Run:  # fmt: skip
    """Runs a deck to its end and returns the run.

    `deck` is the path of a deck, or a dict of its tables. `set` are values by key, ``{"time.end": 0.1}``; `arguments` are
    further arguments of the program, such as ``["--resume"]``. With `watch` its progress is printed. An interrupt stops the
    run, which can be resumed.

    Raises:
        Error: the deck is refused or the run fails, with the message of the program.
    """
    command = [find_program(program), "run"]
    chosen = dict(set or {})
    temporary = None
    try:
        if isinstance(deck, Mapping):
            tables: Mapping[str, Any] = deck
            handle, temporary = tempfile.mkstemp(suffix=".toml", prefix="nestar-", dir=".")
            with os.fdopen(handle, "w") as file:
                file.write(deck_text(deck))
            path = temporary
        else:
            path = os.fspath(deck)
            tables = _tables(Path(path))
        command.append(path)
        for setting in settings(chosen):
            command += ["--set", setting]
        status, lines = _execute([*command, *arguments], watch)
    finally:
        if temporary is not None:
            os.unlink(temporary)
    if status != 0:
        raise Error(_message(status, lines))
    return Run(_directory(lines, tables, chosen), units)


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError):
        # the program reports it
        return {}
