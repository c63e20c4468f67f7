"""Faulty fleets, each with what is to be found, and healthy mixed ones, in which nothing is.

Each node is a short description, laid over the recorded report of a DGX H100; what it expects is
compared by the core, and the nodes by the cluster.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reports import report_of_recording

from probe_cluster import Node
from probe_cluster.gathering.differences import differences
from probe_cluster.gathering.summaries import summary_of
from probe_core.machine import Machine
from probe_core.pipeline.expected import compare, saved_devices
from probe_core.resolve import open_chipdb
from probe_core.setting_values import load_config

GIB = 1 << 30
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"
L40S, A40, T4 = "NVIDIA L40S", "NVIDIA A40", "Tesla T4"
CHIPS = {
    H100: ("10de:2330", "nvidia/h100-sxm5-80gb", 80),
    A100: ("10de:20b0", "nvidia/a100-sxm4-40gb", 40),
    L40S: ("10de:26b9", "nvidia/l40s", 45),
    A40: ("10de:2235", "nvidia/a40-pcie", 45),
    T4: ("10de:1eb8", "nvidia/tesla-t4", 15),
}


class N(NamedTuple):
    """A node: its computer, and its equal GPUs; what is changed of one of them; what it expects."""

    gpus: int = 8
    name: str = H100
    model: str | None = "DGXH100"
    cpu: str = "Intel Xeon Platinum 8480C"
    ram: float = 2048
    vm: str | None = None
    driver: str = "580.95.05"
    lanes: int | None = 16
    links: int | None = 18
    mig: str = ""
    memory: float | None = None
    slots: int = 16
    one: dict[str, Any] = {}  # noqa: RUF012
    expect: str | None = None
    saved: N | None = None


BOX = N(4, L40S, "PowerEdge R760xa", "Intel Xeon Gold 6448Y", 512, links=None)
BRIDGED = BOX._replace(name=A40, links=4)
VM = N(8, H100, "Google Compute Engine", "Intel Xeon Platinum 8481C", 1872, "kvm", links=18)
SMALL = N(1, T4, "Google Compute Engine", "Intel Xeon", 15, "kvm", links=None)


def report(node: N) -> dict[str, Any]:
    """Return the report of a node, with how it compares with what it expects."""
    result, cpu = json.loads(REST), json.loads(CPU)
    cpu["name"] = node.cpu
    result["node"] |= {"model": node.model, "vm": node.vm, "id": "an-id"}
    result["node"]["memory"]["total"] = int(node.ram * GIB)
    cards = []
    for at in range(node.gpus):
        facts = node._replace(**node.one) if at == node.gpus - 1 else node
        cards += device(facts, at)
    result["devices"] = [*cards, cpu]
    expectation(result, node)
    return result


def device(node: N, at: int) -> list[dict[str, Any]]:
    pci, chip, size = CHIPS[node.name]
    card, id_ = json.loads(GPU), f"pci:0000:{node.slots + at:02x}:00.0"
    card |= {"id": id_, "ids": [id_, f"uuid:{node.name}-{at}"], "name": node.name, "bridges": []}
    card |= {"seen_by": ["bus", "nvidia"], "driver": {"name": "nvidia", "version": node.driver}}
    card["pci"]["id"], card["chip"]["id"] = pci, chip
    memory = size if node.memory is None else node.memory
    card["memory"]["total"] = None if memory == 0 else int(memory * GIB)
    card["links"] = [{"kind": "pcie", "local_width": node.lanes}]
    card["extra"] = (
        {"nvlink": {"active": node.links, "links": 18}} if node.links is not None else {}
    )
    count, _, profile = node.mig.partition("x")
    parts, text = [], json.dumps(card)
    for number in range(int(count or 0)):
        name = f"uuid:MIG-{at}-{number}"
        part = {**json.loads(text), "id": name, "ids": [name], "parent": id_}
        parts.append({**part, "profile": profile, "links": [], "extra": {}})
    return [card, *parts]


def expectation(result: dict[str, Any], node: N) -> None:
    config, problems = load_config({"expect": node.expect} if node.expect else {}, {})
    assert not problems
    saved = {"node": "an-id", "saved": "2026-10-01T00:00:00Z", "accelerators": []}
    if node.saved is not None:
        saved["accelerators"] = saved_devices(report(node.saved)["devices"])
    document, findings = compare(
        config,
        Machine(environ={"XDG_STATE_HOME": "/nowhere"}),
        result["node"],
        result["devices"],
        DATABASE,
        lambda path, limit: json.dumps(saved).encode(),
    )
    if document is not None:
        result["expected"] = document
    result["findings"] = [*findings]


BASE: dict[str, Any] = report_of_recording("dgx-h100--8x-nvidia-h100-80gb-hbm3")
# As texts: to read one takes a tenth of the time of a deep copy, and there are thousands.
GPU, CPU = (
    json.dumps(next(d for d in BASE["devices"] if d["kind"] == kind)) for kind in ("gpu", "cpu")
)
REST = json.dumps({**BASE, "devices": []})
DATABASE = open_chipdb([], ())[0]

NOTICE, ALARM = ("info",), ("warning", "error")


def found(fleet: list[N], severities: tuple[str, ...] = ALARM) -> list[tuple[str, list[int]]]:
    """Return (code, places of the nodes) of what is found in a fleet."""
    nodes = []
    for at, node in enumerate(fleet):
        document = report(node)
        document["node"]["id"] = f"id-{at}"
        nodes.append(Node(f"n{at}", f"n{at}", "ok", summary=summary_of(document)))
    entries = [e for e in differences(nodes) if e["severity"] in severities]
    return [(e["code"], sorted(int(id_[1:]) for id_ in e["nodes"])) for e in entries]


def but(node: N, **facts: Any) -> N:
    return node._replace(**facts)


def one(node: N, **facts: Any) -> N:
    """Return a node of which one GPU is unlike the others."""
    return node._replace(one=facts)


COUNT, UNLIKE = "missing-gpus", "unlike-gpus"
D = N()
FAULTY: dict[str, tuple[list[N], list[tuple[str, list[int]]]]] = {
    "one lost of eight": ([D, D, but(D, gpus=7), D], [(COUNT, [2])]),
    "two nodes, one lost": ([D, but(D, gpus=7)], [(COUNT, [1])]),
    "all lost": ([D, D, but(D, gpus=0)], [(COUNT, [2])]),
    "a half lost with its switch": ([D, D, D, but(D, gpus=4)], [(COUNT, [3])]),
    "two nodes short": ([D, but(D, gpus=7), D, but(D, gpus=6), D], [(COUNT, [1, 3])]),
    "one lost in a virtual machine": ([VM, but(VM, gpus=7), SMALL, SMALL], [(COUNT, [1])]),
    "one lost beside other models": ([BOX, BOX, but(BOX, gpus=3), D], [(COUNT, [2])]),
    "a setting says more": ([but(D, gpus=7, expect="8xh100")], [(COUNT, [0])]),
    "a type of a cloud says more": ([but(D, gpus=7, expect="p5.48xlarge")], [(COUNT, [0])]),
    "the saved state had more": ([but(D, gpus=6, saved=D)], [(COUNT, [0])]),
    "the saved state had another": ([but(BOX, name=A40, saved=BOX)], [(COUNT, [0])]),
    "a single one lost": ([but(SMALL, gpus=0, saved=SMALL), D], [(COUNT, [0])]),
    "a narrow slot": ([D, D, one(D, lanes=8), D], [(UNLIKE, [2])]),
    "all slots narrow": ([BOX, BOX, but(BOX, lanes=4)], [(UNLIKE, [2])]),
    "narrower than was saved": ([but(one(BOX, lanes=4), saved=BOX)], [(UNLIKE, [0])]),
    "narrower than a setting": (
        [one(D, lanes=8)._replace(expect="8xh100:lanes=16")],
        [(UNLIKE, [0])],
    ),
    "links down": ([D, D, one(D, links=12)], [(UNLIKE, [2])]),
    "fewer links than were saved": ([but(one(D, links=17), saved=D)], [(UNLIKE, [0])]),
    "fewer links than a setting": ([but(D, links=9, expect="8xh100:nvlink=18")], [(UNLIKE, [0])]),
    "one card is smaller": ([BOX, one(BOX, memory=22), BOX], [(UNLIKE, [1])]),
    "all cards are smaller": ([D, D, but(D, memory=64), D], [(UNLIKE, [2])]),
    "smaller than was saved": ([but(one(D, memory=40), saved=D)], [(UNLIKE, [0])]),
    "smaller than a setting": ([but(D, memory=64, expect="8xh100:80GB")], [(UNLIKE, [0])]),
    "not divided as a setting says": ([but(D, expect="8xh100:mig=7x1g.10gb")], [(UNLIKE, [0])]),
    "divided otherwise than a setting says": (
        [but(D, mig="2x3g.40gb", expect="8xh100:mig=7x1g.10gb")],
        [(UNLIKE, [0])],
    ),
    "divided, and to be whole": (
        [but(D, mig="2x3g.40gb", expect="8xh100:mig=none")],
        [(UNLIKE, [0])],
    ),
    "one card short of an instance": (
        [but(one(D, mig="6x1g.10gb"), mig="7x1g.10gb", expect="8xh100:mig=7x1g.10gb")],
        [(UNLIKE, [0])],
    ),
    "an older driver": ([D, D, but(D, driver="570.86.10")], [("driver", [2])]),
    "an older driver beside others": ([BOX, but(BOX, driver="550.1"), BOX, D], [("driver", [1])]),
    "another driver than a setting": ([but(D, expect="8xh100:driver=595")], [(UNLIKE, [0])]),
    "lost, and one narrow slot on the same": (
        [D, D, one(but(D, gpus=7), lanes=8)],
        [(COUNT, [2]), (UNLIKE, [2])],
    ),
    "two nodes, one narrow slot": ([D, one(D, lanes=8)], [(UNLIKE, [1])]),
    "a smaller card among totals that differ a little": (
        [BOX, but(BOX, memory=44.8), but(BOX, memory=44.9), one(BOX, memory=22)],
        [(UNLIKE, [3])],
    ),
    "lost and narrow": (
        [D, D, D, but(D, gpus=7), one(D, lanes=4)],
        [(COUNT, [3]), (UNLIKE, [4])],
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_what_is_wrong_in_a_fleet_is_found(name: str) -> None:
    fleet, expected = FAULTY[name]
    assert found(fleet) == expected


def test_there_are_thirty_faulty_fleets_and_more() -> None:
    assert len(FAULTY) == 34


def test_another_layout_is_a_notice(tmp_path: Path) -> None:
    divided = but(D, mig="7x1g.10gb")
    assert found([divided, divided, divided, D]) == []
    assert found([divided, divided, divided, D], NOTICE) == [(UNLIKE, [3])]
    # Of the saved state, too: who divides a card anew means to.
    assert [f["severity"] for f in report(but(D, saved=divided))["findings"]] == ["info"] * 8
    # A node whose driver was not asked says nothing of its parts.
    bare = report(but(D, saved=divided))
    for card in bare["devices"]:
        card["seen_by"] = ["bus"]
    expectation(bare, but(D, saved=divided))
    assert bare["findings"] == []


WORKSTATION = N(2, A40, "Precision 7960 Tower", "Intel Xeon w5-3435X", 128, links=0)
POOL = (
    *(D, VM, SMALL, BOX, BRIDGED, WORKSTATION),
    but(D, name=A100, model="DGXA100 920-23687-2530-000", cpu="AMD EPYC 7742", lanes=16, links=12),
    but(BOX, gpus=2, ram=256),
    but(BOX, name=A40, cpu="Intel Xeon Gold 6338", ram=256, driver="570.86.10"),
    but(VM, gpus=4, ram=936),
    but(VM, gpus=1, ram=234, links=0),
    but(WORKSTATION, gpus=1, ram=64),
    but(WORKSTATION, gpus=0, model="Precision 3680", ram=32),
    but(WORKSTATION, gpus=0, ram=96),
    but(D, mig="7x1g.10gb", model="HGX H100", cpu="AMD EPYC 9654"),
    N(3, T4, None, "Intel Xeon Silver 4314", 192, links=None),
    # A model whose last slot is narrow.
    but(BOX, gpus=8, model="SYS-420GP-TNR", cpu="Intel Xeon Gold 6330", one={"lanes": 8}),
)
EXPECTATIONS = {H100: "h100", A100: "a100 sxm", L40S: "L40S", A40: "nvidia/a40-pcie", T4: "t4"}


def healthy(seed: int) -> list[N]:
    """Return two to five kinds of nodes, one to four of each, with what differs in good order."""
    dice = random.Random(seed)
    fleet = []
    for kind in dice.sample(POOL, dice.randint(2, 5)):
        for _ in range(dice.randint(1, 4)):
            node = but(kind, ram=kind.ram * dice.uniform(0.998, 1.0))
            fleet.append(variation(node, dice.randrange(8)))
    return fleet


def variation(node: N, number: int) -> N:
    """Return a node with something that differs, and is no fault."""
    name = EXPECTATIONS[node.name]
    return {
        0: but(node, lanes=None, links=None),  # asleep, and its driver was not asked
        1: but(node, expect=f"{node.gpus}x{name}" if node.gpus else "none"),
        2: but(node, slots=64, saved=node),  # buses that are numbered anew
        3: but(node, saved=but(node, gpus=max(0, node.gpus - 1))),  # one was added
        4: but(node, memory=CHIPS[node.name][2] * 0.99),  # a driver reserves some
        5: but(node, memory=0),  # nobody read it
    }.get(number, node)


@pytest.mark.heavy
def test_a_healthy_mixed_fleet_alarms_nobody() -> None:
    alarms = {seed: entries for seed in range(100) if (entries := found(healthy(seed)))}
    assert alarms == {}
