"""The probe as one archive for a node that has none: the core, chip data and pure-Python probers.

It holds what this computer itself would run: a prober that the allowlist here leaves out, or that
root here may not run, is not sent either. Nothing of it is compiled, so that any Python from 3.11
on of any processor can run it.
"""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from dataclasses import dataclass, field
from importlib import metadata

from probe_core.commands import Trust, allowed, find_module, plugin_rules, scan
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Files = dict[str, bytes]
    """Path in the archive → content."""


MOST_BYTES = 3 << 20
"""Bytes of an archive. 64 of them go out at once: three seconds at 500 Mbit/s."""

_MOST_UNPACKED = 8 << 20
"""Bytes of one distribution's files: /dev/shm of a container has 64 MiB by default, for all."""

_CORE = ("probe-core", "probe-chipdb", "attrs", "pluggy")
"""Distributions without which nothing runs. Beside them psutil alone is required, where there is no
/proc: it is compiled, so of a Mac the sent probe says less, with the reason."""

_OWN = {"probe-core": "probe_core", "probe-chipdb": "probe_chipdb"}
"""Distribution → package, of which folders that `probe --json` never reads are left out."""

_UNUSED = ("testing", "__pyinstaller", "bin", "tools")
"""The names of those folders."""

_PROBERS = ("probe_core.probers.v", "probe_core.chipdb.v")
"""Groups of entry points whose distributions are sent."""

_COMPILED = (".so", ".pyd", ".dll", ".dylib")

_MAIN = b"from probe_core.cli import entry\n\nentry()\n"


@dataclass(frozen=True, slots=True)
class Archive:
    """A compressed tar file whose root is a folder for sys.path with a ``__main__.py``.

    Compressed as one it is 15 % smaller than a zip file, and unpacked in a third of the time.
    """

    data: bytes = field(repr=False)
    absent: dict[str, str]
    """Distribution that is not in it → why."""


class _Unsent(Exception):
    """Why a distribution is not sent, in a sentence."""


def build(environ: Mapping[str, str] | None = None) -> Archive:
    """Return the archive of what is installed here, of at most `MOST_BYTES`.

    The settings of `environ` (None: this process's) say which distributions may run here, and so be
    sent. Raises `ValueError` where not even the core can be sent.
    """
    content = _Content()
    for name in _CORE:
        try:
            content.add(name)
        except _Unsent as error:
            raise ValueError(f"{name} cannot be sent: {error}") from None
    allow, sealed = plugin_rules({}, os.environ if environ is None else environ)
    absent: dict[str, str] = {}
    for name, version, problem in _with_probers():
        reason = sealed or problem or allowed(name, version, allow)
        try:
            if reason is None:
                content.add(name)
        except _Unsent as error:
            reason = str(error)
        if reason is not None:
            absent[name] = clean_text(reason, 300)
    return Archive(content.closed(), absent)


def _with_probers() -> Iterator[tuple[str, str, str | None]]:
    """Yield the distributions with probers or chip data: name, version, what is wrong with it."""
    found: dict[str, tuple[str, str | None]] = {}
    for stem in _PROBERS:
        entries, problems = scan(stem=stem)
        for entry in entries:
            found.setdefault(entry.distribution, (entry.version, None))
        for problem in problems:
            found.setdefault(problem.distribution, ("", problem.reason))
    for name, (version, reason) in found.items():
        yield name, version, reason


