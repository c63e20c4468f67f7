"""A bundle gives the same first cause as the machine that it was made of, and nobody's name."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import test_readiness_causes as readiness
from doctor_cases import CASES, complete
from readiness_nodes import Node, nvidia
from reports import report_of
from weights import mostly_heavy

from probe_core.cli.record import recorded_machine
from probe_core.commands import Context
from probe_core.doctor.bundle import Bundle, first_cause, make_bundle, with_evidence
from probe_core.doctor.check import Request
from probe_core.doctor.checks import further_checks
from probe_core.doctor.document import DoctorDoc
from probe_core.doctor.examine import examine
from probe_core.recording.declared import Sources
from probe_core.recording.opening import open_machine


def bundle_of(node: Node, folder: Path) -> tuple[DoctorDoc, Bundle]:
    """Return the doctor's document of a machine, and its bundle."""
    machine = node.machine()
    request = Request(machine, report_of(machine))  # type: ignore[arg-type]
    document = examine(request)
    gathered = recorded_machine(machine, Sources(), None, Context())
    recording = with_evidence(gathered.recording, request)
    bundle = make_bundle(recording, str(folder), report_of)  # type: ignore[arg-type]
    return document, bundle


# What a vendor's library reports comes as a recording's answers; these are of files alone. Nothing
# is recorded on macOS and Windows.
OF_CHECKS = {
    f"{code}, {kind}": case.make
    for code, pair in CASES.items()
    for kind, case in zip(("broken", "look-alike"), pair, strict=True)
    if code in {check.code for check in further_checks()} - {"mac-guest", "tdr", "wired-limit"}
}
MAKERS = {key: make for key, (_, make) in readiness.BROKEN.items()} | readiness.HEALTHY | OF_CHECKS


@pytest.mark.parametrize("name", mostly_heavy(MAKERS, 60))
def test_it_gives_the_same_first_cause(name: str, tmp_path: Path) -> None:
    node = MAKERS[name](tmp_path / "root")
    complete(node)
    document, bundle = bundle_of(node, tmp_path / "unpacked")
    assert first_cause(bundle.document) == first_cause(document)
    path = tmp_path / "bundle.tar.gz"
    path.write_bytes(bundle.archive())
    with open_machine(str(path)) as machine:
        again = examine(Request(machine, report_of(machine)))  # type: ignore[arg-type]
    assert first_cause(again) == first_cause(document)


@pytest.mark.heavy
def test_it_holds_nobodys_name(tmp_path: Path) -> None:
    node = nvidia(tmp_path / "root")
    complete(node)
    secret = "mallory"
    node.file("/proc/cmdline", f"root=UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427 host={secret}\n")
    node.file("/etc/passwd", f"{secret}:x:1001:1001::/home/{secret}:/bin/sh\n")
    node.file("/etc/group", f"render:x:105:{secret}\n{secret}:x:1001:\n")
    node.file("/proc/self/status", "Uid:\t1001\t1001\t1001\t1001\nGid:\t1001\nGroups:\t1001\n")
    node.file("/etc/modprobe.d/x.conf", f"# {secret}\nblacklist nouveau\noptions x key={secret}\n")
    node.file(
        "/var/log/dmesg", f"Linux version 6\nhello {secret}\nNVRM: Xid (PCI:0000:01:00): 13\n"
    )
    node.environ |= {"HOME": f"/home/{secret}", "LD_LIBRARY_PATH": f"/home/{secret}/lib/stubs"}
    node.file(f"/home/{secret}/lib/stubs/libnvidia-ml.so.1", b"\x7fELF\x02")
    _, bundle = bundle_of(node, tmp_path / "unpacked")
    with tarfile.open(fileobj=io.BytesIO(bundle.archive())) as archive:
        assert not any(secret in member.name for member in archive)
    texts = {
        path: content for path, content in bundle.members.items() if secret.encode() in content
    }
    assert texts == {}
    assert bundle.members["/etc/group"] == b"render:x:105:user\n"
    assert bundle.members["/etc/modprobe.d/x.conf"] == b"blacklist nouveau\n"
    assert b"1b4e28ba" not in bundle.members["/proc/cmdline"]


@pytest.mark.heavy
def test_it_has_the_documents_and_versions(tmp_path: Path) -> None:
    node = nvidia(tmp_path / "root")
    complete(node)
    _, bundle = bundle_of(node, tmp_path / "unpacked")
    own = [path for path in bundle.members if path.startswith("/probe/")]
    assert own == ["/probe/report.json", "/probe/doctor.json", "/probe/versions.json"]
