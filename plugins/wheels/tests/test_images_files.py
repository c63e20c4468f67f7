"""What is found in an image's files, alone: a SIF's partitions, programs, folders and purposes."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_images_formats import files_of

from probe_wheels.devices import Gpu
from probe_wheels.files import Budget
from probe_wheels.frameworks import has_code, name_of_builds, own_libraries
from probe_wheels.images import answers, contents, sif, sources
from probe_wheels.images.config import Config
from probe_wheels.images.layers import Layer, memory, scan
from probe_wheels.images.nodes import Node
from probe_wheels.images.program import path_of, program_of
from probe_wheels.images.purpose import purpose_of
from probe_wheels.images.steps import Step
from probe_wheels.images.streams import BadImage

OF_SCHEMA_1 = "its manifest is of Docker's schema 1, which engines no longer take"
CUT = "it is a SIF that is cut off"
IS_OCI = "it is a SIF that holds an OCI image, which is not read here"
SQUASHFS, ROOT, PARTITION, OCI = 1, 2, 0x4004, 0x400A


def descriptor(
    kind: int = PARTITION, used: int = 1, system: int = SQUASHFS, part: int = ROOT,
    offset: int = 4096, size: int = 100,
) -> bytes:  # fmt: skip
    body = struct.pack("<iBIIIqq", kind, used, 1, 1, 0, offset, size)
    return (body.ljust(201, b"\0") + struct.pack("<ii", system, part)).ljust(585, b"\0")


def of_sif(*descriptors: bytes, total: int | None = None, size: int = 8192) -> Any:
    head = bytes(80) + struct.pack("<qqqq", 0, len(descriptors) if total is None else total, 128, 0)
    return memory((head.ljust(128, b"\0") + b"".join(descriptors)).ljust(size, b"\0")[:size])


OTHER = descriptor(kind=0x4001)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (of_sif(descriptor()), 4096),
        (of_sif(OTHER, descriptor(offset=5000)), 5000),
        (of_sif(descriptor(offset=8092)), 8092),
        (of_sif(descriptor(offset=8093)), CUT),
        (of_sif(descriptor(offset=0)), CUT),
        (of_sif(descriptor(offset=1, size=8191)), 1),
        (of_sif(descriptor(part=1), descriptor(part=ROOT, offset=6000)), 6000),
        (of_sif(descriptor(used=0)), "it is a SIF without a root"),
        (of_sif(OTHER), "it is a SIF without a root"),
        (of_sif(), "it is a SIF without a root"),
        (of_sif(descriptor(), total=-1), "it is a SIF without a root"),
        (of_sif(*[OTHER] * 127, descriptor(), size=1 << 17), 4096),
        (of_sif(*[OTHER] * 128, descriptor(), size=1 << 17), "it is a SIF without a root"),
        (of_sif(descriptor(kind=OCI)), IS_OCI),
        (of_sif(descriptor(kind=OCI + 1)),
         IS_OCI),
        (of_sif(descriptor(kind=OCI, used=0)), "it is a SIF without a root"),
        (of_sif(descriptor(system=5)), "its root is encrypted"),
        (of_sif(descriptor(system=6)), "its root is encrypted"),
        (of_sif(descriptor(system=2)), "its root is no squashfs"),
        (of_sif(descriptor(), size=712), CUT),
        (of_sif(descriptor(), size=127), CUT),
    ],
)  # fmt: skip
def test_where_the_root_of_a_sif_begins(file: Any, expected: int | str) -> None:
    if isinstance(expected, int):
        assert sif._partition(file) == expected
    else:
        with pytest.raises(BadImage) as raised:
            sif._partition(file)
        assert str(raised.value) == expected


LISTING = """Parallel unsquashfs: Using 2 processors
drwxr-xr-x 0/0       49 2026-01-01 00:00 squashfs-root
-rwxr-x--- 1000/44  1234 2026-01-01 00:00 squashfs-root/usr/bin/a file
lrwxrwxrwx 0/0        3 2026-01-01 00:00 squashfs-root/bin -> usr/bin
-rw-r--r-- x/y        z 2026-01-01 00:00 squashfs-root//odd/./name
-rw-r--r- 0/0 1 2026-01-01 00:00 squashfs-root/short
-rw-r--r-- 0/0 1 2026-01-01 00:00 other/elsewhere
crw------- 0/0 5,1 2026-01-01 00:00 squashfs-root/dev/console
"""


def test_lines_of_unsquashfs(tmp_path: Path) -> None:
    program = tmp_path / "unsquashfs"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{LISTING}END\n")
    program.chmod(0o755)
    assert list(sif._Squash(str(program), "a", 0)._entries()) == [
        ("-rwxr-x---", "usr/bin/a file", 1234, 1000, 44, ""),
        ("lrwxrwxrwx", "bin", 3, 0, 0, "usr/bin"),
        ("-rw-r--r--", "odd/name", 0, 0, 0, ""),
        ("crw-------", "dev/console", 0, 0, 0, ""),
    ]
    program.write_text("#!/bin/sh\nexit 1\n")
    opening: Any = SimpleNamespace(budget=Budget())
    layer = sif._Squash(str(program), "a", 0).layer(opening)
    assert layer.problem == "squashfs: unsquashfs cannot read it"


@pytest.mark.parametrize(
    ("kind", "path", "mode"),
    [
        ("-rwxr-xr-x", "usr/bin/serve", 0o755),
        ("-rw-r--r--", "usr/lib/libc.so", 0o644),
        ("-rws--x--t", "usr/bin/serve", 0o711),
        ("-rwSr-sr-T", "usr/bin/serve", 0o654),
    ],
)
def test_modes_of_a_listing(kind: str, path: str, mode: int) -> None:
    layer, wanted = Layer("squashfs"), list[Any]()
    sif._add(layer, wanted, kind, path, 7, 1, 2, "")
    ((found, size, bits, user, group, _),) = wanted
    assert (found, size, oct(bits), user, group) == (path, 7, oct(mode), 1, 2)


def test_what_of_a_listing_is_kept() -> None:
    layer, wanted = Layer("squashfs"), list[Any]()
    for kind, path in (
        ("lrwxrwxrwx", "bin"), ("drwxr-xr-x", "usr/bin"), ("-rw-r--r--", "srv/notes"),
        ("-rw-r--r--", "lib/a.cubin"), ("-rwxr-xr-x", "srv/run"), ("crw-rw-rw-", "bin/null"),
    ):  # fmt: skip
        sif._add(layer, wanted, kind, path, 7, 1, 2, "usr/bin")
    assert layer.links == {"bin": "usr/bin"}
    (name,) = layer.files
    kept = layer.files[name]
    assert (name, kept.size, kept.mode, kept.uid, kept.gid) == ("lib/a.cubin", 7, 0o644, 1, 2)
    assert [(entry[0], entry[-1]) for entry in wanted] == [("srv/run", "executable")]
    assert sif._literal("a*b?[c]\\d") == r"a\*b\?\[c\]\\d"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/router-80", "router-"), ("router-50", "router-"), ("router-129", "router-"),
        ("router-130", "router-130"), ("router-49", "router-49"), ("router-0080", "router-0080"),
        ("libk_sm90a.so", "libk_sm.so"), ("libk_sm100f.so", "libk_sm.so"),
        ("libk_sm90ab.so", "libk_smab.so"), ("libk_sm90x.so", "libk_smx.so"),
        ("lib7a-80b", "lib7a-b"), ("v80a", "v"), ("80/b", "b"),
    ],
)  # fmt: skip
def test_names_without_the_chip_of_a_build(path: str, name: str) -> None:
    assert name_of_builds(path) == name


@pytest.mark.parametrize(
    ("library", "vendors"),
    [
        ({"cuda": [1]}, ["nvidia"]), ({"hip": [1]}, ["amd"]), ({"unread": "x"}, ["amd"]),
        ({"packs": [1]}, ["amd"]), ({"intel": [1]}, ["intel"]), ({"metal": [1]}, ["apple"]),
        ({"cuda": [], "vulkan": True}, []), ({"cuda": [1], "metal": [1]}, ["nvidia", "apple"]),
    ],
)  # fmt: skip
def test_whose_code_a_library_has(library: Any, vendors: list[str]) -> None:
    named = ("nvidia", "amd", "intel", "apple", "other")
    assert [vendor for vendor in named if has_code(library, vendor)] == vendors


CODE: Any = {"cuda": [1]}


@pytest.mark.parametrize(
    ("name", "files", "own"),
    [
        ("acme", {"a.so": CODE, "acme.libs/b.so": CODE}, ["a.so"]),
        ("acme", {"a.so": {}, "acme.libs/b.so": CODE}, ["a.so", "acme.libs/b.so"]),
        ("acme", {"a.so": CODE, "x/libcudnn.so.9": CODE}, ["a.so"]),
        ("nvidia-cudnn-cu12", {"x/libcudnn.so.9": CODE}, ["x/libcudnn.so.9"]),
    ],
)
def test_libraries_of_a_distributions_own(name: str, files: Any, own: list[str]) -> None:
    document: Any = {"name": name, "files": files}
    assert list(own_libraries(document)) == own


def config_of(*words: str, folder: str = "", **environ: str) -> Config:
    config = Config()
    config.program, config.folder, config.environ = list(words), folder, environ
    return config


SCRIPTS = {
    "usr/bin/run": b"#!/bin/sh -e\n", "bin/sh": b"data",
    "srv/env": b"#!\t/usr/bin/env -S A=1 own x\n",
    "opt/own": b"#!\n", "srv/loop": b"#!/srv/loop\n", "srv/bare": b"#!/usr/bin/env -i\n",
    "srv/gone": b"#!/no/such\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "path", "missing", "problem", "hops"),
    [
        (config_of("/usr/bin/run"), "/bin/sh", False, "it is no program for 64 bits",
         ["/usr/bin/run", "/bin/sh"]),
        (config_of("run", PATH="/bin:/usr/bin"), "/bin/sh", False, "it is no program for 64 bits",
         ["/usr/bin/run", "/bin/sh"]),
        (config_of("run", PATH=":/opt"), "run", True, None, []),
        (config_of("./env", folder="/srv", PATH="/opt"), "/bin/sh", False,
         "it is no program for 64 bits", ["/srv/env", "/opt/own", "/bin/sh"]),
        (config_of("srv/env", PATH="/usr"), "own", True, None, ["/srv/env"]),
        (config_of("/srv/bare", PATH="/usr"), "env", True, None, ["/srv/bare"]),
        (config_of("/srv/gone"), "/no/such", True, None, ["/srv/gone"]),
        (config_of("/srv/loop"), "/srv/loop", False, "its scripts start each other", None),
    ],
)  # fmt: skip
def test_what_an_image_starts_through_scripts(
    config: Config, path: str, missing: bool, problem: str | None, hops: list[str] | None
) -> None:
    program = program_of(files_of(SCRIPTS, {}), config)
    assert program is not None
    assert (program.path, program.missing, program.problem) == (path, missing, problem)
    assert hops is None or program.hops == hops


def test_an_image_that_starts_nothing() -> None:
    assert program_of(files_of(SCRIPTS, {}), config_of()) is None
    assert path_of({"PATH": "/a:/b"}) == ["/a", "/b"]
    assert path_of({}) == path_of({"PATH": ""})
    assert "/usr/bin" in path_of({})


def test_chips_that_tensorrt_has_builders_for() -> None:
    stem = "libnvinfer_builder_resource_sm"
    names = [f"{stem}{chip}.so.10" for chip in ("120", "86", "80", "9", "1000", "10000", "90a")]
    found = contents._builders([*names, "libnvinfer.so.10"])
    assert found == [(8, 0), (8, 6), (12, 0), (100, 0)]


def test_folders_that_the_loader_of_an_image_is_told() -> None:
    files = {
        "etc/ld.so.conf": b"include /etc/ld.so.conf.d/*.conf\n /opt/lib \nlib\n",
        "etc/ld.so.conf.d/b.conf": b"# /no\n/usr/local/cuda/lib64\n",
        "etc/ld.so.conf.d/a.conf": b"/a\n",
    }
    assert sorted(contents._configured(files_of(files, {}))) == [
        "/a", "/opt/lib", "/usr/local/cuda/lib64"
    ]  # fmt: skip
    many = {"etc/ld.so.conf": b"/a\n" * 1025}
    assert contents._configured(files_of(many, {})) == ["/a"] * 1024


@pytest.mark.parametrize(
    ("path", "sites"),
    [
        ("/usr/bin", ["/usr/lib/python3/site", "/opt/venv/lib/python3/site", "/srv/site"]),
        ("/opt/venv/bin:/usr/bin",
         ["/opt/venv/lib/python3/site", "/usr/lib/python3/site", "/srv/site"]),
        ("/srv/bin", ["/opt/venv/lib/python3/site", "/srv/site", "/usr/lib/python3/site"]),
    ],
)  # fmt: skip
def test_packages_of_the_interpreter_that_path_finds_are_first(path: str, sites: list[str]) -> None:
    places = ("usr/lib/python3/site", "opt/venv/lib/python3/site", "srv/site")
    files = {f"{place}/a-1.dist-info/METADATA": b"" for place in places}
    files |= {"srv/site/b.egg-info/PKG-INFO": b"", "lib/other.info/METADATA": b""}
    assert contents._sites(files_of(files, {}).tree, {"PATH": path}) == sites


def package(name: str, files: Any = None, **text: Any) -> Any:
    return {
        "name": name, "version": "1", "build": text.pop("build", None), "site": "/s",
        "files": files or {}, "text": text, "gfx": [], "requires": [],
    }  # fmt: skip


HIP: Any = {"hip": [1]}
TORCH = package("torch", {"torch/lib/libtorch_cuda.so": CODE}, build="cu128")
FOR_CPU = package("torch", build="cpu")
SHADERS = package("own", {"libown.so": {"vulkan": True}})


@pytest.mark.parametrize(
    ("documents", "names", "expected"),
    [
        ([], [], ([], [], "needing", False, False)),
        ([TORCH], [], (["nvidia"], [], "needing", False, False)),
        ([FOR_CPU], [], ([], [], "taking", True, False)),
        ([package("nvidia-cudnn-cu12", {"libcudnn.so.9": CODE})], [],
         (["nvidia"], [], "needing", False, True)),
        ([TORCH, package("nvidia-cudnn-cu12", {"libcudnn.so.9": CODE})], [],
         (["nvidia"], [], "needing", False, False)),
        ([package("triton")], [],
         ([], ["amd", "nvidia"], "needing", False, False)),
        ([TORCH, package("triton")], [],
         (["nvidia"], ["amd", "nvidia"], "needing", False, False)),
        ([package("own", {"a.so": HIP})], [], (["amd"], [], "needing", False, False)),
        ([package("own", {"libggml-hip.so": HIP})], ["libggml-cpu.so"],
         (["amd"], [], "taking", False, False)),
        ([package("own", {"libggml-hip.so": HIP})], [], (["amd"], [], "needing", False, False)),
        ([package("own", {"libggml-hip.so": HIP, "b.so": CODE})], ["libggml-cpu.so"],
         (["amd", "nvidia"], [], "needing", False, False)),
        ([package("own", {"libgromacs_mpi.so": CODE})], ["libgromacs_mpi.so"],
         (["nvidia"], [], "taking", True, False)),
        ([SHADERS], [], ([], [], "needing", False, False)),
        ([FOR_CPU, package("flash-attn", {"f.so": CODE})], [], ([], [], "taking", True, False)),
        ([FOR_CPU, package("own", {"o.so": CODE})], [], (["nvidia"], [], "needing", False, False)),
        ([FOR_CPU, package("triton")], [], ([], [], "taking", True, False)),
        ([package("openvino")], [], ([], ["intel"], "first", True, False)),
        ([package("openvino"), TORCH], [], (["nvidia"], ["intel"], "needing", False, False)),
        ([package("onnxruntime", {"o.so": CODE})], [], (["nvidia"], [], "taking", False, False)),
        ([package("own")], [], ([], [], "needing", False, False)),
    ],
)  # fmt: skip
def test_what_the_code_of_an_image_is_for(
    documents: list[Any], names: list[str], expected: Any
) -> None:
    found = purpose_of(documents, names)
    assert (
        sorted(found.vendors), sorted(found.compiling), found.use, found.skips, found.components
    ) == expected  # fmt: skip


NAMED = {"a/web:1": 1, "web:2": 2, "b/web:1": 3}


@pytest.mark.parametrize(
    ("named", "name", "expected"),
    [
        ({"web": 1}, None, ("web", 1)),
        (NAMED, "web:2", ("web:2", 2)),
        (NAMED, "web:1", ("a/web:1", 1)),
        (NAMED, "b/web:1", ("b/web:1", 3)),
        (NAMED, None, "it has 3 images: take --image with one of a/web:1, b/web:1, web:2"),
        (NAMED, "web", "it has no image web: take --image with one of a/web:1, b/web:1, web:2"),
        ({}, None, "no image is in it"),
        ({}, "web", "no image is in it"),
        (dict.fromkeys("abcdefghi"), "x",
         "it has no image x: take --image with one of a, b, c, d, e, f, g, h"),
    ],
)  # fmt: skip
def test_the_image_that_a_name_picks(named: Any, name: str | None, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert sources._choose(named, name) == expected
    else:
        with pytest.raises(BadImage) as raised:
            sources._choose(named, name)
        assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("config", "platform", "arch", "variant"),
    [
        ({"architecture": "arm64", "variant": "v8"}, {"architecture": "amd64", "variant": "v3"},
         "aarch64", "v8"),
        ({"architecture": "amd64"}, {"architecture": "arm64", "variant": "v3"}, "x86_64", "v3"),
        ({"rootfs": {}}, {"architecture": "arm64"}, "aarch64", ""),
        ({"rootfs": {}}, {"architecture": "mips"}, "mips", ""),
        ({"rootfs": {}}, {"architecture": 7}, None, ""),
        ({"rootfs": {}}, "amd64", None, ""),
    ],
)  # fmt: skip
def test_the_platform_of_an_index_stands_in(
    config: Any, platform: Any, arch: str | None, variant: str
) -> None:
    store: Any = SimpleNamespace(text=lambda path: json.dumps(config).encode())
    manifest = {"config": {"digest": "sha256:" + "a" * 64}, "layers": []}
    entry = {"document": manifest, "digest": "sha256:b", "platform": platform}
    opening: Any = SimpleNamespace()
    image = sources._of_manifest(store, entry, "web", "layout", opening)
    assert (image.config.arch, image.config.variant) == (arch, variant)
    assert (image.kind, image.name, image.digest, image.places) == ("layout", "web", "sha256:b", [])


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ([], "its manifest is none of an image"),
        ({"fsLayers": []}, OF_SCHEMA_1),
        ({"schemaVersion": 1}, OF_SCHEMA_1),
        ({"schemaVersion": 2}, "its manifest names no config"),
        ({"config": "sha256:a"}, "its manifest names no config"),
    ],
)  # fmt: skip
def test_manifests_that_are_none(manifest: Any, problem: str) -> None:
    unread: Any = None
    with pytest.raises(BadImage) as raised:
        sources._of_manifest(unread, {"document": manifest}, "web", "layout", unread)
    assert str(raised.value) == problem


def answered(word: str, reason: str = "") -> answers.Answer:
    return answers.Answer(word, [Step("s", word, reason)] if reason else [])


@pytest.mark.parametrize(
    ("legacy", "cdi", "expected"),
    [
        (answered("runs"), answered("runs"), "legacy"),
        (answered("runs"), answered("less", "a"), "cdi"),
        (answered("less", "a"), answered("runs"), "legacy"),
        (answered("less", "a"), answered("less", "b"), "legacy"),
        (answered("no", "a"), answered("no", "a"), "legacy"),
        (answered("no", "a"), answered("no", "b"), "cdi"),
        (answered("unknown", "a"), answered("unknown", "b"), "legacy"),
        (answered("no", "a"), answered("runs"), "legacy: it does not run, a; CDI: it runs"),
        (answered("unknown", "a"), answered("less", "b"),
         "legacy: unknown, a; CDI: it runs with less, b"),
        (answered("no", "a"), answered("unknown", "b"),
         "legacy: it does not run, a; CDI: unknown, b"),
    ],
)  # fmt: skip
def test_what_holds_under_either_mode(
    legacy: answers.Answer, cdi: answers.Answer, expected: str
) -> None:
    cdi.devices = [("runs", "GPU", "")]
    found = answers._either([legacy, cdi])
    if expected in ("legacy", "cdi"):
        assert found is (legacy if expected == "legacy" else cdi)
        return
    assert (found.word, found.devices) == ("unknown", cdi.devices)
    assert found.step is not None
    assert found.step.reason == f"it depends on the mode of the toolkit; {expected}"
    assert found.steps == [found.step, *legacy.steps, *cdi.steps]


@pytest.mark.parametrize(
    ("words", "together", "first"),
    [
        ("runs", "runs", "runs"), ("no no", "no", "no"), ("no runs", "less", "runs"),
        ("no less", "less", "less"), ("no unknown", "unknown", "unknown"),
        ("unknown runs", "less", "runs"), ("less less", "less", "less"),
    ],
)  # fmt: skip
def test_what_several_devices_give(words: str, together: str, first: str) -> None:
    assert (answers._together(words.split()), answers._first(words.split())) == (together, first)


@pytest.mark.parametrize(
    ("musl", "libc", "expected"),
    [
        (True, ("", ()), True),
        (True, ("/lib/libc.so.6", (2, 36)), False),
        (True, ("/lib/libc.so.6", ()), False),  # of which nobody knows the version
        (False, ("", ()), False),
    ],
)
def test_an_image_of_musl_has_no_glibc(
    musl: bool, libc: tuple[str, tuple[int, ...]], expected: bool
) -> None:
    names = {"ld-musl-x86_64.so.1"} if musl else {"ld-linux-x86-64.so.2"}
    image: Any = SimpleNamespace(_musl=None, names=names, libc=lambda: libc)
    assert contents.Contents.is_musl(image) is expected


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(5, "Input/output error"), "Input/output error"),
        (OSError(), "it cannot be read"),
        (BadImage("it is cut off"), "it is cut off"),
    ],
)
def test_a_layer_that_cannot_be_read_says_why(error: Exception, reason: str) -> None:
    def read(*_: object) -> bytes:
        raise error

    source: Any = SimpleNamespace(read=read, skip=read)
    assert scan(source, "layer 2", Budget(60.0)).problem == f"layer 2: {reason}"


NEEDS, HAS = "it needs a GPU of NVIDIA or AMD", "and the node has"
ASKS = "it asks for GPUs of NVIDIA or AMD and has no code for them"


@pytest.mark.parametrize(
    ("facts", "hidden", "others", "word", "reason", "fix"),
    [
        ({}, "", [], "no", f"{NEEDS}, {HAS} no GPU", "take a node with a GPU of NVIDIA or AMD"),
        ({}, "", ["Hailo-8"], "no", f"{NEEDS}, {HAS} Arc, Hailo-8",
         "take a node with a GPU of NVIDIA or AMD"),
        ({"falls_back": True}, "", [], "less", f"{NEEDS}, {HAS} no GPU: it uses the CPU", ""),
        ({"asks": True, "falls_back": True}, "", [], "unknown",
         f"{ASKS}, {HAS} no GPU: whether it does without is unknown", ""),
        ({"asks": True}, "it is a virtual machine", ["Hailo-8"], "unknown",
         f"{NEEDS}: it is a virtual machine", ""),
    ],
)  # fmt: skip
def test_a_node_without_a_gpu_of_the_images_vendors(
    facts: dict[str, bool], hidden: str, others: list[str], word: str, reason: str, fix: str
) -> None:
    node = Node("n", "x86_64", "linux", [Gpu("a", "intel", "Arc")] * 2 if others else [])
    node.hidden, node.others = hidden, others
    known = {"vendors": ["nvidia", "amd"], "asks": False, "falls_back": False}
    image: Any = SimpleNamespace(**{**known, **facts})
    earlier = Step("loader", "less", "earlier")
    found = answers._without_gpu(image, node, [earlier])
    assert found.word == word
    assert found.steps[0] is earlier
    (step,) = found.steps[1:]
    assert (step.name, step.word, step.reason, step.fix) == ("devices", word, reason, fix)


def no(*, ends: bool = False) -> Step:
    return Step("code", "no", "no code", "a.so", "take another", ends=ends)


def unsure(*, ends: bool = False) -> Step:
    return Step("driver", "unknown", "nobody knows", ends=ends)


@pytest.mark.parametrize(
    ("cpu_first", "shown", "refused", "expected"),
    [
        (False, [no()], [no()], "code less: no code: it uses the CPU"),
        (True, [no()], [no()], "code less: no code: it uses the CPU"),
        (False, [no(ends=True)], [no(ends=True)], None),
        (False, [unsure()], [], None),
        (True, [unsure()], [], "driver less: nobody knows: it uses the CPU at least"),
        (True, [unsure(), unsure(ends=True)], [], "driver unknown: nobody knows"),
        (False, [no(), unsure(ends=True)], [no()], "driver unknown: nobody knows"),
    ],
)
def test_what_uses_the_cpu_where_it_cannot_use_a_gpu(
    cpu_first: bool, shown: list[Step], refused: list[Step], expected: str | None
) -> None:
    image: Any = SimpleNamespace(cpu_first=cpu_first)
    found = answers._on_cpu(image, shown, refused)
    if expected is None:
        assert found is shown
        return
    (step,) = found
    assert f"{step.name} {step.word}: {step.reason}" == expected
    if refused and step.word == "less":
        assert (step.place, step.fix) == ("a.so", "take another")


def image_of(
    *documents: Any, names: Any = (), rocm: Any = (), program: Any = None, **environ: str
) -> Any:
    return SimpleNamespace(
        documents=list(documents), names=set(names), environ=environ, rocm=rocm, program=program,
        files=files_of({}, {}), shaders=False, host_library="", vendors=[], asks=False,
        falls_back=False, cpu_first=False, skips=False, is_sycl=False,
        image=SimpleNamespace(config=config_of()),
    )  # fmt: skip


CUDNN = package("nvidia-cudnn-cu12", {"c.so": CODE})
SYCL = package("own", {"a.so": {"intel": "native"}})
GGML_ALONE = package("own", {"lib/libggml-vulkan.so": {"vulkan": True}})
SMI = SimpleNamespace(path="/usr/bin/nvidia-smi", binary=None, missing=True)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (image_of(), ([], "")),
        (image_of(TORCH), (["nvidia"], "")),
        (image_of(FOR_CPU), ([], "falls_back skips")),
        (image_of(SYCL), (["intel"], "is_sycl")),
        (image_of(CUDA_VERSION="12.8"), (["nvidia"], "")),
        (image_of(NVIDIA_REQUIRE_CUDA="cuda>=12"), (["nvidia"], "")),
        (image_of(CUDA_VERSION="12.8", NVIDIA_VISIBLE_DEVICES="void"), ([], "")),
        (image_of(TORCH, CUDA_VERSION="12.8", NVIDIA_VISIBLE_DEVICES="none"), (["nvidia"], "")),
        (image_of(NVIDIA_VISIBLE_DEVICES="all"), (["nvidia"], "asks")),
        (image_of(NVIDIA_VISIBLE_DEVICES=""), ([], "")),
        (image_of(NVIDIA_VISIBLE_DEVICES="void"), ([], "")),
        (image_of(TORCH, NVIDIA_VISIBLE_DEVICES="all"), (["nvidia"], "")),
        (image_of(rocm=(6, 4)), (["amd"], "")),
        (image_of(TORCH, rocm=(6, 4)), (["nvidia"], "")),
        (image_of(GGML_ALONE), (["nvidia", "amd", "intel"], "shaders")),
        (image_of(GGML_ALONE, rocm=(6, 4)), (["nvidia", "amd", "intel"], "shaders")),
        (image_of(GGML_ALONE, names=["libggml-cpu.so"]),
         (["nvidia", "amd", "intel"], "falls_back shaders")),
        (image_of(SHADERS), ([], "")),
        (image_of(TORCH, GGML_ALONE), (["nvidia"], "")),
        (image_of(package("triton")), (["nvidia", "amd"], "")),
        (image_of(CUDNN), (["nvidia"], "asks")),
        (image_of(CUDNN, CUDA_VERSION="12"), (["nvidia"], "")),
        (image_of(package("openvino")), (["intel"], "cpu_first falls_back skips")),
        (image_of(package("openvino"), CUDA_VERSION="12.8"), (["nvidia"], "falls_back skips")),
        (image_of(FOR_CPU, program=SMI), (["nvidia"], "host_library skips")),
    ],
)  # fmt: skip
def test_whose_gpus_an_image_is_for(image: Any, expected: Any) -> None:
    contents._conclude(image)
    names = "asks cpu_first falls_back host_library is_sycl shaders skips"
    assert (image.vendors, " ".join(n for n in names.split() if getattr(image, n))) == expected


@pytest.mark.parametrize(
    ("watcher", "host", "asks", "library"),
    [
        ("dcgm-exporter", "", False, "libnvidia-ml.so.1"),
        ("dcgmi", "", True, "libnvidia-ml.so.1"),
        ("nvidia-smi", "/usr/bin/nvidia-smi", False, "/usr/bin/nvidia-smi"),
    ],
)
def test_an_image_that_watches_gpus(watcher: str, host: str, asks: bool, library: str) -> None:
    image = image_of(TORCH, rocm=(6, 4))
    image.host_library, image.falls_back, image.cpu_first = host, True, True
    contents._watch(image, watcher)
    assert (image.watcher, image.vendors, image.documents) == (watcher, ["nvidia"], [])
    assert (image.toolkit, image.rocm, image.compat) == ((), (), [])
    assert (image.falls_back, image.cpu_first) == (False, False)
    assert (image.asks, image.host_library) == (asks, library)


def linked_with(*needed: str) -> Any:
    return SimpleNamespace(binary=SimpleNamespace(needed=needed))


@pytest.mark.parametrize(
    ("image", "installed", "expected"),
    [
        (image_of(), [], ""),
        (image_of(names=["libnrt.so.1", "libtpu.so", "libnrtx.so"]), [],
         ("it has libraries for AWS Neuron and Google's TPU, whose code is not read: whether it"
         " does without is unknown")),
        (image_of(names=["xlibnrt.so"]), [], ""),
        (image_of(program=linked_with("libc.so.6", "libOpenCL.so.1")), [],
         ("it takes libOpenCL.so.1: whether there is a driver for it in the container, or it does"
         " without, is unknown")),
        (image_of(), ["numpy", "pyopencl"],
         ("it takes pyopencl: whether there is a driver for it in the container, or it does"
         " without, is unknown")),
        (image_of(program=linked_with("libc.so.6")), ["numpy"], ""),
        (image_of(program=SMI), [], ""),
    ],
)  # fmt: skip
def test_what_of_an_image_is_not_judged(image: Any, installed: list[str], expected: str) -> None:
    assert contents._unjudged(image, installed) == expected
    if "libOpenCL" in expected:
        image.image.config.program = ["ffmpeg"]
        assert contents._unjudged(image, installed) == ""


@pytest.mark.parametrize(
    ("entry", "tag"),
    [
        ({"RepoTags": ["web:1", "web:2"]}, "web:1"), ({"RepoTags": []}, "image 3"),
        ({"RepoTags": [7]}, "image 3"), ({"RepoTags": "web:1"}, "image 3"), ({}, "image 3"),
    ],
)  # fmt: skip
def test_the_tag_of_a_saved_image(entry: Any, tag: str) -> None:
    assert sources._tag(entry, 2) == tag
