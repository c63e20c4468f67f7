"""Where leases lie: a folder of root's that all users share, else one of the user's own.

``PROBE_LEASES`` names it; else it is ``/run/probe-core`` where root or an administrator made that
(an operating system's package does, by tmpfiles.d), else ``/tmp/probe-core-UID``. Containers share
leases when they share the folder; two processes that find different ones do not see each other's.

In it lie ``locks``, which is empty for ever and whose ranges of bytes are locked (`ranges`), and
``records`` (`records`). Nobody but root can delete, replace or write what decides in root's folder.
The user's own is not in ``/run/user``, which goes at the end of a login while a job runs on; a
shared lock on it keeps systemd-tmpfiles away while a lease is held (tmpfiles.d(5)).
"""

from __future__ import annotations

import errno
import fcntl
import os
from stat import S_IMODE, S_ISREG

from probe_core.leasing import VARIABLE, LeaseError
from probe_core.machine import may_hang
from probe_core.proc import held_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SYSTEM = "/run/probe-core"
_OWN = "/tmp/probe-core-{uid}"
_LOCKS, _RECORDS = "locks", "records"
_NAMES = (_LOCKS, *(f"{_LOCKS}-{number}" for number in range(1, 8)))
"""The file of locks is the first that can be used: who may write here may put anything there."""
_MOST_TRIES = 10
"""Times that it is made where others delete it meanwhile (a judgement)."""
_IN_THE_WAY = frozenset(
    getattr(errno, name, 0)
    for name in "EACCES EISDIR ELOOP EMLINK ENODEV ENOTDIR ENXIO EPERM ETXTBSY".split()
)
"""What open(2) gives where something lies there that is no file to lock. After any other
error the file is still where the others lock: another one would have a second holder."""
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
"""What link(2) gives on a file system without hard links."""
# No link is followed, and a pipe without a reader does not block.
_PLAIN = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OWN_FOLDER, _SYSTEM_FOLDER, _STICKY, _EVERYBODY = 0o700, 0o755, 0o1777, 0o666
_WRITABLE_BY_OTHERS = 0o022


