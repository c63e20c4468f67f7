"""Parts of what reads an image, alone: folders, streams, versions, and texts for clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import image_files as make
import pytest

from probe_wheels.files import Budget
from probe_wheels.images import streams
from probe_wheels.images.config import config_of, shell_variables
from probe_wheels.images.image import Opening
from probe_wheels.images.layers import memory, role_of
from probe_wheels.images.outputs import yaml
from probe_wheels.images.purpose import is_backend, is_spared, watcher_of
from probe_wheels.images.sources import open_images
from probe_wheels.images.streams import BadImage, Part, Plain, Stretch, Unpacked, source_of
from probe_wheels.images.system import glibc_of_node

NOTHING = "it is no image, root or Python environment: none of their files is in it"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["etc"], "root"),
        (["usr"], "root"),
        (["bin"], "root"),
        (["opt"], "root"),
        (["app"], "root"),
        (["lib64"], "root"),
        (["lib"], "root"),
        (["etc", "pyvenv.cfg"], "environment"),
        (["usr", "conda-meta"], "environment"),
        (["pyvenv.cfg"], "environment"),
        (["conda-meta"], "environment"),
        ([".venv"], "environment"),
        (["etc", ".venv"], "root"),
        (["a-1.dist-info"], "environment"),
        (["lib/python3.12", "bin"], "environment"),
        (["lib/python2.7", "bin"], "root"),
        (["lib/perl"], "root"),
    ],
)
def test_what_a_folder_is(names: list[str], kind: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    assert [image.kind for image in open_images(str(tmp_path), Opening())] == [kind]


@pytest.mark.parametrize(
    "names", [["a-1.egg-info"], ["python3.12"], ["blobs"], ["manifest.json"], []]
)
def test_a_folder_that_is_nothing_of_this(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(BadImage) as raised:
        open_images(str(tmp_path), Opening())
    assert str(raised.value) == NOTHING


@pytest.mark.parametrize("names", [["oci-layout"], ["index.json"], ["manifest.json", "blobs"]])
def test_a_folder_with_these_is_a_store(names: list[str], tmp_path: Path) -> None:
    for name in ("etc", *names):
        (tmp_path / name).mkdir()
    opening = Opening()
    with pytest.raises((BadImage, OSError)):
        open_images(str(tmp_path), opening)
    opening.close()


def test_a_part_is_read_within_its_bounds() -> None:
    part = Part(memory(b"0123456789"), 2, 5)
    asked = [(0, 5), (0, 9), (4, 1), (4, 9), (5, 1), (-1, 2), (0, 0), (1, -1), (1, 2)]
    assert [part.read(*place) for place in asked] == [
        b"23456", b"23456", b"6", b"6", b"", b"", b"", b"", b"34"
    ]  # fmt: skip


def test_what_is_plain_is_passed_over_up_to_its_end() -> None:
    plain = Plain(memory(b"0123456789"))
    assert (plain.read(2), plain.skip(3), plain.read(2)) == (b"01", True, b"56")
    part = plain.part(3)
    assert part is not None
    assert (part.size, part.read(0, 3)) == (3, b"789")
    assert (plain.skip(0), plain.part(0) is None, plain.skip(1)) == (True, False, False)
    assert Plain(memory(b"01")).part(3) is None


def test_a_stretch_is_read_in_order_and_its_first_bytes_at_any_time() -> None:
    raw = bytes(range(256)) * 4
    stretch = Stretch(Unpacked(iter([raw])), 1000)
    assert stretch.first == raw[:512]
    assert stretch.read(10, 20) == raw[10:30]
    assert stretch.read(500, 100) == raw[500:600]
    assert stretch.read(500, 100) == raw[500:512]  # the rest has passed
    assert stretch.read(600, 900) == raw[600:1000]
    assert stretch.finish()
    assert not Stretch(Unpacked(iter([raw])), 1025).finish()
    assert Stretch(Unpacked(iter([raw])), 1024).finish()
    short = Stretch(Unpacked(iter([raw])), 100)
    assert (short.first, short.read(90, 50), short.read(100, 1)) == (raw[:100], raw[90:100], b"")


def test_what_is_no_bomb_by_one_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = make.gz(bytes(1 << 16))
    ratio = (1 << 16) / len(raw)
    monkeypatch.setattr(streams, "MAX_LAYER", 1 << 16)
    monkeypatch.setattr(streams, "FREE_OUTPUT", 1 << 15)
    monkeypatch.setattr(streams, "MAX_RATIO", ratio)
    assert source_of(memory(raw), Budget()).read(1 << 17) == bytes(1 << 16)
    monkeypatch.setattr(streams, "MAX_RATIO", ratio - 0.01)
    with pytest.raises(BadImage, match="times its size: it is a bomb"):
        source_of(memory(raw), Budget()).read(1 << 17)
    monkeypatch.setattr(streams, "FREE_OUTPUT", 1 << 16)
    assert source_of(memory(raw), Budget()).read(1 << 17) == bytes(1 << 16)
    monkeypatch.setattr(streams, "MAX_LAYER", (1 << 16) - 1)
    with pytest.raises(BadImage, match="it unpacks to more than 0 GiB"):
        source_of(memory(raw), Budget()).read(1 << 17)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (b"BZh91AY&", "it is packed with bzip2, which layers of images never are"),
        (b"\xfd7zXZ\0\0\4", "it is packed with xz, which layers of images never are"),
        (b"\x04\x22\x4d\x18\0\0\0\0", "it is packed with LZ4, which layers of images never are"),
    ],
)
def test_what_packs_no_layer_is_named(head: bytes, problem: str) -> None:
    with pytest.raises(BadImage) as raised:
        source_of(memory(head), Budget())
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("first", "kind"), [(0x4F, Plain), (0x50, Unpacked), (0x5F, Unpacked), (0x28, Plain)]
)
def test_frames_that_are_passed_over_begin_zstd(first: int, kind: type) -> None:
    assert type(source_of(memory(bytes([first]) + b"\x2a\x4d\x18"), Budget())) is kind
    assert type(source_of(memory(b"plain"), Budget())) is Plain
    assert type(source_of(memory(b"plain"), Budget(), once=True)) is Unpacked


UNRECORDED = "a.so needs glibc 2.29, and which one the node has is not recorded"


@pytest.mark.parametrize(
    ("glibc", "needed", "expected"),
    [
        ((2, 31), (2, 31), None),
        ((2, 31), (2, 32), ("no", "a.so needs glibc 2.32, and the node has 2.31")),
        ((2, 31), (2, 4), None),
        ((2, 17), (2, 28), ("no", "a.so needs glibc 2.28, and the node has 2.17")),
        ((), (2, 28), None),
        ((), (2, 29), ("unknown", UNRECORDED)),
        ((), (), None),
        ((2, 31), (), None),
    ],
)
def test_the_glibc_of_a_node(
    glibc: tuple[int, ...], needed: tuple[int, ...], expected: Any
) -> None:
    step = glibc_of_node(glibc, needed, "a.so")
    assert (step and (step.word, step.reason)) == expected


def test_plain_data_as_yaml() -> None:
    data = {
        "version": "v1",
        "none": None,
        "empty": [],
        "bare": {},
        "texts": ["a", "b: c"],
        "numbers": [1, 2],
        "rules": [{"name": "x", "match": [{"op": "In", "value": ["1"]}]}, {"name": "y"}],
        "deep": {"a": {"b": True}},
    }
    assert list(yaml(data)) == [
        'version: "v1"',
        "none: null",
        "empty: []",
        "bare: {}",
        'texts: ["a", "b: c"]',
        "numbers:",
        "  - 1",
        "  - 2",
        "rules:",
        '  - name: "x"',
        "    match:",
        '      - op: "In"',
        '        value: ["1"]',
        '  - name: "y"',
        "deep:",
        "  a:",
        "    b: true",
    ]


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("opt/rocm/lib/rocblas/library/Kernels.so-000-gfx90a.hsaco", "name"),
        ("opt/rocm/lib/rocblas/library/TensileLibrary_gfx942.co", "name"),
        ("opt/rocm/lib/rocblas/library/TensileLibrary_gfx942.dat", "name"),
        ("opt/kernels/scale.cubin", "name"),
        ("usr/share/cubin/list.dat", ""),
        ("usr/share/a.co", ""),
        ("usr/lib/libc.so.6", "code"),
        ("lib/ld-musl-x86_64.path", "code"),
        ("lib/ld-linux-x86-64.conf", "code"),
        ("site/torch-2.dist-info/METADATA", "text"),
        ("site/torch.egg-info/top_level.txt", "text"),
        ("site/torch-2.dist-info/RECORD", "text"),
        ("site/torch/METADATA", ""),
        ("site/torch-2.dist-info/WHEEL", ""),
        ("etc/os-release", "text"),
        ("srv/etc/os-release", ""),
        ("srv/pyvenv.cfg", "text"),
        ("srv/extra.pth", "text"),
        ("site/torch/version.py", "text"),
        ("conda-meta/torch-2.json", "text"),
        ("conda-meta/history", ""),
        ("meta/torch-2.json", ""),
        ("etc/ld.so.conf.d/cuda.conf", "text"),
        (".singularity.d/env/10-docker.sh", "text"),
        ("srv/.singularity.d/env", ""),
        ("usr/local/cuda-12.8/version.json", "text"),
        ("opt/rocm-6.4/.info/version", "text"),
        ("opt/rocm-6.4/.info/version-dev", ""),
        ("opt/other/version", ""),
    ],
)
def test_a_file_may_decide_by_its_path(path: str, role: str) -> None:
    assert role_of(path, 0o644) == role


@pytest.mark.parametrize(
    ("path", "mode", "role"),
    [
        ("serve", 0o755, "program"),
        ("usr/bin/serve", 0o100, "program"),
        ("usr/sbin/serve", 0o010, "program"),
        ("usr/libexec/serve", 0o001, "program"),
        ("srv/app/serve", 0o755, "program"),
        ("app/deep/below/serve", 0o755, "program"),
        ("srv/app/below/serve", 0o755, "executable"),
        ("usr/bin/below/serve", 0o755, "executable"),
        ("usr/bin/serve", 0o666, ""),
    ],
)
def test_a_program_is_what_somebody_may_execute(path: str, mode: int, role: str) -> None:
    assert role_of(path, mode) == role


def test_variables_that_lines_of_a_shell_set() -> None:
    text = """# A=1
