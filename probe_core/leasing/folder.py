"""Where leases lie: one folder that all users of the node share, if the system lets them.

``PROBE_LEASES`` names it; else ``/run/lock/probe-core`` where /run/lock is open to everybody (or
an administrator made the folder), else ``/tmp/probe-core``, else the user's own runtime folder.
/run/lock comes first because nothing tidies it; in /tmp a shared lock on the folder itself keeps
systemd-tmpfiles away while a lease is held (tmpfiles.d(5)). Containers share leases when they
share the folder. Two processes that find different folders do not see each other's leases.
"""

from __future__ import annotations

import os
from stat import S_IMODE, S_ISDIR, S_ISREG, S_ISVTX, S_IWOTH

from probe_core.leasing import VARIABLE, LeaseError, require_locks
from probe_core.leasing.locks import try_take
from probe_core.machine.mounts import may_hang

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_core.model.document import DeviceDoc


_NAME = "probe-core"
_SHARED = ("/run/lock", "/tmp", "/private/tmp")  # the last is macOS's, where /tmp is a link
# Another user may have put anything into a shared folder: no link is followed, and a pipe without
# a reader does not block.
_OPEN = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_SUFFIX = ".lock"
_RECORDS = 16384
"""Bytes of a lock file's records, see `owners`."""
_LONGEST = 200
"""Characters of a lock file's name, below the 255 bytes that Linux and macOS allow (NAME_MAX)."""
_TRIES = 1000
"""Times that a file may vanish between being created and opened, before somebody means it."""
_EVERYBODY, _SHARED_FOLDER, _OWN_FOLDER = 0o666, 0o1777, 0o700
"""Modes: any user may lock a device, none may remove another's file (sticky), as in /tmp."""


class Folder:
    """An open lease folder: names in it are opened relative to it and never through a link."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | getattr(os, "O_NOFOLLOW", 0)
        try:
            self.fd = os.open(path, flags)
        except OSError as error:
            raise LeaseError(
                f"the lease folder {path} cannot be used: {error.strerror}; "
                f"name another one in {VARIABLE}",
                path=path,
            ) from None
        self.path = path

    def close(self) -> None:
        """Close the folder; leases in it stay as they are."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def open(self, name: str, *, create: bool = True) -> int:
        """Open the file `name`, made if it is missing and may be; raises `LeaseError`.

        The file is everybody's to lock. It is created only where it is missing, since the kernel
        refuses O_CREAT on another user's file in a sticky folder (fs.protected_regular).
        """
        for _ in range(_TRIES):
            try:
                handle = os.open(name, _OPEN, dir_fd=self.fd)
            except FileNotFoundError as error:
                if not create:
                    raise self._refusal(name, error.strerror) from None
                handle = self._create(name)
                if handle < 0:
                    continue
            except PermissionError:
                handle = self._read_only(name)
            except OSError as error:
                raise self._refusal(name, error.strerror) from None
            return self._checked(name, handle)
        raise self._refusal(name, "it keeps appearing and vanishing")

    def _create(self, name: str) -> int:
        try:
            handle = os.open(name, _OPEN | os.O_CREAT | os.O_EXCL, _EVERYBODY, dir_fd=self.fd)
        except FileExistsError:
            return -1
        except FileNotFoundError:  # the folder itself was deleted
            self._make_again()
            return -1
        except OSError as error:  # a full or read-only file system: there is no file to remove
            path = f"{self.path}/{name}"
            raise LeaseError(
                f"the lease file {path} cannot be made: {error.strerror}; "
                f"name another folder in {VARIABLE}",
                path=path,
            ) from None
        os.fchmod(handle, _EVERYBODY)  # whatever the umask says
        if name.endswith(_SUFFIX):
            self._copy_deleted(name, handle)
        return handle

    def _make_again(self) -> None:
        _make(self.path, S_IMODE(os.fstat(self.fd).st_mode))
        fresh = Folder(self.path)
        os.close(self.fd)
        self.fd = fresh.fd

    def _copy_deleted(self, name: str, handle: int) -> None:
        """Sign a new lock file as the deleted one that a process still holds was signed.

        Or the deletion of a file, or of the whole folder, would give a device to a second holder.
        """
        from probe_core.leasing.processes import openers

        path = os.path.realpath(f"{self.path}/{name}") + " (deleted)"
        for pid in openers(path):
            text = _text_of(pid, path)
            if text:
                os.pwrite(handle, text, 0)
                return

    def _read_only(self, name: str) -> int:
        """Open a file that may not be written: enough to lock it, not to sign it."""
        flags = (_OPEN & ~os.O_RDWR) | os.O_RDONLY
        try:
            return os.open(name, flags, dir_fd=self.fd)
        except OSError as error:
            raise self._refusal(name, error.strerror) from None

    def _checked(self, name: str, handle: int) -> int:
        status = os.fstat(handle)
        # A second name may be a link that somebody made to a file of ours, to have it written.
        if S_ISREG(status.st_mode) and status.st_nlink <= 1:
            return handle
        os.close(handle)
        raise self._refusal(name, "it is not a plain file")

    def _refusal(self, name: str, reason: str | None) -> LeaseError:
        path = f"{self.path}/{name}"
        return LeaseError(
            f"the lease file {path} cannot be used: {reason}; "
            f"ask its owner to remove it, or name another folder in {VARIABLE}",
            path=path,
        )

    def same(self, name: str, handle: int) -> bool:
        """Return whether the open file still is the one of that name."""
        try:
            named = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        opened = os.fstat(handle)
        return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)

    def names(self) -> Iterator[str]:
        """Yield the names of the devices' lock files, sorted."""
        for name in sorted(os.listdir(self.fd)):
            if name.endswith(_SUFFIX) and not name.startswith("."):
                yield name

    def guard(self) -> None:
        """Lock the folder in share: systemd-tmpfiles then leaves it alone (tmpfiles.d(5)).

        Raises `LeaseError` on a file system without locks.
        """
        try_take(self.fd, share=True)


