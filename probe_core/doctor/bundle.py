"""What a bundle holds beyond a recording: the files that the doctor's checks alone read.

A recording has what readiness judges by. These lie in /etc and /var or hold more than a stranger
should see, so of each the lines are kept by which a check decides, without addresses and names.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile

from probe_core.doctor.check import Request
from probe_core.doctor.checks.boards import disabled_nodes
from probe_core.doctor.checks.containers import LIBCUDA, MOUNTS, driver_versions, specifications
from probe_core.doctor.checks.drivers import DRIVER, ROCM, SERVER, SUSPENDS, TOKENS
from probe_core.doctor.checks.systems import DRIVERS, FOLDER
from probe_core.doctor.examine import examine
from probe_core.doctor.log import ADAPTER, FIRMWARE, LOADED_ANEW, kernel_log
from probe_core.model.ids import ACCELERATORS
from probe_core.readiness.fixes import OPERATOR
from probe_core.readiness.scene import folder_of
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.document import ABOUT_PATH, ANSWERS_PATH, Recording
from probe_core.recording.drivers import joined
from probe_core.recording.gather import Taker
from probe_core.recording.opening import machine_of, unpack
from probe_core.recording.paths import BadRecording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from probe_core.doctor.document import DoctorDoc
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc


_TEXTS = (SUSPENDS, ROCM, DRIVER)
"""Small texts that hold nobody's name."""

_LOG_MARKS = (
    *("NVRM: Xid", "GPU reset", "IO_PAGE_FAULT", "fault addr", "GuC", "wedged"),
    *("NVRM: The NVIDIA GPU", "fallen off the bus", "device lost from bus"),
    *("load failed: status", "with non-zero usage count!"),
    *(ADAPTER, LOADED_ANEW, FIRMWARE),
)
_MAX_LINES = 200
_MAX_NAMES = 64
_LOG = "/var/log/dmesg"
_LOG_HEAD = "Linux version (of the log the lines about GPUs alone)\n"


def evidence(request: Request) -> Taker:
    """Return what the doctor's checks decide by on this machine, beside its recording: its files,
    and the links on the ways to them.
    """
    machine = request.machine
    taker = Taker(machine, Anonymiser())
    for path, content in _files(request):
        taker.put_at(path, content)
    mounts = machine.read(MOUNTS)
    if mounts:
        # /proc/self is a link to the number of the process that looks.
        lines = [line for line in mounts.splitlines() if " /dev/shm " in line]
        taker.put(MOUNTS, joined(lines))
    log = kernel_log(request)
    if log.text is not None:
        lines = [line for line in log.text.splitlines() if any(m in line for m in _LOG_MARKS)]
        short = [line[:400] for line in lines[-_MAX_LINES:]]
        taker.put(_LOG, _LOG_HEAD.encode() + joined(short))
    return taker


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
    if request.scene.wsl and request.scene.shows_nodes:
        # That there is a /dev: without one nobody knows whether /dev/dxg is missing.
        yield "/dev/null", b""
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
    for number, (path, text) in enumerate(specifications(machine)):
        versions = sorted(set(driver_versions(text)))
        lines = ["kind: nvidia.com/gpu", *(f"{LIBCUDA}{version}" for version in versions)]
        # The name of a file in /etc may hold a host's.
        yield f"{path.rpartition('/')[0]}/nvidia{number or ''}.yaml", joined(lines)


# One archive for a question: the machine's files, the report, the doctor's document, versions.
#
# The report and the document in it are made anew from the disguised recording, so that they hold
# what the recording holds and no more, and a stranger sees what the archive gives him.

_OWN = "/probe"
"""Folder of the documents in the archive, beside the machine's own /proc and /sys."""


class Bundle:
    """The archive's members, and the doctor's document that the archive gives."""

    def __init__(self, recording: Recording, document: DoctorDoc, own: dict[str, bytes]) -> None:
        self.recording = recording
        self.document = document
        about = json.dumps(recording.about(), indent=1).encode()
        answers = json.dumps(recording.answers, indent=1).encode()
        self.members = {ABOUT_PATH: about, ANSWERS_PATH: answers, **own, **recording.files}

    def archive(self) -> bytes:
        """Return the tar archive, packed with gzip."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for path, content in self.members.items():
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            for path, target in self.recording.links.items():
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                archive.addfile(entry)
        return buffer.getvalue()


def with_evidence(recording: Recording, request: Request) -> Recording:
    """Return a recording with what the checks read beyond it on the same machine.

    What the recording has already stays as it is: its probers' declarations mask it.
    """
    extra = evidence(request)
    files = {**extra.files, **recording.files}
    links = {**extra.links, **recording.links}
    files = {path: content for path, content in files.items() if path not in links}
    about = recording.about()
    about["answers"] = recording.answers
    try:
        return Recording(files, links, about)
    except BadRecording:
        return recording  # two names of one place: the recording alone is sound


def make_bundle(
    recording: Recording,
    folder: str,
    probe: Callable[[Machine], ReportDoc],
) -> Bundle:
    """Return the bundle of a recording, which is unpacked in `folder`; raises `OSError`."""
    machine = machine_of(unpack(recording, folder), recording)
    report = probe(machine)
    document = examine(Request(machine, report))
    documents = {"report": report, "doctor": document, "versions": _versions(report)}
    files = {f"{_OWN}/{name}.json": _json(content) for name, content in documents.items()}
    return Bundle(recording, document, files)


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _versions(report: ReportDoc) -> Mapping[str, object]:
    return {
        "probe_core": report["probe_core"],
        "chipdb": report["chipdb"],
        "python": sys.version.split()[0],
        "plugins": sorted({outcome["distribution"] for outcome in report["outcomes"]}),
    }


def first_cause(document: DoctorDoc) -> tuple[str, str | None] | None:
    """Return (code, device) of the first finding; None where there is none."""
    if not document["findings"]:
        return None
    first = document["findings"][0]
    return first["code"], first["device"]
