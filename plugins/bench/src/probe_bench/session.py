"""One measuring child, from its start to its end: its lines under a deadline, nothing left behind.

A child that is stuck in the kernel cannot be ended: it is abandoned, and that is said. Its
environment keeps tinygrad to the kernel's drivers, for other interfaces take a PCI device from its
driver. Since 0.13 ``DEV`` holds targets, ``interface:indices+device:renderer``; before, each
backend had a variable for its interface, which later versions refuse (tinygrad/helpers.py, class
Target).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from queue import Empty, SimpleQueue
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from probe_bench.tasks import Job, Line


DEADLINE_S = 30.0
"""Seconds that one device may take, start and compilers included."""

_TICK_S = 0.25
"""Seconds between two looks at the sensors: drivers average power over one second."""

_END_S = 2.0
_CODE = "import sys; sys.path[:] = {paths!r}; from probe_bench.child import main; main()"

_ALLOWED = frozenset(
    "PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH CONDA_PREFIX CC SDKROOT "
    "LANG LC_ALL SYSTEMROOT PATHEXT USER LOGNAME USERNAME DEV VISIBLE_DEVICES HCQ_VISIBLE_DEVICES "
    "ROCM_PATH OPENCL_PATH LLVM_PATH CLANG_PATH NVIDIA_VISIBLE_DEVICES ZE_AFFINITY_MASK".split()
)
_PREFIXES = ("PROBE_", "CUDA_", "HIP_", "ROCR_", "HSA_", "OCL_", "OPENBLAS_", "OMP_", "MKL_")


def child_environ(
    environ: Mapping[str, str], folder: str, backends: list[str], version: str | None
) -> dict[str, str]:
    """Return the child's environment: what it keeps lies in `folder`.

    Allowed by name: tinygrad reads over a hundred variables, and ``DEBUG=true`` stops its import.
    The variables of a lease are among them. `version` is tinygrad's.
    """
    own = {
        name: value
        for name, value in environ.items()
        if name in _ALLOWED or name.startswith(_PREFIXES)
    }
    own |= dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"), folder)
    own |= {"CACHEDB": os.path.join(folder, "tinygrad.db"), "CUDA_CACHE_PATH": folder}
    # On a CPU the default device is never another; on a GPU the lease's indices count.
    is_host = backends[:1] in (["CPU"], ["PYTHON"])
    return own | variables(version, backends[0] if is_host else own.pop("DEV", ""))


def measure(
    job: Job,
    environ: Mapping[str, str],
    tick: Callable[[int], None],
    deadline_s: float = DEADLINE_S,
) -> tuple[list[Line], str | None]:
    """Run a job; return its lines, and why it ended early (None: it did not).

    `tick` is called with the place of the task that runs, a few times a second.
    """
    child = _Child(job, environ)
    try:
        lines, reason = _lines(child, tick, monotonic() + deadline_s, deadline_s)
    except BaseException:  # Ctrl-C, too, leaves nothing running
        child.end()
        raise
    if not child.end():
        reason = f"{reason or 'it has answered'}; it is stuck in the kernel and was abandoned"
    return lines, reason


def _lines(
    child: _Child, tick: Callable[[int], None], end: float, deadline_s: float
) -> tuple[list[Line], str | None]:
    lines: list[Line] = []
    place = 0
    while monotonic() < end:
        line = child.next_line(min(_TICK_S, max(0.0, end - monotonic())))
        if line is None:
            tick(place)
        elif line["event"] == "end":
            return lines, None
        elif line["event"] == "gone":
            return lines, line.get("reason")
        else:
            place = line.get("task", place)
            lines.append(line)
            tick(place)
    return lines, f"it did not end within {deadline_s:g} s"


class _Child:
    """The process, in a session of its own so that its compilers end with it."""

    def __init__(self, job: Job, environ: Mapping[str, str]) -> None:
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        code = _CODE.format(paths=list(sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", code, json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            cwd=job["folder"],
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        pipe = self._process.stdout
        for line in pipe or ():
            self._queue.put(line.decode("ascii", "replace"))
        self._queue.put(None)

    def next_line(self, seconds: float) -> Line | None:
        """Return the next line; None where none came in time, ``gone`` at the end."""
        try:
            text = self._queue.get(timeout=seconds)
        except Empty:
            return None
        if text is None:
            return {"event": "gone", "reason": f"its process {self._ending()}"}
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict) or not isinstance(line.get("event"), str):
            return {"event": "gone", "reason": "it wrote what is no answer"}
        answer: Line = line  # type: ignore[assignment]  # its values are checked where they are used
        return answer

    def _ending(self) -> str:
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return "closed its pipe and stayed"
        return f"died of signal {-status}" if status < 0 else f"ended with status {status}"

    def end(self) -> bool:
        """End the process and its group; return whether that took a bounded time."""
        _kill(self._process)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return False  # its pipes stay open with it
        self._reader.join(_END_S)
        if not self._reader.is_alive():
            for pipe in filter(None, (self._process.stdin, self._process.stdout)):
                pipe.close()
        return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        if hasattr(os, "killpg"):
            # A group keeps its number while a compiler of it lives, also after its leader.
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        process.kill()


# How tinygrad is kept to the kernel's drivers.

KERNEL_INTERFACES = {"NV": "NVK", "AMD": "KFD"}
"""Backend to its interface that goes through the kernel's driver."""

_TARGETS_SINCE = (0, 13)


def variables(version: str | None, dev: str) -> dict[str, str]:
    """Return what to set for a version of tinygrad; `dev` is the ``DEV`` that a lease asks for."""
    if _release(version) >= _TARGETS_SINCE:
        return {"DEV": bound(dev)}
    own = {f"{name}_IFACE": value for name, value in KERNEL_INTERFACES.items()}
    return {**own, "DEV": dev} if dev else own


def bound(dev: str) -> str:
    """Return a ``DEV`` whose NV and AMD go through the kernel's driver, indices kept."""
    targets = [target for target in dev.split(";") if target]
    parts = [_bound(name, targets) for name in KERNEL_INTERFACES]
    others = [target for target in targets if _device(target) not in ("", *KERNEL_INTERFACES)]
    return ";".join([*others, *parts])


def _bound(name: str, targets: list[str]) -> str:
    """Return the target of a backend: one without a device is meant for each."""
    own = next((target for target in targets if _device(target) in (name, "")), "")
    front, _, back = own.rpartition("+")
    indices = front.rpartition(":")[2] if ":" in front else ""
    suffix = back.partition(":")[2]
    shown = f"{KERNEL_INTERFACES[name]}:{indices}" if indices else KERNEL_INTERFACES[name]
    return f"{shown}+{name}:{suffix}" if suffix else f"{shown}+{name}"


def _device(target: str) -> str:
    return target.rpartition("+")[2].partition(":")[0].upper()


def _release(version: str | None) -> tuple[int, int]:
    """Return major and minor number; of an unknown version those of the newest."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return _TARGETS_SINCE
    return int(parts[0]), int(parts[1])