def _text_of(pid: int, path: str) -> bytes:
    """Return the text of a deleted file that a process has open."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        entry = f"/proc/{pid}/fd/{number}"
        try:
            if os.readlink(entry) == path:
                handle = os.open(entry, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
                try:
                    return os.read(handle, _RECORDS)
                finally:
                    os.close(handle)
        except OSError:  # just closed
            continue
    return b""


def lease_folder(environ: Mapping[str, str]) -> Folder:
    """Open the folder for leases, made if it is missing; raises `LeaseError`."""
    require_locks()
    named = environ.get(VARIABLE)
    if named:
        if not os.path.isabs(named):
            raise LeaseError(f"{VARIABLE}={named!a} is no absolute path", path=named)
        _check_answers(named)
        _make(named, _OWN_FOLDER)
        return Folder(named)
    # One shared folder for all users, or they would not see each other's leases.
    for parent in _SHARED:
        path = f"{parent}/{_NAME}"
        if _open_to_all(parent):
            _make(path, _SHARED_FOLDER)
            return Folder(path)
        if os.path.isdir(path):
            return Folder(path)
    own = environ.get("XDG_RUNTIME_DIR", "")
    if not os.path.isabs(own):
        tried = " and ".join(_SHARED[:2])
        raise LeaseError(
            f"no folder for leases: {tried} are not open to all; name one in {VARIABLE}"
        )
    _make(f"{own}/{_NAME}", _OWN_FOLDER)
    return Folder(f"{own}/{_NAME}")


def _check_answers(path: str) -> None:
    """Refuse a folder on a dead server, where opening it would not return."""
    if not may_hang(path):
        return
    from probe_core.isolation.look import LOOK_S, answers

    if not answers(path):
        raise LeaseError(
            f"the lease folder {path} cannot be used: its server did not answer within"
            f" {LOOK_S:g} s; name a local folder in {VARIABLE}",
            path=path,
        )


def _open_to_all(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return S_ISDIR(mode) and bool(mode & S_IWOTH) and bool(mode & S_ISVTX)


def _make(path: str, mode: int) -> None:
    """Make the folder with exactly this mode; one that is there keeps its own."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        return
    except OSError as error:
        raise LeaseError(
            f"the lease folder {path} cannot be made: {error.strerror}; name another in {VARIABLE}",
            path=path,
        ) from None
    fresh = Folder(path)
    try:
        os.fchmod(fresh.fd, mode)
    finally:
        fresh.close()


