"""The program that is sent to a node, in parts: what it prints, receives, finds and sees there."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from probe_cluster.gathering import node_agent
from probe_core.testing import Tree


@pytest.mark.parametrize("size", [0, 200, 5000])
def test_a_message_is_lines_of_512_bytes(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[int, bytes]] = []

    def write(file: int, data: bytes) -> int:
        written.append((file, data[:300]))  # a pipe that is full takes a part
        return len(data[:300])

    monkeypatch.setattr(os, "write", write)
    voice = node_agent.Voice("node-1")
    noise = os.urandom(size).hex()
    for number in (1, 2):
        voice.send("answer", number=number, out=noise)
    assert {file for file, _ in written} == {1}
    text = b"".join(data for _, data in written)
    lines = [text[at : at + 512].decode() for at in range(0, len(text), 512)]
    assert all(line.endswith("\n") and line.rstrip().endswith("|") for line in lines)
    for number in (1, 2):
        start = f"#probe-cluster node-1 {voice._agent}-{number} "
        own = [line.rstrip()[len(start) : -1] for line in lines if line.startswith(start)]
        *pieces, end = own
        assert end == f"end packed {len(pieces)}"
        assert [piece.partition(" ")[0] for piece in pieces] == list(map(str, range(len(pieces))))
        packed = base64.b64decode("".join(piece.partition(" ")[2] for piece in pieces))
        assert json.loads(zlib.decompress(packed)) == {
            "kind": "answer",
            "agent": voice._agent,
            "number": number,
            "out": noise,
        }
    assert len(lines) == 2 * len(own)


GIFT = bytes(range(256)) * 300  # more than one read gives


def headed(data: bytes, digest: str = "") -> bytes:
    head = f"{len(data):08x} {digest or hashlib.sha256(data).hexdigest()}"
    return head.encode().ljust(node_agent.HEAD) + data


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts bytes on the input of the program, which reads a few at a time."""
    real = os.read

    def put(data: bytes) -> None:
        path = tmp_path / "input"
        path.write_bytes(data)
        file = os.open(path, os.O_RDONLY)
        monkeypatch.setattr(os, "read", lambda number, size: real(file, min(size, 1000)))

    return put


def test_the_archive_comes_by_the_input_or_by_variables(
    given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(headed(GIFT) + b"more")
    assert node_agent.received([]) == GIFT
    text = base64.b85encode(headed(GIFT)).decode()
    for number, at in enumerate(range(0, len(text), 50_000)):
        monkeypatch.setenv(f"{node_agent.PART}{number}", text[at : at + 50_000])
    values = node_agent.parts()
    assert len(values) == 2
    assert not any(name.startswith(node_agent.PART) for name in os.environ)
    assert node_agent.received(values) == GIFT
    assert node_agent.parts() == []


def test_an_archive_that_is_cut_or_damaged_is_none(given: Any) -> None:
    given(headed(GIFT)[:-1])
    with pytest.raises(node_agent.Ended):
        node_agent.received([])
    given(headed(GIFT, "0" * 64))
    with pytest.raises(ValueError, match=r"^the probe that was sent arrived damaged$"):
        node_agent.received([])
    with pytest.raises(ValueError, match=r"^the probe that was sent arrived damaged$"):
        node_agent.received([base64.b85encode(headed(GIFT)[:-1] + b"x").decode()])


def program(path: Path, script: str, mode: int = 0o755) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return str(path)


def test_the_first_program_on_the_path_counts(tmp_path: Path) -> None:
    second = program(tmp_path / "b/probe", "")
    program(tmp_path / "a/probe", "", 0o644)  # nobody may run it
    (tmp_path / "c/probe").mkdir(parents=True)
    path = ":".join(str(tmp_path / name) for name in "cab")
    assert node_agent.found(["probe", "--x"], {"PATH": path}) == second
    assert node_agent.found([second], {"PATH": "/none"}) == second
    assert node_agent.found([f"{tmp_path}/none"], {"PATH": path}) is None
    assert node_agent.found(["probe"], {"PATH": f"{tmp_path}/c"}) is None


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo probe-core 1.2.3", "1.2.3"),
        ("echo probe-core 9 of a wrapper; echo probe-core 1.2.3 >&2", "1.2.3"),
        ("echo probe-core", "(it printed no version)"),
        ("echo 1.2.3", "(it printed no version)"),
        ("echo probe-core 1.2.3; exit 1", "(it printed no version)"),
    ],
)
def test_the_version_of_a_program(script: str, version: str, tmp_path: Path) -> None:
    assert node_agent.installed_version(program(tmp_path / "bin/probe", script)) == version


def test_a_program_that_cannot_start_has_no_version(tmp_path: Path) -> None:
    assert node_agent.installed_version(str(tmp_path)) == "(it printed no version)"


@pytest.mark.parametrize(
    ("version", "wanted", "is_fit"),
    [
        ("1.2.3", "1.2.9", True),
        ("1.2", "1.2.9", True),
        ("1.3.0", "1.2.0", False),
        ("1", "2", False),
    ],
)
def test_two_numbers_of_a_version_are_the_interface(
    version: str, wanted: str, is_fit: bool
) -> None:
    assert node_agent.fits(version, wanted) is is_fit


@pytest.mark.parametrize(("user", "memory"), [(0, "/run"), (1000, "/dev/shm")])
def test_where_the_private_folder_may_lie(
    user: int, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"/run", "/dev/shm", "/tmp", "/scratch", "/run/user/1000"}
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os.path, "isdir", lambda path: path in there)
    disks = ["/scratch", "/tmp", "/dev/shm"] if user == 0 else ["/scratch", "/tmp"]
    environ = {"TMPDIR": "/scratch", "XDG_RUNTIME_DIR": "/run/user/1000"}
    assert node_agent.places(environ) == ["/run/user/1000", memory, *disks]
    assert node_agent.places({"TMPDIR": "tmp", "XDG_RUNTIME_DIR": ""}) == [memory, *disks[1:]]


def test_what_an_old_python_sees(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    ids = {"0000:02:00.0": "0x120000", "0000:01:00.0": "0x030200", "0000:00:1f.0": "0x060100"}
    for address, kind in ids.items():
        for name, text in (("class", kind), ("vendor", "0x10de"), ("device", "0x2330")):
            tree.file(f"/sys/bus/pci/devices/{address}/{name}", f"{text}\n")
    (tmp_path / "sys/bus/pci/devices/0000:03:00.0").mkdir()
    tree.file("/proc/meminfo", "MemFree: 3 kB\nMemTotal:       16384 kB\nSwapTotal: 5 kB\n")
    system = os.uname()
    assert node_agent.basics(str(tmp_path)) == {
        "pci": [
            {"address": "0000:01:00.0", "class": "030200", "id": "10de:2330"},
            {"address": "0000:02:00.0", "class": "120000", "id": "10de:2330"},
        ],
        "memory": 16 << 20,
        "kernel": system.release,
        "arch": system.machine,
    }
    nothing = node_agent.basics(str(tmp_path / "none"))
    assert (nothing["pci"], nothing["memory"]) == (None, None)
