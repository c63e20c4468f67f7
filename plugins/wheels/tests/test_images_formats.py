"""Images as people have them, layers as they are packed, and what the layers of one image hide."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import image_files as make
import pytest
import wheel_files as build
from test_images_answers import BASE, CU128, look, nodes, split
from weights import mostly_heavy

from probe_wheels.files import Budget, Opened
from probe_wheels.formats.library import read_code, read_library
from probe_wheels.formats.packed import system_zstd
from probe_wheels.images.answers import answer_of
from probe_wheels.images.contents import contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.layers import File, Layer, memory, scan
from probe_wheels.images.passing import Kept, kept_of
from probe_wheels.images.sources import open_images
from probe_wheels.images.streams import Source, Unpacked, source_of
from probe_wheels.images.toolkits import compats_of, rocblas_processors, rocm_of, toolkit_of
from probe_wheels.images.tree import Tree, merge
from probe_wheels.images.view import ImageFiles
from probe_wheels.rules import version_of

TORCH: dict[str, make.Content] = {**BASE, **make.torch(CU128, "12.8")}
LIBRARY = "usr/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"


def zstd(raw: bytes) -> bytes:
    """Frames of 32 KiB one after another, behind one that decoders pass over."""
    step = 32 << 10
    frames = [build.zstd(raw[at : at + step]) for at in range(0, len(raw), step)]
    return b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip" + b"".join(frames)


def torch_of(path: Path, name: str | None = None) -> list[str]:
    """The targets of the image's PyTorch: [] where nothing of it was read."""
    contents = look(path, name)
    assert not contents.problems, contents.problems
    found = [d for d in contents.documents if d["name"] == "torch"]
    return [target for d in found for lib in d["files"].values() for target in lib["cuda"][0][0]]


ARCH = make.config()
PACKINGS = {"plain": bytes, "gzip": make.gz, "members": lambda raw: make.gz(raw, 5), "zstd": zstd}


@pytest.mark.parametrize("pack", PACKINGS)
def test_layers_are_read_however_they_are_packed(pack: str, tmp_path: Path) -> None:
    layers = [PACKINGS[pack](raw) for raw in split(TORCH)]
    saved = torch_of(make.saved(tmp_path / "a.tar", ARCH, layers))
    layout = make.layout([(ARCH, layers)])
    assert saved == sorted(CU128.split())
    assert torch_of(make.folder(tmp_path / "oci", layout)) == saved
    assert torch_of(make.archive(tmp_path / "oci.tar", layout)) == saved


@pytest.mark.parametrize("pack", ["plain", "gzip"])
def test_a_saved_archive_may_be_packed_as_a_whole(pack: str, tmp_path: Path) -> None:
    layers = [PACKINGS[pack](raw) for raw in split(TORCH)]
    path = make.saved(tmp_path / "a.tar", ARCH, layers)
    path.write_bytes(make.gz(path.read_bytes()))
    assert torch_of(path) == sorted(CU128.split())


def test_older_docker_links_a_layer_to_the_same_one_of_another(tmp_path: Path) -> None:
    lower, upper = split(TORCH)
    raw = json.dumps(ARCH).encode()
    entry = [{"Config": "c.json", "RepoTags": None, "Layers": ["a/layer.tar", "b/layer.tar"]}]
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in {"x/layer.tar": lower, "b/layer.tar": upper, "c.json": raw}.items():
            make.tarfile.TarFile.addfile(tar, _info(name, len(data)), make.io.BytesIO(data))
        link = tarfile.TarInfo("a/layer.tar")
        link.type, link.linkname = tarfile.SYMTYPE, "../x/layer.tar"
        tar.addfile(link)
        text = json.dumps(entry).encode()
        tar.addfile(_info("manifest.json", len(text)), make.io.BytesIO(text))
    assert torch_of(tmp_path / "a.tar") == sorted(CU128.split())


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


def test_a_layout_gives_each_platform_its_own_image(tmp_path: Path) -> None:
    arm = [make.layer(make.base(machine=183))]
    variants = [(make.config(), split(TORCH)), (make.config(arch="arm64"), arm)]
    files = make.layout(variants)
    index = json.loads(files["index.json"])
    opening = Opening()
    images = open_images(str(make.folder(tmp_path / "oci", files)), opening)
    opening.close()
    assert [image.config.arch for image in images] == ["x86_64", "aarch64"]
    assert len(index["manifests"]) == 1  # the index is nested, as Docker writes it


