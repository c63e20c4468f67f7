"""How near two devices are, whose memory is free, and what a request says: each bound exactly."""

from __future__ import annotations

from typing import Any

import pytest
import recorded
import visibility_nodes as nodes
from reports import report_of_recording

from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError, select
from probe_core.selection.candidates import free_memory, load
from probe_core.selection.choose import better_kinds, roomiest_group
from probe_core.selection.layout import best_group, closeness, divide
from probe_core.selection.request import NEXT, Request, chooser, plan

GIB = 1 << 30


def at(address: str, *links: dict[str, Any], **fields: Any) -> Any:
    name = f"pci:{address}"
    return nodes.nvidia(1, id=name, ids=[name], links=list(links), **fields)


def link(kind: str, peer: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "peer": peer, **fields}


FIRST, FAR = "0000:01:00.0", "0000:81:00.0"
OTHER = f"pci:{FAR}"


@pytest.mark.parametrize(
    ("own", "theirs", "score"),
    [
        ({}, {}, 0),
        ({"vendor": "amd"}, {}, -1_000_000),
        ({"vendor": None}, {"vendor": None}, 0),
        ({"numa_node": 0}, {"numa_node": 0}, 100),
        ({"numa_node": 0}, {"numa_node": 1}, 0),
        ({"numa_node": None}, {"numa_node": None}, 0),
        ({"links": [link("nvlink", OTHER, count=4)]}, {}, 10_004),
        ({"links": [link("xgmi", OTHER, count=1)]}, {}, 10_001),
        ({"links": [link("xe-link", OTHER)]}, {}, 10_001),
        ({"links": [link("nvlink", OTHER, count=999)]}, {}, 10_999),
        ({"links": [link("nvlink", OTHER, count=1000)]}, {}, 10_001),
        ({"links": [link("nvlink", OTHER, count=-1)]}, {}, 10_001),
        ({}, {"links": [link("nvlink", f"pci:{FIRST}", count=2)]}, 10_002),
        ({"links": [link("pcie", "pci:0000:00:01.0")]}, {}, 0),
        ({"links": [link("nvlink", None)]}, {"links": [link("nvlink", None)]}, 0),
    ],
)
def test_how_near_two_devices_are(own: Any, theirs: Any, score: int) -> None:
    first, second = at(FIRST) | own, at(FAR) | theirs
    assert closeness(first, second) == score
    assert closeness(second, first) == score


def test_a_link_through_other_devices_is_none() -> None:
    first = at(FIRST, link("nvlink", OTHER, count=0), link("nvlink", OTHER, count=3))
    assert closeness(first, at(FAR)) == 0


def test_common_switches_count_by_kind_and_name() -> None:
    switch = [link("pcie", "pci:0000:00:01.0"), link("nvlink", "switch-1")]
    assert closeness(at(FIRST, *switch), at(FAR, *switch)) == 2_000
    assert closeness(at(FIRST, *switch), at(FAR, switch[0])) == 1_000
    assert closeness(at(FIRST, link("pcie", "s")), at(FAR, link("nvlink", "s"))) == 0
    peer = link("nvlink", "uuid:GPU-1")
    assert closeness(at(FIRST, peer), at(FAR, peer)) == 0


@pytest.mark.parametrize(
    ("address", "score"),
    [
        ("0000:02:00.0", 49),
        ("0000:32:00.0", 1),
        ("0000:33:00.0", 0),
        ("0000:34:00.0", 0),
        ("0001:02:00.0", 0),
    ],
)
def test_addresses_that_lie_near(address: str, score: int) -> None:
    assert closeness(at(FIRST), at(address)) == score
    assert closeness(at(FIRST), at(FIRST) | {"id": "acme:1", "ids": ["acme:1"], "pci": None}) == 0


