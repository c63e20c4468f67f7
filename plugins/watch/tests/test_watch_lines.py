"""Lines: the keys of a sample, times, and what people read where there is no screen."""

from __future__ import annotations

import io
import json
import signal
from types import SimpleNamespace
from typing import Any

import pytest
from watch_samples import GIB, NIGHT, address, busy, report, sample, silent

from probe_core.commands import Context
from probe_watch.alerts import Alerts, rules_of
from probe_watch.figures import NODE, Figure, History, spark
from probe_watch.lines import (
    Lines,
    alert_document,
    alert_line,
    sample_document,
    sample_line,
    timestamp,
)
from probe_watch.metrics import Published
from probe_watch.peer import Peer
from probe_watch.rounds import HANGUP, Happening, Intake, status_of

GPU = address(1)
KEYS = [
    "time", "device", "status", "reason", "busy", "memory", "temperature_c", "power_w",
    "power_cap_w", "clocks_mhz", "links", "processes", "alerts", "unknown",
]  # fmt: skip


def test_a_line_has_the_keys_of_the_reference_in_their_order() -> None:
    unknown = {"power_w": "not root", "activity.sm": "no GPM", "clocks_mhz.memory": "not reported"}
    document = sample_document(busy(GPU, unknown=unknown), NIGHT, {"memory": "warning"})
    assert list(document) == KEYS
    assert document["time"] == "2026-11-21T22:14:03.512Z"
    assert document["memory"] == {"used": 50 * GIB, "total": 80 * GIB}
    assert document["alerts"] == ["memory"]
    # Reasons are those of the fields that are there.
    assert document["unknown"] == {"power_w": "not root", "clocks_mhz.memory": "not reported"}
    full = sample_document(busy(GPU, unknown=unknown), NIGHT, [], full=True)
    assert set(full) - set(document) == {
        "activity",
        "throttled",
        "counters",
        "xids",
        "pressure",
        "prober",
    }
    assert full["unknown"] == unknown


def test_a_device_that_does_not_answer_has_no_figures() -> None:
    document = sample_document(silent(GPU), NIGHT, [])
    assert list(document) == KEYS
    assert (document["status"], document["reason"]) == ("unresponsive", "it hangs")
    assert {document[key] for key in KEYS[4:10]} == {None}


def test_times_are_rounded_as_a_whole() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(59.9996) == "1970-01-01T00:01:00.000Z"
    assert timestamp(1.0004) == "1970-01-01T00:00:01.000Z"


def test_plain_lines() -> None:
    assert sample_line(busy(GPU), NIGHT, ["memory"]) == (
        "2026-11-21T22:14:03.512Z pci:0000:01:00.0 busy=96% peak=61% mem=50.0GiB/80.0GiB temp=67C"
        " power=612/700W clock=1755MHz processes=1 alerts=memory"
    )
    assert sample_line(sample(GPU), NIGHT, []) == "2026-11-21T22:14:03.512Z pci:0000:01:00.0"
    assert sample_line(sample(GPU, power_w=7.0), NIGHT, []).endswith(" power=7W")
    assert sample_line(silent(GPU, "asleep", "it sleeps"), NIGHT, []) == (
        '2026-11-21T22:14:03.512Z pci:0000:01:00.0 asleep reason="it sleeps"'
    )


def test_an_edge_names_device_value_threshold_and_since() -> None:
    alerts = Alerts(rules_of({"temperature": {"seconds": 1}}))
    alerts.update(0, NIGHT, [sample(GPU, temperature_c=82.0)])
    (on,) = alerts.update(1, NIGHT + 1, [sample(GPU, temperature_c=83.0)])
    assert alert_line(on) == (
        "2026-11-21T22:14:04.512Z pci:0000:01:00.0 alert temperature on:"
        " 83 °C, above 80 °C since 22:14:03Z"
    )
    assert alert_document(on) == {
        "time": "2026-11-21T22:14:04.512Z",
        "event": "alert",
        "device": GPU,
        "alert": "temperature",
        "state": "on",
        "severity": "warning",
        "value": 83.0,
        "threshold": 80.0,
        "unit": "°C",
        "since": "2026-11-21T22:14:03.512Z",
        "reason": None,
    }
    (error,) = alerts.update(
        2, NIGHT + 2, [sample(GPU, temperature_c=91, throttled=["hw-thermal"])]
    )
    assert alert_line(error).endswith(
        "temperature on: 91 °C, the device slows down (hw-thermal) since 22:14:03Z"
    )
    (off,) = alerts.update(3, NIGHT + 3, [sample(GPU, temperature_c=60.0)])
    assert alert_line(off).endswith("temperature off: 60 °C; the alert of 22:14:03Z ends")
    assert (off.threshold, off.value) == (77.0, 60.0)


