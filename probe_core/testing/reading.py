"""Holds what a prober reads against what it declares, so that its recordings lack nothing."""

from __future__ import annotations

from pathlib import Path

from probe_core.machine.surroundings import ROOT
from probe_core.recording.coverage import Coverage
from probe_core.recording.declared import declared_by, own_declarations
from probe_core.recording.gather import PCI
from probe_core.recording.paths import check_absolute
from probe_core.registry.prober import Prober
from probe_core.testing.case import Case, watch_case

__all__ = ["JUDGED", "undeclared"]

JUDGED = ("/sys/", "/proc/", "/dev/", "/etc/", "/opt/", "/run/", "/usr/lib/", "/usr/share/")
"""Where the files of hardware and drivers lie; a tool in /usr/bin is run, and not recorded."""

_OF_PROCESS = "/proc/self/"
_MAX_SHOWN = 10


def undeclared(prober: Prober, case: Case) -> list[str]:
    """Return a sentence for each path that the prober reads and no recording would hold."""
    _, noted = watch_case(prober, case)
    declared, _ = declared_by(prober)
    coverage = Coverage(case.machine, [*own_declarations(), declared])
    missing = [
        path for path in noted["read"] if path.startswith(JUDGED) and not coverage.holds(path)
    ]
    if declared.answers:  # the recording has its answer, which libraries and tools gave as well
        missing = [path for path in missing if _can_be_declared(path)]
    return [_sentence(prober, path, coverage) for path in missing[:_MAX_SHOWN]]


def _sentence(prober: Prober, path: str, coverage: Coverage) -> str:
    reads = f"prober {prober.name!r} reads {path}, which no recording has"
    place = f"`records` of {prober.name!r} in {_manifest(prober)}"
    return f"{reads}: add {_declaration(path, coverage)} to {place}"


def _manifest(prober: Prober) -> str:
    paths = [path for path in prober.files if path.endswith("prober.json")]
    return paths[0] if paths else "a prober.json beside its module"


def _declaration(path: str, coverage: Coverage) -> str:
    """Return what declares a path, as it is written in JSON."""
    if path.startswith("/dev/"):
        return f'"nodes": ["{path}"]'
    if path.startswith(f"{ROOT}/") and "." in path.rpartition("/")[2]:
        return f'"cgroup": ["{path.rpartition("/")[2]}"]'
    if found := coverage.device(path):
        bus, device, below = found
        if bus == PCI:
            return f'"pci": [{{"pci_vendor": ["{device.vendor}"], "files": ["{below}"]}}]'
        return f'"platform": [{{"files": ["{below}"]}}]'
    return f'"files": ["{path}"]' if _can_be_declared(path) else '"answers": true'


def _can_be_declared(path: str) -> bool:
    if ".so" in Path(path).name:  # a library is loaded, and too long to keep
        return False
    try:
        return bool(path.startswith("/dev/") or check_absolute(path))
    except ValueError:
        return False
