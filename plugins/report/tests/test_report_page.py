"""What is on the page: the figures of the report, in their order, escaped and bounded."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from report_nodes import HOSTILE, gpu, measurement, nodes, nvlink, probed

from probe_core.commands import parse_report
from probe_report.cluster import Member, cluster_of
from probe_report.fabric import distances_of, fabrics_of
from probe_report.figures import Names, accelerators
from probe_report.html import MOST, cluster_html, page_html
from probe_report.page import Page, only, page_of
from probe_report.picture import card_of
from probe_report.sources import raw_of
from probe_report.summary import Entry, State, state_of_node
from probe_report.terminal import cluster_lines, page_lines

DESKTOP = "desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = nodes(tmp_path_factory.mktemp("nodes"))
    return {name: parse_report(json.dumps(report).encode()) for name, report in made.items()}


@pytest.fixture(scope="module")
def pages(reports: Mapping[str, Any]) -> dict[str, Page]:
    return {name: page_of(report) for name, report in reports.items()}


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        tag = self._open[-1] if self._open else ""
        self.texts[tag] = self.texts.get(tag, "") + data


def report_with(tmp_path: Path, *sightings: dict[str, Any]) -> Any:
    report = probed(list(sightings), tmp_path, "vm-without-accelerator--cpu")
    return parse_report(json.dumps(report).encode())


@pytest.mark.heavy
def test_the_head_sums_what_is_known(pages: dict[str, Page]) -> None:
    head = pages["dgx"].head
    assert (head.title, head.state.text) == ("8 × NVIDIA H100 80GB HBM3", "ready")
    assert head.eyebrow == "DGXH100 · linux 5.15.0-1047-nvidia · x86_64"
    assert [(tile.label, tile.value, tile.unit, tile.note) for tile in head.tiles] == [
        ("Accelerators", "8", "", "8 usable through cuda"),
        ("Accelerator memory", "636.8", "GiB", "341.3 GiB free"),
        ("fp16 peak, dense", "7915", "TFLOPS", "derived; 8 of 8 measured"),
        ("Host memory", "1.97", "TiB", "1.96 TiB available"),
    ]


@pytest.mark.heavy
def test_a_sum_that_lacks_a_device_is_a_bound(pages: dict[str, Page]) -> None:
    memory = pages["pair"].head.tiles[1]
    assert (memory.value, memory.note) == ("≥ 48.0", "at least: 1 device not known")


def test_memory_of_the_system_is_counted_once(pages: dict[str, Page]) -> None:
    memory = pages["mali"].head.tiles[1]
    assert (memory.value, memory.unit, memory.note) == ("15.5", "GiB", "shared with the system")


def test_an_npu_of_a_processor_has_no_memory_of_its_own(pages: dict[str, Page]) -> None:
    count, memory, *_ = pages["strix"].head.tiles
    assert (count.value, count.note) == ("2", "1 usable")  # no NPU is through hip
    assert (memory.value, memory.note) == ("20.0", "shared with the system")
    (package,) = pages["strix"].picture.packages
    assert [(card.label, card.has_bar) for card in package.box.cards] == [
        ("GPU 0", False),
        ("NPU 0", False),
    ]


def test_a_node_without_accelerators_shows_its_processors(pages: dict[str, Page]) -> None:
    head = pages["cpu"].head
    assert (head.title, head.state.text) == ("2 × AMD EPYC 9124", "no accelerator")
    assert [(tile.label, tile.value) for tile in head.tiles] == [
        ("Accelerators", "0"),
        ("Cores", "32"),
        ("fp32 peak, dense", "3.80"),
        ("Host memory", "376.7"),
    ]


STEP = {"step": "responding", "status": "broken", "code": "gpu-lost", "evidence": "NVML 15"}
HIDDEN = {"visible": False, "index": None, "reason": "", "variable": "CUDA_VISIBLE_DEVICES"}
NOT_GRANTED = {"step": "node", "status": "broken", "code": "container-without-gpus",
               "evidence": "/dev/nvidia2: missing", "severity": "info"}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words", "style"),
    [
        ({"fallback": "degraded"}, "✕ degraded", "bad"),
        ({"severity": "error"}, "✕ ready, with errors", "bad"),
        ({"severity": "warning"}, "! ready, with warnings", "warn"),
        ({"blocked": 1}, "! 7 of 8 accelerators can be used", "warn"),
        ({"blocked": 8}, "✕ no accelerator can be used", "bad"),
        ({}, "✓ ready", "good"),
        ({"blocked": 6, "step": NOT_GRANTED}, "✓ ready, 2 of 8 here", "good"),
        ({"hidden": 8}, "✓ ready, none of 8 here", "good"),
    ],
)
def test_the_state_is_a_mark_and_words(
    change: dict[str, Any], words: str, style: str, reports: dict[str, Any]
) -> None:
    report = copy.deepcopy(reports["dgx"])
    report["fallback"] = change.get("fallback")
    report["findings"] = [
        {**finding, "severity": change.get("severity", "info")} for finding in report["findings"]
    ]
    for device in accelerators(report)[: change.get("blocked", 0)]:
        step = change.get("step", STEP)
        device["readiness"] = {"state": "blocked", "broken": step["step"], "steps": [step]}
    for device in accelerators(report)[: change.get("hidden", 0)]:
        device["visibility"]["cuda"] = HIDDEN
    state = state_of_node(report)
    assert (f"{state.mark} {state.text}", state.style) == (words, style)


def test_boxes_stand_in_what_they_hang_on(pages: dict[str, Page]) -> None:
    first, second = pages["dgx"].picture.packages
    assert (first.title, first.cpu) == ("package 0 · NUMA 0", "Intel Xeon Platinum 8480C")
    assert first.displays == "display only: aspeed 02:00.0"
    boxes = [
        (box.title, box.address, [card.label for card in box.cards]) for box in second.box.boxes
    ]
    assert boxes == [
        ("PCIe switch", "98:00.0", ["GPU 4", "GPU 5"]),
        ("PCIe switch", "d0:00.0", ["GPU 6", "GPU 7"]),
    ]
    card = first.box.boxes[0].cards[0]
    assert (card.memory, card.used, card.busy) == ("71.2 of 79.6 GiB", 89.4, True)
    assert (card.link, card.address, card.linked) == ("PCIe 5 ×16", "1b:00.0", True)
    (fabric,) = pages["dgx"].picture.fabrics
    assert (fabric.title, fabric.note) == (
        "NVLink through a switch",
        "18 links each · 478 GB/s each way",
    )


def test_a_package_of_several_nodes_has_a_box_for_each(tmp_path: Path) -> None:
    cards = [gpu(f"0{n}", "A", 24, 0, numa_node=node) for n, node in enumerate((2, 0, 1), start=1)]
    report = probed(cards, tmp_path, "kunpeng-920--2-sockets-of-2-numa-nodes")
    first, second = page_of(parse_report(json.dumps(report).encode())).picture.packages
    assert [(box.title, len(box.cards)) for box in first.box.boxes] == [
        ("NUMA 0", 1),
        ("NUMA 1", 1),
    ]
    assert (first.title, second.title) == ("package 0 · NUMA 0–1", "package 1 · NUMA 2–3")
    assert [(box.title, len(box.cards)) for box in second.box.boxes] == [("NUMA 2", 1)]


def test_what_hangs_on_no_package_has_its_own_place(tmp_path: Path) -> None:
    card = gpu("01", "A", 24, 0)
    report = probed([card], tmp_path, "dual-socket-epyc-9124--cpu")
    packages = page_of(parse_report(json.dumps(report).encode())).picture.packages
    assert [(p.title, len(p.box.cards)) for p in packages] == [
        ("package 0 · NUMA 0", 0),
        ("package 1 · NUMA 1", 0),
        ("package not known", 1),
    ]


def test_cards_in_slots_of_their_own_have_no_box(pages: dict[str, Page]) -> None:
    (package,) = pages["pair"].picture.packages
    assert package.box.boxes == ()
    assert [card.label for card in package.box.cards] == ["GPU 0", "GPU 1", "GPU 2"]


def test_what_is_not_known_and_what_sleeps_is_drawn_so(pages: dict[str, Page]) -> None:
    picture = pages["broken"].picture
    cards = [card for package in picture.packages for card in package.box.cards]
    words = [(card.status, card.style, card.used) for card in cards[:4]]
    assert words[1:] == [
        ("lost", "bad", 0.5),
        ("no permission", "bad", 0.5),
        ("asleep", "asleep", None),
    ]
    assert (picture.has_unknown, picture.has_asleep, picture.has_memory) == (True, True, True)


def test_parts_stand_in_their_device(tmp_path: Path) -> None:
    card = gpu("01", "NVIDIA A100-SXM4-80GB", 80, 1)
    part = {**gpu("01", "NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40, 0),
            "ids": ["uuid:MIG-00000000-0000-0000-0000-000000000001"],
            "parent": "pci:0000:01:00.0", "profile": "3g.40gb"}  # fmt: skip
    report = report_with(tmp_path, card, part)
    (package,) = page_of(report).picture.packages
    assert [card.parts for card in package.box.cards] == [("3g.40gb · 40.0 GiB",)]
    assert page_of(report).head.tiles[1].value == "80.0"


def test_distances_are_those_of_the_bridges(tmp_path: Path) -> None:
    under = ["0000:01:00.0", "0000:00:01.0"]
    report = report_with(
        tmp_path,
        gpu("05", "A", 80, 0, bridges=["0000:02:00.0", *under], numa_node=0),
        gpu("06", "B", 80, 0, bridges=["0000:02:01.0", *under], numa_node=0),
        gpu("07", "C", 80, 0, bridges=["0000:04:00.0", "0000:03:00.0", "0000:02:02.0", *under],
            numa_node=0),
        gpu("08", "D", 80, 0, bridges=["0000:00:02.0"], numa_node=0),
        gpu("81", "E", 80, 0, bridges=["0000:80:01.0"], numa_node=0),
        gpu("c1", "F", 80, 0, bridges=["0000:c0:01.0"], numa_node=1),
    )  # fmt: skip
    matrix = distances_of(report, Names(report))
    assert matrix is not None
    assert matrix.rows[0] == ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
    assert [row[0] for row in matrix.rows] == list(matrix.rows[0])
    assert matrix.meanings.startswith("PIX: one PCIe switch. PXB: several")


def test_links_between_two_cards_are_named(tmp_path: Path) -> None:
    first = gpu("01", "A", 24, 0, links=[nvlink("0000:02:00.0", 4, "gpu")])
    second = gpu("02", "B", 24, 0, links=[nvlink("0000:01:00.0", 4, "gpu")])
    report = report_with(tmp_path, first, second)
    names, devices = Names(report), accelerators(report)
    (fabric,) = fabrics_of(devices, names)
    assert (fabric.title, fabric.note) == (
        "NVLink: GPU 0 ↔ GPU 1",
        "4 links each · 106 GB/s each way",
    )
    matrix = distances_of(report, names)
    assert matrix is not None
    assert matrix.rows == (("X", "NV4"), ("NV4", "X"))


def test_network_cards_are_drawn_and_have_distances(tmp_path: Path) -> None:
    under = ["0000:01:00.0", "0000:00:01.0"]
    first = gpu("05", "A", 80, 0, bridges=["0000:02:00.0", *under])
    report = report_with(tmp_path, first, gpu("08", "B", 80, 0, bridges=["0000:00:02.0"]))
    link = {"device": "pci:0000:06:00.0", "bridges": ["0000:02:01.0", *under], "bandwidth": 5e10}
    report["node"]["network"] = [
        {"name": name, "kind": kind, "state": state, "reason": None, **link}
        for name, kind, state in (("eth0", "ethernet", "down"), ("mlx5_0/1", "rdma", "up"))
    ]
    page = page_of(report)
    assert page.distances is not None
    assert page.distances.heads == ("GPU0", "GPU1", "NIC0")
    assert page.distances.rows[2] == ("PIX", "PHB", "X")
    (package,) = page.picture.packages
    (box,) = package.box.boxes
    assert (box.title, box.address) == ("PCIe switch", "01:00.0")
    shown = [(card.label, card.name, card.status, card.memory) for card in box.cards]
    assert shown[1] == ("NIC 0", "mlx5_0/1, eth0", "up", "50 GB/s")
    assert page_of(only(report, "05:00.0")).distances is None


def test_nothing_known_is_no_matrix(tmp_path: Path) -> None:
    report = report_with(tmp_path, gpu("01", "A", 24, 0), gpu("02", "B", 24, 0))
    matrix = page_of(report).distances
    assert matrix is not None
    assert matrix.rows == (("X", "NODE"), ("NODE", "X"))  # its only NUMA node
    for device in report["devices"]:
        device.pop("numa_node", None)
    assert page_of(report).distances is None


def test_equal_devices_share_a_row_and_measured_stands_beneath(pages: dict[str, Page]) -> None:
    rows = pages["dgx"].devices.rows
    assert [(row.number, row.name) for row in rows] == [
        (8, "NVIDIA H100 80GB HBM3"),
        (2, "Intel Xeon Platinum 8480C"),
        (1, "aspeed display adapter, cannot compute"),
    ]
    fp32, fp16, int8, rate = rows[0].figures
    assert (fp16.derived, fp16.measured, fp16.share) == (
        "989",
        "794 measured · 80\N{NO-BREAK SPACE}%",
        80.3,
    )
    assert (fp32.measured, fp32.share, fp32.doubt) == (
        "70.1 measured · 105\N{NO-BREAK SPACE}%",
        100.0,
        "disturbed: median",
    )
    assert (int8.derived, int8.measured, int8.share) == ("1979", "", None)
    assert (rate.derived, rate.measured) == ("3350", "3010 measured · 90\N{NO-BREAK SPACE}%")
    assert rows[1].figures[0].reason == "the number of its cores could not be read"
    assert pages["dgx"].devices.measured[0] == (
        "8 devices: fp16 matmul 794 TFLOPS, achieved by tinygrad 0.14.0 on 2026-11-20"
    )


@pytest.mark.parametrize(
    "entries",
    [
        None,
        "fast",
        [None, 3, {}],
        [measurement("fp16", float("inf"))],
        [{**measurement("fp16", 1.0), "best": "1"}],
    ],
)
def test_measurements_that_are_none_are_left_out(entries: Any, reports: dict[str, Any]) -> None:
    report = copy.deepcopy(reports["pair"])
    report["devices"][0]["measured"] = entries
    assert page_of(report).devices.measured == ()


def test_a_break_has_its_cause_and_its_fix(pages: dict[str, Page]) -> None:
    chains = {chain.status: chain for chain in pages["broken"].chains}
    lost = chains["lost"]
    assert (lost.cause, lost.reason) == (
        "responding is broken (gpu-lost)",
        "NVML_ERROR_GPU_IS_LOST (15)",
    )
    assert lost.fix == "drain the node, then reset the GPU or reboot"
    marks = {step.name: step.mark for step in lost.steps}
    assert (marks["hardware"], marks["responding"], marks["runtime"]) == ("✓", "✕", "?")
    assert chains["no permission"].fix.startswith("let this user open its device node: ")


def test_runtimes_that_agree_are_a_row(pages: dict[str, Page]) -> None:
    first, second = pages["dgx"].views
    assert first.runtime == "cuda, sycl, opencl, vulkan, ggml-vulkan, tinygrad"
    assert (first.mark, first.shown, first.order) == ("✓", "8 of 8 devices visible", "numbers 0–7")
    assert (second.runtime, second.mark) == ("nvidia-container", "–")
    assert second.reasons == (
        "NVIDIA_VISIBLE_DEVICES is not set: the container runtime adds no GPU (8 devices)",
    )


def test_findings_come_worst_first_and_in_bounds(pages: dict[str, Page]) -> None:
    findings = pages["broken"].findings
    assert [entry.severity for entry in findings.open[:4]] == ["error"] * 3 + ["info"]
    huge = pages["huge"].findings
    assert (len(huge.open), len(huge.folded), huge.hidden) == (12, 48, 140)
    assert {entry.severity for entry in huge.open} == {"error"}


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["dgx", "broken", "huge", "cpu"])
def test_every_text_is_escaped(name: str, pages: dict[str, Page]) -> None:
    text = page_html(pages[name])
    page = Elements(text)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "form", "input", "video", "base"}
    attributes = {key for _, keys in page.elements for key in keys}
    assert not [key for key in attributes if key.startswith("on")]
    links = [keys["href"] for _, keys in page.elements if "href" in keys]
    assert links == ["data:,"]
    assert "49" not in page.texts.get("h1", "")  # {{7*7}} is text, and no template


def test_a_device_called_script_is_a_name(pages: dict[str, Page]) -> None:
    page = Elements(page_html(pages["broken"]))
    assert HOSTILE in page.texts["b"]
    labels = [keys.get("aria-label") for tag, keys in page.elements if tag == "svg"]
    assert labels
    assert HOSTILE in json.loads(page.texts["pre"])["devices"][0]["name"]


def test_the_json_is_the_report(reports: dict[str, Any], pages: dict[str, Page]) -> None:
    shown = json.loads(Elements(page_html(pages["broken"])).texts["pre"])
    assert shown == json.loads(json.dumps(reports["broken"]))


def test_json_without_room_has_whole_devices(reports: dict[str, Any]) -> None:
    raw = raw_of(reports["dgx"], room=30_000)
    assert (raw.shown, raw.devices) == (len(json.loads(raw.text)["devices"]), 11)
    assert 0 < raw.shown < 11
    assert raw_of(reports["dgx"], room=100).text == ""


@pytest.mark.heavy
def test_a_page_of_any_node_is_bounded(pages: dict[str, Page]) -> None:
    sizes = {name: len(page_html(page).encode()) for name, page in pages.items()}
    assert max(sizes.values()) <= MOST
    huge = pages["huge"]
    assert huge.picture.beyond == "496 packages not drawn"
    assert huge.devices.hidden == 512
    assert huge.raw is not None
    assert 0 < huge.raw.shown < huge.raw.devices == 576
    assert 0 < huge.raw.shown_findings < huge.raw.findings == 200
    text = page_html(huge)
    for sentence in ("140 more are not shown here", "496 packages not drawn", "512 more devices"):
        assert sentence in text


def quoted(value: Any) -> Any:
    """Return a report with marks for every sentence, which take five times their room escaped."""
    if isinstance(value, str) and len(value) > 200:
        return '"' * 4000
    if isinstance(value, list):
        return [quoted(item) for item in value]
    if isinstance(value, dict):
        return {key: quoted(item) for key, item in value.items()}
    return value


@pytest.mark.heavy
def test_a_page_of_marks_alone_is_bounded(reports: dict[str, Any]) -> None:
    report = quoted(reports["huge"])
    for number, device in enumerate(report["devices"]):
        device["name"] = f"{'<' * 300}{number}"
        device["sources"] = {f"{'&' * 200}{n}": '"' * 200 for n in range(64)}
        steps = [{"step": "node", "status": "broken", "evidence": '"' * 4000, "code": f"c{number}"}]
        device["readiness"] = {"state": "blocked", "broken": "node", "steps": steps * 9}
    for number, finding in enumerate(report["findings"]):
        finding["why"] = f"{number}{'<' * 4000}"
    text = page_html(page_of(report))
    assert len(text.encode()) <= MOST
    assert "It is too long for this page" in text
    assert "188 more are not shown here" in text


@pytest.mark.heavy
def test_a_row_leads_to_the_fold_of_its_own_node(reports: dict[str, Any]) -> None:
    absent = [Member("node 0", None, "timeout")]
    members = [Member(f"node {n}", reports["broken"], "") for n in range(1, 100)]
    text = cluster_html(cluster_of([*absent, *members], (), ()))
    rows = dict(re.findall(r'href="#(n\d+)"><b>([^<]+)</b>', text))
    folds = dict(re.findall(r'<details class="node" id="(n\d+)"><summary><b>([^<]+)</b>', text))
    assert rows == folds
    assert rows["n1"] == "node 1"
    assert 3 < len(folds) < 99


@pytest.mark.heavy
def test_rows_leave_where_even_they_are_too_long(reports: dict[str, Any]) -> None:
    report = quoted(reports["broken"])
    for device in report["devices"]:
        device["name"], device["driver"] = "<" * 240, {"name": '"' * 240, "version": '"' * 240}
    members = [Member("&" * 64, report, "") for _ in range(256)]
    cluster = cluster_of(members, (), ("'" * 80_000,))
    text = cluster_html(cluster)
    assert len(text.encode()) <= MOST
    rows = text.count('<th scope="row">')
    assert f"{256 - rows} more nodes are not shown here" in text


@pytest.mark.heavy
def test_a_page_of_many_nodes_is_bounded(reports: dict[str, Any]) -> None:
    members = [Member(f"node {n}", reports["broken"], "") for n in range(300)]
    cluster = cluster_of(members, (), ())
    text = cluster_html(cluster)
    assert len(text.encode()) <= MOST
    assert (len(cluster.rows), cluster.hidden) == (256, 44)
    assert "44 more nodes are not shown here" in text
    folds = text.count('<details class="node"')
    assert f"{len(cluster.pages) - folds} more nodes have no fold here" in text


@pytest.mark.heavy
def test_as_many_nodes_have_a_fold_as_there_is_room_for(reports: dict[str, Any]) -> None:
    members = [Member(f"node {n}", reports["broken"], "") for n in range(64)]
    _, *folds = cluster_html(cluster_of(members, (), ())).split('<details class="node"')
    sizes = [len(fold.partition("</details>\n</section>")[0].encode()) for fold in folds[:-1]]
    # Two thirds of a page are for the folds; the table and the style have the rest.
    assert sum(sizes) < MOST * 0.7
    assert sum(sizes) + 2 * max(sizes) > MOST * 0.7


def test_rows_of_a_cluster(reports: dict[str, Any]) -> None:
    members = [Member(name, reports[name], "") for name in ("dgx", "cpu")]
    cluster = cluster_of([*members, Member("c", None, "timeout")], (), ())
    assert cluster.state.text == "1 of 3 nodes needs a look"
    dgx, cpu, absent = cluster.rows
    assert (dgx.accelerators, dgx.memory, dgx.peak) == (
        "8 × NVIDIA H100 80GB HBM3",
        "636.8 GiB",
        "7915",
    )
    assert (dgx.processor, dgx.driver) == ("2 × Intel Xeon Platinum 8480C", "nvidia 580.95.05")
    assert (cpu.accelerators, cpu.memory, cpu.findings) == ("none", "–", "none")
    assert (absent.state.text, absent.memory, absent.fold) == ("timeout", "–", False)
    assert [tile.value for tile in cluster.tiles] == ["3", "8", "636.8", "7915"]


def test_a_node_of_unknown_readiness_is_not_called_ready(reports: dict[str, Any]) -> None:
    unknown = copy.deepcopy(reports["dgx"])
    for device in unknown["devices"]:
        device["readiness"] = {"state": "unknown", "broken": None, "steps": []}
    known, dark = Member("a", reports["dgx"], ""), Member("b", unknown, "")
    assert cluster_of([known, known], (), ()).state == State("✓", "every node is ready", "good")
    state = cluster_of([known, dark], (), ()).state
    assert state == State("?", "readiness of 1 of 2 nodes not known", "none")


def test_a_difference_without_a_cause_has_no_line_for_it(reports: dict[str, Any]) -> None:
    entry = Entry("info", "i", ("2 nodes unlike the others: kernel",), 0, "", "", "", "")
    cluster = cluster_of([Member("a", reports["dgx"], "")], (entry,), ())
    lines = list(cluster_lines(cluster))
    place = lines.index("i info: 2 nodes unlike the others: kernel")
    assert lines[place + 1] == ""
    assert '<p class="why"></p>' not in cluster_html(cluster)


@pytest.mark.heavy
@pytest.mark.parametrize("total", [-1, 0, 1, 1 << 62])
def test_a_total_that_is_none_makes_no_bar(total: int, reports: dict[str, Any]) -> None:
    """A bar of text was as long as the number that a hand-written report had."""
    report = copy.deepcopy(reports["pair"])
    report["devices"][0]["memory"]["total"] = total
    page = page_of(report)
    assert max(map(len, page_lines(page))) <= 80
    assert len(page_html(page)) < MOST


def test_text_has_80_columns(pages: dict[str, Page], reports: dict[str, Any]) -> None:
    for name, page in pages.items():
        lines = list(page_lines(page))
        assert max(map(len, lines)) <= 80, name
    cluster = cluster_of([Member(n, report, "") for n, report in reports.items()], (), ("note",))
    assert max(map(len, cluster_lines(cluster))) <= 80


def test_text_has_what_the_page_has(pages: dict[str, Page]) -> None:
    text = "\n".join(page_lines(pages["dgx"]))
    assert text.startswith("8 × NVIDIA H100 80GB HBM3: ✓ ready\n=====")
    for line in (
        "Accelerator memory:  636.8 GiB (341.3 GiB free)",
        "    PCIe switch 18:00.0",
        "      GPU 0 NVIDIA H100 80GB HBM3 · ready · [#########.] 71.2 of 79.6 GiB",
        "NVLink through a switch · 18 links each · 478 GB/s each way",
        "GPU 0  X     NV18  NV18  NV18  NV18  NV18  NV18  NV18",
    ):
        assert f"\n{line}\n" in text


def test_one_device_alone(reports: dict[str, Any]) -> None:
    report = only(reports["broken"], "43:00.0")
    assert [device["id"] for device in report["devices"]] == ["pci:0000:43:00.0"]
    devices = {finding["device"] for finding in report["findings"]}
    assert devices <= {None, "pci:0000:43:00.0"}
    assert "lost" in {chain.status for chain in page_of(report).chains}
    assert len(only(reports["dgx"], "h100")["devices"]) == 8


GIB = 1 << 30


@pytest.mark.parametrize(
    ("memory", "text", "used", "is_busy"),
    [
        ({"total": 80 * GIB, "used": 20 * GIB}, "20.0 of 80.0 GiB", 25.0, False),
        ({"total": 80 * GIB, "used": 20 * GIB, "free": 10 * GIB}, "20.0 of 80.0 GiB", 25.0, False),
        ({"total": 80 * GIB, "free": 20 * GIB}, "60.0 of 80.0 GiB", 75.0, False),
        ({"total": 80 * GIB, "free": 12 * GIB}, "68.0 of 80.0 GiB", 85.0, False),
        ({"total": 80 * GIB, "free": 4 * GIB}, "76.0 of 80.0 GiB", 95.0, True),
        ({"total": 80 * GIB, "free": 90 * GIB}, "0 B of 80.0 GiB", 0.0, False),
        ({"total": 80 * GIB}, "80.0 GiB, use not known", None, False),
        ({"free": 20 * GIB}, "memory not known", None, False),
        ({"total": 80 * GIB, "used": 512 << 20}, "512.0 MiB of 80.0 GiB", 0.6, False),
        (
            {"kind": "shared", "total": 80 * GIB, "free": 4 * GIB},
            "shared with the system",
            None,
            False,
        ),
        ({"kind": "unified", "total": 80 * GIB}, "shared with the system", None, False),
        (
            {"kind": None, "total": 80 * GIB, "free": 4 * GIB},
            "80.0 GiB, use not known",
            None,
            False,
        ),
    ],
)
def test_a_card_says_what_is_known_of_its_memory(
    reports: dict[str, Any], memory: dict[str, Any], text: str, used: float | None, is_busy: bool
) -> None:
    known = {"kind": "dedicated", "total": None, "free": None, "used": None} | memory
    (device, *_) = accelerators(reports["dgx"])
    card = card_of({**device, "memory": known}, Names(reports["dgx"]), (), linked=False)
    assert (card.memory, card.used, card.busy) == (text, used, is_busy)


@pytest.mark.parametrize(
    ("links", "text"),
    [
        ([], ""),
        ([{"kind": "pcie", "generation": 5, "width": 16, "max_width": 16}], "PCIe 5 ×16"),
        ([{"kind": "pcie", "generation": 5, "width": 8, "max_width": 16}], "PCIe 5 ×8 of ×16"),
        ([{"kind": "pcie", "generation": 4, "width": 8}], "PCIe 4 ×8"),
        ([{"kind": "pcie", "generation": None, "width": 8}], ""),
        ([{"kind": "pcie", "generation": 4, "width": None}], ""),
        ([{"kind": "nvlink", "generation": 4, "width": 18}], ""),
        (
            [{"kind": "nvlink"}, {"kind": "pcie", "generation": 3, "width": 16, "max_width": 8}],
            "PCIe 3 ×16",
        ),
    ],
)
def test_a_card_has_its_link_and_what_the_slot_could_do(
    reports: dict[str, Any], links: list[Any], text: str
) -> None:
    (device, *_) = accelerators(reports["dgx"])
    card = card_of({**device, "links": links}, Names(reports["dgx"]), (), linked=False)
    assert card.link == text
