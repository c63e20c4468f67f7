"""The program that runs on each node of a gather; its text is sent, so nothing is installed.

It runs the `probe` that is installed there where its version fits, else the archive that is sent on
its standard input, from a private folder, and prints what came of it in the marked lines of
`probe_cluster.gathering.lines`. One file of the standard library of Python 3.6, which is the
system's own on RHEL 8: a Python too old for probe-core still says so, with what the bus shows.

Its input is its lifeline: at the end of it, at a signal or at the deadline it ends `probe` and all
that this started. A second process, which the first only feeds, ends them and deletes the folder
when the first is killed.

An engine that gives its input to one node alone sends the archive in variables of the environment.
Arguments: the most seconds that it may live; ``lifeline`` or ``alone``, for an engine without an
input; the version of probe-core that would be sent, or ``-`` where none is; the node's name, or
``-``; the words that start `probe`.
"""

import base64
import errno
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import zlib

NEEDED = (3, 11)
"""The oldest Python that probe-core runs on."""

PREFIX = ".probe-cluster-"
"""What the name of the private folder begins with."""

_PIECE = 360
_MOST_OUT = 5 << 20
_MOST_ERR = 64 << 10
"""Bytes of the output that are kept, more than a report may have; of the errors, the last."""

HEAD = 74
"""Bytes before the archive: its size in eight hexadecimal digits, a blank, its SHA-256, a blank."""

PART = "PROBE_CORE_PART_"
"""What the names of the variables begin with. The values, joined by their numbers, are the same as
the input, written in base 85."""

_VERSION_S = 5.0
"""Seconds for an installed `probe` to print its version, from a network file system."""

_END_S = 1.0
"""Seconds between SIGTERM and SIGKILL."""

_DELETE_S = 10.0
"""Seconds in which the folder is deleted again while something still writes into it."""

_DRAIN_S = 0.3
"""Seconds for the pipes to close after `probe` ended, which a process that it left may hold."""

_NEW_S = 60.0
"""Seconds in which a folder may not have its lock yet."""

# Windows, where this is only read to be sent, lacks some.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGALRM")
    if hasattr(signal, name)
]


class Ended(Exception):
    """The lifeline, a signal or the deadline ends this program."""


class Voice:
    """Prints messages as marked lines of 512 bytes; each message is a stream of its own."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._agent = base64.b16encode(os.urandom(8)).decode()
        self._count = 0

    def send(self, kind: str, **facts: object) -> None:
        """Print one message, packed: text of `probe` may hold anything."""
        self._count += 1
        message = json.dumps(dict(facts, kind=kind, agent=self._agent))
        text = base64.b64encode(zlib.compress(message.encode())).decode()
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        lines = [f"{number} {piece}" for number, piece in enumerate(pieces)]
        lines.append(f"end packed {len(pieces)}")
        for line in lines:
            head = f"#probe-cluster {self._node} {self._agent}-{self._count} "
            # Each line is one write: an engine mixes the writes of nodes, not their bytes.
            _write_all(1, (head + line + "|").ljust(511).encode() + b"\n")


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


# The second process: it holds the folder's lock and the read end of a pipe.


class Warden:
    """The process that cleans up. What it must end and delete is told before it is there."""

    def __init__(self) -> None:
        reading, self._pipe = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._pipe)
                _ward(reading)
            finally:
                os._exit(0)
        os.close(reading)

    def tell(self, what: str, value: str) -> None:
        """Tell it of a ``group`` of processes or a ``folder``."""
        os.write(self._pipe, f"{what} {value}\n".encode())

    def close(self) -> None:
        """Have it clean up, and wait until it has."""
        os.close(self._pipe)
        while (
            os.waitpid(-1, 0)[0] != self._pid
        ):  # `probe` among them: one that ended is in its group
            pass


def _ward(pipe: int) -> None:
    """Wait for the end of the pipe; then end the groups and delete the folders it named."""
    os.setsid()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):  # or the connection would wait for this process
        os.dup2(null, file)
    text = b""
    while True:
        data = os.read(pipe, 4096)
        if not data:
            break
        text += data
    orders = [line.split(" ", 1) for line in text.decode().splitlines()]
    for what, value in orders:
        if what == "group":
            _end_group(int(value))
    for what, value in orders:
        if what == "folder":
            # A prober, in a session of its own, ends a moment after the probe, and may write
            # bytecode until then.
            until = time.monotonic() + _DELETE_S
            _delete(value)
            while os.path.lexists(value) and time.monotonic() < until:
                time.sleep(0.05)
                _delete(value)


def _end_group(group: int) -> None:
    until = time.monotonic() + _END_S
    number = int(signal.SIGTERM)
    while True:
        try:
            os.killpg(group, number)
        except OSError:  # nothing of it is left
            return
        if number == signal.SIGKILL:
            return
        time.sleep(0.02)
        # 0 asks whether it is still there.
        number = signal.SIGKILL if time.monotonic() > until else 0


def _delete(folder: str) -> None:
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            _quietly(os.unlink, os.path.join(path, name))
        for name in folders:
            _quietly(os.rmdir, os.path.join(path, name))
    _quietly(os.rmdir, folder)


def _quietly(call: object, path: str) -> None:
    try:
        call(path)  # type: ignore[operator]
    except OSError:
        pass


# The private folder.


def places(environ: "dict[str, str]") -> "list[str]":
    """Return where the folder may lie: memory first, which neither a full disk nor a read-only one
    stops, and which is empty after a crash.
    """
    # Root runs no plugin below /dev, which packages never are in; /run is root's own memory.
    memory = ["/run"] if os.geteuid() == 0 else ["/dev/shm"]
    disks = [environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"]
    named = [environ.get("XDG_RUNTIME_DIR"), *memory, *disks]
    ordered = []  # type: list[str]
    for place in named:
        if place and os.path.isabs(place) and place not in ordered and os.path.isdir(place):
            ordered.append(place)
    return ordered


def unpacked(data: bytes, environ: "dict[str, str]", warden: Warden) -> str:
    """Return the folder with the archive's files. Raises `OSError` where no place takes them."""
    os.umask(0o077)
    content = zlib.decompress(data, 31)
    problems = []
    for place in places(environ):
        sweep(place)
        name = PREFIX + base64.b16encode(os.urandom(8)).decode()
        folder = os.path.join(place, name)
        try:
            os.mkdir(folder, 0o700)
            warden.tell("folder", folder)
            _lock(folder)
            _extract(content, folder)
            return folder
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
            _delete(folder)
    raise OSError(errno.ENOSPC, "; ".join(problems) or "no folder for temporary files is there")


