"""`probe explain`, `probe plugins` and `probe completion`."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import recorded
from command import environment, install, probe
from reports import validated
from weights import mostly_heavy_rows

from probe_core.cli import main

GOOD = """
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        return [{"ids": ["pci:0000:01:00.0"], "kind": "gpu", "vendor": "nvidia",
                 "name": "NVIDIA GeForce RTX 4090", "backends": ["cuda"]}]
"""
BAD = """
    import sys
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        print("about to fail", file=sys.stderr)
        raise RuntimeError("no luck")
"""
ABSENT = """
    from probe_core.api import hookimpl, not_applicable
    @hookimpl
    def probe_devices(request):
        return not_applicable("nothing of mine")
"""
UNAVAILABLE = """
    from probe_core.api import Unavailable, hookimpl
    @hookimpl
    def probe_devices(request):
        raise Unavailable("the driver is not loaded", fix="modprobe acme")
"""
WHEN = '{"schema": 1, "probers": {"picky": {"priority": 700, "when": {"any_path": ["/no/such"]}}}}'
NAMES = "good,bad,absent,mute,picky"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which five probers are installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, body in (("good", GOOD), ("bad", BAD), ("absent", ABSENT), ("mute", UNAVAILABLE)):
        install(folder, name, body)
    install(folder, "picky", GOOD, WHEN)
    return environment(folder, PROBE_ONLY=NAMES, COLUMNS="200")


@pytest.mark.heavy
def test_explain_shows_every_decision_outcome_and_reason(env: dict[str, str]) -> None:
    done = probe("explain", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if "probe-x-" in line}
    assert "ok" in rows["good"].split()
    assert "call_error" in rows["bad"]
    assert "RuntimeError: no luck" in rows["bad"]
    assert "nothing of mine" in rows["absent"]
    assert "the driver is not loaded" in rows["mute"]
    assert "skipped" in rows["picky"]
    assert "no path of /no/such exists" in rows["picky"]
    assert "  bad| about to fail" in done.stdout
    assert "total " in done.stdout
    assert "chip nvidia/geforce-rtx-4090 by name" in done.stdout
    assert "unknown memory.total: no prober could read it" in done.stdout


def test_explain_of_one_device(env: dict[str, str]) -> None:
    done = probe("explain", "01:00.0", env=env)
    assert "Plugins" not in done.stdout
    assert done.stdout.strip().startswith("pci:0000:01:00.0  NVIDIA GeForce RTX 4090")
    name = next(line for line in done.stdout.splitlines() if line.startswith("  name "))
    assert name.split()[-1] == "good"


@pytest.mark.heavy
def test_explain_as_json_is_the_report(env: dict[str, str]) -> None:
    done = probe("explain", "cpu:0", "--json", env=env)
    report = validated(json.loads(done.stdout))
    assert [device["id"] for device in report["devices"]] == ["cpu:0"]
    # Other probers may be installed; they are blocked here.
    ran = [one["prober"] for one in report["outcomes"] if one["status"] != "skipped"]
    assert ran[:2] == ["bus", "cpu"]
    assert len(ran) == 6


def test_what_two_probers_said_is_shown(tmp_path: Path) -> None:
    install(tmp_path, "one", GOOD)
    install(tmp_path, "two", GOOD.replace("4090", "4080"))
    env = environment(tmp_path, PROBE_ONLY="one,two", PROBE_PRIORITY="two=900")
    done = probe("explain", env=env)
    assert "name: one reports NVIDIA GeForce RTX 4090" in done.stdout


@pytest.mark.heavy
def test_plugins_long_list(env: dict[str, str]) -> None:
    done = probe("plugins", "--long", env=env)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["PLUGIN", "PACKAGE", "PRIORITY", "DEADLINE", "RUNS", "WHY", "NOT"]
    ours = {line[0]: line for line in lines[1:] if line[0] in NAMES.split(",")}
    assert ours["good"][1:] == ["probe-x-good", "1.2", "100", "5", "s", "yes"]
    assert ours["picky"][3:7] == ["700", "5", "s", "no"]
    assert [line[0] for line in lines[-3:]] == ["bus", "cpu", "fallback"]
    assert probe("plugins", "list", "--long", env=env).stdout == done.stdout


@pytest.mark.heavy
def test_plugins_list_by_what_became_of_them(env: dict[str, str]) -> None:
    done = probe("plugins", env=env)
    groups = dict(block.split(":\n", 1) for block in done.stdout.rstrip().split("\n\n"))
    assert list(groups) == ["Failed here", "Run here", "Not needed here", "Not run"]
    failed = [line.split(maxsplit=2) for line in groups["Failed here"].splitlines()]
    assert sorted(failed) == [
        ["bad", "1.2", "call error: RuntimeError: no luck"],
        ["mute", "1.2", "unavailable: the driver is not loaded"],
    ]
    run = [line.split() for line in groups["Run here"].splitlines()]
    assert [(line[0], line[2:4], line[-1]) for line in run[:-1]] == [
        ("good", ["ok,", run[0][3]], "ms")
    ]
    assert run[-1] == ["bus,", "cpu,", "fallback", "built", "in", "ok"]
    unneeded = {line.split()[0]: line for line in groups["Not needed here"].splitlines()}
    assert unneeded["absent"].endswith("nothing of mine")
    assert unneeded["picky"].endswith("no path of /no/such exists")
    assert list(unneeded) == ["picky", "absent"]


def test_plugins_list_as_json(env: dict[str, str]) -> None:
    decisions = json.loads(probe("plugins", "list", "picky", "--json", env=env).stdout)
    assert [(d["prober"], d["selected"], d["cause"]) for d in decisions] == [
        ("picky", False, "when")
    ]


@pytest.mark.heavy
def test_plugins_check_judges_what_ran(env: dict[str, str]) -> None:
    done = probe("plugins", "check", env=env)
    assert done.returncode == 1
    marks = {line.split()[1]: line[:4] for line in done.stdout.splitlines() if line[:1] != " "}
    assert {name: mark for name, mark in marks.items() if name in NAMES} == {
        "good": "ok  ",
        "bad": "FAIL",
        "absent": "ok  ",
        "mute": "ok  ",
        "picky": "ok  ",
    }
    assert "     | about to fail" in done.stdout
    assert probe("plugins", "check", "good", env=env).returncode == 0
    assert "ok, 1 device in " in probe("plugins", "check", "good", env=env).stdout
    judged = json.loads(probe("plugins", "check", "bad", "--json", env=env).stdout)
    assert (judged["sound"], judged["outcomes"][0]["status"]) == (False, "call_error")


@pytest.mark.heavy
def test_a_prober_answers_for_its_own_mistakes_alone(tmp_path: Path) -> None:
    """Two probers of one distribution: the sound one is sound whatever the other one does."""
    for name, body in (("fine", GOOD), ("sloppy", GOOD.replace('"kind": "gpu"', '"kind": 7'))):
        (tmp_path / f"pair_{name}.py").write_text(dedent(body))
    (tmp_path / "pair_sloppy.prober.json").write_text('{"schema": 1, "probers": {"sloppy": []}}')
    info = tmp_path / "probe_pair-1.2.dist-info"
    info.mkdir()
    entries = "[probe_core.probers.v1]\nfine = pair_fine\nsloppy = pair_sloppy\n"
    (info / "entry_points.txt").write_text(entries)
    broken = tmp_path / "probe_unreadable-1.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_text("[probe_core.probers.v1]\nno equals sign\n")
    env = environment(tmp_path, PROBE_ONLY="fine,sloppy")
    done = probe("plugins", "check", "fine", env=env)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.startswith("ok   fine (probe-pair 1.2) ok, 1 device in ")
    judged = json.loads(probe("plugins", "check", "sloppy", "--json", env=env).stdout)
    assert judged["sound"] is False
    assert {finding["prober"] for finding in judged["findings"]} == {"sloppy"}
    assert {finding["code"] for finding in judged["findings"]} >= {"manifest-problem"}
    everything = probe("plugins", "check", env=env)
    assert everything.returncode == 1
    assert "FAIL the distribution probe-unreadable" in everything.stdout


@pytest.mark.heavy
def test_an_odd_id_is_its_authors_mistake_and_no_users_loss(tmp_path: Path) -> None:
    body = GOOD.replace('"ids": [', '"ids": ["uuid:GPU 1", ', 1)
    assert body != GOOD
    (tmp_path / "odd_ids.py").write_text(dedent(body))
    info = tmp_path / "probe_odd-1.2.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[probe_core.probers.v1]\nodd = odd_ids\n")
    done = probe("plugins", "check", "odd", env=environment(tmp_path, PROBE_ONLY="odd"))
    assert done.returncode == 1
    ran, *mistake = done.stdout.splitlines()
    assert ran.startswith("ok   odd (probe-odd 1.2) ok, 1 device in ")
    assert " ".join(" ".join(mistake).split()) == (
        "FAIL probe-odd 1.2: prober 'odd' reported values that cannot be true: ids: the id"
        " 'uuid:GPU 1' holds characters other than printable ASCII; report it to its author; the"
        " values were left out"
    )


WHY_NOT = [
    (
        "good",
        "The plugin 'good' of probe-x-good 1.2 ran, and reported 1 device: nothing is wrong",
    ),
    ("bad", "was run and ended as call_error: RuntimeError: no luck"),
    ("absent", "ran, and detected nothing of its own: nothing of mine."),
    ("mute", "the driver is not loaded. What would help: modprobe acme."),
    ("picky", "was not run: no path of /no/such exists."),
    ("cpu", "The plugin 'cpu' of probe-core"),
]


@pytest.mark.parametrize(("name", "sentence"), mostly_heavy_rows(WHY_NOT, 3))
def test_why_not(name: str, sentence: str, env: dict[str, str]) -> None:
    done = probe("plugins", "why-not", name, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert sentence in " ".join(done.stdout.split())


def test_why_not_of_one_that_the_user_left_out(env: dict[str, str]) -> None:
    done = probe("plugins", "why-not", "good", "--disable", "good", env=env)
    assert "was not run: disabled by the arguments." in done.stdout


@pytest.mark.heavy
def test_explain_of_every_recorded_machine(tmp_path: Path, capsys: Any) -> None:
    for name in recorded.names():
        root = recorded.unpack(recorded.read(name), tmp_path / name)
        assert main(["explain", "--machine", str(root), "--only", "cpu"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "fallback: " in out


TWINS = """
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        for number in (1, 2):
            uuid = f"uuid:GPU-1a2b3c4d-{number:04d}-4000-8000-000000000000"
            yield {"ids": [f"pci:0000:0{number}:00.0", uuid], "kind": "gpu", "vendor": "nvidia",
                   "name": "NVIDIA GeForce RTX 4090", "memory": {"total": 25757220864}}
