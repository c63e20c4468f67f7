"""A recorded machine in memory: checked when it is made, so that unpacking it can do no harm."""

from __future__ import annotations

from probe_core.recording.about import About
from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.limits import MAX_ENTRIES, MAX_FILE, MAX_FOLDERS, MAX_TOTAL
from probe_core.recording.paths import above, check_path, check_places, check_target, resolve_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ABOUT_PATH", "ANSWERS_PATH", "Recording"]

ABOUT_PATH = "/machine.json"
"""The file of an unpacked recording that gives its system, environment and origin."""

ANSWERS_PATH = "/answers.json"
"""The file of an unpacked recording that gives what its probers answered."""


_OWN = frozenset((ABOUT_PATH, ANSWERS_PATH))


class Recording:
    """One recorded machine. Raises `BadRecording` for what could do harm or is over a limit.

    `files` maps the machine's own absolute paths to their bytes, `links` maps paths to relative
    targets as the kernel writes them. `os`, `arch` and `environ` are as `Machine` has them;
    `origin` is one sentence that begins with "recorded" or "invented", or None. `access` maps
    device nodes to how opening them would have ended, `answers` maps probers to what they answered.
    `described` says whether the recording told of itself, in JSON or by a ``machine.json``.
    """

    __slots__ = (
        "access",
        "answers",
        "arch",
        "described",
        "environ",
        "files",
        "folders",
        "links",
        "origin",
        "os",
    )

    def __init__(
        self,
        files: Mapping[str, bytes],
        links: Mapping[str, str] | None = None,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self.files = dict(files)
        self.links = dict(links or {})
        self.described = about is not None
        self._check()
        self.folders = self._folders(resolve_links(self.links))
        facts = About(about or {}, self._text)
        self.os, self.arch = facts.os, facts.arch
        self.environ, self.origin = facts.environ, facts.origin
        self.access, self.answers = facts.access, facts.answers

    def about(self) -> dict[str, object]:
        """Return what is no file of the machine, as a recording writes it; answers are apart."""
        about: dict[str, object] = {
            "os": self.os,
            "arch": self.arch,
            "environ": self.environ,
            "origin": self.origin,
        }
        return about | ({"access": self.access} if self.access else {})

    def _text(self, path: str) -> str | None:
        """Return a file's text; None where the recording has no such file."""
        raw = self.files.get(path)
        return None if raw is None else raw.decode("utf-8", "replace").strip("\0 \t\r\n")

    def _check(self) -> None:
        if len(self.files) + len(self.links) > MAX_ENTRIES:
            raise BadRecording(f"more than {MAX_ENTRIES} files and links")
        total = 0
        for path, content in self.files.items():
            check_path(path)
            total += len(content)
            if len(content) > MAX_FILE:
                raise BadRecording(f"{shown(path)} is longer than {MAX_FILE >> 10} KiB")
            if total > MAX_TOTAL:
                raise BadRecording(f"its files are longer than {MAX_TOTAL >> 20} MiB together")
        for path, target in self.links.items():
            check_target(check_path(path), target)
        # `unpack` writes these files itself, and a link in their place would redirect the write.
        for own in sorted(_OWN):
            if any(f"{path}/".startswith(f"{own}/") for path in (*self.files, *self.links)):
                raise BadRecording(f"{own} is kept for what a recording says of itself")
        check_places(self.files, self.links)

    def _folders(self, targets: Mapping[str, str]) -> set[str]:
        """Return all folders: those of files and links, and those that links alone name.

        A driver's folder is often empty, and what a link names is there on the real machine.
        """
        folders: set[str] = set()
        named = (f"{target}/" for target in targets.values() if target != "/")
        for path in (*self.files, *self.links, *named):
            ancestors = list(above(path))
            if self.files.keys().isdisjoint(ancestors) and _OWN.isdisjoint(ancestors):
                folders.update(ancestors)
            if len(folders) > MAX_FOLDERS:
                raise BadRecording(f"more than {MAX_FOLDERS} folders")
        return folders