def test_events() -> None:
    event: Any = {"event": "removed", "device": GPU, "change": "it is not on the bus any more"}
    written: list[str] = []
    context: Any = SimpleNamespace(out=written.append, flush=lambda: None)
    for is_json in (True, False):
        lines = Lines(context, Alerts({}), json=is_json, full=False)
        lines.take(Happening(NIGHT, [], [event], [], []))
    document, line = written
    assert document == (
        '{"time": "2026-11-21T22:14:03.512Z", "event": "removed", "device": "pci:0000:01:00.0",'
        ' "change": "it is not on the bus any more"}'
    )
    assert line == (
        "2026-11-21T22:14:03.512Z pci:0000:01:00.0 removed: it is not on the bus any more"
    )


def test_history() -> None:
    history = History()
    for value in (0.0, None, 0.5, 1.0):
        history.add([sample("a", busy=value), sample("b", busy=value)])
    assert spark(history.of("a")["busy"], 4) == "▁ ▅█"
    assert spark(history.of("a")["busy"], 6) == "  ▁ ▅█"
    assert spark(history.of("a")["busy"], 2) == "▅█"
    assert spark(history.of("a")["busy"], 0) == ""
    history.add([sample("b", busy=0.1)])
    assert history.of("a")["busy"] == []
    for _ in range(500):
        history.add([sample("b", busy=0.1)])
    assert len(history.of("b")["busy"]) == 60


@pytest.mark.parametrize("is_json", [True, False])
def test_devices_that_come_and_go_are_lines(is_json: bool) -> None:
    out = io.StringIO()
    lines = Lines(Context(stdout=out), Alerts(rules_of({})), json=is_json, full=False)
    events: Any = [
        {"event": "added", "device": address(2), "change": "it is on the bus now"},
        {"event": "removed", "device": address(1), "change": "it left the bus"},
    ]
    lines.take(Happening(NIGHT, [busy(address(2))], events, [], []))
    written = out.getvalue().splitlines()
    assert len(written) == 3
    if is_json:
        documents = [json.loads(line) for line in written]
        assert [d.get("event") for d in documents] == ["added", "removed", None]
        assert documents[1]["device"] == address(1)
    else:
        assert written[0].endswith("pci:0000:02:00.0 added: it is on the bus now")


