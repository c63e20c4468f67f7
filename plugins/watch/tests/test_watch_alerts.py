"""Alerts: on after their seconds and two samples, off below the clearing threshold, a line each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watch_samples import GIB, busy, sample, silent

from probe_watch.alerts import DEFAULTS, REMOVED, Alerts, Rule, RuleError, rules_of

GPU = "pci:0000:01:00.0"


def run(figures: list[Any], step: float = 1.0, **table: Any) -> list[tuple[float, str, str, str]]:
    """Return (second, alert, state, severity) of every edge; figures are samples of one GPU."""
    alerts = Alerts(rules_of(table))
    edges = []
    for number, figure in enumerate(figures):
        samples = [] if figure is None else [figure]
        for edge in alerts.update(100 + number * step, 5000 + number * step, samples):
            assert edge.device == GPU
            assert edge.time == 5000 + number * step
            edges.append((number * step, edge.rule.name, edge.state, edge.severity))
    return edges


def hot(*degrees: float | None, **more: Any) -> list[Any]:
    return [sample(GPU, temperature_c=value, **more) for value in degrees]


def used(*shares: float) -> list[Any]:
    return [sample(GPU, memory={"used": int(s * 100 * GIB), "total": 100 * GIB}) for s in shares]


def test_the_defaults_are_those_of_the_request() -> None:
    rules = {name: (rule.above, rule.seconds) for name, rule in DEFAULTS.items()}
    assert rules == {
        "utilisation": (0.90, 5.0),
        "memory": (0.85, 3.0),
        "latency": (100.0, 1.0),
        "temperature": (80.0, 10.0),
    }
    clears = {name: round(rule.clear, 6) for name, rule in DEFAULTS.items()}
    assert clears == {"utilisation": 0.87, "memory": 0.82, "latency": 97.0, "temperature": 77.0}


def test_ten_seconds_above_eighty_degrees() -> None:
    assert run(hot(*[81.0] * 10)) == []
    assert run(hot(*[81.0] * 11)) == [(10.0, "temperature", "on", "warning")]
    # Exactly the threshold is not above it, and a dip begins anew.
    assert run(hot(*[80.0] * 30)) == []
    assert run(hot(*[81.0] * 9, 80.0, *[81.0] * 10)) == []


def test_it_ends_three_degrees_below_and_not_sooner() -> None:
    edges = run(hot(*[85.0] * 11, 79.0, 78.0, 77.5, 81.0, 77.0, 79.0))
    assert edges == [
        (10.0, "temperature", "on", "warning"),
        (15.0, "temperature", "off", "warning"),
    ]


def test_memory_takes_three_seconds_and_utilisation_five() -> None:
    assert run(used(*[0.86] * 4)) == [(3.0, "memory", "on", "warning")]
    activity = {"sm": 1.0, "tensor": 0.95, "memory": 1.0}
    assert run([sample(GPU, activity=activity)] * 6) == [(5.0, "utilisation", "on", "warning")]


def test_busy_is_never_taken_for_utilisation_of_the_peak() -> None:
    assert run([sample(GPU, busy=1.0, activity=None)] * 60) == []
    assert (
        run([sample(GPU, busy=1.0, activity={"sm": 1.0, "tensor": None, "memory": 1.0})] * 60) == []
    )


def test_one_sample_is_no_alert_however_long_the_interval() -> None:
    assert run(hot(99.0), step=60.0) == []
    assert run(hot(99.0, 99.0), step=60.0) == [(60.0, "temperature", "on", "warning")]
    assert run(hot(99.0, 99.0), temperature={"seconds": 0}) == [
        (1.0, "temperature", "on", "warning")
    ]


def test_a_device_that_slows_down_for_heat_is_an_error() -> None:
    slow = hot(*[75.0] * 11, throttled=["hw-thermal"])
    assert run(slow) == [(10.0, "temperature", "on", "error")]
    # From a warning to an error is an edge of its own, once.
    grows = [*hot(*[81.0] * 11), *hot(*[88.0] * 3, throttled=["power", "sw-thermal"])]
    assert run(grows) == [
        (10.0, "temperature", "on", "warning"),
        (11.0, "temperature", "on", "error"),
    ]
    assert run(hot(*[75.0] * 30, throttled=["power", "idle"])) == []


def test_an_unknown_value_neither_starts_nor_ends_at_once() -> None:
    assert run(hot(81.0, None, *[81.0] * 10)) == []
    on = (10.0, "temperature", "on", "warning")
    assert run(hot(*[81.0] * 11, *[None] * 10, 81.0)) == [on]
    assert run(hot(*[81.0] * 11, *[None] * 11)) == [on, (21.0, "temperature", "off", "warning")]
    assert run([*hot(*[81.0] * 11), *[silent(GPU)] * 11])[1:] == [
        (21.0, "temperature", "off", "warning")
    ]


def test_a_device_that_is_removed_ends_its_alerts() -> None:
    alerts = Alerts(rules_of({"memory": {"seconds": 0}}))
    full = busy(GPU, memory={"used": 79 * GIB, "total": 80 * GIB})
    for second in range(2):
        edges = alerts.update(second, second, [full])
    assert [edge.state for edge in edges] == ["on"]
    assert alerts.active(GPU) == {"memory": "warning"}
    (edge,) = alerts.update(2, 2, [])
    assert (edge.state, edge.value, edge.reason) == ("off", None, REMOVED)
    assert alerts.active(GPU) == {}


def test_each_device_has_its_own_alerts() -> None:
    alerts = Alerts(rules_of({}))
    names = [f"pci:0000:0{number}:00.0" for number in range(1, 9)]
    for second in range(12):
        samples = [
            sample(name, temperature_c=90.0 if name.endswith("3:00.0") else 40.0) for name in names
        ]
        alerts.update(second, second, samples)
    assert {name: alerts.active(name) for name in names if alerts.active(name)} == {
        names[2]: {"temperature": "warning"}
    }


def test_the_file_changes_thresholds() -> None:
    rules = rules_of(
        {"temperature": {"above": 70, "seconds": 2, "clear": 60}, "memory": False, "latency": True}
    )
    assert sorted(rules) == ["latency", "temperature", "utilisation"]
    rule = rules["temperature"]
    assert (rule.above, rule.seconds, rule.clear) == (70.0, 2.0, 60.0)
    assert rules_of({"temperature": {"above": 60}})["temperature"].clear == 57.0
    assert rules_of({"memory": {"above": 0.02}})["memory"].clear == 0.0


BAD: list[tuple[object, str]] = [
    (5, "command.watch.alerts: expected a table, such as memory = { above = 0.9 }"),
    ({"heat": {}},
     ("command.watch.alerts.heat is no alert;"
      " the alerts are utilisation, memory, latency, temperature")),
    ({"memory": 85}, "command.watch.alerts.memory: expected true, false, or { above = 0.85 }"),
    ({"memory": {"above": 85}},
     "command.watch.alerts.memory.above = 85: expected a fraction from 0 to 1"),
    ({"memory": {"above": True}},
     "command.watch.alerts.memory.above = True: expected a fraction from 0 to 1"),
    ({"memory": {"over": 1}},
     "command.watch.alerts.memory.over is no key; the keys are above, clear, seconds"),
    ({"temperature": {"above": float("nan")}},
     "command.watch.alerts.temperature.above = nan: expected a °C from 0 to 150"),
    ({"temperature": {"seconds": -1}},
     "command.watch.alerts.temperature.seconds = -1: expected seconds, 0 to 86400"),
    ({"temperature": {"clear": 81}},
     "command.watch.alerts.temperature.clear = 81 lies above the threshold, 80"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "sentence"), BAD, ids=range(len(BAD)))
def test_a_threshold_that_cannot_be_used_is_one_sentence(table: object, sentence: str) -> None:
    with pytest.raises(RuleError) as caught:
        rules_of(table)
    assert str(caught.value) == sentence


NUMBERS = st.one_of(st.floats(), st.integers(), st.booleans(), st.text(max_size=5), st.none())
KEYS = st.sampled_from(["above", "clear", "seconds", "over"])
TABLES = st.dictionaries(KEYS, NUMBERS, max_size=4)


NAMES = st.sampled_from([*DEFAULTS, "heat"])
VALUES = st.one_of(TABLES, NUMBERS, st.lists(NUMBERS, max_size=2))


def rules_or_sentence(table: dict[str, object]) -> dict[str, Rule] | str:
    try:
        return rules_of(table)
    except RuleError as error:
        return str(error)


@pytest.mark.heavy
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_table_is_used_or_refused(table: dict[str, object]) -> None:
    rules = rules_or_sentence(table)
    if isinstance(rules, str):
        assert rules.startswith("command.watch.alerts")
        assert "\n" not in rules
        return
    for rule in rules.values():
        assert 0 <= rule.clear <= rule.above <= rule.most
        assert rule.seconds >= 0


@given(
    st.lists(
        st.one_of(st.none(), st.floats(-55, 150, allow_nan=False), st.just("gone")), max_size=40
    ),
    st.integers(0, 5),
)
def test_edges_alternate_whatever_the_figures_are(values: list[Any], seconds: int) -> None:
    alerts = Alerts(rules_of({"temperature": {"seconds": seconds}}))
    on = False
    for number, value in enumerate(values):
        samples = [] if value == "gone" else [sample(GPU, temperature_c=value)]
        for edge in alerts.update(number, number, samples):
            assert (edge.state == "on") is not on
            on = edge.state == "on"
            assert not on or (edge.value is not None and edge.value > 80)
        assert bool(alerts.active(GPU)) is on


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("temperature", 82.26, "82.3 °C"),
        ("temperature", 82.0, "82 °C"),
        ("utilisation", 0.9126, "91.3 %"),
        ("latency", 120.04, "120 ms"),
    ],
)
def test_a_value_in_words(name: str, value: float, text: str) -> None:
    assert rules_of({name: {}})[name].text(value) == text
