"""What a manifest declares to be recorded: a mistake is named, and never widens what is read."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from probe_core import Machine
from probe_core.probers.records import RECORDS
from probe_core.recording.anonymise import KINDS, Anonymiser, check_mask, masked
from probe_core.recording.declared import MAX_MISTAKES, MAX_PATTERNS, check_records
from probe_core.recording.gather import Gathered, gather
from probe_core.recording.paths import MAX_MATCHES

GPU = "/sys/devices/pci0000:00/0000:01:00.0"
AWAKE = {"files": ["busy"], "pci_vendor": ["1ac0"]}


def test_every_declaration_of_the_repository_is_right() -> None:
    assert recorded.declarations()  # which asserts that none has a mistake
    assert [check_records(records)[1] for records in RECORDS.values()] == [[]] * len(RECORDS)


def test_no_declaration_is_none_and_no_mistake() -> None:
    result, mistakes = check_records({})
    assert (result.is_empty, mistakes) == (True, [])


def files(value: list[Any]) -> dict[str, Any]:
    return {"files": ["/sys/good", *value]}


MISTAKES: list[tuple[Any, str, list[str]]] = [
    ([], "records: expected a table, found '[]'", []),
    ({"files": "/sys/x"}, "records.files: expected a list, found '/sys/x'", []),
    (files(["sys/x"]), "records.files: 'sys/x' is not absolute", ["/sys/good"]),
    (
        files(["/sys/../etc"]),
        "'/sys/../etc' holds '..', '.', an empty name or a NUL",
        ["/sys/good"],
    ),
    (files(["/sys//x"]), "'/sys//x' holds", ["/sys/good"]),
    (files(["/sys/\0"]), "holds '..', '.', an empty name or a NUL", ["/sys/good"]),
    (files(["/sys/\ud800"]), "holds '..', '.', an empty name or a NUL", ["/sys/good"]),
    (files(["/sys/" + "x" * 300]), "a pattern is text of 1 to 256 characters", ["/sys/good"]),
    (files([5]), "a pattern is text of 1 to 256 characters", ["/sys/good"]),
    (files(["/sys/***x"]), "has more than 2 wildcards in one name", ["/sys/good"]),
    (files(["/home/*/.ssh/id"]), "'/home/*/.ssh/id' lies below none of /proc/, ", ["/sys/good"]),
    (files(["/etc/shadow"]), "lies below none of", ["/sys/good"]),
    (files(["/*/x"]), "lies below none of", ["/sys/good"]),
    (files(["/dev/acme0"]), "lies below none of", ["/sys/good"]),
    (files(["/proc/#/environ"]), "names what /proc holds about processes", ["/sys/good"]),
    (files(["/proc/self/environ"]), "names what /proc holds about processes", ["/sys/good"]),
    (files(["/proc/1/cmdline"]), "names what /proc holds about processes", ["/sys/good"]),
    (files(["/proc/*"]), "names what /proc holds about processes", ["/sys/good"]),
    ({"file": ["/sys/x"]}, "unknown key 'file': did you mean 'files'?", []),
    ({"nodes": ["/sys/x"]}, "records.nodes: '/sys/x' lies below none of /dev/", []),
    ({"cgroup": ["../x"]}, "'../x' is no file of a control group", []),
    ({"cgroup": [5]}, "'5' is no file of a control group", []),
    # What a mask that is not understood should have hidden is not recorded.
    (files([]) | {"masks": {"/sys/good": "secret"}}, "masks['/sys/good']: the kinds are uuid,", []),
    (files([]) | {"masks": {"/sys/god": "uuid"}}, "masks: '/sys/god' is none of its files", []),
    (files([]) | {"masks": {"/sys/good": 5}}, "the kinds are uuid, hex64", []),
    (files([]) | {"masks": {"/sys/good": "uuid:"}}, "a field has 1 to 64 printable", []),
    (files([]) | {"masks": ["uuid"]}, "records.masks: expected a table", []),
    (files([]) | {"mask": {"/sys/good": "uuid"}}, "unknown key 'mask': did you mean", []),
]


@pytest.mark.parametrize(("records", "message", "good"), MISTAKES)
def test_a_mistake_is_named_and_costs_no_more_than_its_table(
    records: Any, message: str, good: list[str]
) -> None:
    result, mistakes = check_records(records)
    assert len(mistakes) == 1
    assert message in mistakes[0]
    assert mistakes[0].startswith("records")
    assert list(result.files) == good
    assert (result.nodes, result.cgroup, result.pci, result.platform) == ([], [], [], [])


DEVICE_MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"files": ["/sys/x"]}, "'/sys/x' is absolute; write it as below the device's folder"),
    ({"files": ["../x"]}, "'/../x' holds '..'"),
    ({"asleep": 1}, "pci[1].asleep: expected true or false"),
    ({"pci_vendor": ["acme"]}, 'pci[1].pci_vendor: expected vendor ids such as "10de"'),
    ({"pci_vendor": [1002]}, "expected vendor ids"),
    ({"pci_vendor": []}, "an empty list fits no device; leave the key out"),
    ({"pci_class": ["display"]}, "pci[1].pci_class: expected how a class begins"),
    ({"pci_class": ["0"]}, "expected how a class begins"),
    ({"only_if": {"status": ""}}, "only_if['status']: expected the file's text"),
    ({"only_if": {"../status": "up"}}, "pci[1].only_if: '/../status' holds '..'"),
    ({"only_if": ["status"]}, "pci[1].only_if: expected a table"),
    ({"masks": {"bussy": "hex64"}}, "pci[1].masks: 'bussy' is none of its files"),
    ({"awake": True}, "pci[1]: unknown key 'awake'"),
]


@pytest.mark.parametrize(("change", "message"), DEVICE_MISTAKES)
def test_a_device_s_files_are_left_out_when_their_limits_are_not_understood(
    change: dict[str, Any], message: str
) -> None:
    result, mistakes = check_records({"pci": [AWAKE, AWAKE | change, AWAKE]})
    assert len(mistakes) == 1
    assert message in mistakes[0]
    assert [rule.files for rule in result.pci] == [{"busy": ""}] * 2


@pytest.mark.parametrize(
    ("name", "is_file"),
    [
        ("memory.max", True),
        ("a." + "x" * 63, True),
        ("a." + "x" * 64, False),
        ("cpu.a_b.c", True),
        ("memory.", False),
        (".max", False),
        ("memory", False),
        ("memory.m x", False),
    ],
)
def test_files_of_control_groups(name: str, is_file: bool) -> None:
    result, mistakes = check_records({"cgroup": [name]})
    assert (result.cgroup, bool(mistakes)) == ([name] if is_file else [], not is_file)


def test_a_platform_device_has_no_pci_vendor() -> None:
    result, (mistake,) = check_records({"platform": AWAKE})
    assert "records.platform[0]: unknown key 'pci_vendor'" in mistake
    assert result.platform == []


def test_patterns_and_mistakes_are_bounded() -> None:
    result, mistakes = check_records({"files": [f"/sys/{n}" for n in range(MAX_PATTERNS + 9)]})
    assert len(result.files) == MAX_PATTERNS
    assert mistakes == [
        f"records.files: more than {MAX_PATTERNS} patterns; the others are left out"
    ]
    bad = {f"key{n}": n for n in range(3000)} | {"pci": [{"masks": 5, "files": ["x"]}] * 90}
    result, mistakes = check_records(bad)
    assert len(mistakes) == MAX_MISTAKES
    assert result.pci == []  # also those whose mistakes are no longer listed
    nested = json.loads("[" * 900 + "]" * 900)
    assert check_records({"files": nested, "pci": nested})[0].is_empty


def record(tree: Tree, records: dict[str, Any], **environ: str) -> Gathered:
    result, mistakes = check_records(records)
    assert mistakes == []
    return gather(Machine(str(tree.root), environ), "recorded", [result], Anonymiser(b"s" * 16))


def kept(tree: Tree, records: dict[str, Any]) -> list[str]:
    return sorted(record(tree, records).recording.files)


def device(tree: Tree, power: str, vendor: str = "0x1ac0", **others: str) -> None:
    named = {"vendor": vendor, "class": "0x120000", "power/runtime_status": power, **others}
    for name, text in named.items():
        tree.file(f"{GPU}/{name}", f"{text}\n")
    tree.link("/sys/bus/pci/devices/0000:01:00.0", GPU)


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({}, True),
        ({"pci_vendor": ["0x1AC0"]}, True),
        ({"pci_vendor": ["1002", "1ac0"], "pci_class": ["03", "12"]}, True),
        ({"pci_vendor": ["1002"]}, False),
        ({"pci_class": ["03"]}, False),
        ({"only_if": {"state": "Ready"}}, True),
        ({"only_if": {"missing": "x", "st*": "READY"}}, True),
        ({"only_if": {"state": "broken"}}, False),
    ],
)
def test_files_of_the_devices_that_fit(rule: dict[str, Any], fits: bool, tree: Tree) -> None:
    device(tree, "active", busy="1", state="ready")
    assert kept(tree, {"pci": {"files": ["busy"], **rule}}) == [f"{GPU}/busy"] * fits


def test_files_of_a_sleeping_device_need_to_be_said_harmless(tree: Tree) -> None:
    device(tree, "suspended", busy="1", name="x", state="ready")
    asleep = {"asleep": True, "files": ["name"]}
    found = record(tree, {"pci": [AWAKE, asleep, AWAKE | {"only_if": {"state": "ready"}}]})
    assert sorted(found.recording.files) == [f"{GPU}/name"]
    assert found.asleep == ["0000:01:00.0"]
    assert record(tree, {"pci": [asleep]}).asleep == []


def test_no_way_to_a_sleeping_device_s_file_reads_it(tree: Tree) -> None:
    """hwmon's folder lies below the device, and a virtual function links to its physical one."""
    device(tree, "suspended", **{"hwmon/hwmon0/temp1_input": "40000", "busy": "1"})
    tree.file(f"{GPU}/drm/card0/dev", "226:0\n")
    tree.link(f"{GPU}/drm/card0/device", GPU)
    tree.link("/sys/class/hwmon/hwmon0", f"{GPU}/hwmon/hwmon0")
    tree.link("/sys/class/drm/card0", f"{GPU}/drm/card0")
    virtual = "/sys/devices/pci0000:00/0000:01:00.1"
    for name, text in (("vendor", "0x1ac0"), ("power/runtime_status", "active"), ("busy", "1")):
        tree.file(f"{virtual}/{name}", f"{text}\n")
    tree.link(f"{virtual}/physfn", GPU)
    tree.link("/sys/bus/pci/devices/0000:01:00.1", virtual)
    found = record(
        tree,
        {
            "files": [
                "/sys/class/hwmon/hwmon#/temp1_input",
                "/sys/class/drm/card#/device/busy",
                "/sys/bus/pci/devices/*/busy",
                "/sys/class/drm/card#/dev",
                "/sys/class/drm/card#/device",
            ],
            "pci": [
                {"files": ["physfn/busy", "physfn"]},
                {"files": ["class"], "only_if": {"physfn/busy": "1"}},
            ],
        },
    )
    assert sorted(found.recording.files) == [f"{GPU}/drm/card0/dev", f"{virtual}/busy"]
    assert found.asleep == ["0000:01:00.0"]
    assert found.recording.links["/sys/class/drm/card0"].endswith("drm/card0")
    assert found.recording.links[f"{virtual}/physfn"] == "../0000:01:00.0"


