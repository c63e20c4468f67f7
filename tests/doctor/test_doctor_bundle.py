"""A bundle gives the same first cause as the machine that it was made of, and nobody's name."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import test_readiness_causes as readiness
from doctor_cases import CASES, FOLDER, complete
from readiness_nodes import Node, amd, nvidia
from reports import report_of
from weights import mostly_heavy

from probe_core.cli.record import recorded_machine
from probe_core.commands import Context
from probe_core.doctor.bundle import Bundle, evidence, first_cause, make_bundle, with_evidence
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


def evidence_of(node: Node) -> dict[str, bytes]:
    complete(node)
    machine = node.machine()
    return evidence(Request(machine, report_of(machine))).files  # type: ignore[arg-type]


def test_of_files_that_no_recording_has_it_keeps_what_checks_decide_by(tmp_path: Path) -> None:
    node = nvidia(tmp_path / "root")
    assert evidence_of(node) == {}
    node.file("/etc/nvidia/gridd.conf", "# mallory\nServerAddress=mallory.example\n")
    node.file("/etc/nvidia/ClientConfigToken/mallory.tok", "a secret")
    node.file("/etc/nvidia/ClientConfigToken/read.me", "")
    node.file("/etc/cdi/mallory.yaml", "nvidia.com/gpu\n libcuda.so.580.95.05\n mallory")
    node.file("/etc/cdi/other.yaml", "nvidia.com/gpu\n")
    node.file("/opt/rocm/.info/version", "7.0.2-1\n")
    node.file("/run/nvidia/driver/usr/bin/mallory", "")
    node.file("/usr/lib/wsl/lib/libcuda.so.1", "code")
    node.file("/usr/lib/wsl/drivers/nv_dispi.inf_amd64_01/mallory.txt", "mallory")
    node.file("/usr/lib/wsl/drivers/other.inf_amd64_02/x.txt", "")
    node.file("/sys/power/suspend_stats/success", "3\n")
    node.file("/proc/self/mounts", "proc /proc proc rw 0 0\nshm /dev/shm tmpfs rw,size=64k 0 0\n")
    xids = [f"NVRM: Xid (PCI:0000:01:00): {number}" for number in range(201)]
    node.file("/var/log/dmesg", "\n".join(["Linux version 6.8 of mallory", *xids, "x" * 9]))
    log = ["Linux version (of the log the lines about GPUs alone)", *xids[1:], ""]
    assert evidence_of(node) == {
        "/etc/nvidia/gridd.conf": b"ServerAddress=server\n",
        "/etc/nvidia/ClientConfigToken/client.tok": b"",
        "/etc/cdi/nvidia.yaml": b"kind: nvidia.com/gpu\nlibcuda.so.580.95.05\n",
        "/etc/cdi/nvidia1.yaml": b"kind: nvidia.com/gpu\n",
        "/opt/rocm/.info/version": b"7.0.2-1\n",
        "/run/nvidia/driver/usr/there": b"",
        "/usr/lib/wsl/lib/libcuda.so.1": b"",
        "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_01/driver.inf": b"",
        "/sys/power/suspend_stats/success": b"3\n",
        "/proc/self/mounts": b"shm /dev/shm tmpfs rw,size=64k 0 0\n",
        "/var/log/dmesg": "\n".join(log).encode(),
    }
    node.file("/etc/nvidia/gridd.conf", "ServerAddress=\nFeatureType=1\n")
    assert evidence_of(node)["/etc/nvidia/gridd.conf"] == b"ServerAddress=\n"


@pytest.mark.parametrize(("load", "kept"), [(None, {}), (0, b"0\n"), (37, b"37\n")])
def test_how_busy_a_card_is_belongs_to_it(load: int | None, kept: object, tmp_path: Path) -> None:
    node = amd(tmp_path / "root")
    if load is not None:
        node.file(f"{FOLDER}/gpu_busy_percent", f"{load}\n")
        kept = {"/sys/devices/pci0000:00/0000:01:00.0/gpu_busy_percent": kept}
    assert evidence_of(node) == kept
