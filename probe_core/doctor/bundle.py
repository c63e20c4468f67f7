"""One archive for a question: the machine's files, the report, the doctor's document, versions.

The report and the document in it are made anew from the disguised recording, so that they hold
what the recording holds and no more, and a stranger sees what the archive gives him.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile

from probe_core.doctor.check import Request
from probe_core.doctor.evidence import evidence
from probe_core.doctor.examine import examine
from probe_core.recording.errors import BadRecording
from probe_core.recording.recording import ABOUT_PATH, ANSWERS_PATH, Recording
from probe_core.recording.unpack import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from probe_core.doctor.document import DoctorDoc
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc

__all__ = ["Bundle", "first_cause", "make_bundle", "with_evidence"]

_OWN = "/probe"
"""Folder of the documents in the archive, beside the machine's own /proc and /sys."""


class Bundle:
    """The archive's members, and the doctor's document that the archive gives."""

    __slots__ = ("document", "members", "recording")

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
    from probe_core.machine import Machine

    root = unpack(recording, folder)
    facts = recording
    machine = Machine(
        root, facts.environ, facts.os, facts.arch, access=facts.access, answers=facts.answers
    )
    report = probe(machine)
    document = examine(Request(machine, report))
    own = {
        f"{_OWN}/report.json": _json(report),
        f"{_OWN}/doctor.json": _json(document),
        f"{_OWN}/versions.json": _json(_versions(report)),
    }
    return Bundle(recording, document, own)


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