def _extract(content: bytes, folder: str) -> None:
    """Write the files of a tar file (ustar, see tar(5)). `tarfile` takes a quarter of a second."""
    at = 0
    made = set()  # type: set[str]
    while at < len(content) and content[at]:
        name, above = content[at : at + 100], content[at + 345 : at + 500]
        parts = [part.rstrip(b"\0").decode() for part in (above, name)]
        path = os.path.join(folder, *filter(None, parts))
        size = int(content[at + 124 : at + 135], 8)
        parent = os.path.dirname(path)
        if parent not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _write_all(file, content[at + 512 : at + 512 + size])
        finally:
            os.close(file)
        at += 512 + size + -size % 512


def _lock(folder: str) -> bool:
    """Lock a folder as long as this process lives; return whether nobody else has the lock."""
    import fcntl

    file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    return True


def sweep(place: str) -> None:
    """Delete the folders of this user's runs of which no process is left."""
    try:
        names = [name for name in os.listdir(place) if name.startswith(PREFIX)]
    except OSError:
        return
    for name in names[:64]:
        folder = os.path.join(place, name)
        try:
            status = os.lstat(folder)
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _NEW_S:
                continue
            if _lock(folder):
                _delete(folder)
        except OSError:
            continue


# What runs.


def found(command: "list[str]", environ: "dict[str, str]") -> "str | None":
    """Return the path of the command; None where there is none."""
    name = command[0]
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    for path in [name] if os.sep in name else [os.path.join(folder, name) for folder in folders]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def installed_version(path: str) -> str:
    """Return the version that a `probe` prints; a sentence in brackets where it prints none."""
    try:
        with open(os.devnull) as null:
            text = subprocess.check_output(
                [path, "--version"], stdin=null, stderr=subprocess.STDOUT, timeout=_VERSION_S
            )
    except subprocess.TimeoutExpired:
        return f"(it printed no version within {_VERSION_S:g} s)"
    except (OSError, subprocess.CalledProcessError):
        return "(it printed no version)"
    words = text.decode("utf-8", "replace").split()
    # A wrapper may print a line of its own before.
    after = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "probe-core"]
    return after[-1] if after else "(it printed no version)"


def fits(version: str, wanted: str) -> bool:
    """Return whether two versions have one interface: the first two numbers are the same."""
    return version.split(".")[:2] == wanted.split(".")[:2]


def parts() -> "list[str]":
    """Return the variables with the archive, and take them out of the environment."""
    values = []  # type: list[str]
    while True:
        value = os.environ.pop(f"{PART}{len(values)}", None)
        if value is None:
            return values
        values.append(value)


def received(values: "list[str]") -> bytes:
    """Return the archive, out of variables or of the input. Raises `Ended`, and `ValueError` for
    another one.
    """
    if values:
        text = base64.b85decode("".join(values))
        head, data = text[:HEAD].split(), text[HEAD:]
    else:
        head = _exactly(HEAD).split()
        data = _exactly(int(head[0], 16))
    if hashlib.sha256(data).hexdigest() != head[1].decode():
        raise ValueError("the probe that was sent arrived damaged")
    return data


