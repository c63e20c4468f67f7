"""Draws a minute with `probe` as an animated SVG: a GPU is missing, is repaired, and is used.

The pictures are what the commands print for a recorded machine, first without the driver's part of
it, then whole. CSS shows one after the other, for code hosts run no script; a reader who asked for
less motion sees the last.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import picture

__all__ = ["FILE", "SCENES", "TITLE", "drawn", "film", "played"]

FILE = picture.ROOT / "docs" / "images" / "film.svg"
TITLE = "A GPU without a driver: probe shows it, probe doctor has the repair, probe exec runs on it"
_MACHINE = picture.ROOT / "tests" / "machines" / "desktop--amd-radeon-rx-7900-xtx.json"
_DRIVER = ("amdgpu", "/drm/", "/kfd", "/dev/dri/", "mem_info_", "/driver")
# A command as the reader types it; whether the driver is there; seconds that its output is shown.
SCENES = (
    ("probe", False, 6),
    ("probe doctor", False, 8),
    ("sudo modprobe amdgpu", True, 2),
    ("probe", True, 6),
    ("probe exec -- printenv HIP_VISIBLE_DEVICES", True, 5),
)


def _without_driver(into: Path) -> Path:
    """Write the machine as it is while its kernel has not loaded the driver."""
    machine = json.loads(_MACHINE.read_text("utf-8"))
    for part in ("files", "links"):
        kept = machine[part].items()
        machine[part] = {k: v for k, v in kept if not any(word in k for word in _DRIVER)}
    path = into / "machine.json"
    path.write_text(json.dumps(machine), "utf-8")
    return path


def played() -> list[str]:
    """Return what each command prints, colours included."""
    with tempfile.TemporaryDirectory() as folder:
        broken = _without_driver(Path(folder))
        return [
            _printed(line, _MACHINE if driver else broken, Path(folder))
            for line, driver, _ in SCENES
        ]


def _printed(line: str, machine: Path, folder: Path) -> str:
    program, *arguments = line.split()
    if program != "probe":
        return ""  # the repair itself: it is what `probe doctor` printed before, and prints nothing
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = ["--machine", str(machine)]
    command = [sys.executable, "-m", "probe_core", *arguments[:split], *options, *arguments[split:]]
    environ = picture.environ() | {"PROBE_LEASES": str(folder / "leases")}
    environ["PROBE_ONLY"] = "bus,cpu,amd"
    ran = subprocess.run(
        command, env=environ, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    if not ran.stdout:
        raise ValueError(f"`{line}` prints nothing: {ran.stderr}")
    # The doctor's last paragraph counts its checks: a new check would be another film.
    return ran.stdout.rpartition("\n\n")[0] if "doctor" in arguments else ran.stdout


def drawn(outputs: list[str]) -> str:
    """Return the outputs of the scenes as one animated picture."""
    screens = [
        [f"\x1b[2m$\x1b[0m {line}", *output.rstrip().splitlines()]
        for (line, _, _), output in zip(SCENES, outputs, strict=True)
    ]
    columns = max(picture.width(line) for screen in screens for line in screen)
    rows = max(map(len, screens))
    total = sum(seconds for _, _, seconds in SCENES)
    style, body, at = [], [], 0
    for number, (screen, (_, _, seconds)) in enumerate(zip(screens, SCENES, strict=True)):
        start, end = 100 * at / total, 100 * (at + seconds) / total
        # Steps without a transition: a scene is there or not.
        style.append(
            f"@keyframes s{number}"
            f"{{0%,100%{{opacity:0}}{start:.2f}%{{opacity:1}}{end:.2f}%{{opacity:0}}}}"
            f".s{number}{{opacity:0;animation:s{number} {total}s step-end infinite}}"
        )
        lines = "".join(picture.text(line, row) for row, line in enumerate(screen))
        body.append(f'<g class="plain s{number}">\n{lines}</g>\n')
        at += seconds
    last = len(SCENES) - 1
    calm = "".join(f".s{n}{{animation:none;opacity:{int(n == last)}}}" for n in range(len(SCENES)))
    style.append(f"@media (prefers-reduced-motion:reduce){{{calm}}}")
    head = picture.head(columns, rows, TITLE, "\n".join(style))
    return f"{head}{''.join(body)}</svg>\n"


def film() -> dict[Path, str]:
    """Return the film's file and what it must hold."""
    return {FILE: drawn(played())}
