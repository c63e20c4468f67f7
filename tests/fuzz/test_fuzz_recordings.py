"""No recording raises anything but `BadRecording`, writes outside its folder, or leaves it."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from foreign import CHANCES, Chance
from hypothesis import given

from probe_core import Machine
from probe_core.pipeline.answers import recorded_probers, replay
from probe_core.pipeline.merge import merge
from probe_core.pipeline.validate import Collected
from probe_core.recording import BadRecording, open_machine

NAMES = "a a a b b c up sys machine.json proc é".split()
ODD = ["..", "..", ".", "", "a" * 256, "\0", "\ud800", "\x1b[2J", "a\nb", "\\..\\", "x" * 250]
TARGETS = ["/etc", "", "..", ".", "a", "../a", "up/..", "up/../..", "b/c", "a/" * 50, "../" * 9]


class Pit:
    """A folder with a file to be held in, and the folder that recordings are unpacked into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.path = folder / "recording"

    def read(self, content: bytes) -> bool:
        """Open what `content` holds, look it through, and return whether it was a recording."""
        self.path.write_bytes(content)
        try:
            with open_machine(str(self.path)) as machine:
                look_through(machine)
            refusal = None
        except BadRecording as error:
            refusal = str(error)
        assert os.listdir(self.temporary) == []
        assert sorted(os.listdir(self.folder)) == ["recording", "temporary"]
        assert refusal is None or refusal.isprintable()
        return refusal is None


