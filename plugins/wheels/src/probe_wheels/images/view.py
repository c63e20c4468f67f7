"""The files of an image as the readers of Python environments see files: by path, with bounds."""

from __future__ import annotations

from errno import EINVAL, ENOENT

from probe_wheels.files import Budget, Opened
from probe_wheels.images.layers import Disk, Read, memory, read_of
from probe_wheels.images.streams import Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from probe_wheels.documents import LibraryDoc
    from probe_wheels.files import Readable
    from probe_wheels.images.layers import Binary, File
    from probe_wheels.images.tree import Tree


class ImageFiles(Budget):
    """A budget whose files are an image's; see `Budget`. Paths begin with a slash."""

    def __init__(self, tree: Tree, seconds: float) -> None:
        super().__init__(seconds)
        self.tree = tree
        self._reads: dict[int, Read] = {}

    def listed(self, folder: str) -> list[str]:
        """Return the sorted names in a folder of the image."""
        return sorted(self.tree.names(folder))

    def is_folder(self, path: str) -> bool:
        """Return whether a folder of the image has anything that may decide."""
        return self.tree.is_folder(path)

    def is_file(self, path: str) -> bool:
        """Return whether the image has a file."""
        return self.tree.file(path.lstrip("/")) is not None

    def identity(self, path: str) -> str:
        """Return what tells a file of the image from all others; raises `OSError`."""
        return str(id(self._file(path)))

    def open(self, path: str) -> AbstractContextManager[Readable]:
        """Return a file of the image; raises `OSError`."""
        content = self._file(path).content
        if isinstance(content, Part):
            return content
        if isinstance(content, bytes):
            return memory(content)
        if isinstance(content, Disk):
            return Opened(content.path, self)
        problem = content.document.get("problem") if content else None
        raise OSError(EINVAL, problem or "its content was not kept", path)

    def known(self, path: str) -> LibraryDoc | None:
        """Return what a file has code for, where it passed in a stream."""
        content = self._file(path).content
        return content.document if isinstance(content, Read) else None

    def real(self, path: str) -> str:
        """Return a path with the image's own links resolved."""
        return "/" + self.tree.resolve(path)

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield a folder and all below it; links to folders are not followed."""
        names = self.listed(folder)
        paths = {name: f"{folder.rstrip('/')}/{name}" for name in names}
        folders = [
            name
            for name, path in paths.items()
            if path.lstrip("/") not in self.tree.links and self.is_folder(path)
        ]
        yield folder, folders, [name for name in names if name not in folders]
        for name in folders:
            yield from self.walk(paths[name])

    def text(self, path: str, limit: int = 1 << 20) -> str:
        """Return the text of a file of the image; "" where it has none."""
        try:
            with self.open(path) as file:
                return file.read(0, limit).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def read(self, file: File) -> Read | None:
        """Return what a library or program has and needs; None for a file that nobody reads."""
        if isinstance(file.content, Read):
            return file.content
        if file.content is None:
            return None
        known = self._reads.get(id(file))
        if known is None:
            try:
                known = self._read(file)
            except OSError as error:
                known = Read({"problem": error.strerror or "it cannot be read"}, None, b"")
            self._reads[id(file)] = known
        return known

    def binary(self, path: str) -> Binary | None:
        """Return what the loader needs of an ELF file of the image; None for anything else."""
        file = self.tree.file(path.lstrip("/"))
        read = self.read(file) if file else None
        return read.binary if read else None

    def _read(self, file: File) -> Read:
        content = file.content
        if isinstance(content, Disk):
            with Opened(content.path, self) as opened:
                return read_of(opened)
        if isinstance(content, bytes):
            return read_of(memory(content))
        return read_of(content if isinstance(content, Part) else memory(b""))

    def _file(self, path: str) -> File:
        file = self.tree.file(path.lstrip("/"))
        if file is None:
            raise FileNotFoundError(ENOENT, "it is not in the image", path)
        return file