def test_groups_of_equally_near_devices_are_the_first_ones() -> None:
    devices = [at(f"000{number}:01:00.0") for number in range(6)]
    assert divide(devices, 2, 2) == [devices[:2], devices[2:4]]
    assert divide(devices, 3, 1) == [[device] for device in devices[:3]]
    assert divide(devices, 1, 6) == [devices]
    assert best_group(devices, 3) == devices[:3]
    with pytest.raises(ValueError, match="2x4 needs 8 devices, there are 6"):
        divide(devices, 2, 4)


@pytest.mark.parametrize("count", [8, 16])
def test_linked_pairs_stay_together(count: int) -> None:
    """8 devices are compared in all ways, 16 are too many for it."""
    names = [f"000{number:x}:01:00.0" for number in range(count)]
    half = count // 2
    devices = [
        at(name, link("nvlink", f"pci:{names[(number + half) % count]}", count=2))
        for number, name in enumerate(names)
    ]
    pairs = [[devices[number], devices[number + half]] for number in range(half)]
    assert divide(devices, half, 2) == pairs


def card(number: int, free: int | None, **fields: Any) -> Any:
    memory = {"kind": "dedicated", "total": 80 * GIB, "free": free}
    return at(f"000{number}:01:00.0", memory=memory, **fields) | fields


@pytest.mark.parametrize(
    ("memory", "free", "rank"),
    [
        ({"free": 5 * GIB, "usable": 6 * GIB, "total": 7 * GIB}, 5 * GIB, (False, -5)),
        ({"free": None, "usable": 6 * GIB, "total": 7 * GIB}, 6 * GIB, (False, -6)),
        ({"free": None, "usable": None, "total": 7 * GIB}, 7 * GIB, (True, -7)),
        ({"free": None, "usable": None, "total": None}, None, (True, 0)),
        ({"free": 0, "usable": 6 * GIB, "total": 7 * GIB}, 0, (False, 0)),
        ({"free": 2 * GIB - 1, "usable": None, "total": None}, 2 * GIB - 1, (False, -1)),
    ],
)
def test_the_memory_that_counts(memory: Any, free: int | None, rank: tuple[bool, int]) -> None:
    device = at(FIRST, memory={"kind": "dedicated", **memory})
    assert free_memory(device) == free
    used = [load({**device, "processes": value}) for value in ([], None, [{"pid": 1}])]
    assert used == [((0, False), count, *rank) for count in (0, 1, 2)]


@pytest.mark.parametrize(
    ("free", "chosen"),
    [
        ([80, 72, 80], [0, 1]),  # nine tenths are as good as all
        ([80, 71, 80], [0, 2]),
        ([79, 40, 39], [0, 1]),
        ([80, 39, 40], [0, 2]),
        ([80, 41, 40], [0, 1]),
        ([80, 20, 30], [0, 1]),  # both less than half
        ([0, 0, 0], [0, 1]),
    ],
)
def test_links_decide_among_those_with_much_memory_free(free: list[int], chosen: list[int]) -> None:
    devices = [card(number, amount * GIB, processes=[]) for number, amount in enumerate(free)]
    assert roomiest_group(devices, 2) == [devices[place] for place in chosen]


def test_what_is_much_is_measured_by_all_that_could_be_had() -> None:
    devices = [card(0, 30 * GIB, processes=[]), card(1, 50 * GIB, processes=[])]
    assert roomiest_group(devices, 1) == [devices[1]]
    assert roomiest_group(devices, 1, [card(2, 200 * GIB)]) == [devices[0]]
    assert roomiest_group(devices, 1, [card(2, 55 * GIB)]) == [devices[1]]


