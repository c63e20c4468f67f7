"""Answers each question of speed with figures, their targets and whether they are met.

    python tests/bench/run.py [--quick] [--here | --python PATH] [--json] [--profile] [QUESTION …]

A fresh virtual environment with the wheels is made first. `--python` names an interpreter that has
the packages installed already; `--here` takes this one and its path, which is quick to try and not
what users have. Exit status 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bench_amd
import bench_bytecode
import bench_child
import bench_cluster
import bench_cold
import bench_commands
import bench_doctor
import bench_engines
import bench_env
import bench_exo
import bench_export
import bench_first
import bench_hang
import bench_images
import bench_import
import bench_intel
import bench_leases
import bench_memory
import bench_nvidia
import bench_partition
import bench_predictions
import bench_price
import bench_reading
import bench_ready
import bench_real
import bench_report
import bench_rivals
import bench_samples
import bench_sealed
import bench_serving
import bench_stages
import bench_user
import bench_watch
import bench_way
import place as places
from measure import Figure

QUESTIONS: dict[str, Callable[[places.Place], Iterator[Figure]]] = {
    "price": bench_price.run,
    "first": bench_first.run,
    "real": bench_real.run,
    "import": bench_import.run,
    "cold": bench_cold.run,
    "bytecode": bench_bytecode.run,
    "rivals": bench_rivals.run,
    "nvidia": bench_nvidia.run,
    "amd": bench_amd.run,
    "intel": bench_intel.run,
    "user": bench_user.run,
    "stages": bench_stages.run,
    "ready": bench_ready.run,
    "child": bench_child.run,
    "hang": bench_hang.run,
    "memory": bench_memory.run,
    "exo": bench_exo.run,
    "export": bench_export.run,
    "partition": bench_partition.run,
    "predictions": bench_predictions.run,
    "serving": bench_serving.run,
    "cluster": bench_cluster.run,
    "engines": bench_engines.run,
    "sshd": bench_engines.first_answer,
    "commands": bench_commands.run,
    "doctor": bench_doctor.run,
    "env": bench_env.run,
    "images": bench_images.run,
    "report": bench_report.run,
    "reading": bench_reading.run,
    "sealed": bench_sealed.run,
    "leases": bench_leases.run,
    "samples": bench_samples.run,
    "watch": bench_watch.run,
    "way": bench_way.run,
}
MARKS = {True: "pass", False: "FAIL", None: ""}


def main(argv: list[str] | None = None) -> int:
    """Run the questions asked; returns the exit status."""
    options = _parser().parse_args(argv)
    with places.temporary() as name:
        place = _place(options, Path(name))
        if not options.json:
            print(f"{place.python}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        missed = 0
        for question in options.questions or QUESTIONS:
            for figure in QUESTIONS[question](place):
                missed += figure.passed is False
                _show(question, figure, as_json=options.json)
        if options.profile:
            print("\n".join(bench_cold.profile(place)))
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--profile", action="store_true", help="also which imports cost most")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--here", action="store_true", help="this interpreter and its path")
    where.add_argument("--python", metavar="PATH", help="an interpreter that has the packages")
    return parser


def _place(options: argparse.Namespace, folder: Path) -> places.Place:
    for question in options.questions:
        if question not in QUESTIONS:
            raise SystemExit(f"{question!r} is no question: one of {', '.join(QUESTIONS)}")
    if options.here:
        return places.this_interpreter(folder, options.quick)
    if options.python:
        return places.given(options.python, folder, options.quick)
    return places.fresh(folder, options.quick)


def _show(question: str, figure: Figure, *, as_json: bool) -> None:
    if as_json:
        fields = {"name": figure.name, "value": figure.value, "unit": figure.unit}
        fields |= {"target": figure.target, "goal": figure.goal, "passed": figure.passed}
        fields["note"] = figure.note
        print(json.dumps({"question": question, **fields}), flush=True)
        return
    sign = ">=" if figure.least else "<="
    target = "" if figure.target is None else f"{sign} {figure.target:g}"
    value = f"{figure.value:.3g} {figure.unit}"
    mark = MARKS[figure.passed]
    goal = "" if figure.goal is None else f"goal {figure.goal:g}"
    note = "; ".join(filter(None, (goal, figure.note)))
    print(f"{question:8} {figure.name:44} {value:>14} {target:>8} {mark:4}  {note}".rstrip())
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
