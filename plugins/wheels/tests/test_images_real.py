"""Real wheels and a real C library: images of them are judged as their publishers say they run.

The wheels come from the package index that pip is configured with, the base from this computer.
What TEST_ROOT names is a distribution's root, of `debootstrap --variant=minbase` for one.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import image_files as make
import pytest
from test_images_formats import sif
from test_images_matrix import NODES, WORDS, nodes

from probe_wheels.images.answers import answer_of
from probe_wheels.images.contents import Contents, contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.sources import open_images

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() != "x86_64" or not platform.libc_ver()[0],
        reason="the wheels are for Linux on x86-64 with glibc",
    ),
]

# Not named PROBE_…: tests run without such variables.
KEPT, ROOT = os.environ.get("TEST_WHEELS"), os.environ.get("TEST_ROOT")

SITE = "usr/local/lib/python3.11/site-packages"
FOLDERS = ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu")
LIBRARIES = """libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libz.so.1
libgcc_s.so.1 libstdc++.so.6 libgomp.so.1 libtinfo.so.6 libselinux.so.1 libpcre2-8.so.0"""
ALL = ("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")

# What the publishers say, and what follows on the nodes of the examination, in its order.
# faiss-gpu-cu12: "Compute Capability 7.0-8.9" in its own METADATA; it has no PTX.
# ctranslate2: its build takes CUDA's "Common" architectures, up to 8.6, and PTX for the last
# (python/tools/prepare_build_environment_linux.sh; CMake, FindCUDA/select_compute_arch.cmake).
# torchvision: an extension of PyTorch, which is not in the image.
WHEELS = {
    "faiss-gpu-cu12==1.14.1.post1": "R N R R N R N N N N N N",
    "ctranslate2==4.6.0": "R L R R L R L R R R N R",
    "torchvision==0.24.1": "N N N N N N N N N N N N",
}


@pytest.fixture(scope="module")
def base() -> make.Files:
    """The loader, the C library and the shell of this computer; CUDA's libraries as names alone."""
    files: make.Files = {}
    for name in ("ld-linux-x86-64.so.2", *LIBRARIES.split()):
        found = [Path(folder, name) for folder in FOLDERS if Path(folder, name).exists()]
        if found:
            folder = "lib64" if name.startswith("ld-") else "usr/lib/x86_64-linux-gnu"
            files[f"{folder}/{name}"] = found[0].read_bytes()
    files["usr/bin/serve"] = Path("/bin/sh").resolve().read_bytes()
    for name in ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12"):
        files[f"usr/local/cuda/lib64/{name}"] = make.binary()
    return files


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what pip downloads; TEST_WHEELS names one that is kept."""
    return Path(KEPT) if KEPT else tmp_path_factory.mktemp("wheels")


def downloaded(requirement: str, folder: Path) -> Path:
    """A wheel for CPython 3.11; skips where no package index has it."""
    stem = requirement.replace("==", "-").replace("-gpu-cu12", "_gpu_cu12")
    if not list(folder.glob(f"{stem}-*.whl")):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
             "--python-version", "3.11", "--retries", "0", "--timeout", "20", "-d", str(folder),
             requirement],
            capture_output=True, text=True, check=False, timeout=500,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"no package index has {requirement} for pip: {done.stderr[-200:]}")
    return next(folder.glob(f"{stem}-*.whl"))


def installed(wheel: Path) -> make.Files:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        return {f"{SITE}/{name}": archive.read(name) for name in names}


def judged(contents: Contents) -> dict[str, tuple[str, str]]:
    found = {}
    for place, node in zip(NODES, nodes(), strict=True):
        answer = answer_of(contents, node)
        found[place] = answer.word, answer.step.reason if answer.step else ""
    return found


def assert_as_published(path: Path, row: str) -> None:
    opening = Opening()
    contents = contents_of(open_images(str(path), opening)[0])
    assert not contents.problems
    found = judged(contents)
    opening.close()
    wrong = {
        place: (letter, *found[place])
        for place, letter in zip(NODES, row.split(), strict=True)
        if found[place][0] != WORDS[letter]
    }
    assert not wrong


@pytest.mark.parametrize("requirement", WHEELS)
@pytest.mark.parametrize("form", ["plain", "gzip", "root"])
def test_a_real_wheel_runs_where_its_publisher_says(
    requirement: str, form: str, base: make.Files, wheels: Path, tmp_path: Path
) -> None:
    files = installed(downloaded(requirement, wheels))
    if form == "root":
        path = unpacked(tmp_path / "root", {**base, **files})
    else:
        layers = [make.layer(base), make.layer(files)]
        if form == "gzip":
            layers = [make.gz(layer) for layer in layers]
        path = make.saved(tmp_path / "a.tar", make.config(ALL), layers)
    assert_as_published(path, WHEELS[requirement])


def unpacked(root: Path, files: make.Files) -> Path:
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        assert isinstance(content, bytes)
        place.write_bytes(content)
        place.chmod(0o755)
    return root


# A distribution's own root, with a wheel in it.


@pytest.fixture(scope="module")
def debian() -> Path:
    if not ROOT:
        pytest.skip("TEST_ROOT names no root: debootstrap --variant=minbase makes one")
    return Path(ROOT)


@pytest.mark.parametrize("form", ["docker save", "OCI layout", "SIF", "root"])
def test_a_distribution_with_a_wheel_is_judged_whatever_it_is_kept_in(
    form: str, debian: Path, base: make.Files, wheels: Path, tmp_path: Path
) -> None:
    requirement = "faiss-gpu-cu12==1.14.1.post1"
    cuda = {path: raw for path, raw in base.items() if path.startswith("usr/local/cuda")}
    files = {**cuda, **installed(downloaded(requirement, wheels))}
    config = make.config(("PATH=/usr/bin:/bin", *ALL), Cmd=["bash"])
    if form == "docker save":
        path = make.saved(tmp_path / "a.tar", config, [packed(debian), make.layer(files)])
    elif form == "OCI layout":
        layers = [make.gz(packed(debian)), make.gz(make.layer(files))]
        path = make.folder(tmp_path / "oci", make.layout([(config, layers)]))
    else:
        path = tmp_path / "root"
        shutil.copytree(debian, path, symlinks=True, ignore=shutil.ignore_patterns("dev"))
        unpacked(path, files)
        if form == "SIF":
            path = squashed(path, tmp_path)
    assert_as_published(path, WHEELS[requirement])


def packed(root: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(root, arcname=".")
    return buffer.getvalue()


def squashed(root: Path, folder: Path) -> Path:
    if not shutil.which("mksquashfs") or not shutil.which("unsquashfs"):
        pytest.skip("squashfs-tools are not here")
    command = ["mksquashfs", str(root), str(folder / "a.squashfs"), "-quiet", "-no-progress"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (folder / "a.sif").write_bytes(sif((folder / "a.squashfs").read_bytes()))
    return folder / "a.sif"
