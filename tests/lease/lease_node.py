"""A faked node for lease tests: a static report, a lease folder, and the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from probe_core.leasing.records import Record, own_record

ROOT = Path(__file__).resolve().parents[2]
MAIN = "import sys; from probe_core.cli import main; sys.exit(main())"


def gpu(slot: int, **more: Any) -> dict[str, Any]:
    name = f"pci:0000:{slot:02x}:00.0"
    device: dict[str, Any] = {
        "id": name,
        "ids": [name, f"uuid:GPU-0000000{slot:x}-0000-0000-0000-00000000000{slot:x}"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA H100 80GB HBM3",
        "driver": {"name": "nvidia", "version": "580.95.05"},
        "memory": {"kind": "dedicated", "total": 80 << 30, "free": 79 << 30, "usable": 79 << 30},
        "chip": {"id": None, "by": None, "confidence": None, "candidates": []},
    }
    device |= dict.fromkeys(("arch", "parent", "pci", "power_state", "units", "bandwidth"))
    device |= dict.fromkeys(("fp32", "fp16", "int8"))
    device |= {part: [] for part in ("peaks", "backends", "links", "seen_by")}
    device |= {part: {} for part in ("visibility", "unknown", "sources", "others")}
    return device | more


def recorded(
    devices: Sequence[str],
    command: Sequence[str] = (),
    *,
    share: bool = False,
    since: float = 1.0,
    mark: str | None = None,
) -> Record:
    """Return the record of a lease that this process has on devices."""
    record = own_record(command, share=share, mark=mark or os.urandom(8).hex())
    record.devices, record.since = list(devices), since
    return record


class Node:
    """A node with `count` GPUs; `run` and `start` call ``probe`` on it."""

    def __init__(
        self, folder: Path, count: int, devices: list[dict[str, Any]] | None = None
    ) -> None:
        self.folder = folder
        self.leases = folder / "leases"
        self.devices = devices or [gpu(slot) for slot in range(1, count + 1)]
        self.document = {
            "schema": 1,
            "probe_core": "0.9.0",
            "chipdb": None,
            "node": {"os": "linux", "kernel": None, "arch": "x86_64", "model": None}
            | {"memory": dict.fromkeys(("total", "available", "limit"))},
            "primary": self.devices[0]["id"],
            "devices": self.devices,
            "outcomes": [],
            "decisions": [],
            "fallback": None,
            "findings": [],
            "timings_ms": {},
        }
        report = folder / "report.json"
        report.write_text(json.dumps(self.document))
        report.chmod(0o600)
        self.environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PROBE_STATIC": str(report),
            "PROBE_LEASES": str(self.leases),
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-c", MAIN, *words]

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `probe`: here, but for what becomes another program."""
        if words[:1] != ("exec",) or "--dry-run" in words:
            from command import probe_here  # other processes import this without tests/machines

            return probe_here(*words, env=self.environ | environ)
        return subprocess.run(
            self.command(*words),
            env=self.environ | environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def start(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), env=self.environ | environ, stdout=subprocess.PIPE, text=True
        )

    def records(self) -> list[Path]:
        """Return the records of the leases in the folder."""
        folder = self.leases / "records"
        return sorted(folder.glob("[!.]*")) if folder.exists() else []

    def held(self) -> list[dict[str, Any]]:
        done = self.run("leases", "--json")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)["leases"]
        return found