export CUDA_VERSION="${CUDA_VERSION:-"12.8.1"}"
export PLAIN=a b
  B = 'quoted'
C="both'
D="
E=$C
F=`date`
G="${OTHER:-"x"}"
H="${H:-'y'}"
1-2=no
I_J="${I_J:-"open"
K
L=''
=none
"""
    assert shell_variables(text) == {
        "CUDA_VERSION": "12.8.1", "PLAIN": "a b", "C": "\"both'", "D": '"', "H": "y", "L": ""
    }  # fmt: skip
    many = "".join(f"A{number}=1\n" for number in range(4097))
    assert len(shell_variables(many)) == 4096


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"rootfs": {}}, (None, "", "linux", {}, "", [], "")),
        (
            {
                "architecture": "arm64",
                "variant": "v8",
                "os": "windows",
                "config": {
                    "Env": ["A=1=2", "B", 7], "User": "app", "WorkingDir": "/srv",
                    "Entrypoint": ["a", 1], "Cmd": "b c",
                },
            },
            ("aarch64", "v8", "windows", {"A": "1=2"}, "app", ["a", "b c"], "/srv"),
        ),
        (
            {
                "architecture": "mips",
                "variant": "v1",
                "os": 7,
                "config": {"Env": {"A": 1}, "User": 7, "WorkingDir": 7, "Entrypoint": 7},
            },
            ("mips", "", "linux", {}, "", [], ""),
        ),
        (
            {"architecture": "", "variant": 7, "os": "", "config": None},
            (None, "", "linux", {}, "", [], ""),
        ),
    ],
)  # fmt: skip
def test_what_an_image_says_of_itself(table: dict[str, object], expected: Any) -> None:
    config = config_of(json.dumps(table).encode())
    found = (config.arch, config.variant, config.os, config.environ, config.user, config.program)
    assert (*found, config.folder) == expected


IS_NONE = "it is no container image: its config is none of an image"


@pytest.mark.parametrize(
    ("text", "media", "problem"),
    [
        (None, "", "its config is not in it"),
        (b"{", "", "its config is no JSON"),
        (b"[]", "", IS_NONE),
        (b"{}", "a/chart", f"{IS_NONE} but a/chart"),
        (b'{"rootfs": {}, "config": [1]}', "", IS_NONE),
    ],
)
def test_a_config_that_is_none(text: bytes | None, media: str, problem: str) -> None:
    with pytest.raises(BadImage) as raised:
        config_of(text, media)
    assert str(raised.value) == problem


PROGRAMS = {"dcgm-exporter", "ffmpeg", "sh"}


@pytest.mark.parametrize(
    ("words", "watcher", "spared"),
    [
        (["/usr/bin/dcgm-exporter", "-f"], "dcgm-exporter", False),
        (["dcgm-exporter.sh"], "dcgm-exporter", True),
        (["nvidia-smi.sh"], "", True),
        (["nvidia-smi"], "nvidia-smi", False),
        (["/usr/local/dcgm/dcgm-exporter-entrypoint"], "dcgm-exporter", False),
        (["/tini", "--", "/usr/bin/nvidia-smi"], "nvidia-smi", False),
        (["/init"], "", True),
        (["/tini", "--", "serve", "nvidia-smi"], "", False),
        (["start.sh", "-x", "dcgmi"], "dcgmi", False),
        (["serve", "ffmpeg"], "", False),
        (["dumb-init", "ffprobe"], "", True),
        (["sh", "-c", "ffmpeg"], "", False),
        (["-v"], "", False),
        ([], "", False),
    ],
)
def test_what_an_image_starts(words: list[str], watcher: str, spared: bool) -> None:
    assert (watcher_of(words, PROGRAMS), is_spared(words, PROGRAMS)) == (watcher, spared)
    assert is_spared(words, set()) == (spared and "ffprobe" in words)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/ollama/cuda_v12/libx.so", True),
        ("/srv/usr/lib/ollama/libx.so", False),
        ("/opt/any/libggml-cuda.so", True),
        ("/opt/libggml/libx.so", False),
        ("libopencv_core.so", True),
    ],
)
def test_files_that_a_program_loads_where_it_finds_a_gpu(path: str, expected: bool) -> None:
    assert is_backend(path) is expected
