"""A recorded machine is opened for a while, whatever it is kept in, and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import recorded
from reports import report_of
from weights import mostly_heavy

from probe_core.recording import BadRecording, open_machine

ABOUT = {"os": "linux", "arch": "riscv64", "environ": {"A": "b"}, "origin": "invented"}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def kept(folder: Path, kind: str, files: dict[str, str]) -> str:
    """Write a machine as a folder, a document or an archive; return its path."""
    path = folder / f"machine.{kind}"
    if kind == "json":
        path.write_text(json.dumps({"schema": 1, **ABOUT, "files": files, "links": {}}))
    elif kind == "tar":
        with tarfile.open(path, "w") as tar:
            for name, text in {"/machine.json": json.dumps(ABOUT), **files}.items():
                info = tarfile.TarInfo(name[1:])
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
    else:
        for name, text in {"/machine.json": json.dumps(ABOUT), **files}.items():
            place = path / name[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return str(path)


@pytest.mark.parametrize("kind", ["folder", "json", "tar"])
def test_each_kind_is_the_same_machine(kind: str, tmp_path: Path, temporary: Path) -> None:
    path = kept(tmp_path, kind, {"/proc/meminfo": "MemTotal: 1 kB"})
    with open_machine(path) as machine:
        assert machine.read("/proc/meminfo") == "MemTotal: 1 kB"
        told = (machine.os, machine.arch, machine.environ, machine.live)
        assert told == ("linux", "riscv64", {"A": "b"}, False)
        assert len(os.listdir(temporary)) == (kind != "folder")
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, OSError])
def test_whatever_happens_the_folder_is_gone(
    error: type[BaseException], tmp_path: Path, temporary: Path
) -> None:
    path = kept(tmp_path, "json", {"/a/b": "c"})
    with pytest.raises(error), open_machine(path):
        raise error
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 12))
def test_recorded_machine_gives_the_report_of_its_folder(name: str, tmp_path: Path) -> None:
    root = str(recorded.unpack(recorded.read(name), tmp_path / "root"))
    with open_machine(root) as folder, open_machine(str(recorded.path(name))) as file:
        assert settled(report_of(folder)) == settled(report_of(file))


def settled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a report without what differs from run to run."""
    outcomes = [{**one, "elapsed_ms": 0} for one in document["outcomes"]]
    return {**document, "outcomes": outcomes, "timings_ms": {}}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("{", "is nested deeper"),
        ('{"os": 5}', "its os '5' is not one word"),
        ("[" * 40 + "]" * 40, "is nested deeper than 32 levels"),
        (" " * 70_000, "it is longer than 64 KiB"),
        ("[]", "it is JSON, but no table"),
    ],
    ids=range(5),
)
def test_machine_json_of_a_folder_is_checked(about: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text(about)
    with (
        pytest.raises(BadRecording, match=f"machine.json' cannot be used: .*{message}"),
        open_machine(str(tmp_path)),
    ):
        pass


def test_machine_json_is_a_file_of_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    os.mkfifo(path)
    with pytest.raises(BadRecording, match="it is no regular file"), open_machine(str(tmp_path)):
        pass
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic links"), open_machine(str(tmp_path)):
        pass
    path.unlink()
    (tmp_path / "proc").mkdir()
    with open_machine(str(tmp_path)) as machine:
        assert (machine.os, machine.arch) == ("linux", "unknown")


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_the_only_folder_that_holds_a_root_is_entered(
    kind: str, tmp_path: Path, temporary: Path
) -> None:
    inner = tmp_path / "outer" / "128arm-2pa"
    (inner / "proc").mkdir(parents=True)
    (inner / "proc" / "cpuinfo").write_text("processor : 0\nCPU implementer : 0x41\n")
    (inner / "machine.json").write_text(json.dumps({"arch": "armv7l"}))
    path = inner.parent
    if kind == "tar":
        path = tmp_path / "m.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            tar.add(inner, arcname="128arm-2pa")
    with open_machine(str(path)) as machine:
        assert machine.read("/proc/cpuinfo") == "processor : 0\nCPU implementer : 0x41"
        assert machine.arch == "armv7l"


@pytest.mark.parametrize(
    ("kind", "names", "message"),
    [
        ("folder", [], "it is empty, but neither proc nor sys nor machine.json"),
        ("tar", [], "it is an empty archive; `probe record` writes one"),
        *(
            (kind, names, message)
            for kind in ("folder", "tar")
            for names, message in (
                (["src/main.c", "README"], "it holds README, src, but neither proc nor sys"),
                (["one/src/main.c"], "it holds one, but neither proc nor sys nor machine.json"),
            )
        ),
    ],
)
def test_what_is_no_machine_is_refused(
    kind: str, names: list[str], message: str, tmp_path: Path, temporary: Path
) -> None:
    path = tmp_path / "root"
    path.mkdir()
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("x")
    if kind == "tar":
        with tarfile.open(tmp_path / "m.tar", "w") as tar:
            for name in names:
                tar.add(path / name, arcname=name)
        path = tmp_path / "m.tar"
    with pytest.raises(BadRecording, match="is no recorded machine: ") as caught:
        open_machine(str(path)).__enter__()
    assert message in str(caught.value)


def test_a_link_to_a_root_elsewhere_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "machine").symlink_to("/")
    with pytest.raises(BadRecording, match="it holds machine, but"), open_machine(str(tmp_path)):
        pass


