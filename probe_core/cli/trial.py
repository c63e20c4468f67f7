"""Opens the leased devices as the command would, before it starts: in a child, under a deadline.

The child is the command's own Python with what is installed for it, so that a CPU-only wheel or a
wheel without code for the device is seen; for any other command, the vendor's runtime library.
"""

from __future__ import annotations

import os
import sys

from probe_core.selection.interpreter import installed, interpreter_of, site_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from probe_core.leasing import Lease
    from probe_core.model.document import DeviceDoc

TRIAL_S = 60.0
"""Seconds until devices that did not open count as broken: importing torch from a cold disk takes
ten, the first call without nvidia-persistenced up to thirty."""

_KILL_S = 0.5
"""Seconds after the kill until a child counts as stuck in the kernel, and is left to its parent."""

_FRAMEWORKS = ("torch", "jax", "tinygrad")
_SCRIPT_BYTES = 1 << 20
_LAST_LINES = 2000
"""Bytes of the child's output that are read: the cause stands at the end of a traceback."""

_MARK = "probe-trial:"


def try_devices(
    lease: Lease, path: str, command: Sequence[str], *, deadline: float = TRIAL_S
) -> str | None:
    """Return why the command could not use its devices, in a sentence; None where it can."""
    framework, interpreter = _framework(path, command, lease.environ)
    vendors = {device["vendor"] for device in lease.devices}
    how = framework or "runtime"
    arguments = [interpreter, os.path.join(os.path.dirname(__file__), "trial_child.py")]
    arguments += [how, str(len(lease.devices)), ",".join(sorted(v or "" for v in vendors))]
    status, output_text = _run(arguments, lease.environ, deadline)
    if status == 0:
        return None
    subject = f"{framework} of {interpreter}" if framework else "the runtime's library"
    failure = f"{subject} cannot use {', '.join(lease.ids)}"
    if status is None:
        return f"{failure}: it did not answer within {deadline:g} s{_advice(lease.devices)}"
    return f"{failure}: {_cause(output_text, status)}{_advice(lease.devices)}"


def _framework(
    path: str, command: Sequence[str], environ: dict[str, str]
) -> tuple[str | None, str]:
    """Return the framework that a command would use, and the Python that runs it.

    What its script imports counts; where that cannot be read, what is installed, in our order.
    """
    interpreter = interpreter_of(command, environ)
    if interpreter is None or not _runs_python(path, command, interpreter):
        return None, sys.executable
    present = installed(_FRAMEWORKS, site_folders(interpreter, environ))
    names = [name for name in _FRAMEWORKS if name in present or _is_folder(name, environ)]
    text = _script(command)
    named = [name for name in names if f"import {name}" in text or f"from {name}" in text]
    chosen = next(iter(named or names), None)
    return chosen, interpreter if chosen else sys.executable


def _is_folder(name: str, environ: dict[str, str]) -> bool:
    """Return whether a package lies on PYTHONPATH, where no distribution names it."""
    folders = environ.get("PYTHONPATH", "").split(os.pathsep)
    return any(os.path.isfile(os.path.join(f, name, "__init__.py")) for f in folders if f)


def _runs_python(path: str, command: Sequence[str], interpreter: str) -> bool:
    return (
        interpreter_of([path], {"PATH": ""}) is not None
        or any(argument.endswith(".py") for argument in command)
        or os.path.dirname(path) == os.path.dirname(interpreter)
    )


def _script(command: Sequence[str]) -> str:
    """Return the text that a command line names as Python: a script, or the word behind -c."""
    for at, argument in enumerate(command[1:], 1):
        if argument == "-c" and at + 1 < len(command):
            return command[at + 1]
        if argument.endswith(".py"):
            try:
                with open(argument, "rb") as file:
                    return file.read(_SCRIPT_BYTES).decode("utf-8", "replace")
            except OSError:
                return ""
    return ""


def _run(
    arguments: Sequence[str], environ: dict[str, str], deadline: float
) -> tuple[int | None, str]:
    """Run the child; return its status and the end of its output; None if it did not end."""
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen(
                arguments,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            return 1, f"{_MARK} {arguments[0]}: {error.strerror}"
        status = _wait(child, deadline)
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - _LAST_LINES))
        return status, output.read().decode("utf-8", "replace")


def _wait(child: subprocess.Popen[bytes], deadline: float) -> int | None:
    import signal
    import subprocess

    try:
        return child.wait(deadline)
    except subprocess.TimeoutExpired:
        pass
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(_KILL_S)
    except subprocess.TimeoutExpired:
        child.returncode = -signal.SIGKILL  # in D state no signal ends it, and waiting would hang
    return None


def _cause(output_text: str, status: int) -> str:
    lines = [line.strip() for line in output_text.splitlines() if line.strip()]
    marked = [line.removeprefix(_MARK).strip() for line in lines if line.startswith(_MARK)]
    if marked:
        return marked[-1]
    if status < 0:
        return f"it was ended by signal {-status}"
    return lines[-1] if lines else f"it ended with status {status}"


def _advice(devices: Sequence[DeviceDoc]) -> str:
    """Return the first step of readiness that is not in order, where the report knows one."""
    for device in devices:
        for step in (device.get("readiness") or {}).get("steps", ()):
            if step["status"] == "broken":
                fact = step["evidence"] or step["code"] or ""
                return f"; {device['id']}: {step['step']}: {fact}"
    return ""
