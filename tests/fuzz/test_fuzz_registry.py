"""What is installed: metadata folders, entry points, manifests; importing nothing of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign import CHANCES, Chance, encoded, write_files
from hypothesis import given

from probe_core.api import Machine
from probe_core.machine.trust import allowed
from probe_core.recording.declared import check_records
from probe_core.recording.gather import gather
from probe_core.registry import scan
from probe_core.registry.prober import WHEN_KEYS, Prober, discover, read_manifest, take_field, unmet

ENTRIES = b"[probe_core.probers.v1]\nacme = acme:hook\n[probe_core.probers.v2]\na = b.c [x]\n"
MANIFEST = {
    "schema": 1,
    "probers": {
        "acme": {
            "summary": "Acme NPUs",
            "api": "1.0",
            "priority": 500,
            "deadline_s": 3.0,
            "active": False,
            "when": {
                "os": ["linux"],
                "any_path": ["/dev/acme0", "/sys/*/acme*"],
                "any_module": ["acme"],
                "pci_vendor": ["1ac0"],
            },
            "records": {
                "files": ["/sys/class/acme/#/id", "/opt/acme/version"],
                "masks": {"/sys/class/acme/#/id": "hex64"},
                "pci": [
                    {
                        "pci_vendor": ["1ac0"],
                        "pci_class": ["12"],
                        "asleep": True,
                        "only_if": {"status": "up"},
                        "files": ["memory"],
                        "masks": {"memory": "decimal64:x"},
                    }
                ],
                "platform": {"files": ["busy"]},
                "nodes": ["/dev/acme#"],
                "cgroup": ["memory.max"],
            },
        }
    },
}
FOLDERS = (
    "probe_acme-1.0.dist-info probe-acme-1.0.dist-info -.dist-info .dist-info ~robe-1.dist-info"
    " a-b-c.dist-info probe_acme.egg-info host-1.dist-info é-1.dist-info"
).split()
FILES = ("METADATA", "entry_points.txt", "RECORD")


@given(CHANCES)
def test_entry_points(tmp_path: Path, chance: Chance) -> None:
    lines = (chance.words(["acme", "=", "acme:hook", "[", "#"], "") for _ in range(4))
    content = encoded("[probe_core.probers.v1]\n" + "\n".join(lines))
    content = content if chance.random() < 0.5 else chance.mutate(ENTRIES)
    site = write_files(tmp_path / "site", {"acme-1.dist-info/entry_points.txt": content})
    entries, problems = scan([str(site)])
    assert all(entry.distribution == "acme" for entry in entries)
    assert all(problem.reason and problem.evidence for problem in problems)
    probers, findings = discover({}, [str(site)])
    assert all(prober.name.isprintable() for prober in probers)
    assert all(finding["why"] for finding in findings)


@pytest.mark.heavy
@given(CHANCES)
def test_folders_of_metadata(tmp_path: Path, chance: Chance) -> None:
    names = chance.choices(FOLDERS, k=4)
    files = {f"{name}/{chance.choice(FILES)}": chance.mutate(ENTRIES) for name in names}
    site = write_files(tmp_path / "site", files)
    probers, findings = discover({}, [str(site), str(site), "", "\0", "/nowhere"])
    assert len({(one.distribution, one.name) for one in probers}) == len(probers)
    assert all(finding["what"].isprintable() for finding in findings)


@pytest.mark.heavy
@given(CHANCES)
def test_the_bytes_of_manifests(tmp_path: Path, chance: Chance) -> None:
    path = tmp_path / "prober.json"
    path.write_bytes(chance.mutate(json.dumps(MANIFEST).encode()))
    try:
        fields = read_manifest(str(path), "acme")
    except (OSError, ValueError, RecursionError):
        return
    taken(fields)


@pytest.mark.heavy
@given(CHANCES)
def test_manifests(chance: Chance) -> None:
    probers = chance.alter(MANIFEST["probers"])
    fields = probers.get("acme")
    taken(fields if isinstance(fields, dict) else {"when": fields})


@pytest.mark.heavy
@given(CHANCES)
def test_fields_of_manifests(chance: Chance) -> None:
    keys = ("summary", "api", "priority", "deadline_s", "active", "other")
    taken({key: chance.value() for key in keys})
    taken({"when": {key: chance.value(2) for key in WHEN_KEYS}})
    taken({"when": chance.value()})
    taken({"records": chance.value()})


def taken(fields: dict[str, Any]) -> None:
    prober = Prober("acme", "x")
    for key, value in fields.items():
        take_field(prober, key, value)
    assert 1 <= prober.priority <= 999
    assert all(mistake.reason.strip() for mistake in prober.problems)
    declared, mistakes = check_records(prober.records)
    assert all(mistake.isprintable() for mistake in mistakes)
    for patterns in (declared.files, declared.nodes):
        assert all(path.startswith("/") and "/../" not in f"{path}/" for path in patterns)
    gather(Machine("/nowhere"), "recorded", [declared])
    reason = unmet(prober.when, Machine("/nowhere"), {"10de"})
    assert reason is None or reason


@given(CHANCES)
def test_allowlists(chance: Chance) -> None:
    distribution, version = chance.word(), chance.words(["1.0", "2"], "")
    reason = allowed(distribution, version, tuple(chance.words(between=",").split(",")))
    assert reason is None or reason
    assert allowed("probe-acme", version, ("Probe_Acme",)) is None
