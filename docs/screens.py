"""Draws the screens of `probe watch` for the site: `python docs/screens.py FOLDER`.

Textual draws them itself, at three widths, dark and light. The devices and figures are invented;
what is written of them is what a user of such a node sees. Textual's pictures load a font from
another host: that is left out, and the reader's own monospaced font is used.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
from pathlib import Path
from typing import Any

from probe_core.model.sample_check import check_sample
from probe_watch.alerts import Alerts, rules_of
from probe_watch.app import WatchApp
from probe_watch.node import Node
from probe_watch.processes import Table, Task, gathered
from probe_watch.rounds import Happening

__all__ = ["SIZES", "THEMES", "add", "draw"]

SIZES = ((80, 24), (110, 32), (140, 36))
THEMES = {"dark": "textual-dark", "light": "textual-light"}
_TABS = ("devices", "processes")
_PAGE = "docs/how-to/watch-a-node.md"
_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
_START, _ROUNDS = 1_795_299_180, 60
_COMMANDS = {
    2100: ("torchrun --nproc-per-node 2 train.py", 1, None),
    2113: ("python train.py --config large.yaml", 2100, "docker 4f1d2c9e8a70"),
    2114: ("python train.py --config large.yaml", 2100, "docker 4f1d2c9e8a70"),
    3550: ("llama-server -m model.gguf --port 8080", 1, None),
}


def _devices() -> list[dict[str, Any]]:
    names = ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090",
             "NVIDIA GeForce RTX 4060 Ti"]  # fmt: skip
    gpus = [
        {"id": f"pci:0000:{number}:00.0", "kind": "gpu", "vendor": "nvidia", "name": name}
        for number, name in zip(("01", "02", "41", "42"), names, strict=True)
    ]
    cpu = {"id": "cpu:0", "kind": "cpu", "vendor": "amd", "name": "AMD Ryzen 9 7950X"}
    return [{**device, "ids": [device["id"]], "memory": None} for device in (*gpus, cpu)]


def _sample(number: int, device: dict[str, Any], second: int) -> Any:
    """Return what a device does in a second: two train, one serves, one hangs."""
    if number == 3:
        raw = {"device": device["id"], "status": "unresponsive", "reason": "asked again in 16 s"}
        return check_sample(raw, "nvidia")[0]
    wave = 0.5 + 0.5 * math.sin(second / (5 + number) + number)
    busy = (0.97 - 0.04 * wave, 0.95 - 0.05 * wave, 0.15 + 0.4 * wave, 0, 0.1 + 0.1 * wave)[number]
    raw: dict[str, Any] = {"device": device["id"], "busy": busy, "temperature_c": 45 + 30 * busy}
    if device["kind"] == "gpu":
        users = ("ann", "ann", "bob")[number]
        raw |= {
            "memory": {"used": int((22.1, 21.8, 12.4)[number] * (1 << 30)), "total": 24 << 30},
            "power_w": 60 + 370 * busy, "power_cap_w": (450, 450, 350)[number],
            "clocks_mhz": {"sm": 2520 - 60 * number}, "throttled": [],
            "links": [{"kind": "pcie", "generation": 4, "width": (16, 16, 8)[number]}],
            "processes": [{"pid": (2113, 2114, 3550)[number], "user": users,
                           "memory": int((21.6, 21.3, 11.9)[number] * (1 << 30))}],
        }  # fmt: skip
    return check_sample(raw, "nvidia")[0]


class _Table(Table):
    """The invented processes in place of those of /proc."""

    def tasks(self, rows: Any, leases: Any = ()) -> list[Task]:
        tasks = gathered(rows)
        for task in tasks:
            assert task.pid is not None
            self._fill(task)
        return tasks

    def _fill(self, task: Task) -> None:
        task.started, task.age = task.pid, 11_500.0 - (task.pid or 0)
        task.command, task.parent, task.container = _COMMANDS[task.pid or 0]

    def _ancestors(self, pid: int | None) -> Any:
        return iter([2100] if pid == 2100 else [])

    def _ancestor(self, pid: int) -> Task:
        task = Task(pid, "ann")
        self._fill(task)
        return task


def _node() -> Node:
    node, devices = Node("", Alerts(rules_of({}))), _devices()
    node.describe(devices)  # type: ignore[arg-type]
    for second in range(_ROUNDS):
        samples = [_sample(number, device, second) for number, device in enumerate(devices)]
        edges = node.alerts.update(second, _START + second, samples)
        node.take(Happening(_START + second, samples, (), edges, ()))
    return node


async def _drawn(size: tuple[int, int], theme: str, tab: int) -> str:
    app = WatchApp([_node()], 1.0, theme=theme, table=_Table())
    async with app.run_test(size=size) as pilot:
        await pilot.press("down", str(tab))
        while app.tab != _TABS[tab - 1] or not app.query("FooterKey"):
            await pilot.pause(0.01)
        await pilot.pause()
        return _FONT.sub("", app.export_screenshot(simplify=True))


def draw(folder: Path) -> list[str]:
    """Draw all screens into a folder; return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for size in SIZES:
        for word, theme in THEMES.items():
            for number, tab in enumerate(_TABS[: 2 if size[0] == 110 else 1], 1):
                name = f"watch-{tab}-{size[0]}-{word}.svg"
                text = asyncio.run(_drawn(size, theme, number))
                (folder / name).write_text(text, encoding="utf-8")
                names.append(name)
    return names


def add(stage: Path) -> None:
    """Draw the screens for a site, and show them at the end of the page about the screen."""
    lines = ["\n\n## Screens\n", "Drawn by Textual; the devices and their figures are invented.\n"]
    for name in draw(stage / "docs/images"):
        _, tab, columns, theme = name.removesuffix(".svg").split("-")
        lines.append(f"![{tab} at {columns} columns, {theme}](../images/{name})\n")
    page = stage / _PAGE
    page.write_text(page.read_text("utf-8") + "\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    print("\n".join(draw(Path(sys.argv[1]))))