def test_a_processors_own_graphics_come_behind_cards() -> None:
    """A desktop's 7900 XTX beside its Ryzen: the processor has more memory, the system's."""
    cards = [card(0, 5 * GIB, processes=[{"pid": 1}]), card(1, 20 * GIB, processes=None)]
    own = card(9, 60 * GIB, processes=[])
    own["memory"] = {**own["memory"], "kind": "shared"}
    devices = [own, *cards]
    assert roomiest_group(devices, 1) == [cards[1]]
    assert roomiest_group(devices, 2) == cards
    assert roomiest_group(devices, 3) == devices
    assert sorted(devices, key=load) == [cards[1], cards[0], own]
    npu = {**card(8, None, processes=[]), "kind": "npu"}
    assert roomiest_group([npu, own], 1) == [own]
    # The processor's memory is no measure of what is much for a card.
    linked = [card(number, free * GIB, processes=[]) for number, free in enumerate((20, 5, 20))]
    assert roomiest_group([own, *linked], 2) == [linked[0], linked[2]]


@pytest.mark.parametrize("name", ["desktop--amd", "jetson", "laptop--amd", "raspberry-pi-5-ai"])
def test_one_device_is_the_primary_one(name: str) -> None:
    """Beside it stand graphics of the processor with more memory, NPUs that sleep, a Hailo."""
    (recording,) = (full for full in recorded.names() if full.startswith(name))
    document: Any = report_of_recording(recording, *(["amd"] if "amd" in name else []))
    assert select(document, count=1).ids == [document["primary"]]


def test_idle_devices_come_before_used_ones() -> None:
    devices = [card(0, 80 * GIB, processes=[{"pid": 1}]), card(1, 8 * GIB, processes=[])]
    assert roomiest_group(devices, 1) == [devices[1]]


def report(count: int, **fields: Any) -> Any:
    document = nodes.report([nodes.whole({**device, **fields}) for device in nodes.h100s(count)])
    refresh(document, {})
    return document


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("gpu:1", [2]),
        ("device:0-1", [1, 2]),
        ("CUDA:1", [2]),
        ("0-0", [1]),
        ("0-2,3", [1, 2, 3, 4]),
        ("000000001", [2]),
        (" ALL ", [1, 2, 3, 4]),
        ("1X2", [1, 2]),
        ("1x4", [1, 2, 3, 4]),
    ],
)
def test_ways_to_write_a_list(wanted: str, ids: list[int]) -> None:
    assert nodes.slots(select(report(4), wanted).ids) == ids


@pytest.mark.parametrize(
    ("wanted", "unmet", "code"),
    [
        ("0000000001", "there is no number 0000000001", "unknown"),
        ("2-1", "'2-1' is no range; write the smaller number first, as in 0-3", "syntax"),
        ("0-1024", "'0-1024' is more than 1024 devices", "syntax"),
        ("0-1023", "there is no number 4", "unknown"),
        ("1x5", "only 4 devices can be had", "too-few"),
        ("0x2", "a layout has at least one group of one device", "syntax"),
        ("2x0", "a layout has at least one group of one device", "syntax"),
        ("1x", "no device is called '1x'", "unknown"),
        ("x1", "no device is called 'x1'", "unknown"),
        ("+1", "'+1' is no device", "syntax"),
        ("H", "no device is called 'H'", "unknown"),
        (" ", "the list names no device", "syntax"),
        ("hip:1", "'hip:1' counts as hip does, the request as cuda does", "syntax"),
    ],
)
def test_what_is_wrong_with_a_list(wanted: str, unmet: str, code: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(4), wanted)
    assert (caught.value.unmet, caught.value.code) == (unmet, code)


@pytest.mark.parametrize("number", ["3090", "30", "90", "5090"])
def test_a_number_that_is_a_model_says_how_to_ask_for_it(number: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(2, name="NVIDIA GeForce RTX 3090"), number)
    assert caught.value.unmet == f"there is no number {number}"
    asked = "3090 is a model, not a device: --device 0,1, or --gpus 2"
    assert caught.value.fix == (asked if number == "3090" else "one of 0, 1")


