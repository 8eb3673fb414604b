#!/usr/bin/env python3
"""Measures the scaling of Nestar over the GPUs of one host, and writes the tables of BENCHMARKS.md.

  python3 tools/python/scaling.py measure --nestar target/release/nestar --to scaling.json
  python3 tools/python/scaling.py write scaling.json BENCHMARKS.md

`measure` runs on 1, 2, 4, ... NVIDIA GPUs and takes a few minutes. It saves its results after each run, and records failed
runs. `write` replaces the text between the two marks in BENCHMARKS.md. Only the standard library is needed.
"""

import argparse
import csv
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "systems/nestar/bench"
PRECISIONS = ["single", "double"]
PARTS = ["cases", "slab", "snapshot", "digests"]
MARKS = "<!-- scaling: begin -->", "<!-- scaling: end -->"
# Bandwidth (GB/s) and latency (microseconds) between GPUs for `nestar plan`, measured separately for NVLink with NCCL.
LINK = ["--network", "250", "--latency", "10"]
# Cases with a constant hierarchy: fixed boxes refine the layers.
CONSTANT_MESH = {"kelvin-helmholtz": ["--regrid", "0"]}
SLAB_STEPS = 8
# a file system in memory, to measure the write rate without the limit of a disk
MEMORY = "/dev/shm"
TIMEOUT = 240


def boxes(n):
    """Returns the factors by which the box of a weak-scaling run on n ranks is longer along x, y, z."""
    return {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1), 8: (4, 2, 1)}[n]


def extended(n, cells):
    """Returns the settings that enlarge the box of a case by the factor n."""
    x, y, z = boxes(n)
    settings = [f"domain.cells=[{x * cells},{y * cells},{z * cells}]", f"domain.right_edge=[{x},{y},{z}]"]
    return settings if n > 1 else []


def layers(n):
    x, y, _ = boxes(n)
    sides = [(1, 0.2501), (2, 0.7501)]
    regions = [f"mesh.refine[{k}].right=[{x}.0,{y}.0,{z}]" for k, z in sides]
    return extended(n, 128) + (regions if n > 1 else [])


def sphere(n):
    """Returns the settings of a Plummer sphere with n times as many particles in a larger box."""
    times = {"cells": 256, "left_edge": -8.0, "right_edge": 8.0}
    box = [f"domain.{key}={[length * side for side in boxes(n)]}".replace(" ", "") for key, length in times.items()]
    return (box if n > 1 else []) + [f"constants.n={n * 20_000_000}"]


# name, case of `nestar bench`, settings for n ranks
CASES = [
    ("weak, uniform, 512^3 a GPU", "uniform", lambda n: extended(n, 512)),
    ("weak, Kelvin-Helmholtz, 3 levels, 9.0e7 cells a GPU", "kelvin-helmholtz", layers),
    ("strong, uniform 512^3", "uniform", lambda n: []),
    ("strong, Kelvin-Helmholtz, 9.0e7 cells", "kelvin-helmholtz", lambda n: []),
    ("strong, adaptive blast, 2e7 cells", "blast", lambda n: []),
    ("strong, self-gravity: collapsing cloud", "collapse", lambda n: ["gravity.root=multigrid"]),
    ("weak, Plummer sphere, 256^3 cells and 2e7 particles a GPU", "plummer", sphere),
]
ROOTS = {"uniform": 512, "kelvin-helmholtz": 128, "blast": 128, "collapse": 128, "plummer": 256}


def pairs(settings):
    return [word for setting in settings for word in ("--set", setting)]


