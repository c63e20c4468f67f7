"""Builds small images of containers from tiny layers, and recordings of nodes to run them on.

The layouts are those of the specifications: OCI image-spec, `docker save`, and ELF's symbol
versions (gABI, LSB). No part of a real image is in this repository.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import wheel_files as build

LOADERS = {62: "/lib64/ld-linux-x86-64.so.2", 183: "/lib/ld-linux-aarch64.so.1"}


class Entry:
    """An entry of a layer that is no plain file: a type of tar, and where it leads."""

    def __init__(self, kind: bytes, target: str = "") -> None:
        self.kind = kind
        self.target = target


def link(target: str) -> Entry:
    """A symbolic link."""
    return Entry(tarfile.SYMTYPE, target)


def hard(target: str) -> Entry:
    """A hard link."""
    return Entry(tarfile.LNKTYPE, target)


FOLDER = Entry(tarfile.DIRTYPE)
DEVICE = Entry(tarfile.CHRTYPE)
GONE = b""
"""The content of a whiteout, whose name says what it removes."""

Content = bytes | str | Entry
Files = dict[str, Content]


def layer(files: Mapping[str, Content], form: int = tarfile.PAX_FORMAT) -> bytes:
    """A layer with these entries, in their order; all files may be executed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.mode = 0o755
            if isinstance(content, Entry):
                info.type, info.linkname = content.kind, content.target
                archive.addfile(info)
                continue
            raw = content.encode() if isinstance(content, str) else content
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return buffer.getvalue()


def binary(
    *needed: str,
    interpreter: str = "",
    glibc: str = "",
    defines: Sequence[str] = (),
    note: str = "",
    machine: int = 62,
    sections: Iterable[build.Section] = (),
) -> bytes:
    """An ELF file with all that a loader reads: libraries, versions that it needs and defines.

    A version is one of glibc ("2.34") unless it has a name of its own ("GLIBCXX_3.4.30").
    """
    glibc, *defines = [f"GLIBC_{v}" if v[:1].isdigit() else v for v in (glibc, *defines)]
    versions = [*([glibc] if glibc else []), *defines]
    texts = [*needed, *versions]
    strings = b"\0" + b"".join(text.encode() + b"\0" for text in texts)
    at = {text: strings.index(b"\0" + text.encode() + b"\0") + 1 for text in texts}
    dynamic = b"".join(struct.pack("<qQ", 1, at[name]) for name in needed) + bytes(16)
    listed: list[build.Section] = [(".dynstr", strings), (".dynamic", dynamic)]
    kinds = {2: 6}
    if interpreter:
        listed.append((".interp", interpreter.encode() + b"\0"))
    if glibc:
        part = struct.pack("<IHHII", 0, 0, 2, at[glibc], 0)
        listed.append((".gnu.version_r", struct.pack("<HHIII", 1, 1, 0, 16, 0) + part))
        kinds[len(listed)] = 0x6FFFFFFE
    if defines:
        rows = []
        for number, text in enumerate(defines):
            step = 0 if number == len(defines) - 1 else 28
            head = struct.pack("<HHHHIII", 1, 0, number, 1, 0, 20, step)
            rows.append(head + struct.pack("<II", at[text], 0))
        listed.append((".gnu.version_d", b"".join(rows)))
        kinds[len(listed)] = 0x6FFFFFFD
    if note:
        owner, text = b"NVIDIA Corporation\0\0", note.encode()
        head = struct.pack("<III", 19, len(text), 1)
        listed.append((".note.cuda.fwd_compatibility", head + owner + text))
    raw = bytearray(build.elf([*listed, *sections], machine=machine))
    (table,) = struct.unpack_from("<Q", raw, 0x28)
    for index, kind in kinds.items():
        struct.pack_into("<I", raw, table + index * 64 + 4, kind)
        struct.pack_into("<I", raw, table + index * 64 + 40, 1)
    return bytes(raw)


