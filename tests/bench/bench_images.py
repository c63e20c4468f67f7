"""What does `probe will-run` cost with 10 GB of layers that are packed with gzip?

PROBE_BENCH_WHEELS names a folder of real wheels: their members are deflate streams already, so
layers are made of them without packing anything again. Without it the libraries are made here, of
bytes that gzip packs as badly as the code in CUDA's libraries. Layers repeat under other names, as
hard links: the disk has each once, and each is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import BinaryIO

from measure import Figure
from place import ROOT, Place

SECONDS = 25.0
"""Of two processors for 10 GB: half of what all spend, for others work on them meanwhile."""
MEMORY = 300.0
WHOLE, MADE, QUICK = 10 * 10**9, 10**9, 10**8
"""Bytes of packed layers: of real wheels, of what is made here, and for a quick look."""
SITE = "usr/local/lib/python3.12/site-packages"

# What getrusage tells of a child has its parent in it, from before exec: so Linux is asked inside.
COMMAND = """
import sys
if not {fast}:
    sys.modules["isal"] = None
from probe_core.cli import main
main()
try:
    with open("/proc/self/status") as file:
        print(next(line.split()[1] for line in file if line.startswith("VmHWM:")), file=sys.stderr)
except OSError:
    pass
"""


def run(place: Place) -> Iterator[Figure]:
    """Judge one image of 10 GB, with ISA-L and without."""
    if not place.has("probe_wheels"):
        return
    layers = list(_layers(place.folder / "layers"))
    real = "PROBE_BENCH_WHEELS" in os.environ
    least = QUICK if place.quick else WHOLE if real else MADE
    image, packed, unpacked = _image(place.folder / "oci", layers, least)
    node = ROOT / "tests" / "machines" / "dgx-h100--8x-nvidia-h100-80gb-hbm3.json"
    arguments = ["will-run", str(image), "--on", str(node), "--json"]
    ways = {"zlib": [place.python, "-c", COMMAND.format(fast=False), *arguments]}
    if place.has("isal"):
        ways["ISA-L"] = [place.python, "-c", COMMAND.format(fast=True), *arguments]
    for name, command in ways.items():
        wall, cpu, memory, answer = _taken(command, place)
        note = (
            f"{packed / 1e9:.2f} GB packed, {unpacked / 1e9:.2f} GB unpacked, {wall:.1f} s on the"
            f" clock, {cpu:.1f} s of processors: {answer}"
        )
        target = SECONDS if real and name == "ISA-L" and not place.quick else None
        both = cpu / 2 * WHOLE / packed
        yield Figure(f"10 GB of gzip layers by {name}", both, "s of two", target, note)
        if memory is not None:
            yield Figure(f"its memory by {name}", memory, "MiB", MEMORY)


def _taken(command: Sequence[str], place: Place) -> tuple[float, float, float | None, str]:
    """Return seconds on the clock and of processors, the peak in MiB, and the answer."""
    start = perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, env=dict(place.environ), stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = perf_counter() - start
        out.seek(0)
        errors.seek(0)
        document, told = json.loads(out.read()), errors.read().strip()
    answer = document["images"][0]["nodes"][0]
    peak = int(told) / 1024 if told.isdigit() else None
    return wall, usage.ru_utime + usage.ru_stime, peak, f"{answer['answer']} ({answer['reason']})"


# A layer is a gzip file of several members: headers of tar, and what is packed already.


def _layers(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield layers, each with its bytes unpacked."""
    folder.mkdir()
    wheels = os.environ.get("PROBE_BENCH_WHEELS")
    if wheels is None:
        yield _made(folder / "made")
        return
    for wheel in sorted(Path(wheels).glob("*.whl")):
        yield _of_wheel(wheel, folder / wheel.name)