class Folder:
    """An open lease folder: names in it are opened relative to it and never through a link.

    `notes` are sentences about what lies in it and is passed over.
    """

    def __init__(self, path: str) -> None:
        flags = _PLAIN | os.O_RDONLY | os.O_DIRECTORY
        try:
            self.fd = os.open(path, flags)
        except OSError as error:
            raise _unusable(path, error.strerror) from None
        self.path = path
        self.notes: list[str] = []

    def close(self) -> None:
        """Close the folder; leases in it stay as they are."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def guard(self) -> None:
        """Lock the folder in share: systemd-tmpfiles then leaves it alone (tmpfiles.d(5))."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # systemd-tmpfiles is at it, or the file system has no such locks
            return

    def locks(self) -> int:
        """Open the file of locks, made if it is missing: each time another open file.

        Raises `LeaseError`. It is made only where it is missing, since the kernel refuses O_CREAT
        on another user's file in a sticky folder (fs.protected_regular).
        """
        for _ in range(_MOST_TRIES):
            handle, name = self._usable()
            if name is None:
                raise _unusable(self.path, "nothing in it can be locked")
            if handle < 0:
                handle = self._made(name)
            if handle >= 0:
                return handle
        raise _unusable(f"{self.path}/{name}", "somebody deletes it again and again")

    def present_locks(self) -> int:
        """Open the file of locks for a look; -1 where there is none."""
        return self._usable()[0]

    def _usable(self) -> tuple[int, str | None]:
        """Return the file of locks, -1 where it has to be made, and its name if it can have one."""
        for name in _NAMES:
            try:
                return self._present(name), name
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise _unusable(f"{self.path}/{name}", error.strerror) from None
                self._pass_over(name, error)
        return -1, None

    def identity_of_locks(self) -> tuple[int, int] | None:
        """Return device and inode of the file of locks; None where there is none."""
        look = self.present_locks()
        if look < 0:
            return None
        status = os.fstat(look)
        os.close(look)
        return status.st_dev, status.st_ino

    def _present(self, name: str) -> int:
        """Open the file of that name, or a deleted one that is in use; -1 where there is none."""
        try:
            handle = os.open(name, _PLAIN | os.O_RDWR, dir_fd=self.fd)
        except FileNotFoundError:
            return self._deleted(name)
        if S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
        raise OSError(errno.ENXIO, "it is not a plain file")

    def _made(self, name: str) -> int:
        """Make the file of locks; -1 where another process was faster, or deleted the folder."""
        try:
            return self._linked(name)
        except FileExistsError:
            return -1
        except FileNotFoundError:
            _make(self.path, S_IMODE(os.fstat(self.fd).st_mode))
            fresh = Folder(self.path)
            os.close(self.fd)
            self.fd = fresh.fd
            return -1
        except OSError as error:
            raise _unusable(f"{self.path}/{name}", error.strerror) from None

    def _linked(self, name: str) -> int:
        """Make a file that everybody can open from the moment at which it has its name.

        Or another user, who cannot open it, would pass it over, and lock the next one.
        """
        hidden = f".{os.urandom(8).hex()}"
        handle = self._created(hidden)
        try:
            os.link(hidden, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError as error:
            os.close(handle)
            if error.errno not in _NO_LINKS:
                raise
            return self._created(name)
        finally:
            try:
                os.unlink(hidden, dir_fd=self.fd)
            except OSError:  # the folder was deleted
                pass
        return handle

    def _created(self, name: str) -> int:
        flags = _PLAIN | os.O_RDWR | os.O_CREAT | os.O_EXCL
        handle = os.open(name, flags, _EVERYBODY, dir_fd=self.fd)
        os.fchmod(handle, _EVERYBODY)  # whatever the umask says
        return handle

    def _deleted(self, name: str) -> int:
        """Open the deleted file of that name of which a process still holds bytes; else -1.

        Or the deletion of a file, or of the folder, would give a device to a second holder.
        """
        path = f"{os.path.realpath(self.path)}/{name} (deleted)"
        for lock in held_locks(path):
            try:
                if self._may_be_of_it(os.stat(lock.descriptor)):
                    return os.open(lock.descriptor, os.O_RDWR | os.O_CLOEXEC)
            except OSError:  # just closed
                continue
        return -1

    def _may_be_of_it(self, status: os.stat_result) -> bool:
        """Return whether a deleted file may have lain here, made by who can make files here.

        Among mounts of his own a user has any file under this path, and root is shown it.
        """
        folder = os.fstat(self.fd)
        makers = (0, folder.st_uid)
        is_open = folder.st_mode & _WRITABLE_BY_OTHERS
        return S_ISREG(status.st_mode) and bool(is_open or status.st_uid in makers)

    def records(self, *, create: bool = True) -> int:
        """Open the folder of records, made if it is missing and may be; -1 where there is none."""
        flags = _PLAIN | os.O_RDONLY | os.O_DIRECTORY
        try:
            return os.open(_RECORDS, flags, dir_fd=self.fd)
        except FileNotFoundError:
            return self._made_records(flags) if create else -1
        except OSError as error:
            self._pass_over(_RECORDS, error)
            return -1

    def _made_records(self, flags: int) -> int:
        try:
            os.mkdir(_RECORDS, dir_fd=self.fd)
            handle = os.open(_RECORDS, flags, dir_fd=self.fd)
            os.fchmod(handle, _STICKY)
        except FileExistsError:  # another process made it just now
            return self.records(create=False)
        except OSError as error:  # full or read-only
            self._pass_over(_RECORDS, error)
            return -1
        return handle

    @property
    def is_private(self) -> bool:
        """Whether the user has this folder since there is none of all users."""
        return self.path == _OWN.format(uid=os.geteuid())

    @property
    def records_path(self) -> str:
        """Where the records lie."""
        return f"{os.path.realpath(self.path)}/{_RECORDS}"

    def _pass_over(self, name: str, error: OSError) -> None:
        remedy = "; remove it" if error.errno in _IN_THE_WAY else ""
        note = f"{self.path}/{name} cannot be used and is passed over: {error.strerror}{remedy}"
        if note not in self.notes:
            self.notes.append(note)


def lease_folder(environ: Mapping[str, str]) -> Folder:
    """Open the folder for leases, made if it is missing; raises `LeaseError`."""
    named = _named_folder(environ)
    if named is None:
        return system_folder() or _own_folder()
    _make(named, _OWN_FOLDER)
    return Folder(named)


def present_folder(environ: Mapping[str, str]) -> Folder | None:
    """Open the folder for leases for a look, which makes nothing; None where there is none yet."""
    named = _named_folder(environ)
    for path in (named,) if named else (_SYSTEM, _OWN.format(uid=os.geteuid())):
        if os.path.isdir(path):
            folder = Folder(path)
            if named or folder.identity_of_locks():
                return folder
            folder.close()
    return None


def _named_folder(environ: Mapping[str, str]) -> str | None:
    """Return the folder that the user named, which answers; None where none is named."""
    named = environ.get(VARIABLE)
    if not named:
        return None
    if not os.path.isabs(named):
        raise LeaseError(f"{VARIABLE}={named!a} is no absolute path", path=named)
    if may_hang(named):
        from probe_core.isolation.look import LOOK_S, answers

        if not answers(named):
            raise _unusable(named, f"its server did not answer within {LOOK_S:g} s")
    return named


def system_folder() -> Folder | None:
    """Open root's folder, which root makes; None where this user cannot lock anything in it."""
    folder = None
    try:
        if os.geteuid() == 0:
            _make(_SYSTEM, _SYSTEM_FOLDER)
        folder = Folder(_SYSTEM)
        os.close(folder.locks())
    except LeaseError:  # or /run is read-only
        if folder is not None:
            folder.close()
        return None
    handle = folder.records()
    if handle >= 0:
        os.close(handle)
    return folder


def _own_folder() -> Folder:
    path = _OWN.format(uid=os.geteuid())
    _make(path, _OWN_FOLDER)
    folder = Folder(path)
    status = os.fstat(folder.fd)
    if status.st_uid != os.geteuid():
        reason = f"it is of user {status.st_uid}"
    elif status.st_mode & _WRITABLE_BY_OTHERS:
        reason = f"others can write it (mode {status.st_mode & 0o7777:o})"
    else:
        return folder
    folder.close()
    raise _unusable(path, reason)


def _make(path: str, mode: int) -> None:
    """Make the folder with exactly this mode; one that is there keeps its own."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        return
    except OSError as error:
        raise _unusable(path, f"it cannot be made: {error.strerror}") from None
    fresh = Folder(path)
    try:
        os.fchmod(fresh.fd, mode)
    finally:
        fresh.close()


def _unusable(path: str, reason: str | None) -> LeaseError:
    return LeaseError(
        f"the lease folder {path} cannot be used: {reason}; name another one in {VARIABLE}",
        path=path,
    )
