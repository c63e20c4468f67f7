"""Options and settings of `probe cluster --network` that make no sense: one sentence each."""

from __future__ import annotations

from typing import Any

import pytest
from fake_engines import SSH, Engines

from probe_cluster.network.links import Network
from probe_cluster.network.options import _figure
from probe_core.cli import main
from probe_core.commands import CommandError

Home = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def settings(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep settings of the user away."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(engines.folder))


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--pair-seconds", "2", "--hosts", "a"], 2, "--pair-seconds belongs to --network"),
        (["--network", "--hosts", "a", "--pair-seconds", "0"], 2, "write seconds, 0.2 to 60"),
        (["--network", "--hosts", "a", "--pair-bytes", "x"], 2, "write a size, 1MiB to 1TiB"),
        (["--network", "--hosts", "a", "--least-bandwidth", "9"], 2, "a rate, such as 1Gbit/s"),
        (["--network", "--hosts", "a", "--most-round-trip", "nan"], 2, "a time, such as 100ms"),
        (["a.json", "--network"], 2, "--network: files cannot start programs on the nodes"),
        (["--network", "--hosts", "desk"], 1, "fewer than two nodes gave a report"),
        (["--network", "x:y", "--hosts", "desk,nas"], 1, "there are desk, nas"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    engines: Engines,
    home: Home,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    sentence: str,
) -> None:
    engines.command("ssh", SSH)
    for host in ("desk", "nas"):
        engines.report(host, home["desk"])
    assert main(["cluster", *arguments]) == status
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert len(printed.err.splitlines()) == 1
    # What was gathered is printed all the same.
    assert bool(printed.out) == (status == 1)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("pair_seconds", "0.2", 0.2),
        ("pair_seconds", "0.199", None),
        ("pair_seconds", "60", 60.0),
        ("pair_seconds", " 60S", 60.0),
        ("pair_seconds", "60.1", None),
        ("pair_bytes", "1MiB", 1 << 20),
        ("pair_bytes", "1048575", None),
        ("pair_bytes", "1TiB", 1 << 40),
        ("pair_bytes", "1025GiB", None),
        ("most_round_trip", "1us", 1e-6),
        ("most_round_trip", "1.5µs", 1.5e-6),
        ("most_round_trip", "0.9us", None),
        ("most_round_trip", "250ms", 0.25),
        ("most_round_trip", "2", 2.0),
        ("most_round_trip", "3600s", 3600.0),
        ("most_round_trip", "3601", None),
        ("most_round_trip", "2 min", None),
        ("least_bandwidth", "1GB/s", 1e9),
        ("least_bandwidth", "1000GB/s", 1e12),
        ("least_bandwidth", "1001GB/s", None),
    ],
)
def test_figures_at_their_bounds(key: str, text: str, value: float | None) -> None:
    if value is not None:
        assert _figure(key, text, "--x") == pytest.approx(value, rel=1e-12)
        return
    with pytest.raises(CommandError) as error:
        _figure(key, text, "--x")
    assert str(error.value).startswith(f"cluster: --x {text}: write ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[command.cluster]\nlest = 1\n", "[command.cluster] has 'lest'; its keys are least_"),
        ('[command.cluster]\npair_seconds = "x"\n', "[command.cluster] pair_seconds x: write sec"),
        ("[command]\ncluster = 1\n", "sets command.cluster, which is no table"),
    ],
)
def test_a_wrong_file_of_settings_is_one_sentence(
    engines: Engines, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    (engines.folder / "probe-core").mkdir()
    (engines.folder / "probe-core" / "config.toml").write_text(text)
    assert main(["cluster", "--network", "--hosts", "a,b"]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)


def test_what_is_measured_without_options() -> None:
    """A second each way, 4 GiB at most; below 100 Mbit/s and above 100 ms is a finding."""
    assert Network() == Network("", 1.0, 4 << 30, 12.5e6, 0.1)