def test_platform_devices_that_the_device_tree_describes(tree: Tree) -> None:
    for name, power in (("a.npu", "active"), ("b.npu", "suspended"), ("serial8250", "active")):
        real = f"/sys/devices/platform/{name}"
        tree.file(f"{real}/busy", "1\n")
        tree.file(f"{real}/power/runtime_status", f"{power}\n")
        if name != "serial8250":
            tree.file(f"{real}/of_node/compatible", "acme,npu\0")
        tree.link(f"/sys/bus/platform/devices/{name}", real)
    found = record(tree, {"platform": {"files": ["busy"]}})
    assert sorted(found.recording.files) == ["/sys/devices/platform/a.npu/busy"]
    assert found.asleep == ["b.npu"]
    assert len(kept(tree, {"platform": {"files": ["busy"], "asleep": True}})) == 2


def test_nodes_are_marked_and_never_opened(tree: Tree) -> None:
    tree.file("/dev/acme0", "what only opening gives")
    tree.file("/dev/acmectl", "no number")
    tree.link("/dev/acme1", "/dev/acme0")
    tree.link("/opt/acme", "/dev/acme0")
    found = record(tree, {"nodes": ["/dev/acme#"], "files": ["/opt/acme"]})
    assert found.recording.files == {"/dev/acme0": b""}
    assert found.recording.links == {"/dev/acme1": "acme0"}
    assert found.unreadable == ["/opt/acme"]


