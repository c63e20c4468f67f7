"""A third party's prober has its files recorded, masked and replayed by writing its manifest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command import environment, install, probe
from trees import Tree

SERIAL = "ACM-0042-77"
UNIQUE = "9942190aaa314ff1"
DEVICE = "/sys/devices/pci0000:00/0000:01:00.0"
PROBER = """
from probe_core.api import hookimpl, not_applicable

FOLDER = "/sys/class/acme/acme0"


@hookimpl
def probe_devices(request):
    machine = request.machine
    unique = machine.read(f"{FOLDER}/device/unique_id")
    if unique is None:
        return not_applicable("no acme0")
    return [
        {
            "ids": [f"uuid:GPU-{unique}", f"acme:{machine.read(f'{FOLDER}/serial')}"],
            "kind": "npu",
            "vendor": "acme",
            "name": machine.read("/opt/acme/version"),
            "memory": {"kind": "dedicated", "total": machine.read_int(f"{FOLDER}/device/memory")},
            "extra": {"node": machine.exists("/dev/acme0")},
        }
    ]
"""
RECORDS: dict[str, Any] = {
    "files": ["/opt/acme/version", "/sys/class/acme/acme#/serial", "/sys/class/acme/acme#/device"],
    "masks": {"/sys/class/acme/acme#/serial": "serial"},
    "pci": {
        "pci_vendor": ["1ac0"],
        "files": ["memory", "unique_id"],
        "masks": {"unique_id": "hex64"},
    },
    "nodes": ["/dev/acme#"],
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def machine(tree: Tree) -> str:
    """A machine with one device of Acme's."""
    named = {"vendor": "0x1ac0", "device": "0x0001", "class": "0x120000", "memory": "17179869184"}
    named |= {"unique_id": UNIQUE, "power/runtime_status": "active"}
    for name, text in named.items():
        tree.file(f"{DEVICE}/{name}", f"{text}\n")
    tree.file(f"{DEVICE}/acme/acme0/serial", f"{SERIAL}\n")
    tree.link(f"{DEVICE}/acme/acme0/device", DEVICE)
    tree.link("/sys/class/acme/acme0", f"{DEVICE}/acme/acme0")
    tree.link("/sys/bus/pci/devices/0000:01:00.0", DEVICE)
    tree.file("/opt/acme/version", "Acme One\n")
    tree.file("/dev/acme0", "")
    tree.file("/home/bob/private", "private")
    about = {"os": "linux", "arch": "x86_64", "environ": {"CUDA_VISIBLE_DEVICES": f"GPU-{UNIQUE}"}}
    tree.file("/machine.json", json.dumps(about))
    return str(tree.root)


def manifest(**fields: Any) -> str:
    return json.dumps({"schema": 1, "probers": {"acme": fields}})


def acme(document: dict[str, Any]) -> dict[str, Any]:
    (device,) = (d for d in document["devices"] if d["vendor"] == "acme")
    return device


def report(machine: str, site: Path) -> dict[str, Any]:
    done = probe("--json", "--only", "acme", "--machine", machine, env=environment(site))
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.heavy
def test_recorded_masked_and_replayed(site: Path, machine: str, tmp_path: Path) -> None:
    install(site, "acme", PROBER, manifest(records=RECORDS))
    path = str(tmp_path / "acme.json")
    done = probe("record", path, "--machine", machine, env=environment(site))
    assert done.returncode == 0, done.stderr
    assert "acme (probe-x-acme 1.2)" in done.stderr
    text = Path(path).read_text()
    for word in (SERIAL, UNIQUE, UNIQUE[:6], "bob", "private"):
        assert word not in text
    first, second = acme(report(machine, site)), acme(report(path, site))
    assert first["ids"] != second["ids"]
    assert [len(one) for one in first["ids"]] == [len(one) for one in second["ids"]]
    for key in ("name", "memory", "extra", "kind"):
        assert second[key] == first[key]
    assert second["extra"] == {"node": True}
    # The variable that names the device by its UUID still does.
    unique = second["ids"][0].removeprefix("uuid:")
    assert json.loads(text)["environ"] == {"CUDA_VISIBLE_DEVICES": unique}


