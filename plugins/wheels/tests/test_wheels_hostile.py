"""Files that want to hang, exhaust or mislead the reader: each ends in a sentence, and soon."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
import wheel_files as build
from test_wheels_environment import REPORT

from probe_wheels import survey
from probe_wheels.distributions import read_distributions
from probe_wheels.environment import find_environment
from probe_wheels.files import Budget
from probe_wheels.formats.library import read_library
from probe_wheels.records import MAX_FILES, listing_of

TEBI = 1 << 40


def sparse(path: Path, raw: bytes, size: int) -> None:
    with open(path, "wb") as file:
        file.write(raw)
        try:
            file.truncate(size)
        except OSError:  # a file system without files of that size
            file.truncate(1 << 33)


def patched(raw: bytes, offset: int, layout: str, *values: int) -> bytes:
    piece = struct.pack(layout, *values)
    return raw[:offset] + piece + raw[offset + len(piece) :]


def container(length: int, body: bytes = b"") -> bytes:
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, length) + body


def with_code(raw: bytes) -> bytes:
    return build.elf([(".nv_fatbin", raw)])


def sparse_section(path: Path) -> None:
    """A section of four TiB of zeros."""
    raw = build.elf([(".hip_fatbin", b"")])
    table = struct.unpack_from("<Q", raw, 0x28)[0]
    sparse(path, patched(raw, table + 64 + 24, "<QQ", 4096, 4 * TEBI), 5 * TEBI)


def sparse_cuda(path: Path) -> None:
    raw = build.elf([(".nv_fatbin", b"")])
    table = struct.unpack_from("<Q", raw, 0x28)[0]
    sparse(path, patched(raw, table + 64 + 24, "<QQ", 4096, 4 * TEBI), 5 * TEBI)


BOMB = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1) + bytes(1 << 24)

FILES: dict[str, Callable[[Path], object]] = {
    "fifo": lambda path: os.mkfifo(path),
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path),
    "kernel": lambda path: path.symlink_to("/proc/kmsg"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(build.cuda({"sm_80": 1})[:40]),
    "sections-in-nowhere": lambda path: path.write_bytes(
        patched(build.cuda({"sm_80": 1}), 0x28, "<Q", 1 << 62)
    ),
    "sections-without-end": lambda path: path.write_bytes(
        patched(build.cuda({"sm_80": 1}), 0x3C, "<H", 0xFFFE)
    ),
    "sparse-hip": sparse_section,
    "sparse-cuda": sparse_cuda,
    "container-too-long": lambda path: path.write_bytes(with_code(container(1 << 63))),
    "containers-of-nothing": lambda path: path.write_bytes(with_code(container(0) * 300_000)),
    "entries-of-nothing": lambda path: path.write_bytes(
        with_code(container(128, build.entry("sm_80", header=0)[:64] + bytes(64)))
    ),
    "bundle-of-all-targets": lambda path: path.write_bytes(
        build.elf([(".hip_fatbin", b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1 << 63))])
    ),
    "bomb": lambda path: path.write_bytes(
        build.elf([(".hip_fatbin", build.compressed(BOMB, 2, 0))])
    ),
    "deep-pack": lambda path: path.write_bytes(
        b"KPAK" + struct.pack("<IQ", 1, 16) + b"\x91" * 100_000
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_costs_little_and_raises_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "lib.so"
    FILES[name](path)
    start = process_time()
    library = read_library(str(path), Budget())
    assert process_time() - start < 10
    assert not library.get("cuda") or name == "containers-of-nothing"
    assert not library.get("hip")
    if name not in ("sparse-cuda", "sparse-hip", "entries-of-nothing", "bomb"):
        assert library.get("problem") or library.get("unread"), name


@pytest.mark.heavy
def test_an_environment_full_of_them_is_read(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    names = {f"bad/{name}.so": make for name, make in FILES.items()}
    metadata = build.install(site, "bad", "1.0", {"bad/__init__.py": b""})
    for path, make in names.items():
        make(site / path)
    build.install(site, "good", "1.0", {"good/lib.so": build.cuda({"sm_80": 2})})
    (metadata / "RECORD").write_text("".join(f"{path},,\n" for path in names))
    start = process_time()
    documents = read_distributions([str(site)], Budget())
    assert process_time() - start < 20
    good = next(document for document in documents if document["name"] == "good")
    assert good["files"]["good/lib.so"]["cuda"] == [(["sm_80"], 2)]


def test_a_record_leads_nowhere_else(tmp_path: Path) -> None:
    secret = tmp_path / "secret.so"
    secret.write_bytes(build.cuda({"sm_80": 1}))
    site = build.environment(tmp_path / "env")
    metadata = build.install(site, "liar", "1.0", {})
    lines = [
        "../../../../secret.so,,",
        f"{secret},,",
        "liar/gone.so,,",
        "liar/\0.so,,",
        ",,",
        '"',
    ] * 50
    (metadata / "RECORD").write_text("\n".join(lines))
    (document,) = read_distributions([str(site)], Budget())
    assert document["files"] == {}
    assert document["outside"][:2] == ["../../../../secret.so", str(secret)]
    assert "liar/gone.so" in document["missing"]
    assert len(document["missing"]) <= 16


@pytest.mark.heavy
def test_a_record_of_nothing_but_lines(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    metadata = build.install(site, "huge", "1.0", {"huge/x.so": build.cuda({"sm_80": 1})})
    sparse(metadata / "RECORD", b"huge/x.so,,\n" + b"\n" * (1 << 22), 1 << 35)
    start = process_time()
    (document,) = read_distributions([str(site)], Budget())
    assert process_time() - start < 10
    assert list(document["files"]) == ["huge/x.so"]


def test_time_is_bounded_and_the_others_say_so(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    for number in range(3):
        build.install(site, f"a{number}", "1.0", {f"a{number}/x.so": build.cuda({"sm_80": 90})})
    documents = read_distributions([str(site)], Budget(reads=120))
    notes = [document.get("note", "") for document in documents]
    assert notes[0] == ""
    assert notes[-1] == "not all of it was read: more reads than an environment needs"


def test_metadata_that_is_no_text(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    metadata = build.install(site, "torch", "2.9.1", {"torch/version.py": b"\xff\xfe\0cuda = '"})
    (metadata / "METADATA").write_bytes(b"\xff" * 1000)
    (metadata / "RECORD").write_bytes(b"\xff\xfe,\n" * 1000)
    (document,) = read_distributions([str(site)], Budget())
    assert document["version"] == "2.9.1"


def test_a_config_that_is_a_pipe_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    os.mkfifo(tmp_path / "pyvenv.cfg")
    environment = find_environment(str(tmp_path), {})
    assert len(environment.sites) == 1


DAMAGE: dict[str, Callable[[Path], object]] = {
    "fifo": lambda path: os.mkfifo(path),
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path),
    "kernel": lambda path: path.symlink_to("/proc/kmsg"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "binary": lambda path: path.write_bytes(b"\xff\xfe\0Name" * 100),
}


def damaged(environment: Path) -> dict[str, str]:
    """The findings about files that cannot be read: the name that each starts with, its reason."""
    seen = survey(str(environment), REPORT, {}, cached=False)
    faults = [entry for entry in seen.findings if entry["code"] == "environment-file-damaged"]
    assert all(entry["fix"] and entry["evidence"] for entry in faults)
    return {entry["what"].partition(" ")[0]: entry["why"] for entry in faults}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", ["RECORD", "METADATA"])
def test_metadata_that_cannot_be_read_is_named(tmp_path: Path, kind: str, name: str) -> None:
    site = build.environment(tmp_path / "env")
    info = build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_90": 4})})
    (info / name).unlink()
    DAMAGE[kind](info / name)
    start = process_time()
    assert list(damaged(tmp_path / "env")) == [f"acme-1.0.dist-info/{name}"]
    assert process_time() - start < 10


def test_metadata_that_is_absent_empty_or_too_long_is_named(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    for name in ("absent", "empty", "long"):
        files: dict[str, bytes | str] = {f"{name}/x.so": build.cuda({"sm_70": 4})}
        info = build.install(site, name, "1.0", files)
        if name == "absent":
            (info / "METADATA").unlink()
        elif name == "empty":
            (info / "RECORD").write_text("")
        else:
            sparse(info / "RECORD", b"long/x.so,,\n", 1 << 30)
    assert damaged(tmp_path / "env") == {
        "absent-1.0.dist-info/METADATA": "it is not there",
        "empty-1.0.dist-info/RECORD": "it is empty",
        "long-1.0.dist-info/RECORD": "it is longer than 16 MiB; the rest was not read",
    }
    # The libraries are found by a walk where the list is useless: each is a verdict still.
    seen = survey(str(tmp_path / "env"), REPORT, {}, cached=False)
    assert [entry["verdict"] for entry in seen.verdicts] == ["lacks-device"] * 3


CONDA: dict[str, bytes] = {
    "cut": b'{"files": ["lib/libtorch_cu',
    "number": b'{"files": 5}',
    "list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "binary": b"\xff\xfe\0",
    "empty": b"",
    "bomb": b'{"files": [' + b"[]," * 600_000 + b"[]]}",
}


@pytest.mark.parametrize("kind", CONDA)
def test_a_damaged_list_of_conda_is_named_and_hides_no_other(tmp_path: Path, kind: str) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "lib/python3.11/site-packages").mkdir(parents=True)
    (tmp_path / "lib/libtorch_cuda.so").write_bytes(build.cuda({"sm_70": 9}))
    (tmp_path / "conda-meta" / "bad-1.0-0.json").write_bytes(CONDA[kind])
    good = tmp_path / "conda-meta" / "libtorch-2.5.1-cuda126_h1_300.json"
    good.write_text('{"files": ["lib/libtorch_cuda.so"]}')
    assert list(damaged(tmp_path)) == ["conda-meta/bad-1.0-0.json"]
    (verdict,) = survey(str(tmp_path), REPORT, {}, cached=False).verdicts
    assert verdict["wheel"] == "libtorch 2.5.1"


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "device"])
def test_a_list_of_conda_that_is_no_file_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "lib/python3.11/site-packages").mkdir(parents=True)
    DAMAGE[kind](tmp_path / "conda-meta" / "bad-1.0-0.json")
    assert list(damaged(tmp_path)) == ["conda-meta/bad-1.0-0.json"]


def test_a_pipe_among_the_files_of_an_environment_is_named(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    build.install(site, "torch", "2.9.1", {})
    (site / "torch").mkdir()
    for path in (site / "hang.pth", site / "torch" / "version.py"):
        os.mkfifo(path)
    (tmp_path / "env" / "pyvenv.cfg").unlink()
    os.mkfifo(tmp_path / "env" / "pyvenv.cfg")
    assert damaged(tmp_path / "env") == dict.fromkeys(
        ["env/pyvenv.cfg", "site-packages/hang.pth", "torch/version.py"], "not a regular file"
    )


@pytest.mark.parametrize("kind", ["fifo", "loop", "device", "folder"])
def test_an_interpreter_that_is_no_program_is_a_finding(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bin" / "python"
    path.parent.mkdir()
    DAMAGE[kind](path)
    start = process_time()
    seen = survey(str(path), REPORT, {}, cached=False)
    assert process_time() - start < 10
    (finding,) = seen.findings
    assert finding["code"] in ("environment-missing", "environment-broken")
    assert str(tmp_path) in finding["what"]


@pytest.mark.parametrize(("magic", "name"), [(b"MZ", "Windows"), (b"\xcf\xfa\xed\xfe", "macOS")])
def test_a_program_of_another_system_is_a_finding(tmp_path: Path, magic: bytes, name: str) -> None:
    build.environment(tmp_path / "env")
    (tmp_path / "env" / "bin").mkdir()
    (tmp_path / "env" / "bin" / "python").write_bytes(magic + bytes(60))
    (finding,) = survey(str(tmp_path / "env"), REPORT, {}, cached=False).findings
    assert finding["code"] == "environment-other-architecture"
    assert name in finding["what"]


def test_a_list_of_files_has_its_bound_and_no_more(tmp_path: Path) -> None:
    metadata = tmp_path / "acme-1.0.dist-info"
    metadata.mkdir()
    lines = (f"acme/lib{number}.so,," for number in range(MAX_FILES + 2))
    (metadata / "RECORD").write_text("\n".join(lines) + "\n")
    listing = listing_of(str(metadata), str(tmp_path), Budget())
    assert listing.libraries == [f"acme/lib{number}.so" for number in range(MAX_FILES)]