def test_more_nodes_and_groups_than_a_recording_holds(tree: Tree, monkeypatch: Any) -> None:
    monkeypatch.setattr("probe_core.recording.gather.MAX_ENTRIES", 70)
    for number in range(20):
        tree.file(f"/dev/acme{number}", "")
    tree.file("/proc/self/cgroup", "0::/" + "/".join("a" * 33) + "\n")
    for depth in range(33):
        tree.file("/sys/fs/cgroup" + "/a" * depth + "/memory.max", "1\n")
        tree.file("/sys/fs/cgroup" + "/a" * depth + "/memory.stat", "1\n")
    found = record(tree, {"nodes": ["/dev/acme#"], "cgroup": ["memory.max", "memory.stat"]})
    assert len(found.recording.files) == 70
    assert found.over == 20 - 6 + 1 + 2 * 33 - 64


def test_a_link_out_of_the_system_s_own_folders_is_not_followed(tree: Tree) -> None:
    tree.file("/home/bob/sdk/version", "1\n")
    tree.link("/opt/acme", "/home/bob/sdk")
    tree.file("/proc/77/net/dev", "bob\n")
    tree.link("/proc/net", "/proc/77/net")
    found = record(tree, {"files": ["/opt/acme/version", "/proc/net/dev"]})
    assert found.recording.files == found.recording.links == {}
    assert found.unreadable == ["/opt/acme/version", "/proc/net/dev"]


