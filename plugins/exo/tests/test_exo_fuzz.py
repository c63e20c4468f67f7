"""What systems print and people set: parsed to something, never raised at exo; see tests/fuzz."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance, write_files
from hypothesis import given

from probe_core.machine import Machine
from probe_exo import Installed, node_links
from probe_exo.engines import Free, engine_memories, uses
from probe_exo.figures import engines
from probe_exo.mac import parse_hardware, parse_interfaces, parse_media, parse_ports
from probe_exo.memory import VARIABLE, overridden
from probe_exo.node import node_identity

HARDWARE = (
    b"Hardware:\n\n    Hardware Overview:\n\n      Model Name: MacBook Pro\n"
    b"      Chip: Apple M3 Max\n      Memory: 128 GB\n"
)
INTERFACES = b"Hardware Port: Thunderbolt 1\nDevice: en2\n\nHardware Port: Wi-Fi\nDevice: en0\n"
PORTS = {
    "SPThunderboltDataType": [
        {
            "domain_uuid_key": "AAAA",
            "receptacle_1_tag": {"receptacle_id_key": "1", "current_speed_key": "Up to 80 Gb/s"},
            "_items": [{"domain_uuid_key": "BBBB", "device_name_key": "MacBook Pro"}],
        }
    ]
}
BUS = "sys/bus/thunderbolt/devices"
FILES = {
    f"{BUS}/0-0/unique_id": b"aaaa\n",
    f"{BUS}/0-1/unique_id": b"bbbb\n",
    f"{BUS}/0-1/tx_speed": b"20.0 Gb/s\n",
    f"{BUS}/0-1/tx_lanes": b"2\n",
    f"{BUS}/0-1.0/key": b"network\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": b"4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/rate": b"100 Gb/sec (4X EDR)\n",
    "etc/os-release": b'NAME=Debian\nPRETTY_NAME="Debian 12"\n',
    "etc/hostname": b"desk\n",
}


@given(CHANCES)
def test_what_a_mac_prints(chance: Chance) -> None:
    model, chip, memory = parse_hardware(chance.mutate(HARDWARE).decode("utf-8", "replace"))
    assert model
    assert chip
    assert memory >= 0
    interfaces = parse_interfaces(chance.mutate(INTERFACES).decode("utf-8", "replace"))
    text = json.dumps(chance.alter(PORTS))
    for uuid, _, _, gbits in parse_ports(text, interfaces):
        assert isinstance(uuid, str)
        assert gbits is None or gbits >= 0
    parse_ports(chance.mutate(text.encode()).decode("utf-8", "replace"), interfaces)


@pytest.mark.heavy
@given(CHANCES)
def test_files(tmp_path: Path, chance: Chance) -> None:
    machine = Machine(str(write_files(tmp_path / "root", chance.files(FILES))))
    for port in node_links(machine).thunderbolt:
        assert port.uuid


@given(CHANCES)
def test_the_amount_that_a_person_sets(chance: Chance) -> None:
    said = chance.words(["4096", "0", "MB", "00000000000000000001"], "")
    size, why = overridden({VARIABLE: said})
    assert size is None or size > 0
    assert (size is not None or why is not None) == bool(said.strip())


@pytest.mark.heavy
def test_who_a_node_is(tmp_path: Path) -> None:
    """Probes, so a few files stand for many."""
    for seed in range(20):
        chance = Chance(bytes([seed]))
        root = write_files(tmp_path / "root", chance.files(FILES))
        assert node_identity(Machine(str(root))).os_version


GPU = {
    "id": "pci:0000:01:00.0",
    "kind": "gpu",
    "vendor": "nvidia",
    "parent": None,
    "memory": {"kind": "dedicated", "total": 1 << 34, "free": 1 << 33, "parts": {"limit": 1 << 32}},
    "backends": ["cuda"],
    "bandwidth": 1e12,
    "visibility": {"cuda": {"visible": True, "index": 0, "reason": None}},
    "readiness": {"state": "ready", "broken": None, "steps": []},
}
REPORT = {"schema": 1, "node": {"os": "linux"}, "devices": [GPU, GPU | {"id": "b"}]}


@given(CHANCES)
def test_engines_of_any_report(chance: Chance) -> None:
    report = chance.alter(REPORT)
    document = report if isinstance(report, dict) else {}
    for installed in (Installed("mlx-cuda-12", "0.20.1"), Installed("mlx-metal"), Installed()):
        found = uses(document, installed)
        free = Free(1 << 36, 1 << 35, {"b": None})
        for engine in engine_memories(found, free):
            assert engine.total is None or engine.total >= 0
            assert engine.available is None or 0 <= engine.available <= 1 << 35
        backends, why_not = engines(document, installed)
        assert set(backends) | set(why_not) == {"MlxCpu", "MlxMetal", "MlxCuda", "Vllm"}


@given(CHANCES)
def test_ifconfig(chance: Chance) -> None:
    text = b"en0: flags=8863<UP> mtu 1500\n\tmedia: autoselect (10Gbase-T <full-duplex>)\n"
    for name, mbits in parse_media(chance.mutate(text).decode("utf-8", "replace")).items():
        assert isinstance(name, str)
        assert 0 <= mbits < 1e9
