"""The invented machine on which version 1 was recorded, and how the record is made.

`python tests/compat/compat_machine.py` writes the record where there is none, and replaces none.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORD = HERE / "report-v1.json"

_PCI = "/sys/bus/pci/devices"
FILES = {
    "/proc/meminfo": "MemTotal:       65849272 kB\nMemAvailable:   58720256 kB\n",
    "/proc/sys/kernel/osrelease": "6.12.0\n",
    "/sys/class/dmi/id/product_name": "Compat One\n",
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 97\n"
    "model name\t: AMD Ryzen 9 7950X 16-Core Processor\nstepping\t: 2\ncpu MHz\t\t: 4500.000\n"
    "physical id\t: 0\ncore id\t\t: 0\n"
    "flags\t\t: fpu sse2 avx avx2 fma f16c avx512f avx512_vnni\n\n",
    f"{_PCI}/0000:01:00.0/vendor": "0x1ac0\n",
    f"{_PCI}/0000:01:00.0/device": "0x0001\n",
    f"{_PCI}/0000:01:00.0/class": "0x120000\n",
    f"{_PCI}/0000:02:00.0/vendor": "0x10de\n",
    f"{_PCI}/0000:02:00.0/device": "0x2684\n",
    f"{_PCI}/0000:02:00.0/class": "0x030000\n",
    f"{_PCI}/0000:02:00.0/revision": "0xa1\n",
    f"{_PCI}/0000:02:00.0/numa_node": "0\n",
    f"{_PCI}/0000:02:00.0/current_link_speed": "16.0 GT/s PCIe\n",
    f"{_PCI}/0000:02:00.0/current_link_width": "16\n",
    f"{_PCI}/0000:02:00.0/power/runtime_status": "active\n",
    f"{_PCI}/0000:03:00.0/vendor": "0x1a03\n",
    f"{_PCI}/0000:03:00.0/device": "0x2000\n",
    f"{_PCI}/0000:03:00.0/class": "0x030000\n",
    "/sys/bus/pci/drivers/nvidia/bind": "",
    "/sys/class/acme/acme0/memory_bytes": "0x400000000\n",
}
LINKS = {
    f"{_PCI}/0000:02:00.0/driver": "../../drivers/nvidia",
    "/sys/class/acme/acme0/link": "memory_bytes",
}


def unpack(folder: Path) -> Path:
    """Write the machine below `folder`, and return its root."""
    root = folder / "machine"
    for path, text in FILES.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    for path, to in LINKS.items():
        os.symlink(to, root / path.lstrip("/"))
    return root


def probe_v1(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run `probe --json` on the machine, with the recorded plugin installed.

    The plugin is copied, so that it belongs to whoever runs the test: root trusts nobody else's.
    """
    site = folder / "site"
    shutil.copytree(HERE / "v1_plugin", site, copy_function=shutil.copyfile)
    command = [sys.executable, "-m", "probe_core", "--json", "--machine", str(unpack(folder))]
    names = ",".join(["bus", "cpu", *_names(site)])
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PROBE_")}
    path = [str(site), str(ROOT), str(ROOT / "chipdb/src"), environ.get("PYTHONPATH", "")]
    environ |= {"PYTHONPATH": os.pathsep.join(filter(None, path)), "PROBE_ONLY": names}
    ran = subprocess.run(
        [*command, *arguments], env=environ, stdout=subprocess.PIPE, timeout=60, check=True
    )
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def _names(site: Path) -> list[str]:
    text = (site / "probe_v1-1.0.0.dist-info/entry_points.txt").read_text("utf-8")
    return [line.partition(" = ")[0] for line in text.splitlines() if " = " in line]


def _record() -> None:
    if RECORD.exists():
        sys.exit(f"{RECORD.name} is there, and is never replaced")
    with tempfile.TemporaryDirectory() as folder:
        document = probe_v1(Path(folder))
    for outcome in document["outcomes"]:
        outcome.pop("stderr", None)  # it holds paths of the machine that recorded
    RECORD.write_text(json.dumps(document, indent=1, ensure_ascii=True) + "\n", "utf-8")


if __name__ == "__main__":
    _record()