def _of_wheel(wheel: Path, path: Path) -> tuple[Path, int]:
    total = 0
    with zipfile.ZipFile(wheel) as archive, open(wheel, "rb") as raw, open(path, "wb") as out:
        for member in archive.infolist():
            raw.seek(member.header_offset)
            names = struct.unpack("<HH", raw.read(30)[26:])
            raw.seek(sum(names), os.SEEK_CUR)
            body = raw.read(member.compress_size)
            if member.compress_type == zipfile.ZIP_STORED:
                body = _deflated(body, 0)
            total += _add(out, f"{SITE}/{member.filename}", body, member.CRC, member.file_size)
        total += _end(out)
    return path, total


def _made(path: Path) -> tuple[Path, int]:
    """Write a layer with libraries that have code of CUDA; gzip takes a fifth off them."""
    sys.path.insert(0, str(ROOT / "plugins" / "wheels" / "tests"))
    import wheel_files as build

    total, source = 0, random.Random(37)
    code = source.randbytes(24 << 20).translate(bytes(byte % 98 for byte in range(256)))
    library = build.elf([
        (".text", code),
        (".nv_fatbin", build.container(["sm_80", "sm_90"]) * 200),
        (".data", code[: 4 << 20]),
    ])  # fmt: skip
    with open(path, "wb") as out:
        packed = _deflated(library, 6)
        for number in range(3):
            name = f"{SITE}/nvidia/part{number}/lib/lib{number}.so.12"
            total += _add(out, name, packed, zlib.crc32(library), len(library))
        total += _end(out)
    return path, total


def _deflated(raw: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(raw) + packer.flush()


def _add(out: BinaryIO, name: str, body: bytes, crc: int, size: int) -> int:
    """Write an entry of a layer whose bytes are packed; return its bytes unpacked."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o755
    header = info.tobuf(tarfile.PAX_FORMAT)
    padding = bytes(-size % 512)
    out.write(_member(_deflated(header, 6), zlib.crc32(header), len(header)))
    out.write(_member(body, crc, size))
    out.write(_member(_deflated(padding, 6), zlib.crc32(padding), len(padding)))
    return len(header) + size + len(padding)


def _end(out: BinaryIO) -> int:
    """Write the end of an archive; return its bytes."""
    end = bytes(1024)
    out.write(_member(_deflated(end, 6), zlib.crc32(end), len(end)))
    return len(end)


def _member(body: bytes, crc: int, size: int) -> bytes:
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return head + body + struct.pack("<II", crc, size & 0xFFFFFFFF)


def _image(folder: Path, layers: Sequence[tuple[Path, int]], least: int) -> tuple[Path, int, int]:
    """Write a layout whose layers have `least` bytes at least; return it, packed and unpacked."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    packed = unpacked = number = 0
    listed = []
    while packed < least:
        path, size = layers[number % len(layers)]
        digest = hashlib.sha256(f"{number}".encode()).hexdigest()
        os.link(path, blobs / digest)
        packed, unpacked = packed + path.stat().st_size, unpacked + size
        listed.append(_descriptor(digest, path.stat().st_size, "layer.v1.tar+gzip"))
        number += 1
    inner = {"Env": ["NVIDIA_VISIBLE_DEVICES=all"]}
    config = {"architecture": "amd64", "os": "linux", "rootfs": {}, "config": inner}
    manifest = {"schemaVersion": 2, "config": _blob(blobs, config, "config.v1+json")}
    described = _blob(blobs, {**manifest, "layers": listed}, "manifest.v1+json")
    index = {"schemaVersion": 2, "manifests": [described]}
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder, packed, unpacked


def _blob(blobs: Path, document: object, kind: str) -> dict[str, object]:
    raw = json.dumps(document).encode()
    digest = hashlib.sha256(raw).hexdigest()
    (blobs / digest).write_bytes(raw)
    return _descriptor(digest, len(raw), kind)


def _descriptor(digest: str, size: int, kind: str) -> dict[str, object]:
    media = f"application/vnd.oci.image.{kind}"
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": size}