class _Content:
    """The archive while it is written, distribution by distribution, each with what it requires."""

    def __init__(self) -> None:
        self._trust = Trust()
        self._names: set[str] = set()
        # 31 is a gzip file, without a name or a time: the same files make the same archive. Level 6
        # takes twice the time of 4 and is 6 % smaller.
        self._compressor = zlib.compressobj(4, wbits=31)
        self._data = bytearray()
        self._write({"__main__.py": _MAIN})

    def add(self, name: str) -> None:
        """Add a distribution. Raises `_Unsent`, and adds nothing of it then."""
        if _normal(name) in self._names:
            return
        names: set[str] = set()
        files = self._collected(name, names)
        if name not in _CORE:
            packed = len(zlib.compress(_tar(files), 1))
            if len(self._data) + packed > MOST_BYTES:
                raise _Unsent(f"with it the archive is larger than {MOST_BYTES >> 20} MiB")
        self._write(files)
        self._names |= names

    def closed(self) -> bytes:
        """Return the whole archive."""
        self._data += self._compressor.compress(bytes(2 * tarfile.BLOCKSIZE))
        self._data += self._compressor.flush()
        return bytes(self._data)

    def _write(self, files: Files) -> None:
        self._data += self._compressor.compress(_tar(files))
        self._data += self._compressor.flush(zlib.Z_SYNC_FLUSH)  # its size so far is known then

    def _collected(self, name: str, names: set[str]) -> Files:
        """Return the files of a distribution and of what it requires, whose names `names` gets."""
        names.add(_normal(name))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise _Unsent(f"{name} is not installed here") from None
        files = _described(distribution)
        for module in _modules(distribution):
            files.update(self._module(module))
        if sum(map(len, files.values())) > _MOST_UNPACKED:
            raise _Unsent(f"{name} has more than {_MOST_UNPACKED >> 20} MiB")
        for requirement in distribution.requires or ():
            other, _, marker = requirement.partition(";")
            other = _name_of(other)
            if _normal(other) in self._names | names or "extra" in marker:
                continue
            try:
                files.update(self._collected(other, names))
            except _Unsent:
                if (
                    not marker
                ):  # one that some systems alone need is left out where it cannot be had
                    raise
        return files

    def _module(self, module: str) -> Iterator[tuple[str, bytes]]:
        """Yield the files of a top-level module or package."""
        place, _ = find_module(module)
        if place is None:
            raise _Unsent(f"its module {module} is not found")
        # As root: what others could have written here would be run by root there.
        if problem := self._trust.reason(place.files(module, self._trust)):
            raise _Unsent(problem)
        if not place.is_package:
            assert place.file is not None
            yield os.path.basename(place.file), _content(place.file)
            return
        unused = {"__pycache__", *(_UNUSED if module in _OWN.values() else ())}
        start, total = len(place.folder) - len(module), 0
        for folder, folders, names in os.walk(place.folder):
            folders[:] = sorted(set(folders) - unused)
            for name in sorted(name for name in names if not name.endswith(".pyi")):
                path = os.path.join(folder, name)
                data = _content(path)
                total += len(data)
                if total > _MOST_UNPACKED:
                    raise _Unsent(f"{module} has more than {_MOST_UNPACKED >> 20} MiB")
                yield path[start:].replace(os.sep, "/"), data


def _tar(files: Files) -> bytes:
    """Return the files as a tar file has them, without its end."""
    buffer = io.BytesIO()
    for path, data in files.items():
        info = tarfile.TarInfo(path)
        info.size, info.mode = len(data), 0o600
        buffer.write(info.tobuf(tarfile.USTAR_FORMAT))
        buffer.write(data)
        buffer.write(bytes(-len(data) % tarfile.BLOCKSIZE))
    return buffer.getvalue()


def _content(path: str) -> bytes:
    if path.endswith(_COMPILED):
        raise _Unsent(f"{os.path.basename(path)} is compiled for one kind of processor")
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_UNPACKED + 1)
    except OSError as error:
        raise _Unsent(f"{path}: {error.strerror or error}") from None


def _described(distribution: metadata.Distribution) -> Files:
    """Return the metadata that the registry reads: the entry points, and that it is whole."""
    name, version = distribution.metadata["Name"], distribution.version
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    files = {f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    if points := distribution.read_text("entry_points.txt"):
        files[f"{folder}/entry_points.txt"] = points
    return {path: text.encode() for path, text in files.items()}


def _modules(distribution: metadata.Distribution) -> list[str]:
    """Return the top-level modules of a distribution, an editable one included."""
    if own := _OWN.get(distribution.metadata["Name"]):
        return [own]
    tops = set()
    for file in distribution.files or ():
        if file.suffix == ".py" and file.parts[0] != "..":
            tops.add(file.parts[0].removesuffix(".py"))
    # A checkout's distribution lists no files: its probers name their package.
    points = {
        point.value.partition(":")[0].partition(".")[0] for point in distribution.entry_points
    }
    return sorted(tops or points)


def _name_of(requirement: str) -> str:
    """Return the name that a requirement (PEP 508) begins with."""
    text = requirement.strip()
    length = next(
        (at for at, char in enumerate(text) if not (char.isalnum() or char in "-_.")), len(text)
    )
    return text[:length]


def _normal(name: str) -> str:
    return name.replace("_", "-").replace(".", "-").lower()
