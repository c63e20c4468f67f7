"""Builds small libraries and environments with code for GPUs, with the bytes of real ones.

The layouts were measured on real wheels (see the readers). No real wheel is in this repository.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

Section = tuple[str, bytes]


def elf(sections: Iterable[Section], *, machine: int = 62, flags: int = 0, cut: int = 0) -> bytes:
    """A 64-bit ELF file with these sections, each aligned to 4096; `cut` bytes are left out."""
    listed = [("", b""), *sections]
    names = b"\0".join(name.encode() for name, _ in listed) + b"\0.shstrtab\0"
    listed.append((".shstrtab", names))
    body, places = b"", []
    for _, data in listed:
        body += b"\0" * (-(64 + len(body)) % 4096)
        places.append(64 + len(body))
        body += data
    table = 64 + len(body)
    headers = b""
    for (name, data), place in zip(listed, places, strict=True):
        at = names.index(name.encode() + b"\0") if name else 0
        kind = 0 if not name else 3 if name == ".shstrtab" else 1
        headers += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, place, len(data), 0, 0, 1, 0)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH",
        3,
        machine,
        1,
        0,
        0,
        table,
        flags,
        64,
        0,
        0,
        64,
        len(listed),
        len(listed) - 1,
    )
    raw = head + body + headers
    return raw[: len(raw) - cut]


def needing(*names: str, sections: Iterable[Section] = ()) -> bytes:
    """An ELF file that needs these libraries, as the loader reads it."""
    strings = b"\0" + b"\0".join(name.encode() for name in names) + b"\0"
    entries = b"".join(struct.pack("<qQ", 1, strings.index(name.encode())) for name in names)
    listed = [(".dynstr", strings), (".dynamic", entries + bytes(16)), *sections]
    raw = bytearray(elf(listed))
    (table,) = struct.unpack_from("<Q", raw, 0x28)
    struct.pack_into("<I", raw, table + 2 * 64 + 4, 6)  # .dynamic is of type SHT_DYNAMIC
    struct.pack_into("<I", raw, table + 2 * 64 + 40, 1)  # and its texts are in .dynstr
    return bytes(raw)


def pe(sections: Iterable[Section], *, machine: int = 0x8664) -> bytes:
    """A PE file with these sections; their names have eight bytes."""
    listed = list(sections)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    head += struct.pack("<4sHHIIIHH", b"PE\0\0", machine, len(listed), 0, 0, 0, 0, 0)
    place, table, body = len(head) + 40 * len(listed), b"", b""
    for name, data in listed:
        table += struct.pack("<8sIIII16x", name.encode()[:8], 0, 0, len(data), place + len(body))
        body += data
    return head + table + body


def entry(target: str, *, payload: int = 8, header: int = 64) -> bytes:
    """One entry of a container: "sm_90a", "sm_100f" or "ptx_90@8.7"."""
    kind, _, rest = target.partition("_")
    number, _, isa = rest.partition("@")
    major, minor = (int(part) for part in (isa or "1.7").split("."))
    flags = {"a": 0x100000, "f": 0x200000}.get(number[-1], 0) | 0x11
    arch = int(number.rstrip("af"))
    fields = (1 if kind == "ptx" else 2, 0x101, header, payload, 0, 0, minor, major, arch)
    raw = struct.pack("<HHIQIIHHIIIQ", *fields, 0, 0, flags)
    return raw.ljust(header, b"\0") + b"x" * payload


def container(targets: Iterable[str]) -> bytes:
    """A container with an entry for each target, padded to eight bytes."""
    body = b"".join(entry(target) for target in targets)
    raw = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    return raw + b"\0" * (-len(raw) % 8)


def fatbin(groups: Mapping[str, int]) -> bytes:
    """The section of {"sm_70 sm_80": 182}: so many containers with these targets."""
    return b"".join(container(targets.split()) * count for targets, count in groups.items())


def cuda(groups: Mapping[str, int]) -> bytes:
    """A library with CUDA code."""
    return elf([(".text", b"code"), (".nv_fatbin", fatbin(groups))])


def bundle(processors: Iterable[str], size_of_code: int = 16) -> bytes:
    """A plain bundle of clang's offload bundler with an entry for the host first."""
    ids = ["host-x86_64-unknown-linux-gnu-", *(f"hipv4-amdgcn-amd-amdhsa--{p}" for p in processors)]
    size = 32 + sum(24 + len(id_) for id_ in ids)
    table, place = b"", size
    for number, id_ in enumerate(ids):
        length = size_of_code if number else 0
        table += struct.pack("<QQQ", place, length, len(id_)) + id_.encode()
        place += length
    raw = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids)) + table
    return raw + b"c" * (place - size)


def zstd(raw: bytes) -> bytes:
    """A zstd frame of one raw block: RFC 8878, sections 3.1.1 and 3.1.1.2."""
    assert len(raw) < 1 << 16
    head = b"\x28\xb5\x2f\xfd" + b"\x60" + struct.pack("<H", len(raw) - 256)
    return head + (len(raw) << 3 | 1).to_bytes(3, "little") + raw


def compressed(raw: bytes, version: int = 3, method: int = 1) -> bytes:
    """A compressed bundle; `method` 0 is zlib, 1 zstd."""
    body = zstd(raw) if method else zlib.compress(raw)
    head = b"CCOB" + struct.pack("<HH", version, method)
    if version == 1:
        return head + struct.pack("<IQ", len(raw), 0) + body
    if version == 2:
        return head + struct.pack("<IIQ", 24 + len(body), len(raw), 0) + body
    return head + struct.pack("<QQQ", 32 + len(body), len(raw), 0) + body


def pages(bundles: Iterable[bytes]) -> bytes:
    """Bundles as they lie in a section: each at a multiple of 4,096."""
    return b"".join(raw + b"\0" * (-len(raw) % 4096) for raw in bundles)


def hip(processors: str, count: int = 1) -> bytes:
    """A library with HIP code."""
    return elf([(".hip_fatbin", pages([bundle(processors.split())] * count))])


def archive(names: Iterable[str], payload: bytes = b"code") -> bytes:
    """An image of ocloc: an `ar` archive with these members, each aligned as ocloc does it."""
    raw = b"!<arch>\n"
    for name in names:
        head = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(payload):<10}`\n"
        raw += head.encode() + payload + b"\n" * (len(payload) & 1)
    return raw


SPIRV = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64"


def sycl(versions: str, *, spirv: bool = True, packed: bool = False) -> bytes:
    """A library with SYCL code for these IP versions, "" for SPIR-V alone."""
    sections: list[Section] = [(SPIRV, b"\x03\x02\x23\x07")] if spirv else []
    if versions:
        names = [f"64.{version}" for version in versions.split()]
        names += ["generic_ir"] if spirv else []
        image = archive(["pad_0", *names], b"x" * 301)
        sections.insert(0, (SPIRV + "_gen", zstd(image) if packed else image))
    return elf(sections)


def environment(root: Path, *, home: str = "/usr/bin") -> Path:
    """A virtual environment without an interpreter; returns its site-packages."""
    site = root / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (root / "pyvenv.cfg").write_text(f"home = {home}\nversion = 3.11.2\n")
    return site


def install(
    site: Path, name: str, version: str, files: Mapping[str, bytes | str], *, record: bool = True
) -> Path:
    """Install a distribution with these files, and return its metadata folder."""
    for path, content in files.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n"
    )
    if record:
        listed = [*files, f"{metadata.name}/RECORD"]
        (metadata / "RECORD").write_text("".join(f"{path},sha256=0,1\n" for path in listed))
    return metadata