@pytest.mark.parametrize(
    ("magic", "name"),
    [
        (b"BZh91AY", "bzip2"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"PK\x03\x04", "zip"),
        (b"PK\x05\x06", "zip"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "7-Zip"),
        (b"Rar!\x1a\x07\0", "RAR"),
        (b"Rar!\x1a\x07\1\0", "RAR"),
        (b"LZIP\1", "lzip"),
        (b"\x5d\0\0\x80\0", "LZMA"),
        (b"\x89LZO\0\r\n\x1a\n", "lzop"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"\x1f\x9d\x90", "compress"),
        (b"070701", "cpio"),
        (b"hsqs", "squashfs"),
    ],
)
def test_compressed_forms_that_are_not_read_are_named(
    magic: bytes, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "machine.tar.x"
    path.write_bytes(magic + bytes(600))
    with pytest.raises(BadRecording, match=f"it is packed with {name}, which is not read"):
        open_machine(str(path)).__enter__()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", ".*: it is an empty file; `probe record` writes one"),
        (bytes(10_240), ".*: it is an empty archive; `probe record` writes one"),
        (b"hello\n", "it is neither a recording in JSON nor a tar archive"),
        (gzip.compress(bytes(10_240), mtime=0), ".*: it is an empty archive;"),
        (gzip.compress(b"x" * 9_000, mtime=0)[:-20], "its packing is damaged: it is cut short"),
    ],
    ids=["empty", "zeros", "text", "packed zeros", "cut"],
)
def test_files_that_hold_no_machine(raw: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "machine"
    path.write_bytes(raw)
    with pytest.raises(BadRecording, match=f"is no recorded machine: {reason}"):
        open_machine(str(path)).__enter__()


def test_archives_that_python_s_own_modules_write(tmp_path: Path) -> None:
    root = tmp_path / "node7"
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "cpuinfo").write_text("processor : 0\nisa : rv64imafdc\n")
    for mode in ("w", "w:gz", "w:xz"):
        with tarfile.open(tmp_path / "m.tar", mode) as tar:  # type: ignore[call-overload]
            tar.add(root, arcname="node7")
        with open_machine(str(tmp_path / "m.tar")) as machine:
            assert machine.arch == "riscv64"
    whole = (tmp_path / "m.tar").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadRecording, match="its packing is damaged"):
        open_machine(str(tmp_path / "cut")).__enter__()
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        archive.write(root / "proc" / "cpuinfo", "node7/proc/cpuinfo")
    with pytest.raises(BadRecording, match="packed with zip, which is not read; unpack it and"):
        open_machine(str(tmp_path / "m.zip")).__enter__()


ARM = "processor : 0\nFeatures : {}\nCPU implementer : 0x41\nCPU architecture: {}\n"


@pytest.mark.parametrize(
    ("path", "text", "arch"),
    [
        ("/proc/sys/kernel/osrelease", "4.18.0-553.el8.ppc64le", "ppc64le"),
        ("/proc/sys/kernel/osrelease", "6.12.0-generic", "unknown"),
        ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu lm", "x86_64"),
        ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu", "i686"),
        ("/proc/cpuinfo", ARM.format("fp asimd", 8), "aarch64"),
        ("/proc/cpuinfo", ARM.format("half thumb neon", 8), "armv8l"),
        ("/proc/cpuinfo", ARM.format("half", 7), "armv7l"),
        (
            "/proc/cpuinfo",
            "model name : ARMv6-compatible processor\n" + ARM.format("vfp", 7),
            "armv6l",
        ),
        ("/proc/cpuinfo", "processor : 0\nisa : rv64imafdc", "riscv64"),
        ("/proc/cpuinfo", "cpu : POWER7 (architected), altivec supported", "ppc64"),
        # Linux runs on these in both byte orders, and the file looks the same: hwloc's POWER9 with
        # V100 is ppc64le, its POWER8 may be either.
        ("/proc/cpuinfo", "cpu : POWER9, altivec supported", "unknown"),
        ("/proc/cpuinfo", "cpu : POWER8NVL (raw), altivec supported", "unknown"),
        ("/proc/cpuinfo", "system type : x\n\nCPU Family : Loongson-64bit", "loongarch64"),
        ("/proc/cpuinfo", "vendor_id : IBM/S390", "s390x"),
        ("/proc/cpuinfo", "cpu model : MIPS 24Kc V7.4", "mips"),
        ("/proc/cpuinfo", "arch : IA-64", "ia64"),
        ("/proc/cpuinfo", "nothing", "unknown"),
        ("/sys/devices/system/cpu/modalias", "cpu:type:aarch64:feature:,0000", "aarch64"),
        ("/sys/devices/system/cpu/modalias", "cpu:type:x86,ven0000fam0006", "x86_64"),
    ],
)
def test_the_files_say_the_architecture(path: str, text: str, arch: str, tmp_path: Path) -> None:
    place = tmp_path / path[1:]
    place.parent.mkdir(parents=True)
    place.write_text(text)
    with open_machine(str(tmp_path)) as machine:
        assert machine.arch == arch


def test_bad_file_leaves_nothing_behind(tmp_path: Path, temporary: Path) -> None:
    path = kept(tmp_path, "json", {"/a": "", "/a/b": ""})
    with pytest.raises(BadRecording, match="'/a/b' lies below the file '/a'"), open_machine(path):
        pass
    with pytest.raises(FileNotFoundError), open_machine(str(tmp_path / "none")):
        pass
    assert os.listdir(temporary) == []
