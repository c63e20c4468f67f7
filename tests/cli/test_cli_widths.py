"""No command's line is wider than the terminal, on any recorded machine; and no name is cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import recorded
from reports import report_of_recording
from weights import mostly_heavy

from probe_core.cli import main
from probe_core.commands import text

Printed = Callable[..., list[str]]
COMMANDS = (
    ("explain",),
    ("explain", "--all"),
    ("plugins",),
    ("plugins", "--long"),
    ("plugins", "check"),
    ("visible",),
    ("doctor",),
    ("doctor", "--all"),
)
RICH = "desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770"


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Return the lines that a command prints at a width; its messages must fit as well."""

    def run(*arguments: str, width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(list(arguments)) in (0, 1)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        lines = out.splitlines()
        assert [line for line in lines if text.width_of(line) > width] == []
        return lines

    return run


def saved(name: str, folder: Path, *plugins: str) -> tuple[str, dict[str, Any]]:
    report = report_of_recording(name, *plugins)
    path = folder / "report.json"
    path.write_text(json.dumps(report))
    path.chmod(0o600)
    return str(path), report


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 12))
def test_every_command_on_every_machine(name: str, tmp_path: Path, printed: Printed) -> None:
    path, report = saved(name, tmp_path)
    for command in COMMANDS:
        for width in (60, 80):
            lines = printed(*command, "--static", path, width=width)
            assert lines or command == ("visible",)
            # A name may be broken between words: they are compared without blanks.
            shown = "".join("".join(lines).split())
            if command == ("explain", "--all"):
                names = [device["name"] or "" for device in report["devices"]]
                assert [n for n in names if "".join(n.split()) not in shown] == []


@pytest.mark.parametrize("command", mostly_heavy(COMMANDS, len(COMMANDS)), ids=" ".join)
def test_every_width(command: tuple[str, ...], tmp_path: Path, printed: Printed) -> None:
    path, _ = saved(RICH, tmp_path, "nvidia")
    for width in range(40, 201, 3):
        assert printed(*command, "--static", path, width=width)


@pytest.mark.heavy
def test_clusters_fit(tmp_path: Path, printed: Printed) -> None:
    pytest.importorskip("probe_cluster")
    files = []
    for name in recorded.names()[:12]:
        (tmp_path / name).mkdir()
        path, _ = saved(name, tmp_path / name)
        files.append(f"{name}={path}")
    for width in range(60, 201, 7):
        lines = printed("topology", *files, width=width)
        assert "12 nodes: " in " ".join(lines)
        shown = "".join("".join(lines).split())
        assert all(name.partition("=")[0] in shown for name in files)
        options = ("--model", "8b", "--layers", "32", "--assume-bandwidth", "50GB/s")
        printed("partition", *files[:1], *files[5:6], *options, width=width)
    assert any("1 node: " in line for line in printed("topology", files[0], width=80))


CHIPS = (
    "10de:2684",
    "A100",
    "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz",
    "NVIDIA GeForce RTX 4070 Laptop GPU",
    "AMD Radeon RX 7900",
    "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
    "nosuchchip9000",
    "GRID A100-10C",
    "0x",
    "x" * 300,
)


@pytest.mark.heavy
@pytest.mark.parametrize("query", CHIPS)
def test_chips_fit(query: str, printed: Printed) -> None:
    for width in (60, 80, 121, 200):
        assert printed("chip", query, width=width)


@pytest.mark.heavy
def test_every_chip_fits(printed: Printed) -> None:
    from probe_core.resolve import open_chipdb

    database, _ = open_chipdb(())
    assert database is not None
    names = sorted({chip.name for chip in database.chips()})
    for width in (60, 80):
        lines = printed("chip", *names, width=width)
        assert not any("unitss" in line or "…" in line for line in lines)
