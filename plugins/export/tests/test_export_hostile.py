"""Every format, of a report in which others chose the names: none ends a value or runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from export_nodes import GIB, READY
from hostile_names import ALL, MARK

from probe_core.pipeline.static import parse_document
from probe_export import export, formats
from probe_export.capacity import cause, stable_names

TEXT = 'A Card\'; touch other; "$(touch other)"\\\n[Service]'
"""A device's name is text for people: it may be cleaned and quoted, and is never run."""


def device(number: int, name: str) -> dict[str, Any]:
    """Return a device with `name` wherever a plugin chooses a name."""
    step = {"step": "granted", "status": "broken", "evidence": name, "code": name}
    ready = number % 3 == 0
    return {
        "id": f"x:{name}" if number % 2 else name,
        "ids": [f"x:{name}", f"uuid:GPU-{name}"],
        "kind": "gpu",
        "vendor": ("nvidia", "amd", "intel", "acme")[number % 4],
        "name": TEXT,
        "arch": TEXT,
        "driver": {"name": TEXT, "version": TEXT},
        "compute_capability": TEXT,
        "chip": {"id": None, "by": None, "confidence": None, "candidates": []},
        "memory": {"kind": "dedicated", "total": GIB},
        "nodes": [f"/dev/nvidia{number}", f"/dev/nvidia-caps/nvidia-cap1 {name}", f"/dev/{name}"],
        "parent": f"x:{name}" if number % 5 == 4 else None,
        "profile": name,
        "readiness": {
            "state": "ready" if ready else "blocked",
            "broken": None if ready else "granted",
            "steps": READY if ready else [step],
        },
    }


def hostile() -> Any:
    """Return a report, as a core reads one from a file that somebody else wrote."""
    outcomes = [
        {
            **{"prober": name, "distribution": name, "status": "ok", "reason": None},
            **{"partial": False, "devices": 1, "elapsed_ms": 1.0},
        }
        for name in (*ALL, "good")
    ]
    finding = {"severity": "error", "what": TEXT, "why": TEXT, "fix": TEXT}
    document = {
        "schema": 1,
        "node": {"os": "linux", "arch": "x86_64", "host": "node1"},
        "devices": [device(number, name) for number, name in enumerate(ALL)],
        "outcomes": outcomes,
        "findings": [{**finding, "code": name, "prober": name} for name in ALL],
    }
    return parse_document(json.dumps(document).encode("utf-8", "surrogatepass"))


_VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PAIR = rf"[a-z_]+={_VALUE}"
GRAMMAR = {
    # A line of the format as its reader has it; the values of `env` may hold anything but a quote.
    "prometheus": rf"# (?:HELP|TYPE) .*|[a-z_]+(?:\{{{_PAIR}(?:,{_PAIR})*\}})? \S+",
    "nfd": rf"feature\.node\.kubernetes\.io/{_LABEL}={_LABEL}",
    "slurm": r"#.*|AutoDetect=off|Name=gpu(?: [A-Za-z]+=[A-Za-z0-9_.,/-]+)+",
    "env": r"[A-Z_]+='[^'\n]*'",
    "ray": r'--num-gpus=\d+(?: --resources=\{(?:"[A-Za-z0-9:_.-]+":\d+,?)*\})?'
    r"(?: --labels=(?:[A-Za-z0-9/._-]+=\d+,?)*)?",
    "otel": r"OTEL_RESOURCE_ATTRIBUTES=(?:[a-z.]+=[A-Za-z0-9_.~%-]*,?)*",
}


@pytest.mark.parametrize("name", sorted(GRAMMAR))
def test_each_line_is_one_of_the_format(name: str) -> None:
    text = export(name, hostile())
    assert text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    assert [line for line in lines if not re.fullmatch(GRAMMAR[name], line)] == []


@pytest.mark.parametrize("name", sorted({*GRAMMAR, "ansible", "dra"}))
def test_no_format_has_a_name_that_is_none(name: str) -> None:
    """Ids, codes and probers' names that do not pass are left out, and not escaped."""
    text = export(name, hostile())
    assert text
    # Behind the kind of an id a dash or a dot is no option and no hidden file.
    through = {match.group() for match in re.finditer(rf"[^\s\"]*{MARK}[^\s\"]*", text)}
    assert {word.rpartition("/")[2].rstrip(",") for word in through} <= {
        *(f"x:{dots}{MARK}" for dots in ("-", "--", ".", "..")),
        *(f"dev-x-{dots}{MARK}" for dots in ("-", "--")),
        *(f"dev-x{dashes}{MARK}" for dashes in ("-", "--", "---")),
    }


def test_each_format_is_walked() -> None:
    documents = {"ansible", "dra", "exo"}  # exo's has the devices' ids, as `probe --json` has them
    assert set(formats()) <= set(GRAMMAR) | documents


@pytest.mark.parametrize("name", sorted({"ansible", "dra", "exo"} & set(formats())))
def test_documents_are_json(name: str) -> None:
    assert json.loads(export(name, hostile()))


def test_a_shell_runs_no_name(tmp_path: Path) -> None:
    text = export("env", hostile())
    subprocess.run(["sh", "-ec", text], cwd=tmp_path, timeout=60, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_device_without_a_name_for_programs_is_counted_all_the_same() -> None:
    report = hostile()
    devices = report["devices"]
    names = stable_names(devices)
    assert len(set(names.values())) == len(devices)
    assert names[f"x:{ALL[1]}"] == "gpu.1"
    blocked = next(d for d in devices if d["readiness"]["state"] == "blocked")
    assert cause(blocked) == "granted"


def test_the_probers_that_count_have_names() -> None:
    lines = export("prometheus", hostile()).splitlines()
    assert [line for line in lines if line.startswith("probecore_prober_ok{")] == [
        'probecore_prober_ok{prober="good"} 1'
    ]