def test_a_model_is_no_device_and_the_error_says_how_to_ask_for_it() -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(3), "h1")
    assert caught.value.fix == "h1 is a model, not a device: --device 0,1,2, or --gpus 3"
    with pytest.raises(SelectionError) as caught:
        select(report(1, name=None), "h1")
    assert caught.value.fix == "one of 0"


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"count": 5}, "5 devices"),
        ({"count": 1, "memory": "99 GiB"}, "1 device with 99 GiB free each"),
        ({"memory": "99 GiB"}, "every device with 99 GiB free each"),
        ({"wanted": "9"}, "'9'"),
        ({"wanted": "9" * 81}, repr("9" * 80)),
        ({"wanted": "0", "count": 2}, "'0' 2 devices"),
    ],
)
def test_what_was_asked_for(arguments: dict[str, Any], asked: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(4), **arguments)
    assert caught.value.asked == asked


@pytest.mark.parametrize(
    ("arguments", "code", "unmet", "fix"),
    [
        ({"count": 0}, "syntax", "a count is at least 1", None),
        ({"count": 5}, "too-few", "only 4 devices can be had", "ask for 4"),
        ({"count": 5, "memory": 79 * GIB + 1}, "too-few", "only 0 devices can be had", None),
        (
            {"count": 2, "memory": 79 * GIB + 1},
            "memory",
            "only 0 of the visible devices have that much memory free",
            "ask for 79 GiB each",
        ),
        (
            {"wanted": "0", "memory": 79 * GIB + 1},
            "memory",
            "pci:0000:01:00.0 has 79 GiB free",
            None,
        ),
    ],
)
def test_what_would_work(arguments: dict[str, Any], code: str, unmet: str, fix: str | None) -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(4), **arguments)
    assert (caught.value.unmet, caught.value.fix) == (unmet, fix)
    assert caught.value.code == code


def test_memory_that_is_unknown_is_not_called_too_little() -> None:
    document = report(4)
    for device in document["devices"][2:]:
        device["memory"] |= {"free": None, "usable": None, "total": None}
    with pytest.raises(SelectionError) as caught:
        select(document, count=3, memory=GIB)
    assert caught.value.unmet == (
        "only 2 of the visible devices are known to have that much memory free"
        " (2 of unknown memory)"
    )
    assert (caught.value.code, caught.value.fix) == ("memory", None)


@pytest.mark.parametrize(
    ("reserve", "memory", "unmet", "fix"),
    [
        ("80 GiB", {}, None, None),
        (80 * GIB + 1, {}, "no visible device has 80 GiB to reserve", "reserve 80 GiB at most"),
        (81 * GIB, {"usable": 81 * GIB, "total": 80 * GIB}, None, None),
        (1, {"usable": None, "total": None}, "no visible device has 1 B to reserve", None),
        ("much", {}, "'much' is no amount of memory; write it as 20GiB, 512MiB or 80e9", None),
    ],
)
def test_how_much_can_be_reserved(
    reserve: str | int, memory: Any, unmet: str | None, fix: str | None
) -> None:
    document = report(2)
    for device in document["devices"]:
        device["memory"] |= memory
    request = Request(2, reserve=reserve)
    if unmet is None:
        assert plan(document, request)[1] == 2
        return
    with pytest.raises(SelectionError) as caught:
        plan(document, request)
    assert (caught.value.unmet, caught.value.fix) == (unmet, fix)


@pytest.mark.parametrize(
    ("index", "ids", "count"),
    [(0, [1, 2], 2), (1, [3, 4], 2), (None, [1, 2, 3, 4], 4), (NEXT, [1, 2, 3, 4], 2)],
)
def test_a_group_of_a_layout(index: int | str | None, ids: list[int], count: int) -> None:
    request = Request(selector="2x2", index=index)
    ranked, needed = plan(report(4), request)
    assert (nodes.slots([device["id"] for device in ranked]), needed) == (ids, count)
    pick = chooser(report(4), request, needed, ranked)
    first, second = ranked[:2], ranked[2:]
    if index == NEXT:
        assert [pick(free) for free in (ranked, ranked[1:], second, ranked[:1])] == [
            first, second, second, None
        ]  # fmt: skip
    else:
        assert [pick(ranked), pick(ranked[1:])] == [ranked, None]