def base(glibc: str = "2.35", machine: int = 62) -> dict[str, Content]:
    """The files of a distribution: loader, C library, and a program ``/bin/serve``."""
    loader = LOADERS[machine]
    return {
        "usr/bin": FOLDER,
        "bin": link("usr/bin"),
        loader.lstrip("/"): binary(machine=machine),
        "usr/lib/libc.so.6": binary(defines=("2.2.5", "2.17", glibc), machine=machine),
        "usr/bin/serve": binary("libc.so.6", interpreter=loader, glibc="2.17", machine=machine),
        "etc/passwd": "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n",
        "etc/group": "root:x:0:\nrender:x:109:app\nvideo:x:44:\n",
    }


def config(environ: Iterable[str] = (), arch: str = "amd64", **more: object) -> dict[str, object]:
    """The configuration of an image that starts ``serve``."""
    inner = {"Env": ["PATH=/usr/bin", *environ], "Cmd": ["serve"], **more}
    rootfs = {"type": "layers", "diff_ids": []}
    return {"architecture": arch, "os": "linux", "config": inner, "rootfs": rootfs}


def archive(path: Path, files: Mapping[str, bytes]) -> Path:
    """A tar archive with these files."""
    with tarfile.open(path, "w") as tar:
        for name, raw in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
    return path


def saved(path: Path, config_: Mapping[str, object], layers: Sequence[bytes]) -> Path:
    """What `docker save` writes."""
    raw = json.dumps(config_).encode()
    name = f"{hashlib.sha256(raw).hexdigest()}.json"
    paths = [f"{number}/layer.tar" for number in range(len(layers))]
    entry = {"Config": name, "RepoTags": ["image:1"], "Layers": paths}
    files = {**dict(zip(paths, layers, strict=True)), name: raw}
    return archive(path, {**files, "manifest.json": json.dumps([entry]).encode()})


def layout(
    variants: Iterable[tuple[Mapping[str, object], Sequence[bytes]]],
    media: str = "application/vnd.oci.image.layer.v1.tar",
    absent: Iterable[int] = (),
) -> dict[str, bytes]:
    """The files of an OCI layout with an image of several platforms."""
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def blob(raw: bytes, media: str, *, keep: bool = True, **more: object) -> dict[str, object]:
        value = hashlib.sha256(raw).hexdigest()
        if keep:
            files[f"blobs/sha256/{value}"] = raw
        return {"mediaType": media, "digest": f"sha256:{value}", "size": len(raw), **more}

    manifests = []
    for config_, layers in variants:
        listed = [blob(raw, media, keep=number not in absent) for number, raw in enumerate(layers)]
        raw = json.dumps(config_).encode()
        described = blob(raw, "application/vnd.oci.image.config.v1+json")
        manifest = {"schemaVersion": 2, "config": described, "layers": listed}
        platform = {"architecture": config_.get("architecture"), "os": "linux"}
        kind = "application/vnd.oci.image.manifest.v1+json"
        manifests.append(blob(json.dumps(manifest).encode(), kind, platform=platform))
    nested = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
    index = [blob(nested, "application/vnd.oci.image.index.v1+json")]
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": index}).encode()
    return files


def folder(path: Path, files: Mapping[str, bytes]) -> Path:
    """A folder with these files."""
    for name, raw in files.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(raw)
    return path


def wheel(
    name: str, version: str, files: Mapping[str, Content], site: str = "usr/lib/python3.12"
) -> dict[str, Content]:
    """The files of an installed distribution."""
    packages = f"{site}/site-packages"
    metadata = f"{packages}/{name.replace('-', '_')}-{version}.dist-info"
    listed = "".join(f"{path},sha256=0,1\n" for path in files)
    return {
        **{f"{packages}/{path}": content for path, content in files.items()},
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n",
        f"{metadata}/RECORD": f"{listed}{metadata.rpartition('/')[2]}/RECORD,,\n",
    }


