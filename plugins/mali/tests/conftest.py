"""Builds the /sys of boards with Mali GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request
from probe_mali.prober import probe_devices

TREE = "sys/firmware/devicetree/base"


class Board:
    """A folder that stands for / of a board, filled file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/sys/kernel/osrelease", "6.12.9\n")
        self.write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n")

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def link(self, path: str, target: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to("../" * (len(Path(path).parts) - 1) + target)

    def soc(self, *compatibles: str) -> None:
        self.write(f"{TREE}/compatible", "\0".join(compatibles) + "\0")

    def node(self, path: str, *compatibles: str, status: str | None = None) -> None:
        self.write(f"{TREE}{path}/compatible", "\0".join(compatibles) + "\0")
        if status:
            self.write(f"{TREE}{path}/status", status + "\0")

    def gpu(
        self,
        name: str,
        node: str | None = None,
        driver: str | None = None,
        *,
        misc: int | None = None,
        render: int | None = None,
        **files: str,
    ) -> str:
        """Add a platform device; returns its folder, relative to the root."""
        folder = f"sys/devices/platform/{name}"
        for file, text in ({"uevent": "", "power/runtime_status": "active"} | files).items():
            self.write(f"{folder}/{file.replace('__', '/')}", text + "\n")
        self.link(f"sys/bus/platform/devices/{name}", folder)
        if node:
            self.link(f"{folder}/of_node", TREE + node)
        if driver:
            self.write(f"sys/bus/platform/drivers/{driver}/bind", "")
            self.write(f"sys/module/{driver}/refcnt", "1")
            if not (self.root / f"sys/bus/platform/drivers/{driver}/module").is_symlink():
                self.link(f"sys/bus/platform/drivers/{driver}/module", f"sys/module/{driver}")
            self.link(f"sys/bus/platform/drivers/{driver}/{name}", folder)
            self.link(f"{folder}/driver", f"sys/bus/platform/drivers/{driver}")
        if misc is not None:
            self.write(f"{folder}/misc/mali{misc}/dev", "10:124\n")
            self.link(f"{folder}/misc/mali{misc}/device", folder)
            self.link(f"sys/class/misc/mali{misc}", f"{folder}/misc/mali{misc}")
        if render is not None:
            self.write(f"{folder}/drm/renderD{render}/dev", f"226:{render}\n")
        return folder

    def probe(self, bus: tuple[dict[str, Any], ...] = ()) -> list[Any]:
        said = probe_devices(Request(Machine(str(self.root), arch="aarch64"), bus))
        return [said] if isinstance(said, NotApplicable) else list(said)


@pytest.fixture(scope="session")
def new_board() -> type[Board]:
    """Return the builder of a board, for those that a test places itself."""
    return Board


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)
