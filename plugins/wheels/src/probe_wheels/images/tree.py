"""The layers of an image laid over each other, by the rules of its specification.

A whiteout hides what lower layers have, never its own layer's files, wherever it stands in it. A
folder on a folder is merged with it; anything else replaces what was there (OCI image-spec,
layer.md). Links of folders (``lib`` to ``usr/lib``) often come from other layers than the files.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_wheels.images.layers import File, Layer

MAX_HOPS = 40
"""Links on the way to one file, as the kernel's limit (MAXSYMLINKS)."""


class Tree:
    """The files of an image that may decide, by their paths without a leading slash.

    `layers` has the number of the layer that a file lies in; the base's is 0. `closed` has mode,
    user and group of folders that not everybody may search.
    """

    def __init__(
        self, files: dict[str, File], links: dict[str, str], layers: dict[str, int] | None = None
    ) -> None:
        self.files = files
        self.links = links
        self.layers = layers or {}
        self.closed: dict[str, tuple[int, int, int]] = {}
        self._names: dict[str, set[str]] | None = None

    def resolve(self, path: str) -> str:
        """Return a path with its links followed, within the image; "" where they go in circles."""
        done: list[str] = []
        todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        hops = 0
        while todo:
            part = todo.pop()
            if part == "..":
                del done[-1:]
                continue
            target = self.links.get("/".join((*done, part)))
            if target is None:
                done.append(part)
                continue
            hops += 1
            if hops > MAX_HOPS:
                return ""
            if target.startswith("/"):
                done = []
            todo += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        return "/".join(done)

    def file(self, path: str) -> File | None:
        """Return the file at a path, links followed; None where none that may decide is there."""
        return self.files.get(path) or self.files.get(self.resolve(path))

    def names(self, folder: str) -> set[str]:
        """Return the names in a folder, as far as something that may decide is below it."""
        return self._tree().get(self.resolve(folder), set())

    def is_folder(self, folder: str) -> bool:
        """Return whether something that may decide is below a folder."""
        return self.resolve(folder) in self._tree()

    def _tree(self) -> dict[str, set[str]]:
        if self._names is None:
            self._names = {}
            for path in (*self.files, *self.links):
                while path:
                    folder, _, name = path.rpartition("/")
                    names = self._names.setdefault(folder, set())
                    if name in names:
                        break
                    names.add(name)
                    path = folder
        return self._names


class _Above:
    """What the layers above one hide of it."""

    def __init__(self) -> None:
        self._present: set[int] = set()
        self._others: set[int] = set()
        self._gone: set[str] = set()
        self._opaque: set[str] = set()
        self._folders: dict[str, bool] = {}

    def add(self, layer: Layer) -> None:
        """Count a layer in, for those below it."""
        self._present |= layer.others | layer.folders
        self._others |= layer.others
        self._gone |= layer.whiteouts
        self._opaque |= layer.opaque
        self._folders.clear()

    def hides(self, path: str) -> bool:
        """Return whether a file or link of a lower layer is not to be seen."""
        if hash(path) in self._present or path in self._gone:
            return True
        return self._hides_below(path.rpartition("/")[0])

    def _hides_below(self, folder: str) -> bool:
        """Return whether all that lower layers have in a folder is hidden."""
        if folder in self._opaque:
            return True
        if not folder:
            return False
        known = self._folders.get(folder)
        if known is None:
            known = (
                folder in self._gone
                or hash(folder) in self._others
                or self._hides_below(folder.rpartition("/")[0])
            )
            self._folders[folder] = known
        return known


def merge(layers: Sequence[Layer]) -> Tree:
    """Return the image of layers, the base first."""
    files: dict[str, File] = {}
    ranks: dict[str, int] = {}
    links: dict[str, str] = {}
    closed: dict[str, tuple[int, int, int]] = {}
    above = _Above()
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        for path, file in layer.files.items():
            if not above.hides(path):
                files[path], ranks[path] = file, number
        for path in layer.hard:
            linked = None if above.hides(path) else _hard(layers, number, layer.hard[path])
            if linked is not None:
                files[path], ranks[path] = linked, number
        hidden = above.hides
        links.update({p: target for p, target in layer.links.items() if not hidden(p)})
        closed.update({p: mode for p, mode in layer.closed.items() if not hidden(p)})
        above.add(layer)
    tree = _placed(Tree(files, links, ranks))
    tree.closed = closed
    return tree


def _hard(layers: Sequence[Layer], number: int, target: str) -> File | None:
    """Return the file that a hard link of a layer names: this layer's, else a lower one's."""
    above = _Above()
    for layer in reversed(layers[: number + 1]):
        for _ in range(MAX_HOPS):
            if target not in layer.hard:
                break
            target = layer.hard[target]
        if above.hides(target):
            return None
        if target in layer.files:
            return layer.files[target]
        above.add(layer)
    return None


def _placed(tree: Tree) -> Tree:
    """Return the files where they really lie: ``lib/a.so`` is ``usr/lib/a.so`` behind a link.

    Of two at one place the upper layer's counts.
    """
    if not tree.links:
        return tree
    folders: dict[str, str] = {}
    files: dict[str, File] = {}
    ranks: dict[str, int] = {}
    for path, file in tree.files.items():
        folder, _, name = path.rpartition("/")
        real = folders.get(folder)
        if real is None:
            real = folders[folder] = tree.resolve(folder) if folder else ""
        if folder and not real:
            continue  # its folder is a link that goes in circles, or to the root
        place, rank = f"{real}/{name}" if real else name, tree.layers[path]
        if ranks.get(place, -1) <= rank:
            files[place], ranks[place] = file, rank
    return Tree(files, tree.links, ranks)