def torch(targets: str, cuda: str, count: int = 50, machine: int = 62) -> dict[str, Content]:
    """PyTorch for CUDA with these targets."""
    code = (".nv_fatbin", build.fatbin({targets: count}))
    tag = "cu" + cuda.replace(".", "")
    return wheel(
        "torch",
        f"2.9.1+{tag}",
        {
            "torch/version.py": f"__version__ = '2.9.1+{tag}'\ncuda = '{cuda}'\nhip = None\n",
            "torch/lib/libtorch_cuda.so": binary(
                "libc.so.6", glibc="2.17", machine=machine, sections=[code]
            ),
        },
    )


def rocm_torch(processors: str, hip: str) -> dict[str, Content]:
    """PyTorch for ROCm with code for these processors, and rocBLAS's kernels for them."""
    code = (".hip_fatbin", build.pages([build.bundle(processors.split())] * 20))
    kernels = {
        f"torch/lib/rocblas/library/Kernels.so-000-{name}.hsaco": b"k"
        for name in processors.split()
    }
    return wheel(
        "torch",
        f"2.9.1+rocm{hip}",
        {
            "torch/version.py": f"__version__ = '2.9.1'\ncuda = None\nhip = '{hip}.43482'\n",
            "torch/lib/libtorch_hip.so": binary("libc.so.6", glibc="2.17", sections=[code]),
            **kernels,
        },
    )


def compat(version: str, branches: Sequence[int]) -> dict[str, Content]:
    """A cuda-compat library with NVIDIA's note."""
    note = json.dumps({"driver": branches, "device": [1, 2, 7, 14]})
    folder = "usr/local/cuda-13.0/compat"
    return {
        "usr/local/cuda": link("cuda-13.0"),
        f"{folder}/libcuda.so.{version}": binary(note=note),
        f"{folder}/libcuda.so.1": link(f"libcuda.so.{version}"),
    }


def gz(raw: bytes, parts: int = 1) -> bytes:
    """Compressed by gzip, in several members."""
    step = len(raw) // parts + 1
    return b"".join(gzip.compress(raw[at : at + step], 1) for at in range(0, len(raw), step))


# Nodes.


def node(
    device: str,
    driver: str = "",
    *,
    module: str = "nvidia",
    mode: str = "",
    more: Mapping[str, object] | None = None,
    class_: str = "0x030200",
) -> dict[str, object]:
    """A recorded machine with one GPU of a PCI id."""
    vendor, _, number = device.partition(":")
    place = "/sys/devices/pci0000:00/0000:01:00.0"
    files: dict[str, object] = {
        "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
        f"{place}/class": f"{class_}\n",
        f"{place}/vendor": f"0x{vendor}\n",
        f"{place}/device": f"0x{number}\n",
        f"{place}/subsystem_vendor": f"0x{vendor}\n",
        f"{place}/subsystem_device": "0x0000\n",
        f"{place}/revision": "0xa1\n",
        f"{place}/power/runtime_status": "active\n",
    }
    links = {
        "/sys/bus/pci/devices/0000:01:00.0": "../../../devices/pci0000:00/0000:01:00.0",
        f"{place}/driver": f"../../../bus/pci/drivers/{module}",
        f"/sys/bus/pci/drivers/{module}/0000:01:00.0": f"../../../..{place[4:]}",
    }
    if driver:
        # Blackwell's ids begin there: the open module alone starts it.
        is_open = vendor == "10de" and int(number, 16) >= 0x2900
        flavour = "Open Kernel Module for x86_64" if is_open else "x86_64 Kernel Module"
        text = f"NVRM version: NVIDIA UNIX {flavour}  {driver}  Release Build\n"
        files["/proc/driver/nvidia/version"] = text
    if mode:
        path = "/etc/nvidia-container-runtime/config.toml"
        files[path] = f'[nvidia-container-runtime]\nmode = "{mode}"\n'
    return {
        "schema": 1,
        "os": "linux",
        "arch": "x86_64",
        "environ": {},
        "origin": "invented for tests",
        "files": {**files, **(more or {})},
        "links": links,
    }