def test_a_pattern_names_a_bounded_number_of_files(tree: Tree, monkeypatch: Any) -> None:
    assert MAX_MATCHES > 8192  # CPUs of the largest kernels
    monkeypatch.setattr("probe_core.recording.paths.MAX_MATCHES", 5)
    for number in range(9):
        tree.file(f"/sys/acme/{number}/x", "1\n")
    found = record(tree, {"files": ["/sys/acme/#/x"]})
    assert (len(found.recording.files), found.over) == (5, 1)


def test_a_mask_holds_whoever_else_declares_the_file(tree: Tree) -> None:
    """By whichever name, and read once."""
    tree.file("/sys/devices/acme/serial", "ABC-123\n")
    tree.link("/sys/class/acme/acme0", "/sys/devices/acme")
    plain = {"files": ["/sys/class/acme/*/serial"]}
    serial = "/sys/devices/acme/serial"
    careful = {"files": [serial], "masks": {serial: "serial"}}
    both = [check_records(records)[0] for records in (plain, careful)]
    machine = Machine(str(tree.root))
    for order in (both, both[::-1]):
        found = gather(machine, "recorded", order).recording
        text = found.files["/sys/devices/acme/serial"].decode()
        assert text != "ABC-123\n"
        assert (len(text), text[3], text[:3].isupper(), text[4:7].isdecimal()) == (
            8,
            "-",
            True,
            True,
        )
        assert list(found.links) == ["/sys/class/acme/acme0"]


MASKED = [
    ("uuid", "UUID: GPU-0011-aa\nNPU-0011\n", "0011"),
    ("uuid", "00112233-4455-6677-8899-aabbccddeeff", "00112233"),
    ("uuid:UUID", "UUID = MIG-0011aabb\n", "0011aabb"),
    ("hex64", "9942190aaa314ff1\n", "9942190aaa314ff1"),
    ("hex64", "0x9942190aaa314ff1", "9942190aaa314ff1"),
    ("hex64", "-9942190aaa314ff1", "9942190aaa314ff1"),
    ("hex64", "f9942190aaa314ff1f", "9942190aaa314ff1"),
    ("decimal64", "11068034305583089049\n", "11068034305583089049"),
    ("decimal64", "99999999999999999999", "99999999999999999999"),
    ("decimal64:id", "  id:\t 11068034305583089049\n", "11068034305583089049"),
    ("decimal64:id", "id 110680343 05583089049\n", "05583089049"),
    ("serial:Serial Number", "Serial Number \t: 0321-AbZ\nName: x\n", "0321-AbZ"),
    ("addresses", "nvidia 14299136 0 - Live 0xffffffffc0400000 (O)\n", "ffffffffc0400000"),
    ("cpuinfo", "processor\t: 0\nSerial\t\t: 10000000abcdef\n", "10000000abcdef"),
]


@pytest.mark.parametrize(("mask", "text", "identity"), MASKED)
def test_each_kind_of_identity_is_replaced(mask: str, text: str, identity: str) -> None:
    content = masked(text.encode(), [check_mask(mask)], Anonymiser())
    assert identity.encode() not in content
    assert masked(b"", [mask], Anonymiser(b"x")) in (b"", b"0\n", b"0000000000000000\n", b"\n")


def test_what_is_no_identity_stays() -> None:
    text = b"name: x\nid_of: 5\n id: 7\n"
    assert masked(text, ["decimal64:id"], Anonymiser(b"x")).startswith(b"name: x\nid_of: 5\nid: ")
    assert masked(b"0\n", ["hex64"], Anonymiser(b"x")) == b"0000000000000000\n"
    assert masked(b"none\n", ["uuid"], Anonymiser(b"x")) == b"none\n"


