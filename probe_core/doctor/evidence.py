"""What a bundle holds beyond a recording: the files that the doctor's checks alone read.

A recording has what readiness judges by. These lie in /etc and /var or hold more than a stranger
should see, so of each the lines are kept by which a check decides, without addresses and names.
"""

from __future__ import annotations

from probe_core.doctor.checks.boards import disabled_nodes
from probe_core.doctor.checks.containers import CDI_FOLDERS, LIBCUDA, MOUNTS, driver_versions
from probe_core.doctor.checks.nvidia import SERVER, SUSPENDS, TOKENS
from probe_core.doctor.checks.rocm import DRIVER, ROCM
from probe_core.doctor.checks.wsl import DRIVERS, FOLDER
from probe_core.doctor.kernel_text import kernel_log
from probe_core.model.kinds import ACCELERATORS
from probe_core.readiness.exact import OPERATOR
from probe_core.readiness.scene import folder_of
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.taker import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.doctor.check import Request
    from probe_core.machine import Machine

__all__ = ["Evidence", "evidence"]

_TEXTS = (SUSPENDS, ROCM, DRIVER)
"""Small texts that hold nobody's name."""

_LOG_MARKS = ("NVRM: Xid", "GPU reset", "IO_PAGE_FAULT", "fault addr", "GuC", "wedged")
_MAX_LINES = 200
_MAX_NAMES = 64
_LOG = "/var/log/dmesg"
_LOG_HEAD = "Linux version (of the log the lines about GPUs alone)\n"


class Evidence:
    """The files of one machine that go into a bundle, and the links on the ways to them."""

    __slots__ = ("files", "links")

    def __init__(self, files: dict[str, bytes], links: dict[str, str]) -> None:
        self.files = files
        self.links = links


def evidence(request: Request) -> Evidence:
    """Return what the doctor's checks decide by on this machine, beside its recording."""
    machine = request.machine
    taker = Taker(machine, Anonymiser())
    for path, content in _files(request):
        taker.put_at(path, content)
    mounts = machine.read(MOUNTS)
    if mounts:
        # /proc/self is a link to the number of the process that looks.
        lines = [line for line in mounts.splitlines() if " /dev/shm " in line]
        taker.put(MOUNTS, _joined(lines))
    log = kernel_log(request)
    if log.text is not None:
        lines = [line for line in log.text.splitlines() if any(m in line for m in _LOG_MARKS)]
        short = [line[:400] for line in lines[-_MAX_LINES:]]
        taker.put(_LOG, _LOG_HEAD.encode() + _joined(short))
    return Evidence(taker.files, taker.links)


def _files(request: Request) -> Iterator[tuple[str, bytes]]:
    machine = request.machine
    for path in _TEXTS:
        if text := machine.read(path, 4096):
            yield path, f"{text}\n".encode()
    yield from _licence(machine)
    yield from _specifications(machine)
    for name in machine.listdir(FOLDER)[:_MAX_NAMES]:
        yield f"{FOLDER}/{name}", b""
    for name in machine.listdir(DRIVERS)[:_MAX_NAMES]:
        if name.startswith("nv"):
            yield f"{DRIVERS}/{name}/driver.inf", b""
    if machine.exists(OPERATOR):
        yield f"{OPERATOR}/there", b""
    for path in disabled_nodes(machine):
        yield f"{path}/status", b"disabled"
    for device in request.report["devices"]:
        folder = folder_of(device) if device["kind"] in ACCELERATORS else None
        # The counter of a device that may sleep is not read: that would wake it.
        if folder and device["power_state"] in ("active", None):
            load = machine.read_int(f"{folder}/gpu_busy_percent")
            if load is not None:
                yield f"{folder}/gpu_busy_percent", f"{load}\n".encode()


def _licence(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield that a server is named, not which, and that there is a token."""
    lines = (machine.read(SERVER) or "").splitlines()
    named = any(
        line.strip().startswith("ServerAddress=") and line.partition("=")[2].strip()
        for line in lines
    )
    if lines:
        yield SERVER, b"ServerAddress=server\n" if named else b"ServerAddress=\n"
    if any(name.endswith(".tok") for name in machine.listdir(TOKENS)):
        yield f"{TOKENS}/client.tok", b""


def _specifications(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the versions of libcuda that CDI specifications name."""
    number = 0
    for folder in CDI_FOLDERS:
        for name in machine.listdir(folder)[:_MAX_NAMES]:
            text = machine.read(f"{folder}/{name}") if name.endswith((".yaml", ".json")) else None
            if text and "nvidia.com/gpu" in text:
                versions = sorted(set(driver_versions(text)))
                lines = ["kind: nvidia.com/gpu", *(f"{LIBCUDA}{version}" for version in versions)]
                # The name of a file in /etc may hold a host's.
                yield f"{folder}/nvidia{number or ''}.yaml", _joined(lines)
                number += 1


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