class Steps(io.StringIO):
    """Standard output that keeps in which order it was written to and flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []

    def write(self, text: str) -> int:
        self.steps.append(text[-3:])
        return super().write(text)

    def flush(self) -> None:
        self.steps.append("flush")


def test_a_line_is_there_for_readers_before_the_next_is_made() -> None:
    out = Steps()
    lines = Lines(Context(stdout=out), Alerts(rules_of({})), json=True, full=False)
    lines.take(Happening(NIGHT, [busy(GPU), busy(address(2))], [], [], []))
    assert out.steps == ["}}\n", "flush", "}}\n", "flush"]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("figure", "latency", "unknown"),
    [
        (Figure(1.5), 1.5, {"power_w": "no sensor"}),
        (
            Figure(None, "desk:22: off"),
            None,
            {"power_w": "no sensor", "latency_ms": "desk:22: off"},
        ),
    ],
)
def test_the_nodes_line_has_the_latency_where_all_is_asked(
    figure: Figure, latency: float | None, unknown: dict[str, str], full: bool
) -> None:
    peer = Peer(("desk", 22), 1.0)
    peer.figure = figure
    out = io.StringIO()
    lines = Lines(Context(stdout=out), Alerts(rules_of({}), peer), json=True, full=full)
    samples = [sample(device, unknown={"power_w": "no sensor"}) for device in (GPU, NODE)]
    lines.take(Happening(NIGHT, samples, [], [], []))
    device, node = (json.loads(line) for line in out.getvalue().splitlines())
    assert "latency_ms" not in device
    assert device["unknown"] == {"power_w": "no sensor"}
    assert ("latency_ms" in node) == full
    if full:
        assert (node["latency_ms"], node["unknown"]) == (latency, unknown)


@pytest.mark.parametrize(
    ("figure", "words"),
    [(Figure(1.25), "latency=1.2ms"), (Figure(None, "desk:22: off"), 'latency="desk:22: off"')],
)
def test_the_nodes_line_of_text_has_the_latency_to_the_peer(figure: Figure, words: str) -> None:
    peer = Peer(("desk", 22), 1.0)
    peer.figure = figure
    for measured, end in ((peer, f" {words}"), (None, "")):
        out = io.StringIO()
        lines = Lines(Context(stdout=out), Alerts(rules_of({}), measured), json=False, full=False)
        lines.take(Happening(NIGHT, [sample(GPU), sample(NODE)], [], [], []))
        time = "2026-11-21T22:14:03.512Z"
        assert out.getvalue() == f"{time} {GPU}\n{time} {NODE}{end}\n"


def test_notes_are_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(Context(stdout=io.StringIO()), Alerts(rules_of({})), json=True, full=False)
    lines.take(Happening(NIGHT, [], [], [], ["it hangs"]))
    assert capsys.readouterr().err == "probe watch: it hangs\n"


@pytest.mark.parametrize("commands", [None, SimpleNamespace])
def test_a_round_goes_to_alerts_commands_and_endpoint(commands: Any) -> None:
    steps: list[object] = []
    peer: Any = SimpleNamespace(
        start=lambda: steps.append("start"), close=lambda: steps.append("close"), figure=Figure(1.0)
    )
    ran = commands and commands(
        add=lambda edges: steps.append([edge.rule.name for edge in edges]),
        notes=lambda: ["a mail failed"],
        close=lambda: steps.append("end"),
    )
    alerts = Alerts(rules_of({"temperature": {"seconds": 1}}), peer)
    samples = [sample(GPU, temperature_c=95.0)]
    finding = {"what": "GPU 0 hangs", "why": "no answer"}
    current: Any = SimpleNamespace(time=NIGHT, documents=samples, events=["e"], findings=[finding])
    rounds: Any = SimpleNamespace(listed=lambda: SimpleNamespace(time=1.0, documents=["listed"]))
    with Intake(alerts, ran, lambda time, documents: steps.append((time, documents))) as intake:
        intake.announce(rounds)
        happening = intake.take(current)
    own = ["a mail failed"] if ran else []
    assert happening.notes == ["GPU 0 hangs: no answer", *own]
    assert (happening.time, happening.samples, happening.events) == (NIGHT, samples, ["e"])
    assert happening.edges == []
    tail = ["close", "end"] if ran else ["close"]
    assert steps == ["start", (1.0, ["listed"]), *([[]] if ran else []), (NIGHT, samples), *tail]
    with Intake(Alerts(rules_of({}))) as bare:
        bare.announce(rounds)
        assert bare.take(current).notes == ["GPU 0 hangs: no answer"]


def test_the_endpoint_has_alerts_and_latency_in_seconds() -> None:
    peer = Peer(("desk", 22), 1.0)
    alerts = Alerts(rules_of({"temperature": {"seconds": 1}}), peer)
    context: Any = SimpleNamespace(report=lambda: None)
    published = Published(alerts, context)
    labels = {GPU: {"device": "0"}}
    assert published._families(labels) == []
    samples = [sample(GPU, temperature_c=95.0), sample(address(2), temperature_c=95.0)]
    for second in range(3):
        alerts.update(second, NIGHT + second, samples)
    published.publish(NIGHT, samples)
    peer.figure = Figure(250.0)
    assert published._families(labels) == [
        (
            "probecore_alert",
            "gauge",
            "1 while an alert is on; absent otherwise.",
            [({"device": "0", "alert": "temperature", "severity": "warning"}, 1)],
        ),
        (
            "probecore_peer_latency_seconds",
            "gauge",
            "Time of a TCP connection.",
            [({"peer": "desk:22"}, 0.25)],
        ),
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_exit_status_of_a_signal_is_that_of_shells(number: int) -> None:
    assert status_of(number) == 128 + number
    assert HANGUP == 128 + signal.SIGHUP
    with pytest.raises(KeyboardInterrupt):
        status_of(signal.SIGINT)


def test_all_names_the_devices_once() -> None:
    out = io.StringIO()
    devices = report("NVIDIA H100 80GB HBM3", cpu=False)["devices"]
    lines = Lines(Context(stdout=out), Alerts(rules_of({})), json=True, full=True, devices=devices)
    for second in range(2):
        lines.take(Happening(NIGHT + second, [busy(address(1))], [], [], []))
    documents = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [d.get("event") for d in documents] == ["device", None, None]
    assert documents[0]["name"] == "NVIDIA H100 80GB HBM3"
    assert (documents[0]["kind"], documents[0]["memory"]) == ("gpu", None)