def call(command, environment=None):
    """Returns the standard output of a command; raises `RuntimeError` with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout


class UserError(Exception):
    """An error that the user can correct."""


def gpus():
    try:
        names = call(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).strip().splitlines()
    except (RuntimeError, OSError) as error:
        raise UserError(f"no NVIDIA GPU found: {error}") from error
    if not names:
        raise UserError("no NVIDIA GPU found: nvidia-smi lists none")
    return names


class Measuring:
    """Runs measurements on increasing numbers of ranks and saves their results."""

    def __init__(self, nestar, to, most):
        names = gpus()
        most = min(most, len(names))
        self.nestar, self.to = str(pathlib.Path(nestar).resolve()), to
        if not pathlib.Path(self.nestar).is_file():
            raise UserError(f"--nestar {nestar}: no such program; build it with `cargo build --release --bin nestar`")
        self.counts = [n for n in (1, 2, 4, 8) if n <= most]
        driver = call(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]).split()[0]
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        version = call([self.nestar, "--version"]).strip()
        self.found = {"date": date, "gpu": names[0], "driver": driver, "program": version, "counts": self.counts, "failed": []}
        self.save()

    def save(self):
        self.to.write_text(json.dumps(self.found, indent=1))

    def keep(self, key, value):
        print(f"{key}: {json.dumps(value)[:300]}", flush=True)
        self.found[key] = value
        self.save()

    def tried(self, key, measure, *arguments):
        """Makes one measurement; records an error instead of raising it."""
        start = time.monotonic()
        try:
            self.keep(key, measure(*arguments))
        except (RuntimeError, subprocess.TimeoutExpired, OSError, ValueError, KeyError, IndexError) as error:
            print(f"{key}: {error}", file=sys.stderr, flush=True)
            self.found["failed"].append([key, str(error)])
            self.save()
        print(f"  took {time.monotonic() - start:.1f} s", flush=True)

    def bench(self, case, settings, n, precision, more=()):
        command = [self.nestar, "bench", case, "--device", "cuda", "--ranks", str(n), "--precision", precision, "--json", "-"]
        command += ["--cells", str(ROOTS[case])]
        return json.loads(call(command + pairs(settings) + list(more)))["results"][0]

    def plan(self, case, settings, n, precision, rate):
        deck = str(BENCH / f"{case}.toml")
        if not any(setting.startswith("domain.cells=") for setting in settings):
            settings = settings + [f"domain.cells={[ROOTS[case]] * 3}".replace(" ", "")]
        command = [self.nestar, "plan", deck, "--ranks", str(n), "--device-rate", f"{rate:.6e}", "--json", "-"]
        plan = json.loads(call(command + LINK + CONSTANT_MESH.get(case, []) + pairs(settings + [f"run.precision={precision}"])))["plans"][0]
        updates = plan["cell_updates_per_root_step"]["mean"] * n
        return updates / plan["root_step_seconds"]["overlapped"]

    def cases(self, wanted):
        for name, case, settings in CASES:
            if wanted and case not in wanted:
                continue
            for precision in PRECISIONS:
                for n in self.counts:
                    key = f"{name} | {precision} | {n}"
                    same = next((k for k in self.found if n == 1 and k.split(" | ")[1:] == [precision, "1"] and self.found[k]["case"] == case), None)
                    if same:
                        self.keep(key, self.found[same])
                        continue
                    profile = ["--profile"] if precision == "single" else []
                    self.tried(key, self.bench, case, settings(n), n, precision, profile)
                    one = self.found.get(f"{name} | {precision} | 1")
                    if n > 1 and one:
                        rate = one["cell_updates_per_second"]
                        self.tried(f"plan | {key}", self.plan, case, settings(n), n, precision, rate)

    def slab(self, n):
        """Returns the time of each phase of the moving slab, in seconds."""
        with tempfile.TemporaryDirectory() as folder:
            deck, out = str(BENCH / "moving-slab.toml"), f"output.directory={folder}/run"
            call([self.nestar, "run", deck, "--device", "cuda", "--ranks", str(n)] + pairs([out, f"time.max_steps={SLAB_STEPS}"]))
            rows = list(csv.DictReader(open(f"{folder}/run/diagnostics.csv", encoding="utf-8")))
        # exclude the first root step, which also allocates memory
        last, first = rows[-1], rows[-SLAB_STEPS]
        names = [name for name in last if name.startswith("seconds_")]
        return {name: float(last[name]) - float(first[name]) for name in names}

    def snapshot(self, n, place=None):
        """Returns the time of the final snapshot of 512^3 cells in seconds, written to disk or to the folder `place`."""
        seconds = []
        for final in ["false", "true"]:
            with tempfile.TemporaryDirectory(dir=place) as folder:
                settings = [f"output.directory={folder}/run", f"output.final={final}", "domain.cells=[512,512,512]"]
                start = time.monotonic()
                call([self.nestar, "run", str(BENCH / "noise.toml"), "--device", "cuda", "--ranks", str(n)] + pairs(settings))
                seconds.append(time.monotonic() - start)
        if seconds[1] <= seconds[0]:
            raise ValueError(f"a run takes {seconds[0]:.2f} s without the snapshot and {seconds[1]:.2f} s with it")
        return seconds[1] - seconds[0]

    def digest(self, deck, n, launcher):
        with tempfile.TemporaryDirectory() as folder:
            settings = [f"output.directory={folder}/run", "time.max_steps=12", "output.steps=0"]
            ranks = [] if launcher else ["--ranks", str(n)]
            call(launcher + [self.nestar, "run", str(ROOT / "scenarios" / deck), "--device", "cuda"] + ranks + pairs(settings))
            return call([self.nestar, "digest", f"{folder}/run"]).split()[-2:][0]

    def digests(self):
        for deck in ["blast-adaptive.toml", "double-mach.toml", "plummer.toml"]:
            for n in self.counts:
                self.tried(f"digest | {deck} | {n} | threads", self.digest, deck, n, [])
            n = self.counts[-1]
            launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(n)]
            if n > 1:
                self.tried(f"digest | {deck} | {n} | mpi", self.digest, deck, n, launcher)

    def disk(self):
        """Returns the write rate of one process to the disk of the snapshots, in bytes per second."""
        with tempfile.TemporaryDirectory() as folder:
            size, start = 4 << 30, time.monotonic()
            call(["dd", "if=/dev/zero", f"of={folder}/file", "bs=64M", f"count={size >> 26}", "conv=fsync"])
            return size / (time.monotonic() - start)

    def all(self, parts, cases):
        if "cases" in parts:
            self.cases(cases)
        for n in self.counts:
            if "slab" in parts:
                self.tried(f"slab | {n}", self.slab, n)
            if "snapshot" in parts:
                self.tried(f"snapshot | {n}", self.snapshot, n)
                self.tried(f"snapshot in memory | {n}", self.snapshot, n, MEMORY)
        if "snapshot" in parts:
            self.tried("disk", self.disk)
        if "digests" in parts:
            self.digests()


def scientific(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.3e}".replace("e+", "e").replace("e0", "e")


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def efficiency(found, name, precision, n):
    """Returns rate, parallel efficiency (`None` without a result on one rank) and predicted rate of a case on n ranks."""
    key = f"{name} | {precision} | {n}"
    rate = found[key]["cell_updates_per_second"]
    one = found.get(f"{name} | {precision} | 1")
    return rate, one and rate / (n * one["cell_updates_per_second"]), found.get(f"plan | {key}")


def rates(found):
    rows = []
    for name, _, _ in CASES:
        for precision in PRECISIONS:
            row = [name, precision]
            for n in found["counts"]:
                if f"{name} | {precision} | {n}" not in found:
                    row.append("-")
                    continue
                rate, parallel, plan = efficiency(found, name, precision, n)
                text = scientific(rate) + (f" ({100 * parallel:.1f}%)" if parallel and n > 1 else "")
                row.append(text + (f", plan {scientific(plan)} ({100 * (plan / rate - 1):+.0f}%)" if plan else ""))
            if set(row[2:]) != {"-"}:
                rows.append(row)
    return table(["case", "precision"] + [f"{n} GPU" + "s" * (n > 1) for n in found["counts"]], rows)


def halos(found):
    rows = []
    for name, _, _ in CASES:
        for n in found["counts"][1:]:
            result = found.get(f"{name} | single | {n}")
            profile = result and result.get("profile")
            if not profile:
                continue
            steps, times = result["level_steps"], result["plugin_seconds"]
            wall = result["wall_seconds"]
            regrids = 1e3 * times["regrid"] / result["regrids"] if result["regrids"] else None
            rows.append([
                name, n, f"{result['halos']['bytes_sent'] / steps / 2**20:.2f} MiB",
                f"{100 * profile['exposed_halo_seconds'] / profile['wall_seconds']:.2f}%",
                f"{100 * result['halos']['waited_seconds'] / wall:.1f}%", f"{100 * result['imbalance']:.1f}%",
                f"{100 * times['hydro'] / wall:.0f}%, {100 * times['refinement'] / wall:.1f}%, {100 * times['regrid'] / wall:.1f}%",
                f"{regrids:.2f} ms" if regrids is not None else "",
            ])
    head = ["case, single precision", "GPUs", "sent per level step", "exposed halo exchange", "host waits", "imbalance",
            "gas, flags, regrid", "time per regrid"]
    return table(head, rows)


def written(found, kind, n):
    """Returns the time of a snapshot, with the speedup over one rank."""
    first, own = found.get(f"{kind} | 1"), found.get(f"{kind} | {n}")
    if own is None:
        return "-"
    return f"{own:.2f} s" + (f" ({first / own:.2f} times)" if first and n > 1 else "")


def others(found):
    rows = []
    for n in found["counts"]:
        slab = found.get(f"slab | {n}")
        cells = ["-", "-"] if slab is None else [f"{1e3 * slab['seconds_hydro']:.0f} ms", f"{1e3 * slab['seconds_regrid']:.0f} ms"]
        rows.append([n] + cells + [written(found, kind, n) for kind in ["snapshot", "snapshot in memory"]])
    head = ["GPUs", f"moving slab, {SLAB_STEPS - 1} root steps: advance", "regrid", "snapshot of 512^3", f"snapshot of 512^3 in {MEMORY}"]
    lines = table(head, rows)
    digests = {key: value for key, value in found.items() if key.startswith("digest | ")}
    for deck in sorted({key.split(" | ")[1] for key in digests}):
        own = {key: value for key, value in digests.items() if key.split(" | ")[1] == deck}
        ways = ", ".join(" by ".join(key.split(" | ")[2:]) for key in own)
        verdict = "one digest" if len(set(own.values())) == 1 else f"DIFFERENT digests {own}"
        lines.append(f"`scenarios/{deck}`, 12 root steps, ranks {ways}: {verdict}.")
    if "disk" in found:
        lines.append(f"Write rate of the disk from one process (`dd`): {found['disk'] / 1e9:.1f} GB/s.")
    for key, why in found["failed"]:
        without = "built without MPI" in why or "mpirun" in why and "No such file" in why
        reason = "the program was built without MPI, or there is no launcher" if without else why.strip().splitlines()[-1]
        lines.append(f"Not measured: {key}: {reason}.")
    return lines


def report(found):
    top = (f"{found['counts'][-1]} {found['gpu']} of one host (driver {found['driver']}), {found['date']}, {found['program']}; "
           "`python3 tools/python/scaling.py measure`. In brackets: parallel efficiency relative to one GPU. `plan`: prediction of "
           f"`nestar plan` from the rate of one GPU, with `{' '.join(LINK)}`; Kelvin-Helmholtz has a constant mesh, so also `--regrid 0`.")
    return "\n".join([top, ""] + rates(found) + halos(found) + others(found))


def write(figures, path):
    found = json.loads(figures.read_text(encoding="utf-8"))
    missing = [key for key in ["counts", "gpu", "driver", "date", "program", "failed"] if not isinstance(found, dict) or key not in found]
    if missing:
        raise UserError(f"{figures}: `{missing[0]}` is missing: give a file written by `measure --to`")
    text = path.read_text(encoding="utf-8")
    for mark in MARKS:
        if text.count(mark) != 1:
            raise UserError(f"{path}: the line `{mark}` occurs {text.count(mark)} times; the tables are written between one `{MARKS[0]}` and one `{MARKS[1]}`")
    begin, end = (text.index(mark) for mark in MARKS)
    path.write_text(f"{text[:begin]}{MARKS[0]}\n{report(found)}\n{text[end:]}", encoding="utf-8")


def some_of(known):
    """Returns the parser of an argument that is a comma-separated list of words in `known`."""

    def words(text):
        named = text.split(",")
        for word in named:
            if word not in known:
                raise argparse.ArgumentTypeError(f"no `{word}`; known are {', '.join(known)}")
        return named

    return words


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure", help="measure on this host")
    measure.add_argument("--nestar", default=str(ROOT / "target/release/nestar"), help="path of the program, default %(default)s")
    measure.add_argument("--to", type=pathlib.Path, default=pathlib.Path("scaling.json"), help="file of the results, default %(default)s")
    measure.add_argument("--most", type=positive, default=8, help="maximum number of GPUs; 1, 2, 4 and 8 are used")
    measure.add_argument("--parts", type=some_of(PARTS), default=PARTS, help="comma-separated parts to measure, default all: " + ",".join(PARTS))
    measure.add_argument("--cases", type=some_of(ROOTS), default=[], help="comma-separated cases to measure, default all: " + ",".join(ROOTS))
    writing = commands.add_parser("write", help="write the tables")
    writing.add_argument("figures", type=pathlib.Path, help="file written by `measure`")
    writing.add_argument("document", type=pathlib.Path, help="file with the two marks")
    arguments = parser.parse_args()
    try:
        if arguments.command == "measure":
            Measuring(arguments.nestar, arguments.to, arguments.most).all(arguments.parts, arguments.cases)
        else:
            write(arguments.figures, arguments.document)
    except json.JSONDecodeError as error:
        sys.exit(f"error: {arguments.figures}: {error}: give a file written by `measure --to`")
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
