"""Reports for tests: probe a recorded or a made-up machine, and hold the report to its schema."""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import jsonschema
import recorded
from report_schema import schema

import probe_core

ROOT = Path(__file__).resolve().parents[2]
BUILT_IN = "cpu"
"""A name for `only` that leaves out whatever plugins happen to be installed."""


@cache
def validator() -> Any:
    """Return what holds documents to the schema; it reads no value of a field a second time.

    Reports are alike, and jsonschema would take as long for each as probing the machine.
    """
    valid: set[tuple[int, str]] = set()

    def properties(validator: Any, fields: Any, value: Any, schema: Any) -> Iterator[Any]:
        for name in fields.keys() & value.keys() if isinstance(value, dict) else ():
            key = id(fields[name]), json.dumps(value[name])
            if key not in valid:
                errors = list(validator.descend(value[name], fields[name], name, name))
                yield from errors
                if not errors:
                    valid.add(key)

    kind = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"properties": properties})
    return kind(schema())


def validated(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document if it is one of the published schema; every test's reports are."""
    problems = [f"{list(e.absolute_path)}: {e.message}" for e in validator().iter_errors(document)]
    assert not problems, problems[:5]
    return document


def report_of(machine: probe_core.Machine, **arguments: Any) -> dict[str, Any]:
    """Probe a machine, with the built-in probers alone unless told otherwise."""
    arguments = {"only": BUILT_IN} | arguments
    return validated(probe_core.probe(machine=machine, **arguments).to_json())


def machine_of(data: Mapping[str, Any], folder: Path) -> probe_core.Machine:
    """Unpack a recording and return the machine."""
    root = str(recorded.unpack(dict(data), folder))
    return probe_core.Machine(root, data["environ"], data["os"], data["arch"])


def report_of_recording(name: str, *plugins: str) -> dict[str, Any]:
    """Return the report of a recorded machine, seen by the built-in probers and these plugins.

    A process probes each machine once; the report is a copy that the caller may change.
    """
    report: dict[str, Any] = json.loads(_text_of_recording(name, plugins))
    return report


@cache
def _text_of_recording(name: str, plugins: tuple[str, ...]) -> str:
    return json.dumps(report_of(recorded_machine(name), **plugins_together(*plugins)))


@cache
def recorded_machine(name: str) -> probe_core.Machine:
    """Return a recorded machine; a process unpacks it once, and no test may change it."""
    return machine_of(recorded.read(name), Path(_unpacked()) / name)


@cache
def _unpacked() -> str:
    folder = mkdtemp(prefix="probe-recorded-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder


def plugins_together(*names: str) -> dict[str, Any]:
    """Return the arguments that run several plugins of the repository; none without a name."""
    if not names:
        return {}
    probers = {name: target for each in names for name, target in plugin(each)["probers"].items()}
    return {"only": ",".join(names), "probers": probers}


def plugin(name: str) -> dict[str, Any]:
    """Return the arguments that run one of the repository's plugins, installed or not."""
    import sys

    source = str(ROOT / "plugins" / name / "src")
    if source not in sys.path:
        sys.path.append(source)
    import_module(f"probe_{name}")
    return {"only": name, "probers": {name: {"target": f"probe_{name}.prober"}}}


def codes(document: Mapping[str, Any]) -> list[str]:
    return sorted(finding["code"] for finding in document["findings"])


def at(data: Any, path: str) -> Any:
    """Return the value at a dotted path; keys may hold dots themselves (`sources.memory.total`)."""
    if not path:
        return data
    if isinstance(data, list):
        head, _, rest = path.partition(".")
        number = int(head)
        return at(data[number], rest) if number < len(data) else None
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        key = ".".join(parts[:length])
        if isinstance(data, dict) and key in data:
            return at(data[key], ".".join(parts[length:]))
    return None
