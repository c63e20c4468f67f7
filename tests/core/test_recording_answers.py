"""What a recording keeps of libraries and device nodes: checked, bounded, disguised, replayed."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import report_of
from trees import Tree

from probe_core import Machine
from probe_core.isolation.launch import Unresponsive
from probe_core.isolation.run import Run
from probe_core.machine.surroundings import container
from probe_core.pipeline.answers import answer_of, answers_of, recorded_probers, replay
from probe_core.pipeline.probers import Builtins, find, run_selected, select_probers
from probe_core.recording import BadRecording, Recording, open_machine, read, unpack
from probe_core.recording.anonymise import Anonymiser, disguised
from probe_core.recording.declared import Declared, check_records
from probe_core.recording.document import parse, write
from probe_core.recording.gather import gather
from probe_core.recording.process import (
    _mounts,
    _plain,
    _renamed,
    node_access,
    process_status,
)
from probe_core.registry.prober import HOST, Prober
from probe_core.setting_values import load_config

END: dict[str, Any] = {
    "kind": "end",
    "status": "ok",
    "reason": None,
    "facts": {},
    "abandoned": False,
}
ANSWER: dict[str, Any] = {
    "distribution": "probe-acme",
    "version": "1.0",
    "api": "1.0",
    "priority": 500,
    "deadline_s": 5.0,
    "elapsed_ms": 31.5,
    "vendors": ["10de"],
    "frames": [{"kind": "device", "device": gpu()}, END],
}


def raw(answers: Any, **more: Any) -> bytes:
    data = {"schema": 1, "origin": "invented", "files": {}, "answers": answers, **more}
    return json.dumps(data).encode()


def changed(key: str, value: Any) -> Any:
    return {"acme": {**ANSWER, key: value}}


def frames(*parts: Any) -> Any:
    return changed("frames", list(parts))


LOST = {"kind": "unresponsive", "device": "a:1", "ids": ["a:1"], "how": "hangs", "reason": "r"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (5, "its answers are no table of at most 64 probers"),
        ({str(n): ANSWER for n in range(65)}, "its answers are no table of at most 64 probers"),
        ({"a b": ANSWER}, "'a b' is no name of a prober"),
        ({"x" * 65: ANSWER}, "is no name of a prober"),
        ({"CPU": ANSWER}, "the prober 'CPU' has an answer, and always reads files"),
        ({"acme": []}, "the answer of acme is no table"),
        (changed("priority", 0), "the answer of acme: priority cannot be '0'"),
        (changed("priority", True), "priority cannot be 'True'"),
        (changed("priority", 1000), "priority cannot be '1000'"),
        (changed("deadline_s", -1), "deadline_s cannot be '-1'"),
        (changed("elapsed_ms", "x"), "elapsed_ms cannot be 'x'"),
        (changed("version", 5), "version cannot be '5'"),
        (changed("vendors", ["x"] * 65), "vendors cannot be"),
        (changed("vendors", [5]), "vendors cannot be"),
        (changed("frames", {}), "frames cannot be"),
        (changed("frames", [END] * 1025), "frames cannot be"),
        (frames(), "the answer of acme does not close with its end"),
        (frames(END, ANSWER["frames"][0]), "does not close with its end"),
        (frames(END, END), "the answer of acme has two ends"),
        (frames({**END, "status": "timeout"}), "the answer of acme is timeout, without a reason"),
        (frames({**END, "status": "fine"}), "frame 0 of acme: status cannot be 'fine'"),
        (frames({**END, "facts": {"exit_status": -1}}), "frame 0 of acme: facts cannot be"),
        (frames({**END, "facts": {"exit_status": 1 << 32}}), "frame 0 of acme: facts cannot be"),
        (frames({**END, "facts": {"exit_status": True}}), "frame 0 of acme: facts cannot be"),
        (frames({**END, "facts": {"phase": "later"}}), "frame 0 of acme: facts cannot be"),
        (frames({**END, "reason": 5}), "frame 0 of acme: reason cannot be '5'"),
        (frames({**END, "facts": {"avoided": [5]}}), "facts cannot be"),
        (frames({**END, "abandoned": 1}), "abandoned cannot be '1'"),
        (frames({"kind": "shell"}, END), "frame 0 of acme is of no known kind: 'shell'"),
        (frames(5, END), "frame 0 of acme is of no known kind: 'None'"),
        (frames({"kind": "device", "device": "x"}, END), "device cannot be 'x'"),
        (frames({"kind": "finding"}, END), "finding cannot be nothing"),
        (frames({"kind": "rejected", "reason": "x" * 5000}, END), "reason cannot be"),
        (frames({**LOST, "how": "sleeps"}, END), "how cannot be 'sleeps'"),
        (frames({**LOST, "device": ""}, END), "device cannot be ''"),
        (frames({**LOST, "stuck_at": 5}, END), "stuck_at cannot be '5'"),
    ],
)
def test_what_is_no_answer_is_refused(answers: Any, message: str) -> None:
    with pytest.raises(BadRecording) as caught:
        parse(raw(answers))
    assert message in str(caught.value)


FACTS = {"phase": "cleanup", "signal": "SIGSEGV", "exit_status": (1 << 32) - 1, "avoided": ["a:1"]}


@pytest.mark.parametrize(
    "answer",
    [
        {"priority": 1},
        {"priority": 999},
        {"vendors": ["x"] * 64},
        {"frames": [*ANSWER["frames"][:1] * 1023, END]},
        {"frames": [{**END, "status": "crashed", "reason": "r", "facts": FACTS}]},
        {"frames": [{**LOST, "stuck_at": "a.py, line 1"}, END]},
    ],
)
def test_answers_at_their_bounds_are_kept(answer: dict[str, Any]) -> None:
    expected = {**ANSWER, **answer}
    assert parse(raw({"acme": expected})).answers == {"acme": expected}


def test_as_many_answers_and_paths_as_a_recording_may_have() -> None:
    access = {f"/dev/{n}": "ok" for n in range(1024)}
    recording = parse(raw({f"a{n}": ANSWER for n in range(64)}, access=access))
    assert (len(recording.answers), recording.access) == (64, access)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ([], "its access is no table of at most 1024 paths"),
        ({f"/dev/{n}": "ok" for n in range(1025)}, "at most 1024 paths"),
        ({"/etc/passwd": "ok"}, "'/etc/passwd', which is no device node"),
        ({"/dev/../etc": "ok"}, "'/dev/../etc' is not a plain absolute path"),
        ({"/dev/x": 5}, "its access to '/dev/x' is not ok, missing or an error's name"),
        ({"/dev/x": "\x1b[2J"}, "its access to '/dev/x' is not ok"),
        ({"/dev/x": "E" * 40}, "its access to '/dev/x' is not ok"),
    ],
)
def test_what_is_no_access_is_refused(access: Any, message: str) -> None:
    with pytest.raises(BadRecording) as caught:
        parse(raw({}, access=access))
    assert message in str(caught.value)


def test_keys_of_a_newer_core_are_left_out() -> None:
    later = {**END, "facts": {"later": 1}, "later": 1}
    recording = parse(raw({"acme": {**ANSWER, "later": 1, "frames": [later]}}))
    assert recording.answers["acme"]["frames"] == [END]
    assert "later" not in recording.answers["acme"]


def as_document(folder: Path) -> Path:
    path = folder / "a.json"
    path.write_bytes(raw({"acme": ANSWER}, access={"/dev/acme0": "EPERM"}))
    return path


def as_folder(folder: Path) -> Path:
    (folder / "machine.json").write_text(json.dumps({"access": {"/dev/acme0": "EPERM"}}))
    (folder / "answers.json").write_text(json.dumps({"acme": ANSWER}))
    return folder


def as_archive(folder: Path) -> Path:
    path = folder / "a.tar"
    with tarfile.open(path, "w") as tar:
        tables = {"machine": {"access": {"/dev/acme0": "EPERM"}}, "answers": {"acme": ANSWER}}
        for name, table in tables.items():
            info = tarfile.TarInfo(f"./{name}.json")
            content = json.dumps(table).encode()
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("make", [as_document, as_folder, as_archive])
def test_each_form_of_a_recording_has_them(make: Any, tmp_path: Path) -> None:
    with open_machine(str(make(tmp_path))) as machine:
        assert machine.answers == {"acme": ANSWER}
        assert machine.access == {"/dev/acme0": "EPERM"}
        assert pickle.loads(pickle.dumps(machine)) == copy.copy(machine) == machine
        assert hash(machine) == hash(copy.copy(machine))
        assert machine != Machine(machine.root, {}, machine.os, machine.arch)
        report = report_of(machine, only="acme")
    assert report["devices"][0]["name"] == "NVIDIA GeForce RTX 4090"
    (outcome,) = [o for o in report["outcomes"] if o["prober"] == "acme"]
    assert (outcome["status"], outcome["replayed"], outcome["elapsed_ms"]) == ("ok", True, 31.5)
    assert outcome["distribution"] == "probe-acme 1.0"


def test_a_recording_that_is_unpacked_has_them(tmp_path: Path) -> None:
    root = unpack(read(str(as_document(tmp_path))), str(tmp_path / "unpacked"))
    with open_machine(root) as machine:
        assert (machine.answers, machine.access) == ({"acme": ANSWER}, {"/dev/acme0": "EPERM"})


def test_a_document_is_written_as_it_was_read(tmp_path: Path) -> None:
    recording = read(str(as_document(tmp_path)))
    again = parse(write(recording).encode())
    assert (again.answers, again.access) == (recording.answers, recording.access)


@pytest.mark.parametrize("path", ["/answers.json", "/answers.json/x"])
def test_the_file_of_answers_is_no_file_of_the_machine(path: str) -> None:
    with pytest.raises(BadRecording, match=r"/answers.json is kept for what a recording says"):
        Recording({path: b""})


def test_a_file_of_answers_is_bounded_and_checked(tmp_path: Path) -> None:
    place = tmp_path / "answers.json"
    for text, message in (
        (" " * (5 << 20), "longer than 4096 KiB"),
        ("[]", "it is JSON, but no table"),
        ('{"bus": {}}', "always reads files"),
    ):
        place.write_text(text)
        with (
            pytest.raises(BadRecording, match=f"answers.json' cannot be used: .*{message}"),
            open_machine(str(tmp_path)),
        ):
            pass


def test_replayed_values_are_checked_as_live_ones_are(tmp_path: Path) -> None:
    sighting = gpu(units=-5, name="\x1b[2J" + "x" * 4000)
    parts = [{"kind": "device", "device": sighting}, {"kind": "device", "device": {"ids": 5}}]
    machine = Machine(str(tmp_path), answers=frames(*parts, END))
    report = report_of(machine, only="acme")
    assert len(report["devices"][0]["name"]) == 256
    assert report["devices"][0]["name"].isprintable()
    assert "value-rejected" in {finding["code"] for finding in report["findings"]}


def test_settings_decide_whether_an_answer_counts(tmp_path: Path) -> None:
    machine = Machine(str(tmp_path), answers={"acme": ANSWER})  # type: ignore[dict-item]
    for setting in ({"disable": "acme"}, {"only": "cpu"}, {"allow": "probe-other"}):
        report = report_of(machine, **{"only": None, **setting})
        assert [d["id"] for d in report["devices"]] == ["cpu:0"]
    assert report_of(machine, only="acme", priority={"acme": 7})["decisions"][-1]["priority"] == 7


def test_a_replay_may_be_repeated(tmp_path: Path) -> None:
    part = {**gpu(2), "parent": "PCI:01:00.0"}
    answers = frames(*({"kind": "device", "device": s} for s in (gpu(1), part)), END)
    machine = Machine(str(tmp_path), answers=answers)
    before = json.dumps(machine.answers)
    assert report_of(machine, only="acme")["devices"] == report_of(machine, only="acme")["devices"]
    assert json.dumps(machine.answers) == before


def runs_of(tree: Tree, probers: Probers, timeout: float = 2.0) -> Any:
    settings = {"only": list(probers.targets), "timeout": timeout}
    machine, config = tree.machine(), load_config(settings, {}, None)[0]
    builtins, found = Builtins(machine, config), find(machine, dict(probers.targets))  # type: ignore[arg-type]
    decisions = select_probers(found, builtins.scan, machine, config, None)
    return run_selected(lambda: decisions, builtins, machine, config)


def test_what_files_would_give_again_is_not_kept(tree: Tree, probers: Probers) -> None:
    asks = {"records": {"answers": True}}
    probers.reports("files", gpu(1))
    probers.reports("library", gpu(1), **asks)
    probers.add("absent", "return not_applicable('none')", **asks)
    probers.add("breaks", "raise ValueError('x')")
    assert sorted(answers_of(runs_of(tree, probers))) == ["absent", "breaks", "library"]


@pytest.mark.heavy
def test_a_device_that_hung_hangs_in_the_replay(tree: Tree, probers: Probers) -> None:
    for number in (1, 2):
        tree.pci(f"0000:{number:02x}:00.0", "10de:2684", driver="nvidia")
    probers.add(
        "a",
        f"""
        import time
        for sighting in {[gpu(1), gpu(2)]!r}:
            if sighting["ids"][0] in request.avoid:
                continue
            request.touching(sighting["ids"][0])
            if sighting["ids"] == ["pci:0000:01:00.0"]:
                time.sleep(60)
            yield sighting
        """,
        when={"pci_vendor": ["10de"]},
    )
    live = report_of(tree.machine(), timeout=2.0, **probers.arguments)
    answers = answers_of(runs_of(tree, probers))
    recorded = tree.machine()
    again = report_of(
        Machine(recorded.root, {}, recorded.os, recorded.arch, answers=answers), only="a"
    )
    assert [f for f in again["findings"] if f["code"] == "driver-hangs"] == [
        f for f in live["findings"] if f["code"] == "driver-hangs"
    ]
    assert again["devices"] == live["devices"]
    (outcome,) = [o for o in again["outcomes"] if o["prober"] == "a"]
    assert (outcome["status"], outcome["partial"]) == ("ok", True)
    assert outcome["avoided"] == ["pci:0000:01:00.0"]


UUID = "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1"


def test_identities_are_replaced_as_in_files() -> None:
    anonymiser = Anonymiser(b"secret")
    sighting = gpu(
        ids=["pci:0000:01:00.0", f"uuid:{UUID}", "uuid:00112233445566778899aabbccddeeff"],
        extra={
            "board_serial": "1234ABC",
            "serial_number": 77,
            "process_name": "payroll",
            "user": "ann",
            "uuid": UUID,
            "vbios": "96.00.1F",
        },
    )
    end = {**END, "reason": f"{UUID} /home/ann/x", "facts": {"stuck_at": f"{os.__file__}:3 in f"}}
    answers = frames({"kind": "device", "device": sighting}, end)
    (answer,) = disguised(answers, anonymiser, "/home/ann").values()
    device, last = answer["frames"][0]["device"], answer["frames"][1]
    assert device["ids"][:2] == ["pci:0000:01:00.0", f"uuid:{anonymiser.uuids(UUID)}"]
    assert device["ids"][2] != sighting["ids"][2]
    assert device["extra"] == {
        "board_serial": anonymiser.serial("1234ABC"),
        "serial_number": anonymiser.number(77),
        "uuid": anonymiser.uuids(UUID),
        "vbios": "96.00.1F",
    }
    assert last["reason"] == f"{anonymiser.uuids(UUID)} /home/x"
    assert last["facts"]["stuck_at"] == "os.py:3 in f"
    assert device["name"] == sighting["name"]


STATUS = "Name:\tsecret\nUid:\t1234\t1234\t0\t0\nGid:\t1234\t44\nGroups:\t44 992 5000 65534 \n"


def test_the_process_is_told_by_kind_alone(tree: Tree) -> None:
    tree.file("/proc/self/status", STATUS)
    assert process_status(tree.machine()) == (
        "Uid:\t1000 1000 0 0\nGid:\t1000 44\nGroups:\t44 992 1000 65534\n"
    )
    recording = gather(tree.machine(), "invented", []).recording
    assert b"secret" not in recording.files["/proc/self/status"]


def test_without_proc_nothing_is_told_of_the_process(tree: Tree) -> None:
    assert process_status(tree.machine()) is None


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({}, {}, None),
        ({"/.dockerenv": "secret"}, {}, "docker"),
        ({"/run/.containerenv": 'name="secret"'}, {}, "podman"),
        ({"/run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({"/run/systemd/container": "secret\n"}, {}, "container"),
        ({}, {"container": "lxc"}, "lxc"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.77"}, "kubernetes"),
    ],
)
def test_the_kind_of_container_is_kept(
    files: dict[str, str], environ: dict[str, str], kind: str | None, tree: Tree, tmp_path: Path
) -> None:
    for path, text in files.items():
        tree.file(path, text)
    machine = Machine(str(tree.root), environ)
    path = tmp_path / "a.json"
    path.write_text(write(gather(machine, "invented", []).recording))
    assert "secret" not in path.read_text()
    assert "10.0.0.77" not in path.read_text()
    with open_machine(str(path)) as again:
        assert container(again) == container(machine) == kind


def test_mounts_of_nodes_and_shared_memory_are_kept() -> None:
    kept = ["tmpfs /dev tmpfs rw 0 0", "shm /dev/shm tmpfs rw,size=65536k 0 0"]
    others = ["/dev/sda1 /home/somebody ext4 rw 0 0", "x /dev/pts y", "/dev", ""]
    assert _mounts("\n".join([*others, *kept])) == kept


@pytest.mark.parametrize(
    ("value", "kept"),
    [("12.4", "12.4"), ("11.0.0a", "11.0.0a"), ("", ""), ("1" * 23, "1" * 23), ("1" * 24, "?")]
    + [(value, "?") for value in ("a b", "-1", "1,2", ".")],
)
def test_versions_in_variables_are_kept(value: str, kept: str) -> None:
    assert _plain(value) == kept


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("system.slice", "system.slice"),
        ("docker-0123.scope", "docker-group3"),
        ("uid_1000", "uid_group3"),
        ("secret.service", "group3.service"),
        ("job_7.service", "job_group3.service"),
        ("secret.slice", "group3"),
    ],
)
def test_groups_say_who_made_them_alone(group: str, name: str) -> None:
    assert _renamed(group, 3) == name


@pytest.mark.parametrize(
    ("text", "kept"), [("0 0 4294967295\n", "0 0 4294967295\n"), ("0 1234 1\n", "0 1000 1\n")]
)
def test_a_user_namespace_is_told_without_its_user(text: str, kept: str, tree: Tree) -> None:
    tree.file("/proc/self/uid_map", text)
    files = gather(tree.machine(), "invented", []).recording.files
    assert files["/proc/self/uid_map"].decode() == kept


def nodes(*patterns: str) -> list[Declared]:
    return [check_records({"nodes": list(patterns)})[0]]


def test_access_of_a_recorded_machine_is_passed_on(tree: Tree) -> None:
    machine = Machine(str(tree.root), access={"/dev/a0": "EPERM"})
    assert node_access(machine, ["/dev/a0"], nodes("/dev/a#", "/dev/ctl")) == {"/dev/a0": "EPERM"}


def test_access_of_this_machine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = node_access(Machine(), ["/dev/null"], nodes("/dev/no-such-node", "/dev/no#"))
    assert found == {"/dev/null": "ok", "/dev/no-such-node": "missing"}


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_answers_of_a_manifest_are_true_or_false(value: Any) -> None:
    declared, mistakes = check_records({"answers": value})
    assert mistakes == ["records.answers: expected true or false"]
    assert not declared.answers
    assert check_records({"answers": True})[0].answers


def test_the_time_of_a_run_is_recorded_in_milliseconds() -> None:
    run = Run(Prober("acme", "acme_prober", HOST), "", "", 2.0, deadline=9.0)
    run.ended = run.started + 1.5
    assert answer_of(run)["elapsed_ms"] == 1500.0


def test_all_that_a_run_met_is_met_again() -> None:
    """Its devices, findings and rejected values, what it went around, how it ended and why."""
    run = Run(Prober("acme", "acme:x", "probe-acme", "1.0", priority=500), "", "", 0.0)
    run.prober.when = [{"pci_vendor": ["0x10DE", "1002"]}, {"path": ["/dev/x"]}]
    found = {"code": "hot", "what": "it is hot", "why": "no air", "fix": "a fan"}
    run.sightings, run.findings = [gpu(), gpu(units=-1), 7], [found, "no finding"]
    run.rejected = ["too long"]
    run.unresponsive = [
        Unresponsive("a:1", frozenset({"a:1", "b:1"}), "hangs", "r" * 1025, "nvmlInit"),
        Unresponsive("a:2", frozenset({"a:2"}), "raises", "it is odd", None),
    ]
    run.status, run.reason, run.ended = "crash", "it died", 0.5
    run.details = {"signal": "SIGSEGV", "replayed": True}
    answer = json.loads(json.dumps(answer_of(run)))
    assert answer["vendors"] == ["1002", "10de"]
    (prober,) = recorded_probers({"acme": answer})
    again = replay(prober)
    assert (prober.name, prober.priority, prober.version) == ("acme", 500, "1.0")
    assert [each["ids"] for each in again.sightings] == [gpu()["ids"]]
    assert [each["code"] for each in again.findings] == ["hot"]
    assert len(again.rejected) == 4
    assert again.rejected[-1] == "too long"
    met = [(o.device, o.ids, o.how, o.reason, o.stuck_at) for o in again.unresponsive]
    assert met == [
        ("a:1", {"a:1", "b:1"}, "hangs", "r" * 1023 + "…", "nvmlInit"),
        ("a:2", {"a:2"}, "raises", "it is odd", None),
    ]
    assert (again.status, again.reason, again.ended) == ("crash", "it died", 0.5)
    assert again.details == {"signal": "SIGSEGV", "replayed": True}
    assert (again.stuck, again.over) == (False, True)
