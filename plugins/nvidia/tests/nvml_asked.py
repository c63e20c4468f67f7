"""Asks the prober of one machine: in a process of its own, or in that of the tests.

    python nvml_asked.py < QUESTION

The question and the answer are JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from probe_core.api import Machine, NotApplicable, Request, Unavailable
from probe_core.probers import bus


class Rooted(Machine):
    """Reads the machine's files below a root, but counts as live: the library may be asked."""

    def path(self, path: str) -> str:
        return self.root + path


def answer_to(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what the prober said: devices, findings, or why there is nothing."""
    machine = Rooted(asked["root"], asked["environ"], asked["os"], asked["arch"])
    seen: Any = bus.probe_devices(Request(machine))
    seen = [] if isinstance(seen, NotApplicable) else seen
    machine.live = True
    if asked["by"] == "nvidia-ml-py":  # a client that is there already is the one that is used
        import pynvml

        for name in asked["without"]:
            delattr(pynvml, name)
    loaded = set(sys.modules)
    said: dict[str, Any] = {"devices": [], "findings": []}
    try:
        _ask(machine, seen, asked, said)
    except Unavailable as error:
        said["error"] = {"reason": error.reason, "code": error.code, "fix": error.fix}
    said["modules"] = [name for name in ("pynvml", "_ctypes") if name in set(sys.modules) - loaded]
    return said


def _ask(machine: Machine, seen: Any, asked: dict[str, Any], said: dict[str, Any]) -> None:
    from probe_nvidia.prober import probe_devices

    touched = said["touched"] = []
    request = Request(
        machine,
        seen,
        active=asked["active"],
        avoid=asked["avoid"],
        serial=not asked["threads"],
        announce=lambda kind, device: touched.append(device),
    )
    answer = probe_devices(request)
    if isinstance(answer, NotApplicable):
        said["not_applicable"] = answer.reason
        return
    for item in answer:
        key = "findings" if "finding" in item else "devices"
        said[key].append(item.get("finding", item))
        if asked["flush"]:
            print(json.dumps(item), file=sys.stderr, flush=True)


if __name__ == "__main__":
    json.dump(answer_to(json.load(sys.stdin)), sys.stdout)