def file_name(key: str) -> str:
    """Return the lock file's name for a device's key: readable, no slash, of bounded length."""
    plain = "".join(
        char if char.isascii() and (char.isalnum() or char in ":@_-+.") else f"%{ord(char):02X}"
        for char in key
    )
    if len(plain) > _LONGEST:
        import hashlib  # a device-tree path this long has not been seen yet

        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        plain = f"{plain[:100]}-{digest[:40]}"
    return ("%2E" + plain[1:] if plain.startswith(".") else plain) + _SUFFIX


# Under which names a device is locked: its own, and what it is a part of.

OUTER_LEASE = "PROBE_LEASE"
"""Names what an outer lease gave to this process: ``<depth>;<id>,<id>``. A claim, see `outer`."""

_DEEPEST = 100
"""Depth of leases within leases at which the variable counts as nonsense (a judgement)."""


class Key:
    """The lock files of one device: `whole` is taken in share, `own` as asked."""

    __slots__ = ("own", "whole")

    def __init__(self, own: str, whole: str | None) -> None:
        self.own = own
        self.whole = whole


def stable_name(device: DeviceDoc) -> str:
    """Return the id by which every process names the device: PCI address, else the best other.

    A library's UUID may be missing for one process and there for the next; the bus is always.
    """
    return next((name for name in device["ids"] if name.startswith("pci:")), device["id"])


def key_of(device: DeviceDoc, installed: Sequence[DeviceDoc], outer: Mapping[str, int]) -> Key:
    """Return the device's lock files.

    A partition takes its GPU's lock in share, so that nobody can lease the whole meanwhile.
    `outer` maps what an outer lease gave to its depth: within it, leases of the next depth are
    taken, so that a command under ``probe exec`` can lease its own devices to others.
    """
    parent = device["parent"]
    if not parent:
        name = stable_name(device)
        return Key(level_file(name, outer.get(name)), None)
    gpus = [gpu for gpu in installed if parent == gpu["id"] or parent in gpu["ids"]]
    whole = stable_name(gpus[0]) if gpus else parent
    # A partition's own PCI address is its GPU's: only its own id tells it apart.
    own = level_file(device["id"], outer.get(device["id"]))
    return Key(own, None if whole in outer else file_name(whole))


def level_file(name: str, depth: int | None) -> str:
    """Return the lock file of a device for leases at a depth; 0 or None for the outermost."""
    return file_name(f"{name}+{depth}" if depth else name)


def outer_lease(environ: Mapping[str, str]) -> dict[str, int]:
    """Return the names of the devices that an outer lease gave to this process, with its depth."""
    depth, _, names = environ.get(OUTER_LEASE, "").partition(";")
    if not (depth.isascii() and depth.isdigit()) or not 0 < int(depth[:3]) < _DEEPEST:
        return {}
    return {name: int(depth[:3]) for name in names.split(",") if name}


def outer_lease_value(environ: Mapping[str, str], devices: Iterable[DeviceDoc]) -> str:
    """Return the value of `OUTER_LEASE` for a command that is given these devices.

    It names one depth for all of them, so only leases one level deeper than each can follow.
    """
    depth = max(outer_lease(environ).values(), default=0) + 1
    names = [device["id"] if device["parent"] else stable_name(device) for device in devices]
    return f"{depth};{','.join(names)}"