def test_attestations_beside_an_image_are_no_image(tmp_path: Path) -> None:
    files = make.layout([(ARCH, split(TORCH)), ({"architecture": "unknown"}, [])])
    assert torch_of(make.folder(tmp_path / "oci", files)) == sorted(CU128.split())


def test_an_unpacked_root_and_an_environment_are_read(tmp_path: Path) -> None:
    plain = {path: raw for path, raw in TORCH.items() if not isinstance(raw, make.Entry)}
    files = {path: raw.encode() if isinstance(raw, str) else raw for path, raw in plain.items()}
    root = make.folder(tmp_path / "root", files)
    (root / "bin").symlink_to("usr/bin")
    (root / "usr" / "lib" / "leads-out").symlink_to("/etc")
    assert torch_of(root) == sorted(CU128.split())
    assert look(root).arch == "x86_64"
    environment = tmp_path / "venv"
    shutil.copytree(root / "usr" / "lib", environment / "lib", symlinks=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    contents = look(environment)
    assert contents.is_environment
    assert [d["name"] for d in contents.documents] == ["torch"]


@pytest.mark.skipif(not shutil.which("mksquashfs"), reason="squashfs-tools is not here")
def test_a_sif_is_read_by_the_systems_tool(tmp_path: Path) -> None:
    plain = {path: raw for path, raw in TORCH.items() if not isinstance(raw, make.Entry)}
    files = {path: raw.encode() if isinstance(raw, str) else raw for path, raw in plain.items()}
    name = ".singularity.d/env/10-docker2singularity.sh"
    files[name] = b'export CUDA_VERSION="${CUDA_VERSION:-"12.8.1"}"\nexport X="$(id)"\n'
    root = make.folder(tmp_path / "root", files)
    for path in files:
        (root / path).chmod(0o755)
    (root / "bin").symlink_to("usr/bin")
    command = ["mksquashfs", str(root), str(tmp_path / "a.sqfs"), "-quiet", "-no-progress"]
    subprocess.run(command, check=True, capture_output=True)
    path = tmp_path / "a.sif"
    path.write_bytes(sif((tmp_path / "a.sqfs").read_bytes()))
    assert torch_of(path) == sorted(CU128.split())
    contents = look(path)
    assert contents.toolkit == (12, 8)
    assert contents.arch == "x86_64"
    assert "X" not in contents.environ


@pytest.mark.skipif(not shutil.which("mksquashfs"), reason="squashfs-tools is not here")
def test_apptainer_mounts_by_its_own_list(tmp_path: Path) -> None:
    """`--nv` checks no requirement and takes no compat library; devices are their user's own."""
    files = {**TORCH, **make.compat("575.51.03", (535,))}
    plain = {path: raw for path, raw in files.items() if not isinstance(raw, make.Entry)}
    encoded = {path: raw.encode() if isinstance(raw, str) else raw for path, raw in plain.items()}
    encoded[".singularity.d/env/10-docker2singularity.sh"] = (
        b"export NVIDIA_REQUIRE_CUDA=cuda>=99\n"
    )
    root = make.folder(tmp_path / "root", encoded)
    (root / "usr/local/cuda").symlink_to("cuda-13.0")
    command = ["mksquashfs", str(root), str(tmp_path / "a.sqfs"), "-quiet", "-no-progress"]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "a.sif").write_bytes(sif((tmp_path / "a.sqfs").read_bytes()))
    contents = look(tmp_path / "a.sif")
    assert len(contents.compat) == 1
    assert answer_of(contents, nodes()["4090-535-legacy"]).word == "runs"


def sif(squash: bytes, filesystem: int = 1, kind: int = 0x4004) -> bytes:
    """A SIF with one partition, the root's."""
    head = b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0" + b"01\0" + b"02\0"
    head = head.ljust(80, b"\0") + struct.pack("<qqqq", 0, 1, 128, 585)
    body = struct.pack("<iBIIIqq", kind, 1, 1, 1, 0, 4096, len(squash))
    body = body.ljust(201, b"\0") + struct.pack("<ii", filesystem, 2)
    return (head.ljust(128, b"\0") + body.ljust(585, b"\0")).ljust(4096, b"\0") + squash


# What layers hide of each other.


