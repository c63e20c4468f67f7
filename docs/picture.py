"""Draws what `probe` prints of a recorded machine as an SVG, the same at every build.

Colours follow the reader's light or dark scheme by a media query. The file names no font host and
holds no script, which terminal recorders put into theirs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

__all__ = [
    "LIGHT_AND_DARK",
    "PICTURES",
    "draw",
    "environ",
    "head",
    "shown",
    "text",
    "texts",
    "width",
]

ROOT = Path(__file__).resolve().parents[1]
_MACHINES = ROOT / "tests" / "machines"

# Picture: (recorded machine, plugins, what the picture shows).
PICTURES = {
    "probe": (
        "desktop--amd-radeon-rx-7900-xtx",
        "bus,cpu,amd",
        "probe on a desktop with an AMD Radeon RX 7900 XTX",
    ),
    "no-driver": (
        "desktop--nvidia-geforce-rtx-3060-without-driver",
        "bus,cpu,nvidia",
        "probe on a desktop whose NVIDIA GeForce RTX 3060 has no driver",
    ),
}
# Class of a piece of text: (colour on light, colour on dark). "paper" is the background.
LIGHT_AND_DARK = {
    "paper": ("#f6f8fa", "#161b22"),
    "plain": ("#1f2328", "#e6edf3"),
    "dim": ("#59636e", "#9198a1"),
    "red": ("#b3121d", "#ff8d85"),
    "green": ("#116329", "#56d364"),
    "yellow": ("#7d4e00", "#e3b341"),
    "cyan": ("#1b6f83", "#56d4dd"),
}
_CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}
_COLUMNS = 100
_CHARACTER, _LINE, _MARGIN = 8, 20, 16
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


def environ() -> dict[str, str]:
    """Return variables with which a command prints in colour, and the same everywhere."""
    found = {name: value for name, value in os.environ.items() if name[:6] != "PROBE_"}
    found.pop("NO_COLOR", None)
    found |= {"FORCE_COLOR": "1", "COLUMNS": str(_COLUMNS), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    return found | {"PYTHONUTF8": "1"}


def shown(picture: str) -> str:
    """Return what `probe` prints for a picture's machine, colours included."""
    machine, plugins, _ = PICTURES[picture]
    command = [sys.executable, "-m", "probe_core", "--only", plugins, "--machine"]
    ran = subprocess.run(
        [*command, str(_MACHINES / f"{machine}.json")],
        env=environ(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    return ran.stdout


def _pieces(line: str) -> list[tuple[str, str]]:
    """Return a line as (classes, text) pairs; an unknown colour code is an error, never dropped."""
    parts = _SGR.split(line)
    pieces, classes = [("", parts[0])], ""
    for codes, text in zip(parts[1::2], parts[2::2], strict=True):
        wanted = [code for code in codes.split(";") if code not in ("", "0")]
        classes = " ".join(_CLASSES[code] for code in wanted)
        pieces.append((classes, text))
    return [(classes, text) for classes, text in pieces if text]


def width(line: str) -> int:
    """Return how many characters of a line are seen."""
    return sum(len(text) for _, text in _pieces(line))


def text(line: str, number: int) -> str:
    """Return a line of a terminal as an element, at its place from the top."""
    pieces, count = _pieces(line), width(line)
    if not count:
        return ""
    # The length is written out: a reader's font may be wider than the one that was drawn with.
    head = (
        f'<text x="{_MARGIN}" y="{_MARGIN + _LINE * number + 14}" textLength="{count * _CHARACTER}"'
    )
    spans = [
        f'<tspan class="{classes}">{escape(piece)}</tspan>' if classes else escape(piece)
        for classes, piece in pieces
    ]
    return f'{head} xml:space="preserve">{"".join(spans)}</text>\n'


def _style() -> str:
    light = "".join(f".{name}{{fill:{colours[0]}}}" for name, colours in LIGHT_AND_DARK.items())
    dark = "".join(f".{name}{{fill:{colours[1]}}}" for name, colours in LIGHT_AND_DARK.items())
    fonts = f"text{{font:13px {_FONTS}}}.bold{{font-weight:bold}}"
    return f"<style>{fonts}\n{light}\n@media (prefers-color-scheme:dark){{{dark}}}</style>\n"


def head(columns: int, rows: int, title: str, style: str = "") -> str:
    """Return the beginning of a picture of that many characters, up to what it shows."""
    across, down = columns * _CHARACTER + 2 * _MARGIN, rows * _LINE + 2 * _MARGIN
    size = f'viewBox="0 0 {across} {down}" width="{across}" height="{down}"'
    more = f"<style>{style}</style>\n" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n'
        f"<title>{escape(title)}</title>\n{_style()}{more}"
        f'<rect class="paper" width="100%" height="100%" rx="8"/>\n'
    )


def draw(output: str, title: str) -> str:
    """Return a terminal's text as an SVG with that title."""
    lines = ["\x1b[2m$\x1b[0m probe", *output.rstrip().splitlines()]
    body = "".join(text(line, number) for number, line in enumerate(lines))
    start = head(max(map(width, lines)), len(lines), title)
    return f'{start}<g class="plain">\n{body}</g>\n</svg>\n'


def texts() -> dict[Path, str]:
    """Return each picture's file and what it must hold."""
    folder = ROOT / "docs" / "images"
    return {
        folder / f"{name}.svg": draw(shown(name), title) for name, (_, _, title) in PICTURES.items()
    }
