"""One image, whatever it is kept in: its configuration, its layers, and what they have."""

from __future__ import annotations

import os

from probe_wheels.files import Budget, Exhausted, Opened
from probe_wheels.images.layers import Layer, scan
from probe_wheels.images.streams import BadImage, Part, source_of
from probe_wheels.images.tree import merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_wheels.files import Readable
    from probe_wheels.images.config import Config
    from probe_wheels.images.tree import Tree

    Identity = tuple[str, int, bytes, bytes]

WORKERS = 2 if hasattr(os, "pread") else 1
"""Layers that are read at a time: decoders free the interpreter. Windows has one place a file."""
MAX_SECONDS = 900.0
MAX_READS = 4_000_000
"""Entries and reads of all layers together; an image of 200,000 files takes half a million."""


class Opening:
    """What one look at one path costs, and the layers that it read.

    `shared` are the layers of all images of a command: most images of one house have one base. It
    is filled here, and the openings that it is given to must be closed together.
    """

    def __init__(
        self, seconds: float = MAX_SECONDS, shared: dict[Identity, Layer] | None = None
    ) -> None:
        self.budget = Budget(seconds, MAX_READS)
        self.read: dict[str, Layer] = {}
        self.shared = {} if shared is None else shared
        self.closing: list[Opened] = []

    def close(self) -> None:
        """Close the files of the image."""
        for file in self.closing:
            file.__exit__(None, None, None)
        self.closing.clear()

    def forget(self, file: Readable) -> None:
        """Close a file that `opened` gave; nothing where another one is meant."""
        if isinstance(file, Opened) and file in self.closing:
            self.closing.remove(file)
            file.__exit__(None, None, None)

    def opened(self, path: str) -> Opened:
        """Return a file, open until `close`; raises `OSError`."""
        file = Opened(path, self.budget)
        self.closing.append(file)
        return file


class Place:
    """Where a layer lies: its key within the path, its bytes, and how it is opened or was read."""

    def __init__(
        self, label: str, key: str, open_: Callable[[], Readable] | None, size: int = 0
    ) -> None:
        self.label = label
        self.key = key
        self.open = open_
        self.size = size
        self.problem: str | None = None


class Image:
    """One image for one platform.

    `kind` is "archive", "layout", "sif", "root" or "environment"; `name` the tag that it has there,
    "" without one. `problems` are reasons why not all of it could be read: then it is never said
    to run. `digest` is that of its manifest or config, as the file states it; "" where none is.
    """

    def __init__(self, kind: str, name: str, config: Config, opening: Opening) -> None:
        self.kind = kind
        self.name = name
        self.config = config
        self.opening = opening
        self.digest = ""
        self.folder = ""
        self.places: list[Place] = []
        self.problems: list[str] = []
        self._tree: Tree | None = None

    @property
    def layers(self) -> list[str]:
        """What the layers are called in answers, the base first."""
        return [place.label for place in self.places]

    def use(self, tree: Tree) -> None:
        """Take the files of an image whose layers are read in another way."""
        self._tree = tree

    def tree(self) -> Tree:
        """Return its files. The layers are read once, at the first call."""
        if self._tree is None:
            self._tree = merge(self._read())
        return self._tree

    def _read(self) -> list[Layer]:
        from concurrent.futures import ThreadPoolExecutor

        known = self.opening.read
        unread = [p for p in self.places if p.key not in known and p.open is not None]
        # The longest first: else it may begin last, and run alone at the end.
        missing = {p.key: p for p in sorted(unread, key=lambda place: -place.size)}
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                found = pool.map(self._scan, missing.values())
                known.update(zip(missing, found, strict=True))
            except BaseException:  # Ctrl-C: the threads end at their next look at the clock
                self.opening.budget.deadline = 0.0
                raise
        layers = [known.get(place.key) or Layer(place.label) for place in self.places]
        for place, layer in zip(self.places, layers, strict=True):
            if problem := place.problem or layer.problem:
                self.problems.append(problem)
        return layers

    def _scan(self, place: Place) -> Layer:
        assert place.open is not None
        file = place.open()
        identity = _identity(place.key, file)
        shared = self.opening.shared.get(identity) if identity else None
        if shared is not None:
            self.opening.forget(file)
            return shared
        layer = scanned(file, place.label, self.opening)
        if identity and layer.problem is None:  # a problem names the layer by this image's number
            self.opening.shared[identity] = layer
        # Files of a plain layer are read later. A layout may have more layers than may be open.
        if not any(isinstance(found.content, Part) for found in layer.files.values()):
            self.opening.forget(file)
        return layer


def digest_in(path: str) -> str:
    """Return the digest ``sha256:…`` that a blob's path ends with; "" where it has none."""
    stem = path.rpartition("/")[2].rpartition(".")
    name = stem[0] or stem[2]
    is_digest = len(name) == 64 and all(char in "0123456789abcdef" for char in name)
    return f"sha256:{name}" if is_digest else ""


def _identity(key: str, file: Readable) -> Identity | None:
    """Return what equal layers of two images have in common; None for one without a digest.

    Digests are not verified, so the size and both ends count, too: gzip's last bytes are a sum.
    """
    digest = digest_in(key)
    return (digest, file.size, file.read(0, 64), file.read(file.size - 64, 64)) if digest else None


def scanned(file: Readable, label: str, opening: Opening, *, once: bool = False) -> Layer:
    """Return a layer; its `problem` says why it could not be read."""
    try:
        return scan(source_of(file, opening.budget, once=once), label, opening.budget)
    except (BadImage, OSError, Exhausted) as error:
        layer = Layer(label)
        text = error.strerror if isinstance(error, OSError) else str(error)
        layer.problem = f"{label}: {text or 'it cannot be read'}"
        return layer