def tree(*layers: dict[str, make.Content]) -> Tree:
    found: list[Layer] = []
    for number, files in enumerate(layers, 1):
        raw = make.layer(files)
        budget = Budget(60.0)
        found.append(scan(source_of(memory(raw), budget), f"layer {number}", budget))
        assert found[-1].problem is None, found[-1].problem
    return merge(found)


SO = b"library"
HIDING: dict[str, tuple[list[dict[str, make.Content]], list[str]]] = {
    "merged": ([{"a/x.so": SO}, {"a/y.so": SO}], ["a/x.so", "a/y.so"]),
    "whiteout": ([{"a/x.so": SO, "a/y.so": SO}, {"a/.wh.x.so": make.GONE}], ["a/y.so"]),
    "whiteout of a folder": ([{"a/b/x.so": SO}, {".wh.a": make.GONE}], []),
    "whiteout first, then the file": (
        [{"a/x.so": SO}, {"a/.wh.x.so": make.GONE, "a/x.so": SO}], ["a/x.so"],
    ),
    "the file first, then the whiteout": (
        [{"a/x.so": SO}, {"a/x.so": SO, "a/.wh.x.so": make.GONE}], ["a/x.so"],
    ),
    "opaque": ([{"a/x.so": SO, "b/x.so": SO}, {"a/.wh..wh..opq": make.GONE}], ["b/x.so"]),
    "opaque behind its own files": (
        [{"a/x.so": SO}, {"a/y.so": SO, "a/.wh..wh..opq": make.GONE}], ["a/y.so"],
    ),
    "aufs's own": ([{"a/x.so": SO}, {"a/.wh..wh.plnk": make.GONE}], ["a/x.so"]),
    "brought back above": (
        [{"a/x.so": SO}, {"a/.wh.x.so": make.GONE}, {"a/x.so": SO}], ["a/x.so"],
    ),
    "file on folder": ([{"a/b/x.so": SO}, {"a/b": b"text"}], []),
    "folder on a file of the layer": (
        [{"a/b/x.so": SO}, {"a/b": b"text", "./a/b": make.FOLDER}], ["a/b/x.so"],
    ),
    "folder on file": ([{"a.so": SO}, {"a.so": make.FOLDER}], []),
    "link on folder": ([{"a/x.so": SO, "b/x.so": SO}, {"a": make.link("b")}], ["b/x.so"]),
    "folder on link": (
        [{"b/x.so": SO, "a": make.link("b")}, {"a": make.FOLDER, "a/y.so": SO}],
        ["a/y.so", "b/x.so"],
    ),
    "through a lower link": (
        [{"usr/lib/x.so": SO, "lib": make.link("usr/lib")}, {"lib/y.so": SO}],
        ["usr/lib/x.so", "usr/lib/y.so"],
    ),
    "a name twice": ([{"a/x.so": SO, "./a/x.so": b"later"}], ["a/x.so"]),
    "folder on a hard link of the layer": (
        [{"a/x.so.1": SO, "a/x.so": make.hard("a/x.so.1"), "./a/x.so": make.FOLDER}],
        ["a/x.so.1"],
    ),
    "device on a library": ([{"a/x.so": SO}, {"a/x.so": make.DEVICE}], []),
    "hard link in a layer": (
        [{"a/x.so.1": SO, "a/x.so": make.hard("a/x.so.1")}], ["a/x.so", "a/x.so.1"],
    ),
    "hard link to a lower layer": (
        [{"a/x.so.1": SO}, {"a/x.so": make.hard("a/x.so.1")}], ["a/x.so", "a/x.so.1"],
    ),
    "hard link to what is gone": (
        [{"a/x.so.1": SO}, {"a/.wh.x.so.1": make.GONE}, {"a/x.so": make.hard("a/x.so.1")}], [],
    ),
    "links in a circle": (
        [{"a": make.link("b"), "b": make.link("a"), "c/x.so": SO}], ["c/x.so"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HIDING)
def test_layers_are_laid_over_each_other_by_the_specification(case: str) -> None:
    layers, expected = HIDING[case]
    assert sorted(tree(*layers).files) == expected


def test_links_are_followed_within_the_image_alone() -> None:
    found = tree(
        {
            "usr/lib/x.so": SO,
            "lib": make.link("usr/lib"),
            "a/up.so": make.link("../../../../lib/x.so"),
            "a/root.so": make.link("/lib/x.so"),
            "a/self.so": make.link("self.so"),
            "a/out.so": make.link("../../../../etc/passwd"),
        }
    )
    assert found.resolve("a/up.so") == found.resolve("a/root.so") == "usr/lib/x.so"
    assert found.file("a/self.so") is None
    assert found.file("a/out.so") is None


# Long names, as both formats of tar have them, and what passes once in a stream.


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_names_of_any_length_are_read(form: int) -> None:
    long = "/".join(["a-folder-of-some-length"] * 6) + "/lib.so"
    if form != tarfile.USTAR_FORMAT:
        long = "ü" * 130 + "/" + long
    raw = make.layer({long: SO, "x.so": make.link("y" * (99 if form == 0 else 200))}, form)
    budget = Budget(60.0)
    layer = scan(source_of(memory(raw), budget), "layer", budget)
    assert list(layer.files) == [long]
    assert layer.problem is None
    assert len(layer.links["x.so"]) >= 99


MIB = 1 << 20
TEXT = (".text", b"t" * (2 * MIB))
DATA = (".data", b"d" * (3 * MIB))


def over_chunks() -> bytes:
    """Containers whose entries begin in one chunk and go on in the next."""
    long = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, MIB + 64 + 64 + 8)
    long += build.entry("sm_70", payload=MIB) + build.entry("ptx_90@8.7")
    return (build.container([]) + build.container(["sm_80"]) + long) * 3


LIBRARIES: dict[str, list[build.Section]] = {
    "cuda": [TEXT, (".nv_fatbin", build.fatbin({CU128: 700})), DATA],
    "cuda over chunks": [TEXT, (".nv_fatbin", over_chunks()), DATA],
    "padding between": [
        TEXT,
        (".nv_fatbin", build.container(["sm_80"]) + bytes(64) + build.container(["sm_90"])),
        DATA,
    ],
    "hip": [
        TEXT,
        (
            ".hip_fatbin",
            build.pages(
                [
                    build.bundle(["gfx90a", "gfx942"]),
                    build.compressed(build.bundle(["gfx1100"]), method=0),
                ]
                * 3
            ),
        ),
        DATA,
    ],
}


def passed(raw: bytes) -> Kept:
    source = Unpacked(iter([raw[at : at + 100_000] for at in range(0, len(raw), 100_000)]))
    return kept_of(source, len(raw), source.read(1000))


@pytest.fixture
def little_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep little of a file's ends, so that small files show what large ones do."""
    monkeypatch.setattr("probe_wheels.images.passing.HEAD", 64 << 10)
    monkeypatch.setattr("probe_wheels.images.passing.TAIL", MIB)


@pytest.mark.usefixtures("little_kept")
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_that_passes_once_is_read_as_one_on_disk(name: str, tmp_path: Path) -> None:
    raw = build.elf(LIBRARIES[name])
    (tmp_path / "a.so").write_bytes(raw)
    found = read_code(passed(raw))
    assert found == read_library(str(tmp_path / "a.so"), Budget(60.0))
    assert "cuda" in found or "hip" in found


UNREAD: dict[str, list[build.Section]] = {
    "behind a container that states more than there is": [
        (".rodata", bytes(2 * MIB) + struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60) + bytes(64)),
        (".nv_fatbin", bytes(MIB) + build.fatbin({"sm_80": 2})),
        DATA,
    ],
    "at no multiple of eight": [
        (".nv_fatbin", b"t" * (2 * MIB) + b"...." + build.fatbin({"sm_80": 2})),
        DATA,
    ],
    "more marks than code": [
        (".text", (0xBA55ED50).to_bytes(4, "little") * MIB),
        (".nv_fatbin", build.fatbin({"sm_80": 5})),
        DATA,
    ],
}