@pytest.mark.parametrize("index", [-1, 2, "1", "first"])
def test_a_group_that_a_layout_does_not_have(index: int | str) -> None:
    with pytest.raises(SelectionError) as caught:
        plan(report(4), Request(selector="2x2", index=index))
    assert (caught.value.unmet, caught.value.fix, caught.value.code) == (
        f"the layout 2x2 has no group {index}", "an index from 0 to 1", "unknown"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (Request(), "1 device"),
        (Request(1), "1 device"),
        (Request(3), "3 devices"),
        (Request(selector="0,1"), "'0,1'"),
        (Request(selector="2x2", index=1), "'2x2', group 1"),
        (Request(selector="2x2", index=NEXT), "'2x2', the next free group"),
        (Request(selector="9" * 81), repr("9" * 80)),
    ],
)
def test_a_request_in_words(request_: Request, text: str) -> None:
    assert str(request_) == text


def test_of_one_device_what_it_has_is_offered() -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(1), memory=79 * GIB + 1)
    assert (caught.value.code, caught.value.fix) == ("memory", "ask for 79 GiB each")


def test_exactly_as_much_memory_as_is_free_can_be_had() -> None:
    assert len(select(report(4), memory=79 * GIB).ids) == 4
    assert nodes.slots(select(report(4), "2", memory=79 * GIB).ids) == [3]


@pytest.mark.parametrize(
    ("least", "waiting", "is_met"),
    [("40 GiB", False, True), ("41 GiB", False, False), ("41 GiB", True, True),
     ("80 GiB", True, True), ("81 GiB", True, False)],
)  # fmt: skip
def test_who_waits_may_get_memory_that_is_in_use(least: str, waiting: bool, is_met: bool) -> None:
    document = report(1)
    total = {"kind": "dedicated", "total": 80 * GIB, "usable": 40 * GIB, "free": 40 * GIB}
    document["devices"][0]["memory"] = total
    request = Request(1, memory=least)
    if is_met:
        found, count = plan(document, request, waiting=waiting)
        # The device itself is as the report has it.
        assert ([device["memory"] for device in found], count) == ([total], 1)
    else:
        with pytest.raises(SelectionError):
            plan(document, request, waiting=waiting)


def test_which_devices_are_of_a_better_kind() -> None:
    card, other = at(FIRST), at(FAR)
    npu = at("0000:91:00.0", kind="npu")
    assert better_kinds([card], [card, other, npu])[0] == []
    taken = f"taken instead: {npu['id']} (of kind npu)"
    assert better_kinds([npu], [card, other, npu]) == ([card["id"], other["id"]], taken)
    assert better_kinds([card, npu], [card, other, npu]) == ([other["id"]], taken)


def test_of_what_is_free_the_first_in_order_are_picked_unless_they_must_be_near() -> None:
    small, large, far = (card(number, free * GIB) for number, free in ((1, 8), (2, 80), (3, 80)))
    ranked = [small, large, far]

    def picked(count: int, *free: Any) -> Any:
        return chooser(report(1), Request(count), count, ranked)(free)

    assert picked(1, far, small) == [small]
    assert picked(2, far, small) == [small, far]
    assert picked(2, far, small, large) == [far, large]
    assert picked(2, far) is None
    assert picked(3, far, large, small) == ranked


@pytest.mark.parametrize(("index", "is_there"), [(0, True), (1, True), (2, False), (-1, False)])
def test_which_group_of_a_layout_may_be_asked_for(index: int, is_there: bool) -> None:
    request = Request(selector="2x2", index=index)
    if is_there:
        found, count = plan(report(4), request)
        assert (nodes.slots([device["id"] for device in found]), count) == (
            [1 + 2 * index, 2 + 2 * index], 2,
        )  # fmt: skip
    else:
        with pytest.raises(SelectionError) as raised:
            plan(report(4), request)
        assert f"the layout 2x2 has no group {index}" in str(raised.value)
        assert "an index from 0 to 1" in str(raised.value)