@pytest.fixture(scope="module")
def pit(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Pit(tmp_path_factory.mktemp("pit"))
    before, tempfile.tempdir = tempfile.tempdir, str(made.temporary)
    yield made
    tempfile.tempdir = before


def look_through(machine: Machine) -> None:
    """Hold an unpacked recording to its promise: files and folders, and links that stay inside."""
    root = machine.root
    collected = Collected()
    for prober in recorded_probers(machine.answers):
        collected.add_run(replay(prober))
    merge(collected.observations)
    text = json.dumps([collected.findings, collected.outcomes], ensure_ascii=False)
    assert text.isprintable()
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            place = f"{folder}/{name}"
            mode = os.lstat(place).st_mode
            assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
            assert os.path.realpath(place).startswith(root + "/") or place_is_root(place, root)
            machine.read(place[len(root) :])


def place_is_root(place: str, root: str) -> bool:
    return os.path.islink(place) and os.path.realpath(place) == root


def path(chance: Random) -> str:
    names = [chance.choice(NAMES) for _ in range(chance.randint(1, 5))]
    if chance.random() < 0.03:
        names.insert(chance.randrange(len(names)), chance.choice(ODD))
    return "/".join(names)


def target(chance: Random) -> str:
    if chance.random() < 0.3:
        return chance.choice(TARGETS)
    return "../" * chance.randint(0, 4) + path(chance)


def text(chance: Random) -> str:
    return "".join(chance.choices('a1\n\0é"\\', k=chance.randint(0, 30)))


def about(chance: Random) -> dict[str, Any]:
    odd: list[Any] = [None, 5, "", "x y", [], {"A": 1}, {"": "x"}, "recorded", {"A": "\0"}]
    made: dict[str, Any] = {"os": "linux", "arch": "aarch64", "origin": "invented"}
    made["environ"] = {"A": text(chance).replace("\0", "")}
    if chance.random() < 0.1:
        made[chance.choice(list(made))] = chance.choice(odd)
    return made


def odd(chance: Random) -> Any:
    values = [None, 5, -1, 1e400, 1 << 70, "", "\x1b[2J", "x" * 5000, [], {}, [[]], True, ["\0"]]
    return chance.choice(values)


def frame(chance: Random) -> dict[str, Any]:
    sighting: dict[str, Any] = {"ids": ["pci:0000:01:00.0"], "kind": "gpu", "name": text(chance)}
    if chance.random() < 0.3:
        sighting[chance.choice(["ids", "kind", "memory", "links", "step_facts", "x"])] = odd(chance)
    found = {"code": "x", "what": text(chance), "why": "y", "fix": "z", "device": "pci:1"}
    made: list[dict[str, Any]] = [
        {"kind": "device", "device": sighting},
        {"kind": "finding", "finding": found},
        {"kind": "rejected", "reason": text(chance)},
        {"kind": "unresponsive", "device": "pci:0000:01:00.0", "ids": [], "how": "hangs"},
    ]
    made[-1] |= {"reason": text(chance), "stuck_at": text(chance)}
    chosen = chance.choice(made)
    if chance.random() < 0.02:
        chosen[chance.choice(list(chosen))] = odd(chance)
    return chosen


def answers(chance: Random) -> dict[str, Any]:
    """Return the answer of a prober, now and then with something absurd in it."""
    status = chance.choice(["ok", "timeout", "crashed", "unavailable"])
    facts = {"code": text(chance), "stuck_at": text(chance), "avoided": ["pci:0000:01:00.0"]}
    end = {"kind": "end", "status": status, "reason": "r", "facts": facts, "abandoned": False}
    answer: dict[str, Any] = {"distribution": "d", "version": "1", "api": "1.0", "priority": 500}
    answer |= {"deadline_s": 5.0, "elapsed_ms": 3.1, "vendors": ["10de"]}
    answer["frames"] = [*(frame(chance) for _ in range(chance.randint(0, 4))), end]
    for table in (answer, end, facts):
        if chance.random() < 0.02:
            table[chance.choice(list(table))] = odd(chance)
    return {chance.choice(["nvidia"] * 80 + ["bus", "", "a b", "\0"]): answer}


def document(chance: Random) -> bytes:
    files = {f"/{path(chance)}": text(chance) for _ in range(chance.randint(0, 4))}
    links = {f"/{path(chance)}": target(chance) for _ in range(chance.randint(0, 4))}
    data = {"schema": 1, **about(chance), "files": files, "links": links}
    if chance.random() < 0.3:
        data["answers"] = answers(chance)
        data["access"] = {"/dev/nvidia0": chance.choice(["ok", "EPERM", "EACCES"])}
    if chance.random() < 0.02:
        data["access"] = chance.choice([odd(chance), {"/etc/x": "ok"}, {"/dev/x": odd(chance)}])
    if chance.random() < 0.1:
        data[chance.choice(list(data))] = chance.choice([None, 5, [], {}, {"/a": None}, [[[]]]])
    return json.dumps(data).encode()


def header(name: bytes, kind: bytes, size: int, link: bytes = b"") -> bytes:
    """Return a member's header, as a tool or an enemy writes it."""
    block = bytearray(512)
    block[:100], block[157:257] = name[:100].ljust(100, b"\0"), link[:100].ljust(100, b"\0")
    block[124:136], block[156:157] = b"%011o\0" % size, kind
    block[257:265] = b"ustar\00000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def member(chance: Random) -> bytes:
    name, draw = encoded(path(chance)), chance.random()
    if draw < 0.05:
        content = json.dumps(about(chance)).encode()
        return header(b"./machine.json", b"0", len(content)) + padded(content)
    if draw < 0.1:
        content = json.dumps(answers(chance)).encode()
        return header(b"./answers.json", b"0", len(content)) + padded(content)
    if draw < 0.35:
        return header(name, b"2", 0, encoded(target(chance)))
    if draw < 0.45:
        return header(name + b"/", b"5", 0)
    if draw < 0.5:
        kind = chance.choice([b"1", b"3", b"4", b"6", b"S", b"Z", b"g", b"\0"])
        return header(name, kind, 0, encoded(target(chance)))
    content = encoded(text(chance))
    return extension(chance) + header(name, b"0", len(content)) + padded(content)


def extension(chance: Random) -> bytes:
    """Return now and then a longer name for the member that follows."""
    if chance.random() < 0.8:
        return b""
    name = encoded(path(chance))
    if chance.random() < 0.5:
        return header(b"././@LongLink", b"L", len(name) + 1) + padded(name + b"\0")
    record = b" %s=%s\n" % (chance.choice([b"path", b"linkpath", b"size", b"mtime"]), name)
    length = len(record) + 2
    record = b"%d" % (length if length < 100 else length + 1) + record
    return header(b"pax", b"x", len(record)) + padded(record)


def archive(chance: Random) -> bytes:
    members = b"".join(member(chance) for _ in range(chance.randint(1, 6)))
    # Without anything below /proc or /sys it is no machine.
    root = header(b"proc/version", b"0", 0) if chance.random() < 0.7 else b""
    return root + members + bytes(1024)


def bent(chance: Random, content: bytes) -> bytes:
    """Return the content with a few bytes changed, moved, doubled or cut off."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice([1, 1, 2, 8, 512]))
        made = [bytes([chance.randrange(256)]), b"", bytes(data[at:end]) * 2, chance.randbytes(3)]
        data[at:end] = chance.choice(made)
    return bytes(data)


def packed(chance: Random, content: bytes) -> bytes:
    draw = chance.random()
    if draw < 0.1:
        return gzip.compress(content, 1)
    return lzma.compress(content, preset=0) if draw < 0.11 else content


MAKERS: list[Callable[[Random], bytes]] = [document, archive]


@pytest.mark.heavy
@pytest.mark.parametrize("make", MAKERS, ids=["documents", "archives"])
@given(chance=CHANCES)
def test_recordings(pit: Pit, make: Callable[[Random], bytes], chance: Chance) -> None:
    pit.read(packed(chance, make(chance)))


@pytest.mark.heavy
@pytest.mark.parametrize("make", MAKERS, ids=["documents", "archives"])
@given(chance=CHANCES)
def test_bent_recordings(pit: Pit, make: Callable[[Random], bytes], chance: Chance) -> None:
    pit.read(bent(chance, packed(chance, make(chance))))


@pytest.mark.heavy
@pytest.mark.parametrize("make", MAKERS, ids=["documents", "archives"])
def test_makers_make_good_ones_as_well(pit: Pit, make: Callable[[Random], bytes]) -> None:
    """Else nothing but the first check would be tried."""
    good = sum(pit.read(make(Random(seed))) for seed in range(200))
    assert 40 <= good <= 190
