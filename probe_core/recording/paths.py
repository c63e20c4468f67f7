"""What a recording may hold: how much of it, and which paths; far more than a machine needs."""

from __future__ import annotations

import re

from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_core.machine import Machine


# How large a recording may be: far more than a machine needs, far less than would hurt a host.

MAX_ENTRIES = 20_000
"""Files and links together."""

MAX_FOLDERS = 50_000
"""Folders that files lie in, and that links lead to."""

MAX_FILE = 1 << 20
"""Bytes of one file: `Machine` reads no more of one."""

MAX_TOTAL = 16 << 20
"""Bytes of all files together."""

MAX_PATH = 1024
"""Bytes of a path, and of a link's target."""

MAX_NAME = 255
"""Bytes of one name in a path."""

MAX_DEPTH = 64
"""Names in a path."""

MAX_LINK_STEPS = 500_000
"""Names walked over while all links are followed; a machine's own need a tenth."""

MAX_DOCUMENT = 8 << 20
"""Bytes of a recording in JSON, unpacked."""

MAX_NESTING = 32
"""Levels of lists and tables in a recording in JSON."""

MAX_TABLES = 100_000
"""Lists and tables in a recording in JSON."""

MAX_ABOUT = 64 << 10
"""Bytes of a machine.json, and of an environment."""

MAX_ANSWERS_FILE = 4 << 20
"""Bytes of an answers.json: what 64 GPUs of 8 kB each take, eight times."""

MAX_ENVIRON = 256
"""Variables of an environment."""

MAX_PACKED = 64 << 20
"""Bytes of the file as it lies on the disk."""

MAX_TAR = 64 << 20
"""Bytes of a tar archive, unpacked."""

MAX_HEADERS = 80_000
"""Members of a tar archive: files, links, folders and extensions."""

MAX_XZ_MEMORY = 80 << 20
"""Bytes of memory to unpack xz: `xz -9` asks for 65 MiB, a hostile file for 4 GiB."""

MAX_ANSWERS = 64
"""Probers of which a recording has answers."""

MAX_FRAMES = 1024
"""Parts of one prober's answer: a live prober has 256 devices and 64 findings at most."""

MAX_LIST = 64
"""Ids or vendors in one list of an answer."""

MAX_SENTENCE = 4096
"""Characters of a text of an answer that is no field of a device."""

MAX_ACCESS = 1024
"""Device nodes of which a recording says whether they may be opened."""


# The error of recordings, and how its messages show text of unknown origin.


class BadRecording(ValueError):
    """A file that is no recorded machine, or one that could do harm; the message says why."""


def shown(text: object) -> str:
    """Return text of unknown origin in quotes, fit for one line of a message."""
    return f"'{clean_text(str(text), 120)}'"


# Which paths a recording may hold: plain absolute ones, no two of which need the same place.

MAX_HOPS = 40
"""Links that one path may go through, as in Linux (MAXSYMLINKS of include/linux/namei.h)."""


def check_path(path: object) -> str:
    """Return a path that names one place below a root; raises `BadRecording`."""
    raw = _utf8(path)
    names = raw.split(b"/")
    # ".." would leave the folder; "." and empty names would give one place two paths.
    odd = any(name in (b"", b".", b"..") for name in names[1:]) or b"\0" in raw
    if odd or not raw.startswith(b"/"):
        raise BadRecording(f"{shown(path)} is not a plain absolute path")
    if len(raw) > MAX_PATH:
        raise BadRecording(f"the path {shown(path)} is longer than {MAX_PATH} bytes")
    if max(map(len, names)) > MAX_NAME:
        raise BadRecording(f"{shown(path)} has a name longer than {MAX_NAME} bytes")
    if len(names) - 1 > MAX_DEPTH:
        raise BadRecording(f"{shown(path)} lies deeper than {MAX_DEPTH} folders")
    return str(path)


def check_target(path: str, target: object) -> str:
    """Return the text of the link at `path`; whether it stays inside is `resolve_links`'s."""
    raw = _utf8(target)
    if raw.startswith(b"/"):
        raise BadRecording(f"{shown(path)}: an absolute target would lead out of the folder")
    if not raw or b"\0" in raw:
        raise BadRecording(f"{shown(path)}: its target is empty or holds a NUL")
    if len(raw) > MAX_PATH or max(map(len, raw.split(b"/"))) > MAX_NAME:
        raise BadRecording(f"{shown(path)}: its target is longer than {MAX_PATH} bytes")
    return str(target)


def _utf8(text: object) -> bytes:
    if not isinstance(text, str):
        raise BadRecording(f"{shown(text)} is not a plain absolute path: it is no text")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRecording(f"{shown(text)} cannot be written in UTF-8") from None


def check_places(files: Mapping[str, object], links: Mapping[str, object]) -> None:
    """Refuse two entries at one place, and what lies below a file or a link."""
    for path in files:
        if path in links:
            raise BadRecording(f"{shown(path)} is both a file and a link")
    for path in (*files, *links):
        for folder in above(path):
            if folder in files or folder in links:
                kind = "file" if folder in files else "link"
                raise BadRecording(f"{shown(path)} lies below the {kind} {shown(folder)}")