@pytest.mark.heavy
def test_without_its_plugin_a_device_s_files_are_missing(
    site: Path, machine: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "acme.json")
    done = probe("record", path, "--machine", machine, env=environment(site))
    assert "acme" not in done.stderr.replace(path, "")
    assert "Files that only other plugins read are missing: install those first" in done.stderr
    install(site, "acme", PROBER, manifest(summary="without records"))
    done = probe("record", path, "--force", "--machine", machine, env=environment(site))
    assert (
        "Not covered, for their manifests declare no files: acme (probe-x-acme 1.2).\n"
        in done.stderr
    )
    assert "acme" not in "".join(json.loads(Path(path).read_text())["files"])


@pytest.mark.heavy
def test_a_bad_entry_is_told_and_the_others_are_recorded(
    site: Path, machine: str, tmp_path: Path
) -> None:
    records = RECORDS | {"files": [*RECORDS["files"], "/etc/shadow"]}
    install(site, "acme", PROBER, manifest(records=records))
    path = str(tmp_path / "acme.json")
    done = probe("record", path, "--machine", machine, env=environment(site))
    assert done.returncode == 0
    (line,) = (line for line in done.stderr.splitlines() if "mistake" in line)
    assert line.startswith("probe-x-acme 1.2: the manifest of prober 'acme' has a mistake: ")
    assert "records.files: '/etc/shadow' lies below none of /proc/" in line
    assert f"{DEVICE}/memory" in json.loads(Path(path).read_text())["files"]
    # No other command reads it.
    codes = {finding["code"] for finding in report(machine, site)["findings"]}
    assert "manifest-problem" not in codes


def test_who_may_not_run_declares_nothing(site: Path, machine: str, tmp_path: Path) -> None:
    install(site, "acme", PROBER, manifest(records=RECORDS))
    path = str(tmp_path / "acme.json")
    env = environment(site, PROBE_ALLOW="probe-other", PROBE_TIMEOUT="soon")
    done = probe("record", path, "--machine", machine, env=env)
    assert "PROBE_TIMEOUT set 'timeout' to 'soon'" in done.stderr
    assert (
        "Not covered: acme (probe-x-acme 1.2): probe-x-acme is not on the allowlist" in done.stderr
    )
    assert f"{DEVICE}/memory" not in json.loads(Path(path).read_text())["files"]


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="the rule is for root alone")
def test_as_root_what_others_could_write_declares_nothing(
    site: Path, machine: str, tmp_path: Path
) -> None:
    install(site, "acme", PROBER, manifest(records=RECORDS))
    os.chown(site / "installed_acme.prober.json", 1000, 0)
    path = str(tmp_path / "acme.json")
    done = probe("record", path, "--machine", machine, env=environment(site))
    assert "Not covered: acme (probe-x-acme 1.2): running as root, and " in done.stderr
    assert "prober.json belongs to user 1000" in done.stderr
    assert f"{DEVICE}/memory" not in json.loads(Path(path).read_text())["files"]


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="the rule is for root alone")
def test_as_root_what_others_could_write_is_an_error_that_ranks_first(site: Path) -> None:
    """A healthy node looked broken, and nobody was told why: no device of it was on the bus."""
    install(site, "acme", PROBER, manifest())
    install(site, "beta", PROBER, manifest())
    os.chown(site, 1000, 0)
    env = environment(site)
    (found,) = (
        finding
        for finding in json.loads(probe("--json", env=env).stdout)["findings"]
        if finding["code"] == "prober-refused"
    )
    assert found["severity"] == "error"
    assert found["what"] == "2 probers did not run: acme and beta"
    assert found["why"] == f"running as root, and {site} belongs to user 1000"
    assert "install it where root alone can write" in found["fix"]
    assert probe("--strict", env=env).returncode == 1
    examined = json.loads(probe("doctor", "--json", env=env).stdout)
    assert examined["findings"][0]["code"] == "prober-refused"
    assert examined["healthy"] is False
