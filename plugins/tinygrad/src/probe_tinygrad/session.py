"""Queries tinygrad in a process of its own, again without a backend that crashed or hung it.

A thread reads the pipe, because that works on every system and never waits on a stuck process. The
process has the user's choices in its environment, without what makes it unsafe. Variables are
allowed by name, not forbidden by name: tinygrad reads over a hundred, and a common one such as
``DEBUG=true`` keeps it from being imported at all.
"""

from __future__ import annotations

import sys
from time import monotonic

from probe_tinygrad.choice import KERNEL_INTERFACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_tinygrad.messages import About, Answer, Job, Line


_CODE = "import sys;sys.path[:]={paths!r};from probe_tinygrad.child import main;main()"
# Seconds. Importing tinygrad and opening a backend took 0.9 to 1.8 (measured).
_WORTH_ANOTHER = 1.0
# Seconds. A killed process ends at once unless it is stuck in a driver, and then never.
_END_WAIT = 0.5


class Answers:
    """What tinygrad reports: about itself, and per backend; `problem` when it does not start."""

    def __init__(self) -> None:
        self.about: About | None = None
        self.backends: dict[str, Answer] = {}
        self.problem: str | None = None


def ask(
    environ: Mapping[str, str], also: Sequence[str], refused: Mapping[str, str], seconds: float
) -> Answers:
    """Ask about all backends in at most `seconds`.

    `also` are backends to ask besides those that tinygrad tries by itself; `refused` maps those
    not to ask to the reason. A backend that crashes or hangs the process gets that as its error,
    and the next process goes on with the others.
    """
    answers, end = Answers(), monotonic() + seconds
    for name, reason in refused.items():
        answers.backends[name] = {"opens": None, "error": reason}
    while not _one_process(answers, environ, also, end):
        pass
    return answers


def _one_process(
    answers: Answers, environ: Mapping[str, str], also: Sequence[str], end: float
) -> bool:
    """Run one process; True when nothing is left to ask."""
    child = _Child(environ, {"also": list(also), "skip": list(answers.backends)})
    trying: str | None = None
    try:
        while True:
            # Half of the time: one hanging backend must leave some for the next ones.
            line = child.next_line(max(0.0, (end - monotonic()) / 2))
            event = line.get("event")
            if event == "hello":
                answers.about = line["about"]
            elif event == "try":
                trying = line["backend"]
            elif event == "tried":
                answers.backends[line["backend"]] = line["answer"]
                trying = None
            elif event == "end":
                return True
            else:
                return _broken(answers, trying, line.get("error", "no error was given"), end)
    finally:
        child.kill()


def _broken(answers: Answers, trying: str | None, error: str, end: float) -> bool:
    """Note which backend broke the process; True when asking again is pointless."""
    if trying is None:
        answers.problem = error
        return True
    answers.backends[trying] = {"opens": False, "broke": True, "error": error}
    if end - monotonic() < _WORTH_ANOTHER:
        answers.problem = "the deadline left no time to ask its other backends"
        return True
    return False


class _Child:
    """The process, as lines of JSON; a timeout and an end are lines too."""

    def __init__(self, environ: Mapping[str, str], job: Job) -> None:
        import json
        import subprocess
        from queue import SimpleQueue

        self._loads: Callable[[str], Line] = json.loads
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._process = subprocess.Popen(
            [*_command(), json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(environ),
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        import threading

        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        pipe = self._process.stdout
        if pipe is not None:
            with pipe:
                for line in pipe:
                    self._lines.put(line)
        self._lines.put(None)

    def next_line(self, seconds: float) -> Line:
        """Return the next line within `seconds`; else a "failed" one with the error."""
        from queue import Empty

        try:
            text = self._lines.get(timeout=seconds)
        except Empty:
            return {"event": "failed", "error": f"it did not answer within {seconds:.1f} s"}
        if text is None:
            return {"event": "failed", "error": f"its process {self._ending()}"}
        return self._loads(text)

    def _ending(self) -> str:
        import subprocess

        try:
            status = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "closed its pipe and stayed"
        return f"died of signal {-status}" if status < 0 else f"ended with status {status}"

    def kill(self) -> None:
        """End the process, and wait for it a bounded time: one stuck in a driver cannot end."""
        import subprocess

        self._process.kill()
        try:
            self._process.wait(_END_WAIT)
        except subprocess.TimeoutExpired:
            pass  # the core ends this prober's whole session, and reports what stays
        self._reader.join(_END_WAIT)


def _command() -> list[str]:
    flags = ["-I", "-S"] + (["-B"] if sys.dont_write_bytecode else [])
    return [sys.executable, *flags, "-c", _CODE.format(paths=list(sys.path))]


# The environment of tinygrad's process.

_ALLOWED = frozenset(
    # the loader's and the compiler's
    "PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH CONDA_PREFIX CC SDKROOT "
    "LANG LC_ALL SYSTEMROOT PATHEXT USER LOGNAME USERNAME "
    # which devices and which renderer tinygrad takes
    "VISIBLE_DEVICES HCQ_VISIBLE_DEVICES AMD_CC CPU_CC CUDA_CC NV_CC QCOM_CC CPU_LLVM CPU_LVP "
    "AMD_LLVM CUDA_PTX NV_PTX NV_NAK PTX WEBGPU_BACKEND "
    # where it looks for libraries
    "CUDA_PATH ROCM_PATH OPENCL_PATH WEBGPU_PATH LLVM_PATH CLANG_PATH".split()
)
_ALLOWED_PREFIXES = ("CUDA_", "HIP_", "ROCR_", "HSA_", "NVIDIA_", "OCL_", "POCL_", "GPU_DEVICE_")


def child_environ(environ: Mapping[str, str], folder: str, dev: str | None) -> dict[str, str]:
    """Return the environment for asking tinygrad; everything it stores goes below `folder`.

    `dev` is the value of ``DEV`` for versions whose ``DEV`` holds targets. Older ones choose the
    interface by variables of their own, which the newer refuse; None sets those.
    """
    allowed = {
        name: value
        for name, value in environ.items()
        if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }
    private = dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"), folder)
    # CACHELEVEL=0 leaves the database closed; the path is for what would open it all the same.
    private |= {"CACHELEVEL": "0", "CACHEDB": f"{folder}/cache.db"}
    private |= {"CUDA_CACHE_PATH": folder, "POCL_CACHE_DIR": folder}
    if dev is not None:
        return allowed | private | {"DEV": dev}
    return allowed | private | {f"{name}_IFACE": value for name, value in KERNEL_INTERFACES.items()}
