"""Answers of other distributions' checks that still hold, because nothing they came from changed.

To look at a Python environment takes a process, 25 ms where the rest of the doctor takes 30. What
the process answered is kept with the identity of each file that it read. A later run looks at those
files alone. A check decides nothing here: it names the files, and its manifest the variables.
"""

from __future__ import annotations

import os
from binascii import crc32
from stat import S_ISDIR, S_ISREG

from probe_core import __version__
from probe_core.jsontext import parse, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_core.doctor.check import Request
    from probe_core.doctor.installed import CheckSet
    from probe_core.model.document import ReportDoc

SCHEMA = 1
FILE_LIMIT = 2 << 20
MAX_FILES = 7_000
"""Files of one answer, which travel in one frame of 1 MiB; a current PyTorch has 300."""
MAX_KEPT = 32
"""Answers in the folder, a few hundred KiB in all; the oldest goes first."""

SETTLED_NS = 1_000_000_000
"""Age that a change must have had when the look began. Clocks of file systems tick every 4 ms, so
a file that changes twice within a tick has one time."""

_FOLDER = os.path.join("probe-core", "doctor")

_DEVICE = (
    "id", "kind", "vendor", "name", "chip", "arch", "gfx", "compute_capability", "driver",
    "parent", "pci", "visibility",
)  # fmt: skip


def lasting(report: ReportDoc) -> dict[str, object]:
    """Return what a report says of devices for longer than a moment: no free memory, no times."""
    devices = []
    for device in report["devices"]:
        facts: dict[str, object] = {name: device.get(name) for name in _DEVICE if name in device}
        readiness = device["readiness"]
        facts["memory"] = {"kind": device["memory"]["kind"]}
        facts["readiness"] = {"state": readiness["state"], "broken": readiness["broken"]}
        devices.append(facts)
    node = {"os": report["node"]["os"], "arch": report["node"]["arch"]}
    return {"node": node, "primary": report["primary"], "devices": devices}


def identities(paths: Iterable[str], started_ns: int) -> dict[str, str] | None:
    """Return the identity of each path, "" of an absent one; None where they cannot be trusted.

    `started_ns` is when the look began, by the clock of `time_ns`: what changed shortly before, or
    since, may have been read in another state.
    """
    from probe_core.machine import Mounts

    result: dict[str, str] = {}
    mounts = Mounts()
    for path in paths:
        identity, changed = _identity(path)
        unsettled = changed > started_ns - SETTLED_NS
        # The doctor itself looks at these files later, and a process can be abandoned, it cannot.
        if unsettled or len(result) == MAX_FILES or mounts.may_hang(path):
            return None
        result[path] = identity
    return result


def _identity(path: str) -> tuple[str, int]:
    """Return what changes when a file does, and when it last did.

    The time of change is in it: an installer may set the time of modification to any value.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return "", 0
    changed = status.st_ctime_ns
    times = f"{status.st_mtime_ns}:{changed}"
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{times}", changed


class Memory:
    """The answers of one set of checks about one environment, in the user's cache folder."""

    def __init__(self, entry: CheckSet, request: Request) -> None:
        self._path = _file(entry, request)
        self._key = _key(entry, request) if self._path else ""

    def answers(self) -> list[object]:
        """Return the answers that still hold; [] where there are none."""
        document = _load(self._path) if self._path else {}
        files, answers = document.get("files"), document.get("answers")
        if document.get("key") != self._key or not isinstance(files, dict):
            return []
        return answers if isinstance(answers, list) and _hold(files) else []

    def keep(self, answers: Iterable[object], files: Mapping[str, str]) -> None:
        """Write answers down; what fails is nobody's problem, and they are looked for again."""
        if not self._path:
            return
        text = write({"schema": SCHEMA, "key": self._key, "files": files, "answers": [*answers]})
        if len(text) > FILE_LIMIT:
            return
        from probe_core.machine.writing import make_own_folder, replace_file

        folder = os.path.dirname(self._path)
        cache = os.path.dirname(os.path.dirname(folder))
        base = os.path.dirname(cache) if os.path.basename(cache) == ".cache" else cache
        try:
            for path in (os.path.dirname(folder), folder):  # `mode` is for the last folder alone
                make_own_folder(path, base)
            # Under sudo the home can be another user's, whose links would lead root elsewhere.
            if not (_is_own(folder) and _is_own(os.path.dirname(folder))):
                return
            _forget_oldest(folder)
            replace_file(self._path, text.encode(), mode=0o600)
        except OSError:
            pass


def _file(entry: CheckSet, request: Request) -> str:
    """Return the file of the answers; "" where none can be kept."""
    environ = request.machine.environ if request.machine.live else os.environ
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = environ.get("HOME", "")
        base = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    if os.name == "nt":
        base = environ.get("LOCALAPPDATA", "")
    if not os.path.isabs(base) or not request.environment:
        return ""
    subject = write([entry.owner, entry.prober.target, _place(request), request.device])
    return os.path.join(base, _FOLDER, f"{crc32(subject.encode()):08x}.json")


def _place(request: Request) -> str:
    return os.path.abspath(request.environment or "")


def _key(entry: CheckSet, request: Request) -> str:
    """Return all that the answers came from but files: whose checks, the question, the report."""
    machine = request.machine
    values = [
        [name, machine.environ.get(name), os.environ.get(name)] for name in entry.variables or ()
    ]
    question = [_place(request), request.environment, request.device, machine.root]
    versions = [__version__, request.report.get("chipdb"), entry.owner, *entry.prober.files]
    return write([versions, question, values, lasting(request.report)])


def _is_own(path: str) -> bool:
    """Return whether a file or folder, no link, is this user's, and nobody else's to write."""
    status = os.lstat(path)
    plain = S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)
    return plain and (
        os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)
    )


def _load(path: str) -> dict[str, object]:
    try:
        # Whoever could write it decides what a wheel is said to have code for.
        if not _is_own(path) or os.path.getsize(path) > FILE_LIMIT:
            return {}
        with open(path, "rb", buffering=0) as file:
            document = parse(file.read(FILE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return {}
    valid = isinstance(document, dict) and document.get("schema") == SCHEMA
    return document if valid else {}


def _hold(files: Mapping[str, object]) -> bool:
    """Return whether every file is as it was; a folder that could hang is asked by nobody here."""
    from probe_core.machine import Mounts

    mounts = Mounts()
    checked: set[str] = set()
    for path, identity in files.items():
        folder = os.path.dirname(path)
        if folder not in checked:
            checked.add(folder)
            if mounts.may_hang(path):
                return False
        if _identity(path)[0] != identity:
            return False
    return bool(files)


def _forget_oldest(folder: str) -> None:
    """Remove the files that were written longest ago, down to one less than `MAX_KEPT`."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json")]
    paths.sort(key=lambda path: os.lstat(path).st_mtime_ns)
    for path in paths[: max(0, len(paths) - MAX_KEPT + 1)]:
        os.unlink(path)
