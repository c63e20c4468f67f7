"""What says whose computer it is leaves a report before it is handed on."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import recorded

import probe_core
from probe_core.commands import without_identities

UUID = "1a2b3c4d-0000-4000-8000-00000000000e"
SECOND = "5e6f7a8b-0000-4000-8000-00000000000f"


def report(**device: Any) -> Any:
    return {
        "node": {"host": "tuxedo", "id": "f" * 32, "model": "DGXH100"},
        "devices": [{"id": "pci:0000:01:00.0", **device}],
    }


def shown(environ: dict[str, str] | None = None, **device: Any) -> dict[str, Any]:
    plain: Any = without_identities(report(**device), environ or {})
    value: dict[str, Any] = plain["devices"][0]
    return value


def test_the_node_has_no_name_and_no_id() -> None:
    plain = without_identities(report(), {})
    assert plain["node"] == {"host": None, "id": None, "model": "DGXH100"}


def test_uuids_are_numbered_wherever_they_stand() -> None:
    device = shown(
        ids=[f"uuid:GPU-{UUID}", f"uuid:MIG-{SECOND}"],
        links=[{"peer": f"uuid:GPU-{UUID}"}],
        name=f"the card {UUID.upper()}",
        reason="CUDA_VISIBLE_DEVICES=GPU-1a2b3c4d",
        visibility={f"GPU-{SECOND}": None},
    )
    assert device == {
        "id": "pci:0000:01:00.0",
        "ids": ["uuid:GPU-1", "uuid:MIG-2"],
        "links": [{"peer": "uuid:GPU-1"}],
        "name": "the card 1",
        "reason": "CUDA_VISIBLE_DEVICES=GPU-3",
        "visibility": {"GPU-2": None},
    }


def test_a_word_after_gpu_is_no_uuid() -> None:
    assert shown(name="GPU-accelerated, GPU-bound")["name"] == "GPU-accelerated, GPU-bound"


@pytest.mark.parametrize(
    "key",
    [
        "serial",
        "board_serial",
        "board-serial-number",
        "serialNo",
        "uuid",
        "GPU_UUID",
        "user",
        "cmdline",
    ],
)
@pytest.mark.parametrize("value", ["1652922012345", 1652922012345, ["1652922012345"]])
def test_a_key_that_names_an_identity_is_left_out(key: str, value: object) -> None:
    extra = shown(extra={key: value, "fabric": "completed"})["extra"]
    numbers_stay = isinstance(value, int) and key in ("user", "cmdline")
    assert extra == ({key: value} if numbers_stay else {}) | {"fabric": "completed"}


def test_names_of_host_and_user_leave_sentences() -> None:
    environ = {"USER": "alice", "HOME": "/srv/people/alice", "HOSTNAME": "tux-17"}
    device = shown(
        environ,
        evidence="/srv/people/alice/.config/probe.toml of alice on tux-17, tuxedo",
        why="/home/bob/lib, /Users/carol/x; malice and alice2 stay",
        power_state="active",
    )
    assert device["evidence"] == "~/.config/probe.toml of … on …, …"
    assert device["why"] == "/home/user/lib, /Users/user/x; malice and alice2 stay"
    assert device["power_state"] == "active"


def test_what_a_prober_prints_is_left_out() -> None:
    assert shown(stderr=["alice@host wrote /tmp/x"]) == {"id": "pci:0000:01:00.0"}


def test_names_that_everybody_has_stay() -> None:
    environ = {"USER": "root", "HOSTNAME": "gpu"}
    assert shown(environ, kind="gpu", why="root owns it")["kind"] == "gpu"
    assert shown(environ, why="root owns it")["why"] == "root owns it"


@pytest.mark.heavy
def test_a_recorded_machine_stays_what_it_is(tmp_path: Any) -> None:
    data = recorded.read("dgx-h100--8x-nvidia-h100-80gb-hbm3")
    root = recorded.unpack(data, tmp_path / "root")
    machine = probe_core.Machine(str(root), data["environ"], data["os"], data["arch"])
    document: Any = probe_core.probe(machine=machine, only=["bus"]).to_json()
    before = json.dumps(document)
    plain: Any = without_identities(document, dict(os.environ, USER="nobody-at-all"))
    assert json.dumps(document) == before
    assert [device["name"] for device in plain["devices"]] == [
        device["name"] for device in document["devices"]
    ]
    assert plain["findings"] == document["findings"]
