"""Apptainer's SIF: the squashfs in it is read by the system's `unsquashfs`, and never unpacked.

Layout: apptainer/sif, pkg/sif: a header of 128 bytes, then descriptors of 585 bytes each.
"""

from __future__ import annotations

import os
from shutil import which
from struct import Struct
from subprocess import DEVNULL, PIPE, Popen

from probe_wheels.images.archive import clean
from probe_wheels.images.config import Config, shell_variables
from probe_wheels.images.image import Image
from probe_wheels.images.layers import File, Layer, content_of, role_of
from probe_wheels.images.streams import PIECE, BadImage, Unpacked
from probe_wheels.images.tree import merge
from probe_wheels.images.view import ImageFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_wheels.files import Budget, Opened
    from probe_wheels.images.image import Opening

_COUNTS = Struct("<qqqq")
_DESCRIPTOR = Struct("<iBIIIqq")
_SIZE = 585
MAX_DESCRIPTORS = 128
_PARTITION, _OCI = 0x4004, (0x400A, 0x400B)
_SQUASHFS, _ENCRYPTED, _ROOT = 1, (5, 6), 2
_ARCHES = {"01": "i686", "02": "x86_64", "03": "armv7l", "04": "aarch64", "06": "ppc64le"}
MAX_LISTING = 512 << 20
BATCH = 64
"""Files that one call of unsquashfs prints: their paths have to fit a command line."""


def open_sif(path: str, file: Opened, opening: Opening) -> Image:
    """Return the image in a SIF; raises `BadImage`."""
    offset = _partition(file)
    program = which("unsquashfs")
    if program is None:
        raise BadImage("its files are a squashfs, and unsquashfs (squashfs-tools) is not here")
    config = Config()
    config.arch = _ARCHES.get(file.read(45, 2).decode("ascii", "replace"))
    image = Image("sif", "", config, opening)
    squash = _Squash(program, path, offset)
    layer = squash.layer(opening)
    image.places = []
    tree = merge([layer])
    image.use(tree)
    if layer.problem:
        image.problems.append(layer.problem)
    files = ImageFiles(tree, 60.0)
    for name in files.listed("/.singularity.d/env"):
        if name.startswith("10-docker"):
            config.environ.update(shell_variables(files.text(f"/.singularity.d/env/{name}")))
    return image


def _partition(file: Opened) -> int:
    """Return where the root's squashfs begins."""
    header = file.read(0, 128)
    if len(header) < 128:
        raise BadImage("it is a SIF that is cut off")
    _, total, start, _ = _COUNTS.unpack_from(header, 80)
    has_oci = False
    for number in range(min(max(total, 0), MAX_DESCRIPTORS)):
        raw = file.read(start + number * _SIZE, _SIZE)
        if len(raw) < _SIZE:
            raise BadImage("it is a SIF that is cut off")
        kind, used, _, _, _, offset, size = _DESCRIPTOR.unpack_from(raw)
        has_oci = has_oci or (bool(used) and kind in _OCI)
        if not used or kind != _PARTITION:
            continue
        system, part = (int.from_bytes(raw[at : at + 4], "little") for at in (201, 205))
        if part != _ROOT:
            continue
        if system in _ENCRYPTED:
            raise BadImage("its root is encrypted")
        if system != _SQUASHFS:
            raise BadImage("its root is no squashfs")
        if not 0 < offset < file.size or offset + size > file.size:
            raise BadImage("it is a SIF that is cut off")
        return int(offset)
    if has_oci:
        raise BadImage("it is a SIF that holds an OCI image, which is not read here")
    raise BadImage("it is a SIF without a root")


class _Squash:
    """One squashfs within a file, as `unsquashfs` lists and prints it."""

    def __init__(self, program: str, path: str, offset: int) -> None:
        self._program = program
        self._path = os.path.abspath(path)
        self._offset = str(offset)

    def layer(self, opening: Opening) -> Layer:
        """Return what the squashfs has; its `problem` says what could not be read."""
        layer = Layer("squashfs")
        wanted: list[tuple[str, int, int, int, int, str]] = []
        try:
            for entry in self._entries():
                opening.budget.spend()
                _add(layer, wanted, *entry)
            for start in range(0, len(wanted), BATCH):
                opening.budget.check()
                self._read(layer, wanted[start : start + BATCH], opening.budget)
        except BadImage as error:
            layer.problem = f"squashfs: {error}"
        return layer

    def _run(self, options: Sequence[str], paths: Sequence[str] = ()) -> Iterator[bytes]:
        command = [self._program, *options, "-o", self._offset, self._path, *paths]
        with Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL) as process:
            assert process.stdout is not None
            while piece := process.stdout.read(PIECE):
                yield piece
        if process.returncode:
            raise BadImage("unsquashfs cannot read it")

    def _entries(self) -> Iterator[tuple[str, str, int, int, int, str]]:
        """Yield kind, path, size, mode and owner as numbers, and a link's target.

        ``-rwxr-xr-x 0/0    1234 2026-01-01 00:00 squashfs-root/usr/bin/python3``
        """
        raw = bytearray()
        for piece in self._run(("-lln",)):
            raw += piece
            if len(raw) > MAX_LISTING:
                raise BadImage("it has more files than an image needs")
        for line in raw.decode("utf-8", "surrogateescape").splitlines():
            parts = line.split(None, 5)
            if len(parts) < 6 or not parts[5].startswith("squashfs-root/") or len(parts[0]) != 10:
                continue
            owner = parts[1].partition("/")
            name, _, target = parts[5][len("squashfs-root/") :].partition(" -> ")
            size = int(parts[2]) if parts[2].isdecimal() else 0
            user = int(owner[0]) if owner[0].isdecimal() else 0
            group = int(owner[2]) if owner[2].isdecimal() else 0
            yield parts[0], clean(name), size, user, group, target

    def _read(
        self, layer: Layer, wanted: Sequence[tuple[str, int, int, int, int, str]], budget: Budget
    ) -> None:
        """Read files one after another: they are printed in the order in which they are named."""
        source = Unpacked(self._run(("-cat",), [_literal(entry[0]) for entry in wanted]))
        for path, size, mode, user, group, role in wanted:
            content = content_of(source, size, role, budget)
            if content is not None:
                layer.files[path] = File(size, mode, user, group, content)


def _add(
    layer: Layer,
    wanted: list[tuple[str, int, int, int, int, str]],
    kind: str,
    path: str,
    size: int,
    user: int,
    group: int,
    target: str,
) -> None:
    mode = sum(1 << (8 - at) for at, char in enumerate(kind[1:]) if char not in "-ST")
    if kind[0] == "l":
        layer.links[path] = target
    elif kind[0] == "-" and (role := role_of(path, mode)):
        if role == "name":
            layer.files[path] = File(size, mode, user, group, None)
        else:
            wanted.append((path, size, mode, user, group, role))


def _literal(path: str) -> str:
    """Return a path as a pattern of unsquashfs that stands for itself."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in path)
