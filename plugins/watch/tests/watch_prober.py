"""A prober with samples for a whole `probe watch`: its devices and figures come from a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from command import environment, install

BODY = """
    import json, os, time
    from probe_core.api import hookimpl

    def figures():
        with open(os.environ["WATCH_FIGURES"]) as file:
            return json.load(file)

    @hookimpl
    def probe_devices(request):
        for device in figures():
            yield {"ids": [device["device"]], "kind": "gpu", "vendor": "nvidia",
                   "name": device.get("name", "NVIDIA H100 80GB HBM3"), "memory_bytes": 80 << 30}

    @hookimpl
    def sample_devices(request):
        for device in figures():
            if request.skip(device["device"]):
                continue
            request.touching(device["device"])
            if device.get("hang"):
                time.sleep(600)
            yield {name: value for name, value in device.items() if name != "name"}
"""


class Live:
    """Devices that exist nowhere, and the environment in which `probe` sees them."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "figures.json"
        install(folder, "live", BODY)
        self.env = environment(
            folder,
            WATCH_FIGURES=str(self._file),
            WATCH_SESSION=str(os.getpid()),
            PROBE_ONLY="live",
            PROBE_DISABLE="bus",  # it would show the GPUs of the computer itself
            TERM="xterm",
            HOME=str(folder),
        )
        self.folder = folder
        self.devices: list[dict[str, Any]] = []

    def set(self, *devices: dict[str, Any]) -> None:
        """Write the devices; a sampler reads them whole or not at all."""
        self.devices = list(devices)
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(self.devices))
        os.replace(part, self._file)

    def settings(self, text: str) -> None:
        """Write the user's file of settings."""
        file = self.folder / ".config/probe-core/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def card(number: int, busy: float = 0.5, **figures: Any) -> dict[str, Any]:
    """Return the figures of a GPU at work."""
    plain: dict[str, Any] = {
        "device": f"pci:0000:{number:02x}:00.0",
        "busy": busy,
        "memory": {"used": 40 << 30, "total": 80 << 30},
        "temperature_c": 60,
        "power_w": 300,
        "power_cap_w": 700,
        "clocks_mhz": {"sm": 1755, "memory": 2619},
        "processes": [{"pid": 4242, "user": "u1001", "memory": 39 << 30}],
    }
    return plain | figures