@pytest.mark.usefixtures("little_kept")
@pytest.mark.parametrize("case", UNREAD)
def test_what_passed_unread_is_never_no_code(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probe_wheels.images.passing.MAX_MARKED", MIB)
    assert "problem" in read_code(passed(build.elf(UNREAD[case])))


@pytest.mark.usefixtures("little_kept")
@pytest.mark.parametrize("section", mostly_heavy(["cuda", "hip"], 2))
def test_bodies_of_gpu_code_are_passed_over(section: str) -> None:
    """Of 64 MiB of code nothing is copied out of the stream but heads and the file's ends."""
    long = 32 * MIB
    if section == "cuda":
        head = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, long + 64)
        code = (head + build.entry("sm_90", payload=long)) * 2
    else:
        code = build.pages([build.bundle(["gfx942"], long)] * 2)
    name = {"cuda": ".nv_fatbin", "hip": ".hip_fatbin"}[section]
    raw = build.elf([TEXT, (name, code), DATA])

    class Counted(Unpacked):
        copied = 0

        def read(self, count: int) -> bytes:
            self.copied += count
            return super().read(count)

    source = Counted(iter([raw[at : at + MIB] for at in range(0, len(raw), MIB)]))
    kept = kept_of(source, len(raw), source.read(1000))
    assert section in read_code(kept)
    assert source.copied < len(raw) - 2 * long + 4 * MIB


