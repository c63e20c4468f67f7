"""No text of a plugin, a chip file, a setting or a report reaches a terminal as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_names import TERMINAL as EVIL

HEAD = "from probe_core.api import *\n"
DEVICE = {
    "ids": ["x:1"],
    "kind": "gpu",
    "vendor": EVIL,
    "name": f"Card {EVIL}",
    "arch": EVIL,
    "driver": {"name": EVIL, "version": EVIL},
    "unknown": {EVIL: EVIL, "memory.total": EVIL},
    "extra": {EVIL: EVIL},
    "memory": {"kind": EVIL},
    "links": [{"kind": EVIL, "peer": EVIL}],
    "backends": [EVIL],
    "dt": [EVIL],
    "nodes": [f"/dev/{EVIL}"],
    "step_facts": [{"step": "granted", "status": "broken", "evidence": EVIL, "code": EVIL}],
}
PROBERS = {
    "yields": f"yield {DEVICE!r}\n    yield finding({EVIL!r}, what={EVIL!r}, why={EVIL!r},"
    f" fix={EVIL!r}, device={EVIL!r}, evidence={EVIL!r})",
    "raises": f"raise Unavailable({EVIL!r}, code={EVIL!r}, fix={EVIL!r})",
    "fails": f"raise ValueError({EVIL!r})",
    "prints": f"import sys; print({EVIL!r}, file=sys.stderr); sys.exit({EVIL!r})",
    "absent": f"return not_applicable({EVIL!r})",
}


def distribution(site: Path, name: str, entries: str, version: str = "1.0") -> None:
    info = site / f"probe_{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: probe-{name}\n")
    (info / "entry_points.txt").write_text(entries)


def sites(folder: Path) -> Path:
    """Install a distribution for each way in which text comes in, and return their folder."""
    site = folder / "site"
    for name, body in PROBERS.items():
        distribution(site, name, f"[probe_core.probers.v1]\n{name} = x_{name}\n")
        code = f"{HEAD}@hookimpl\ndef probe_devices(request):\n    {body}\n"
        (site / f"x_{name}.py").write_text(code, "utf-8")
    evil = {"priority": EVIL, EVIL: EVIL, "summary": EVIL, "when": {"any_path": [EVIL], EVIL: 1}}
    manifest = {"schema": 1, "probers": {"absent": evil}}
    (site / "x_absent.prober.json").write_text(json.dumps(manifest))
    (site / "x_fails.prober.json").write_text(json.dumps({"schema": EVIL, "probers": {}}))
    (site / "x_raises.prober.json").write_text(EVIL, "utf-8")
    distribution(site, "names", f"[probe_core.probers.v1]\n{EVIL} = {EVIL}\n")
    distribution(site, "line", f"[probe_core.probers.v1]\n{EVIL}\n")
    distribution(site, f"version{EVIL}", "[probe_core.probers.v1]\nodd = x_no\n", EVIL)
    commands = f"[probe_core.commands.v1]\ntop = c_top\n{EVIL} = c_top\nlost = {EVIL}\n"
    distribution(site, "commands", commands)
    (site / "c_top.py").write_text("HELP = 'x'\nadd_arguments = run = print\n")
    fields = {"top": {"summary": EVIL, "group": EVIL}}
    (site / "c_top.command.json").write_text(json.dumps({"schema": 1, "commands": fields}))
    return site


def chips(folder: Path) -> str:
    path = folder / "chips.toml"
    text = json.dumps(EVIL)  # TOML's basic strings take JSON's escapes
    path.write_text(f"[[chip]]\nid = {text}\nname = {text}\nvendor = {text}\nkind = {text}\n")
    return str(path)


def static(folder: Path) -> str:
    device = {"id": "x:1", "kind": "gpu", "name": EVIL, "vendor": EVIL, "unknown": {"arch": EVIL}}
    whole = {"code": EVIL, "what": EVIL, "why": EVIL, "fix": EVIL, "severity": "error"}
    outcome = {"prober": EVIL, "distribution": EVIL, "status": EVIL, "reason": EVIL}
    report = {"schema": 1, "node": {"os": EVIL, "arch": EVIL, "model": EVIL}, "devices": [device]}
    report |= {"findings": [whole], "outcomes": [outcome]}
    path = folder / "static.json"
    path.write_text(json.dumps(report))
    return str(path)


COMMANDS = {
    "report": ["--timeout", "5"],
    "report with chips": ["--only", "cpu", "--chipdb", "CHIPS"],
    "static report": ["--static", "STATIC"],
    "explain a static report": ["explain", "--static", "STATIC"],
    "visible of a static report": ["visible", "--static", "STATIC"],
    "layout of a static report": ["layout", "1", "--static", "STATIC"],
    "explain": ["explain"],
    "plugins": ["plugins"],
    "why-not": ["plugins", "why-not", "fails"],
    "why-not of a strange name": ["plugins", "why-not", EVIL],
    "check": ["plugins", "check", "absent"],
    "visible": ["visible"],
    "help": ["--help"],
    "completion": ["completion", "bash"],
    "completion of fish": ["completion", "fish"],
    "a plugin's command": ["top"],
    "a strange command": [EVIL],
    "a strange option": [f"--{EVIL}"],
    "a strange prober": ["--only", EVIL],
    "a strange number": ["--timeout", EVIL],
    "a strange file": ["--config", EVIL],
    "a strange machine": ["--machine", EVIL],
    "a strange chip": ["chip", EVIL],
    "a strange device": ["explain", EVIL],
    "leases": ["leases"],
    "exec": ["exec", "--static", "STATIC", "--", EVIL],
}
ENVIRONMENTS = {
    "settings": {"PROBE_TIMEOUT": EVIL, "PROBE_ONLY": EVIL, f"PROBE_{EVIL}": "1"},
    "restrictions": {"PROBE_ALLOW": EVIL, "PROBE_CONFIG": f"/{EVIL}"},
    "files": {"PROBE_STATIC": f"/{EVIL}", "PROBE_CHIPDB": f"/{EVIL}"},
    "masks": {"CUDA_VISIBLE_DEVICES": EVIL, "HIP_VISIBLE_DEVICES": EVIL, "DEV": EVIL},
}


def shown(arguments: list[str], folder: Path, environ: dict[str, str]) -> str:
    """Return what the command writes for people."""
    paths = [str(folder / "site"), *(path for path in sys.path if path)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PROBE_")}
    base = {**clean, "PYTHONPATH": ":".join(paths), "NO_COLOR": "1", "PYTHONUTF8": "1"}
    base |= {"HOME": str(folder), "PROBE_LEASES": str(folder / "leases"), "COLUMNS": "100"}
    command = [sys.executable, "-m", "probe_core", *arguments]
    done = subprocess.run(command, env=base | environ, capture_output=True, timeout=60, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def assert_harmless(text: str) -> None:
    odd = {c for c in text if not (c.isprintable() or c in "\n ")}
    reordering = set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert odd | (reordering & set(text)) == set(), text
    assert not any(line.startswith("Traceback") for line in text.splitlines())


@pytest.mark.heavy
@pytest.mark.parametrize("case", COMMANDS)
def test_no_command_shows_foreign_text_as_it_is(case: str, tmp_path: Path) -> None:
    sites(tmp_path)
    files = {"CHIPS": chips(tmp_path), "STATIC": static(tmp_path)}
    text = shown([files.get(word, word) for word in COMMANDS[case]], tmp_path, {})
    assert text
    assert_harmless(text)


@pytest.mark.heavy
@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_no_variable_is_shown_as_it_is(case: str, tmp_path: Path) -> None:
    sites(tmp_path)
    text = shown([], tmp_path, ENVIRONMENTS[case])
    assert text
    assert_harmless(text)