"""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("01:00.0", ["01"]),
        ("0000:02:00.0", ["02"]),
        ("GPU-1a2b3c4d-0002", ["02"]),
        ("4090", ["01", "02"]),
        ("rtx 4090", ["01", "02"]),
    ],
)
def test_explain_takes_what_the_table_shows(text: str, ids: list[str], tmp_path: Path) -> None:
    install(tmp_path, "twins", TWINS)
    env = environment(tmp_path, PROBE_ONLY="twins")
    report = json.loads(probe("explain", text, "--json", env=env).stdout)
    assert [device["id"] for device in report["devices"]] == [f"pci:0000:{n}:00.0" for n in ids]


@pytest.mark.parametrize("text", ["GPU-1a2b3c4d", "pci:"])
def test_an_ambiguous_short_id_lists_the_long_ones(text: str, tmp_path: Path) -> None:
    install(tmp_path, "twins", TWINS)
    env = environment(tmp_path, PROBE_ONLY="twins", PROBE_DISABLE="bus")
    done = probe("explain", text, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"probe explain: {text!r} names several devices;"
        " write one of pci:0000:01:00.0, pci:0000:02:00.0\n"
    )


@pytest.mark.heavy
def test_explain_speaks_in_units(tmp_path: Path) -> None:
    install(tmp_path, "twins", TWINS)
    env = environment(tmp_path, PROBE_ONLY="twins")
    lines = [line.split() for line in probe("explain", "01:00.0", env=env).stdout.splitlines()]
    assert ["memory.total", "24.0", "GiB", "twins"] in lines
    assert ["bandwidth", "1008", "GB/s", "chipdb"] in lines
    peaks = [line for line in lines if line[:3] == ["fp16", "matrix", "fp32"]]
    assert peaks[0][3:6] == ["dense", "165", "TFLOPS"]
    everything = probe("explain", "01:00.0", "--all", env=env).stdout
    assert " sparse " in everything
    assert '{"' not in everything
    assert "25757220864" not in everything


def test_explain_of_the_processors_of_one_row(capsys: Any) -> None:
    path = str(recorded.path("dual-socket-epyc-9124--cpu"))
    assert main(["explain", "cpu:0-1", "--machine", path, "--only", "cpu", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [device["id"] for device in report["devices"]] == ["cpu:0", "cpu:1"]
