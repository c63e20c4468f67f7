"""Generates plugin distributions, as pip would have installed them, for benchmarks of many."""

from __future__ import annotations

import compileall
import json
from pathlib import Path
from typing import Any

GOOD = """
from probe_core.api import hookimpl

@hookimpl
def probe_devices(request):
    ids = ["pci:0000:{number:02x}:00.0"]
    yield {{"ids": ids, "kind": "npu", "vendor": "acme", "name": "A{number}"}}
"""
HANGS = """
import time
from probe_core.api import hookimpl

@hookimpl
def probe_devices(request):
    time.sleep(60)
    return []
"""
ABSENT = {"any_path": ["/sys/class/acme/no-such-device"]}


def make(site: Path, name: str, source: str, **manifest: Any) -> None:
    """Write a distribution with one prober `name`, whose module holds `source`."""
    module = f"bench_{name}"
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{name} = {module}\n")
    fields = {"summary": f"Invented prober {name}", "api": "1.0", **manifest}
    text = json.dumps({"schema": 1, "probers": {name: fields}})
    (site / f"{module}.prober.json").write_text(text)


def many(folder: Path, count: int, *, absent: bool, packages: bool = False) -> Path:
    """Return a folder with `count` good probers, whose hardware is `absent` or not.

    Each is a module of one file, or of `packages` a folder with some files.
    """
    forms = "packages" if packages else "modules"
    site = folder / f"{forms}-{'absent' if absent else 'present'}-{count}"
    site.mkdir(parents=True, exist_ok=True)
    when = {"when": ABSENT} if absent else {}
    for number in range(count):
        make(site, f"acme{number:02}", GOOD.format(number=number), **when)
        if packages:
            _as_package(site, f"bench_acme{number:02}")
    compileall.compile_dir(site, quiet=2)
    return site


def _as_package(site: Path, module: str) -> None:
    """Make a folder of a module, with as many files as the plugins of ours have at least."""
    package = site / module
    package.mkdir()
    (site / f"{module}.py").rename(package / "__init__.py")
    (site / f"{module}.prober.json").rename(package / "prober.json")
    for name in ("names.py", "reading.py", "py.typed"):
        (package / name).touch()


def good_and_hanging(folder: Path, good: int, hanging: int, deadline_s: float) -> Path:
    """Return a folder with probers that answer and probers that hang."""
    site = many(folder, good, absent=False)
    for number in range(hanging):
        make(site, f"hang{number}", HANGS, deadline_s=deadline_s)
    return site


def crowd(folder: Path, count: int) -> Path:
    """Return a folder with the metadata of `count` distributions that are none of ours."""
    site = folder / f"crowd-{count}"
    for number in range(count):
        info = site / f"somebody_{number:03}-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: somebody-{number:03}\n")
        (info / "entry_points.txt").write_text(f"[console_scripts]\ntool{number} = somebody:run\n")
    return site