def above(path: str) -> Iterator[str]:
    """Yield the folders on the way to a path, the root left out: /a and /a/b of /a/b/c."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def resolve_links(links: Mapping[str, str]) -> dict[str, str]:
    """Return where each link really leads, other links on its way followed, as the kernel would.

    Raises `BadRecording` when one leads out of the root or in a circle. What a target's text looks
    like does not decide: ``up/../x`` stays inside, unless ``up`` is a link to the root.
    """
    walk = _Walk(links)
    return {path: walk.follow(path) for path in links}


class _Walk:
    """Follows links by their text alone, with a bounded number of steps over all of them."""

    def __init__(self, links: Mapping[str, str]) -> None:
        self._links = links
        self._steps = 0

    def follow(self, path: str) -> str:
        """Return where the link at `path` leads."""
        hops = 0
        folders = path.split("/")[1:-1]
        # The names still to walk, the next one last.
        ahead = self._links[path].split("/")[::-1]
        while ahead:
            self._steps += 1
            name = ahead.pop()
            if name == "..":
                if not folders:
                    raise BadRecording(
                        f"{shown(path)}: its target {shown(self._links[path])} leads out of the"
                        " folder"
                    )
                folders.pop()
            elif name not in ("", "."):
                folders.append(name)
                target = self._links.get("/" + "/".join(folders))
                if target is not None:
                    hops += 1
                    folders.pop()
                    ahead += reversed(target.split("/"))
            if hops > MAX_HOPS or len(folders) > MAX_DEPTH or self._steps > MAX_LINK_STEPS:
                raise BadRecording(f"{shown(path)} leads in a circle, or through too many links")
        return "/" + "/".join(folders)


# Patterns of paths that probers declare: which may be written, and what they name on a machine.
#
# ``*`` stands for any name or part of one, ``#`` for a number. A recording is made to be shared,
# so a pattern reaches only where the system itself writes: neither homes, nor other programs'
# data, nor what /proc holds about processes, in which command lines and environments stand.

MAX_PATTERN = 256
"""Characters of one pattern; the longest of ours has 64."""

MAX_MATCHES = 10_000
"""Paths that one pattern names at most: the largest kernels count 8,192 CPUs (x86's NR_CPUS)."""

MAX_WILDCARDS = 2
"""``*`` and ``#`` in one name: with each more, a match takes a power more of time in its length."""

ROOTS = ("/proc/", "/sys/", "/opt/", "/usr/lib/", "/usr/local/", "/usr/share/")
"""Folders that drivers and their vendors' packages write; /etc holds keys and passwords."""

_OF_PROCESSES = re.compile(r"/proc/(?:[0-9]+|self|thread-self|[^/]*[*#][^/]*)(?:/|\Z)")


def check_absolute(pattern: object, roots: tuple[str, ...] = ROOTS) -> str:
    """Return a pattern below one of `roots`; raises `ValueError` with the mistake."""
    text = _checked(pattern)
    if not text.startswith("/"):
        raise ValueError(f"{shown(text)} is not absolute")
    _check_plain(text)
    if not text.startswith(roots):
        raise ValueError(f"{shown(text)} lies below none of {', '.join(roots)}")
    if _OF_PROCESSES.match(text):
        raise ValueError(f"{shown(text)} names what /proc holds about processes")
    return text


def check_relative(pattern: object) -> str:
    """Return a pattern below a device's folder; raises `ValueError` with the mistake."""
    text = _checked(pattern)
    if text.startswith("/"):
        raise ValueError(f"{shown(text)} is absolute; write it as below the device's folder")
    _check_plain(f"/{text}")
    return text


def _checked(pattern: object) -> str:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise ValueError(f"a pattern is text of 1 to {MAX_PATTERN} characters")
    return pattern


def _check_plain(path: str) -> None:
    try:
        check_path(path)
    except BadRecording:
        raise ValueError(f"{shown(path)} holds '..', '.', an empty name or a NUL") from None
    if any(name.count("*") + name.count("#") > MAX_WILDCARDS for name in path.split("/")):
        raise ValueError(f"{shown(path)} has more than {MAX_WILDCARDS} wildcards in one name")


def is_public(real: str, roots: tuple[str, ...] = ROOTS) -> bool:
    """Return whether a path, its links resolved, is one that a recording may hold.

    A folder of /opt may be a link into somebody's home, and /proc/net leads to a process.
    """
    return real.startswith(roots) and not _OF_PROCESSES.match(real)


class Expansion:
    """Finds the paths that patterns name; `cut` counts the patterns that named too many."""

    def __init__(self, machine: Machine) -> None:
        self.cut = 0
        self._machine = machine

    def paths(self, pattern: str, folder: str = "") -> list[str]:
        """Return the paths below `folder` that a pattern names and that exist."""
        paths = [folder]
        for part in pattern.strip("/").split("/"):
            paths = self._step(paths, part)
        return [path for path in paths if self._machine.exists(path)]

    def _step(self, folders: list[str], part: str) -> list[str]:
        if "*" not in part and "#" not in part:
            return [f"{folder}/{part}" for folder in folders]
        # "." leaves out a line's end, which no name of /sys holds.
        form = re.compile(re.escape(part).replace(r"\*", ".*").replace(r"\#", "[0-9]+"))
        paths: list[str] = []
        for folder in folders:
            names = self._machine.listdir(folder or "/")
            paths += [f"{folder}/{name}" for name in names if form.fullmatch(name)]
            if len(paths) > MAX_MATCHES:
                self.cut += 1
                return paths[:MAX_MATCHES]
        return paths