def test_opened_files_are_read_at_offsets(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    with Opened(str(tmp_path / "a"), Budget(60.0)) as file:
        assert file.read(2, 3) == b"234"
        assert file.read(99, 1) == b""


def test_variants_share_what_was_read_of_equal_layers(tmp_path: Path) -> None:
    layers = split(TORCH)
    files = make.layout([(make.config(), layers), (make.config(arch="arm64"), layers)])
    opening = Opening()
    images = open_images(str(make.folder(tmp_path / "oci", files)), opening)
    first, second = (contents_of(image) for image in images)
    opening.close()
    assert len(opening.read) == 2
    assert first.files.tree.files.keys() == second.files.tree.files.keys()


def test_images_of_one_command_share_their_bases(tmp_path: Path) -> None:
    """A layer of the same digest, size and ends is read once; of another end it is another."""
    base, own = (make.gz(raw) for raw in split(TORCH))
    changed = base[:-1] + bytes([base[-1] ^ 1])
    paths = [
        make.folder(tmp_path / name, make.layout([(make.config(), [base, layer])]))
        for name, layer in (("first", own), ("second", make.gz(make.layer({"etc/x.conf": "x"}))))
    ]
    value = make.hashlib.sha256(base).hexdigest()
    first, second, third = Opening(), Opening(), Opening()
    second.shared = third.shared = first.shared
    for path, opening in ((paths[0], first), (paths[1], second)):
        assert not contents_of(open_images(str(path), opening)[0]).problems
    key = f"blobs/sha256/{value}"
    assert second.read[key] is first.read[key]
    assert len(first.shared) == 3
    (paths[1] / key).write_bytes(changed)
    assert contents_of(open_images(str(paths[1]), third)[0]).problems
    assert third.read[key] is not first.read[key]
    for opening in (first, second, third):
        opening.close()


def test_the_longest_layer_is_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [make.gz(make.layer({f"{n}.so": bytes(range(256)) * n})) for n in (1, 900, 30)]
    begun: list[str] = []

    def noted(source: Source, label: str, budget: Budget) -> Layer:
        begun.append(label)
        return scan(source, label, budget)

    monkeypatch.setattr("probe_wheels.images.image.scan", noted)
    monkeypatch.setattr("probe_wheels.images.image.WORKERS", 1)
    assert not look(make.saved(tmp_path / "a.tar", make.config(), layers)).problems
    assert begun == ["layer 2", "layer 3", "layer 1"]


def test_a_place_names_the_layer_in_which_it_lies_here(tmp_path: Path) -> None:
    """Two platforms may have one blob at different places."""
    lower, upper = split(TORCH)
    variants = [(make.config(), [lower, upper]), (make.config(arch="arm64"), [upper])]
    opening = Opening()
    images = open_images(str(make.folder(tmp_path / "oci", make.layout(variants))), opening)
    first, second = (contents_of(image) for image in images)
    opening.close()
    assert first.place(f"/{LIBRARY}") == f"/{LIBRARY} (layer 2)"
    assert second.place(f"/{LIBRARY}") == f"/{LIBRARY} (layer 1)"


# Decoders.


@pytest.mark.parametrize("name", ["zstandard", "libzstd", "none"])
def test_zstd_is_read_by_whatever_is_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "compression", None)  # before Python 3.14
    if name != "libzstd":
        monkeypatch.setattr("ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    if name == "zstandard":
        pytest.importorskip("zstandard")
    else:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    path = make.saved(tmp_path / "a.tar", ARCH, [zstd(raw) for raw in split(TORCH)])
    if name == "none":
        sentence = "it is packed with zstd, and nothing here unpacks that"
        assert look(path).problems[0].startswith(f"layer 1: {sentence}")
    elif name == "zstandard" or system_zstd() is not None:
        assert torch_of(path) == sorted(CU128.split())


def test_gzip_is_read_without_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    path = make.saved(tmp_path / "a.tar", ARCH, [make.gz(raw, 2) for raw in split(TORCH)])
    assert torch_of(path) == sorted(CU128.split())


def files_of(content: dict[str, bytes], links: dict[str, str]) -> ImageFiles:
    files = {path: File(len(raw), 0o644, 0, 0, raw) for path, raw in content.items()}
    return ImageFiles(Tree(files, links), 10.0)


def test_compat_libraries_are_forced_by_a_path_that_leads_to_them() -> None:
    names = ("libcuda.so.570.86.10", "libcuda.so.1", "libnvidia-ptxjitcompiler.so.570.86.10")
    own = dict.fromkeys((f"usr/local/cuda-12.8/compat/{name}" for name in names), b"")
    files = files_of(own, {"usr/local/cuda": "cuda-12.8", "opt/cuda": "/usr/local/cuda"})
    for path, forced in (
        ("", False), ("/usr/lib", False), (":/usr/lib:", False), ("/usr/local/cuda/lib64", False),
        ("/usr/lib:/usr/local/cuda/compat", True), ("/opt/cuda/compat/", True),
        ("/usr/local/cuda-12.8/compat", True),
    ):  # fmt: skip
        [compat] = compats_of(files, {"LD_LIBRARY_PATH": path})
        assert (compat.path, compat.version, compat.forced) == (
            "/usr/local/cuda/compat/libcuda.so.570.86.10", (570, 86, 10), forced,
        )  # fmt: skip
    assert [compat.forced for compat in compats_of(files, {})] == [False]


def test_toolkits_of_an_image() -> None:
    names = ["libcudart.so.12.8.90", "libcudart.so.12", "libcudart.so.11.8.89", "libc.so.6"]
    assert toolkit_of(names, {"CUDA_VERSION": "13.0.1"}) == (13, 0)
    assert toolkit_of(names, {"CUDA_VERSION": "none"}) == (11, 8)
    assert toolkit_of(names[:2], {}) == (12,)
    assert toolkit_of(["libc.so.6", "libcudart.so"], {}) == ()
    torch: list[Any] = [
        {"text": {}},
        {"text": {"hip": None, "rocm": "6.4.1"}},
        {"text": {"hip": "7.0.2"}},
    ]
    libraries = ["opt/rocm/lib/libamdhip64.so.6.3.60301", "opt/rocm/lib/libamdhip64.so.6",
                 "opt/rocm-6.2/lib/libamdhip64.so.6.2.41133"]  # fmt: skip
    own = dict.fromkeys(libraries, b"")
    info = {"opt/rocm-6.4.0/.info/version": b"6.4.0-47\n"}
    links = {"opt/rocm": "rocm-6.4.0"}
    assert rocm_of(files_of(own | info, links), torch) == (6, 4)
    assert rocm_of(files_of(own, links), torch[::-1]) == (7, 0)
    assert rocm_of(files_of(own, links), torch[:2]) == (6, 4)
    assert rocm_of(files_of(own, links), torch[:1]) == (6, 3)
    assert rocm_of(files_of(dict.fromkeys(libraries[1:2], b""), {}), []) == ()
    kernels = ("rocblas/library/TensileLibrary_gfx90a.co", "rocblas/library/a_gfx1100.dat",
               "rocblas/gfx942.co", "rocblas/library/fallback.dat")  # fmt: skip
    tree = files_of(dict.fromkeys(kernels, b""), {}).tree
    assert rocblas_processors(tree) == {"gfx90a", "gfx1100"}


@pytest.mark.parametrize(
    ("text", "version"),
    [("580.95.05", (580, 95, 5)), ("12.8rc1.2", (12, 8)), ("1.x.2", (1,)), ("", ()), ("v1", ()),
     ("999999999", (999_999_999,)), ("1.1000000000", (1,)), ("2..3", (2,))],
)  # fmt: skip
def test_the_numbers_at_the_start_of_a_version(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version