def _exactly(size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = os.read(0, min(size, 1 << 16))
        if not piece:
            raise Ended
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def basics(root: str = "") -> "dict[str, object]":
    """Return what /sys and /proc say without probe-core: display devices and accelerators by their
    ids, memory in bytes; None is unknown.
    """
    devices = []
    folder = root + "/sys/bus/pci/devices"
    try:
        addresses = sorted(os.listdir(folder))  # type: list[str] | None
    except OSError:
        addresses = None
    for address in addresses or ():
        facts = [
            _line(os.path.join(folder, address, name)) for name in ("class", "vendor", "device")
        ]
        # PCI's base classes: 03 is a display controller, 12 a processing accelerator.
        if (facts[0] or "")[2:4] in ("03", "12"):
            ids = [(fact or "")[2:] for fact in facts]
            devices.append({"address": address, "class": ids[0], "id": ":".join(ids[1:])})
    memory = None
    for line in (_line(root + "/proc/meminfo", 65536) or "").splitlines():
        if line.startswith("MemTotal:"):
            memory = int(line.split()[1]) << 10
    system = os.uname()
    return {
        "pci": None if addresses is None else devices,
        "memory": memory,
        "kernel": system.release,
        "arch": system.machine,
    }


def _line(path: str, size: int = 256) -> "str | None":
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(size).strip()
    except OSError:
        return None


class Run:
    """One run of `probe --json`, watched with the lifeline."""

    def __init__(self, words: "list[str]", warden: Warden) -> None:
        null = os.open(os.devnull, os.O_RDONLY)
        self._process = subprocess.Popen(
            [*words, "--json"], stdin=null, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd="/", start_new_session=True,
        )  # fmt: skip
        os.close(null)
        warden.tell("group", str(self._process.pid))
        self.out = b""
        self.err = b""

    def wait(self, until: float, lifeline: bool) -> "int | None":
        """Return its status once its pipes are closed; None at the deadline. Raises `Ended`."""
        outputs = [self._process.stdout.fileno(), self._process.stderr.fileno()]  # type: ignore[union-attr]
        files = outputs + ([0] if lifeline else [])
        pieces = {file: [] for file in outputs}  # type: dict[int, list[bytes]]
        size = 0
        ended_at = None
        while set(files) & set(outputs):
            if ended_at is None and self._process.poll() is not None:
                ended_at = time.monotonic() + _DRAIN_S
            now = time.monotonic()
            if ended_at is not None and now > ended_at:
                break
            if now > until:
                return None
            for file in select.select(files, [], [], min(0.1, until - now))[0]:
                data = os.read(file, 1 << 16)
                if file == 0:
                    if not data:
                        raise Ended
                elif data:
                    if size < _MOST_OUT:
                        pieces[file].append(data)
                        size += len(data)
                else:
                    files.remove(file)
        self.out, self.err = (b"".join(pieces[file]) for file in outputs)
        self.err = self.err[-_MOST_ERR:]
        while self._process.poll() is None:
            if time.monotonic() > until:
                return None
            time.sleep(0.005)
        return self._process.returncode


def main(arguments: "list[str]") -> None:
    """Answer once, and leave nothing behind."""
    seconds, lifeline, version, node = arguments[:4]
    values = parts()
    until = time.monotonic() + float(seconds)
    name = node if node != "-" else os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    voice = Voice(name)
    for number in _SIGNALS:
        signal.signal(number, _end)
    # Where nobody reads what is printed here, a write may wait for ever.
    signal.alarm(int(float(seconds)) + 5)
    warden = Warden()
    try:
        voice.send("start", nodelist=os.environ.get("SLURM_STEP_NODELIST", ""))
        facts = {"python": sys.version.split()[0]}  # type: dict[str, object]
        words = _words(voice, warden, facts, values, version, arguments[4:])
        if words:
            _answer(voice, facts, Run(words, warden), until, lifeline == "lifeline")
    except Ended:
        pass
    except (ImportError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        voice.send("failed", reason=reason)
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        warden.close()


def _end(number: int, frame: object) -> None:
    raise Ended


def _words(
    voice: Voice, warden: Warden, facts: "dict[str, object]", values: "list[str]", version: str,
    command: "list[str]",
) -> "list[str]":  # fmt: skip
    """Return what starts a `probe`; nothing where none can start, which is said then."""
    path = found(command, dict(os.environ))
    if path is not None and version != "-":
        facts["installed"] = installed_version(path)
    if path is not None and (version == "-" or fits(str(facts["installed"]), version)):
        facts["sent"] = False
        return [path, *command[1:]]
    if version == "-":
        voice.send("absent", **facts)
    elif sys.version_info < NEEDED:
        voice.send("old", basics=basics(), **facts)
    else:
        if not values:
            voice.send("need")
        data = received(values)
        facts["sent"] = True
        return [sys.executable, "-I", "-S", unpacked(data, dict(os.environ), warden)]
    return []


def _answer(
    voice: Voice, facts: "dict[str, object]", run: Run, until: float, lifeline: bool
) -> None:
    status = run.wait(until, lifeline)
    if status is None:
        voice.send("late", **facts)
        return
    texts = {"out": run.out.decode("utf-8", "replace"), "err": run.err.decode("utf-8", "replace")}
    voice.send("answer", status=status, **texts, **facts)


if __name__ == "__main__":
    main(sys.argv[1:])