@pytest.mark.parametrize(
    ("number", "is_replaced"),
    [(0, False), (1, True), ((1 << 64) - 1, True), (1 << 64, False), (-1, False)],
)
def test_numbers_of_64_bits_are_replaced_by_others(number: int, is_replaced: bool) -> None:
    replaced = Anonymiser(b"s" * 16).number(number)
    assert bool(replaced) is is_replaced
    assert replaced != number or not number
    for kind, text in (("decimal64", f"{number}\n"), ("hex64", f"0x{number:X}\n")):
        content = masked(text.encode(), [kind], Anonymiser(b"s" * 16))
        assert int(content, 10 if kind == "decimal64" else 16) == replaced


def test_what_is_no_number_of_64_bits_is_zero() -> None:
    for text in (b"zz\n", b"\n", b"1" * 21, b"0x\n"):
        assert masked(text, ["decimal64"], Anonymiser(b"x")) == b"0\n"
        assert masked(text, ["hex64"], Anonymiser(b"x")) == b"0000000000000000\n"


def test_digits_and_letters_stay_of_their_kind() -> None:
    text = "AZaz-09 é_" * 4
    serial = Anonymiser(b"s" * 16).serial(text)
    kinds = [(c.isdecimal(), c.isupper(), c.islower(), c.isalnum()) for c in serial]
    assert kinds == [(c.isdecimal(), c.isupper(), c.islower(), c.isalnum()) for c in text]
    assert serial.isascii()
    digits = Anonymiser(b"s" * 16).digits("09afAF-gx" * 4)
    assert [c.isupper() for c in digits if c.isalpha()].count(True) < len(digits) / 2
    assert [at for at, c in enumerate(digits) if c in "-gx"] == [
        at for at, c in enumerate("09afAF-gx" * 4) if c in "-gx"
    ]


def test_addresses_of_the_kernel_are_zeros() -> None:
    text = b"a 0x1234567 0x12345678 0x0123456789abcdef 0x0123456789abcdef0\n"
    zeros = b"a 0x1234567 0x00000000 0x0000000000000000 0x0123456789abcdef0\n"
    assert masked(text, ["addresses"], Anonymiser(b"x")) == zeros


def test_of_the_processors_of_x86_the_first_is_kept_without_its_serial_number() -> None:
    x86 = b"processor\t: 0\nvendor_id\t: A\nserial\t: 7\n\nprocessor\t: 1\n"
    assert masked(x86, ["cpuinfo"], Anonymiser(b"x")) == b"processor\t: 0\nvendor_id\t: A\n\n"
    arm = b"processor\t: 0\n\nprocessor\t: 1\n\nSerial\t\t: 7\nModel\t: B\n"
    assert masked(arm, ["cpuinfo"], Anonymiser(b"x")) == arm.replace(b"Serial\t\t: 7\n", b"")


def seconds_of_masks(text: bytes) -> float:
    """Return the processor's time for every kind of mask, the least of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        for kind in KINDS:
            masked(text, [kind, f"{kind}:id"], Anonymiser(b"x"))
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.heavy
@pytest.mark.parametrize("unit", [b"a", b"7", b"id "])
def test_the_time_of_a_mask_is_linear(unit: bytes) -> None:
    # Eight times the text in eight times the time; the square would be sixty-four times.
    short, long = (seconds_of_masks(b"GPU-" + unit * (1 << shift)) for shift in (12, 15))
    assert long < 24 * max(short, 1e-3)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(["/sys/*/x"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from("files masks pci platform nodes cgroup asleep only_if".split())
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.heavy
@given(ANY)
def test_any_value_is_declared_or_a_mistake(value: Any) -> None:
    result, mistakes = check_records(value)
    assert len(mistakes) <= MAX_MISTAKES
    assert all(mistake.isprintable() for mistake in mistakes)
    gather(Machine(str(Path(__file__).parent)), "recorded", [result])


def test_what_is_declared_at_all() -> None:
    empty = [{}, {"files": []}, {"answers": False}]
    full = [{"answers": True}, {"files": ["/sys/x"]}, {"nodes": ["/dev/x"]}, {"cgroup": ["a.b"]}]
    assert [check_records(records)[0].is_empty for records in empty + full] == [
        *([True] * 3 + [False] * 4)
    ]


def test_a_node_below_a_link_is_kept_with_the_link(tree: Tree) -> None:
    tree.file("/dev/acme/x", "")
    tree.link("/dev/card", "/dev/acme")
    recording = record(tree, {"nodes": ["/dev/card/#", "/dev/card/x"]}).recording
    assert recording.files["/dev/acme/x"] == b""
    assert recording.links["/dev/card"] == "acme"
