"""`probe cluster --network` through fake engines: real agents, which measure this computer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fake_engines import KUBECTL, MPIRUN, SRUN, SSH, Engines

from probe_cluster import Gathered, Limits, gather
from probe_cluster.gathering import Files, Kubectl, Mpi, Slurm, Ssh
from probe_cluster.network.links import Network
from probe_cluster.network.measure import measure_links
from probe_core.cli import main

Home = dict[str, dict[str, Any]]

OPEN = "let the nodes connect to each other on all TCP ports, then measure again"

QUICK = {"seconds": 0.2, "size": 64 << 20}


@pytest.fixture(autouse=True)
def python(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this Python on the nodes' PATH, and keep settings of the user away."""
    engines.command("python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(engines.folder))
    monkeypatch.setenv("COLUMNS", "100")


def measured(collector: Any, **options: Any) -> tuple[Gathered, list[str]]:
    sentences: list[str] = []
    network = Network(**{**QUICK, **options})
    limits = Limits(node=20.0)

    async def work() -> Gathered:
        gathered = await gather(collector, limits=limits)
        await measure_links(gathered, collector, network, limits=limits, announce=sentences.append)
        return gathered

    return asyncio.run(work()), sentences


def reports(engines: Engines, home: Home, *hosts: str) -> None:
    for host in hosts:
        engines.report(host, home["desk"])


def agents_of(marker: str) -> list[str]:
    lines = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                lines.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return [line for line in lines if "stdin.buffer.read" in line]


def ended(marker: str) -> bool:
    until = time.monotonic() + 30
    while agents_of(marker):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.heavy
def test_ssh_measures_all_pairs(engines: Engines, home: Home) -> None:
    engines.command("ssh", SSH)
    engines.setenv(AGENT_MARKER=f"{os.getpid()}-{time.monotonic_ns()}")
    marker = f"AGENT_MARKER={os.environ['AGENT_MARKER']}"
    reports(engines, home, "desk", "rock", "banner")
    gathered, sentences = measured(Ssh(["desk", "me@rock", "banner"]))
    assert [link["ends"] for link in gathered.links] == [
        ["desk", "me@rock"],
        ["desk", "banner"],
        ["me@rock", "banner"],
    ]
    for link in gathered.links:
        assert (link["kind"], link["reason"], link["fix"]) == ("same-host", None, None)
        assert link["latency"] == pytest.approx((link["round_trip"] or 0) / 2, abs=1e-9)
        rates = [rate for rate in link["bandwidths"] if rate is not None]
        assert link["bandwidth"] == min(rates)
        assert len(rates) == 2
    assert gathered.all_measured
    (sentence,) = sentences
    assert sentence == (
        "measures 3 pairs of 3 nodes through ssh: about 8 s, at most 73 s and 384.0 MiB;"
        " a node is in one pair at a time"
    )
    assert ended(marker)


@pytest.mark.heavy
def test_srun_gives_its_input_to_all_tasks(engines: Engines, home: Home) -> None:
    engines.command("srun", SRUN)
    reports(engines, home, "desk", "nas", "rock")
    engines.setenv(FAKE_NODES="desk nas rock")
    gathered, _ = measured(Slurm(["-N3"]), pairs="desk:nas,rock:nas")
    assert gathered.all_measured
    assert [link["ends"] for link in gathered.links] == [["desk", "nas"], ["rock", "nas"]]
    assert "-N3 --nodelist=desk,nas,rock" in engines.arguments("srun")


@pytest.mark.heavy
def test_nodes_of_one_name_are_not_measured(engines: Engines, home: Home) -> None:
    engines.command("srun", SRUN)
    reports(engines, home, "desk", "nas")
    engines.setenv(FAKE_NODES="desk desk nas")
    gathered, sentences = measured(Slurm())
    assert {link["reason"] for link in gathered.links} == {"2 nodes have the name desk"}
    assert {link["fix"] for link in gathered.links} == {"give each node a host name of its own"}
    assert (sentences, gathered.all_measured) == ([], False)


@pytest.mark.heavy
def test_kubectl_passes_its_input_on(engines: Engines, home: Home) -> None:
    pods = [
        {
            "metadata": {"name": f"p-{at}"},
            "spec": {"nodeName": f"n{at}"},
            "status": {"phase": "Running"},
        }
        for at in (1, 2)
    ]
    engines.command("kubectl", KUBECTL)
    (engines.folder / "pods.json").write_text(json.dumps({"items": pods}))
    reports(engines, home, "p-1", "p-2")
    gathered, _ = measured(Kubectl("app=probe"))
    assert gathered.all_measured
    assert [link["ends"] for link in gathered.links] == [["n1", "n2"]]


@pytest.mark.heavy
def test_agents_of_mpi_connect_for_their_commands(engines: Engines, home: Home) -> None:
    # In the background a shell gives its children an empty input, as mpirun does to all but one.
    engines.command("mpirun", MPIRUN)
    reports(engines, home, "desk", "nas", "rock")
    engines.setenv(FAKE_NODES="desk nas rock")
    gathered, _ = measured(Mpi())
    assert gathered.all_measured
    assert len(gathered.links) == 3
    assert "-x PROBE_CORE_PAIR_KEY sh -c exec 1>&2;" in engines.arguments("mpirun")


@pytest.mark.heavy
def test_an_agent_that_fails_costs_its_pairs_alone(engines: Engines, home: Home) -> None:
    script = SSH.replace(
        "case $FAKE_HOST in",
        """case $2 in *stdin.buffer.read*) agent=yes;; esac
[ -n "$agent" ] && case $FAKE_HOST in
  crash) echo 'crash: Connection closed' >&2; exit 255;;
  snake) mkdir -p {folder}/none; for c in sh uname head sed sleep; do
    ln -sf $(command -v $c) {folder}/none/; done; PATH={folder}/none; export PATH;;
esac
case $FAKE_HOST in""",
    )
    engines.command("ssh", script)
    hosts = ["desk", "nas", "crash", "snake"]
    reports(engines, home, *hosts)
    gathered, _ = measured(Ssh(hosts))
    rows = {tuple(link["ends"]): link for link in gathered.links}
    assert rows["desk", "nas"]["bandwidth"]
    assert rows["desk", "crash"]["reason"] == (
        "crash: its agent ended with 255: crash: Connection closed"
    )
    assert rows["desk", "snake"]["reason"] == (
        "snake: no Python 3.8 or newer is on its PATH, and `probe` names none"
    )
    assert rows["desk", "snake"]["fix"] == "check that both nodes run, then measure again"
    codes = [finding["code"] for finding in gathered.findings]
    assert codes == ["link-unmeasured"] * 5


@pytest.mark.heavy
def test_a_firewall_in_one_direction_is_measured_the_other_way(
    engines: Engines, home: Home
) -> None:
    # Another port is announced than the one that is open: all connections to it are refused.
    wall = """s/"port": [0-9]\\{5\\}/"port":     1/"""
    walled = f"[ $FAKE_HOST = walled ] && {{ sh -c \"$2\" | sed -u '{wall}'; exit; }}"
    script = SSH.replace("case $FAKE_HOST in", f"{walled}\ncase $FAKE_HOST in")
    engines.command("ssh", script)
    reports(engines, home, "walled", "nas")
    gathered, _ = measured(Ssh(["walled", "nas"]))
    (link,) = gathered.links
    assert link["bandwidth"]
    assert link["latency"]
    assert link["ends"] == ["walled", "nas"]
    assert (link["reason"] or "").startswith("nas: ")
    assert " port 1: Connection refused" in (link["reason"] or "")
    assert link["fix"] == OPEN
    assert [finding["code"] for finding in gathered.findings] == ["link-one-way"]
    gathered, _ = measured(Ssh(["walled", "me@walled"]))
    (link,) = gathered.links
    assert (link["bandwidth"], link["fix"]) == (None, OPEN)
    assert [finding["code"] for finding in gathered.findings] == ["link-unmeasured"]


@pytest.mark.heavy
def test_thresholds_are_findings_with_facts(
    engines: Engines, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    engines.command("ssh", SSH)
    reports(engines, home, "desk", "nas")
    (engines.folder / "probe-core").mkdir()
    (engines.folder / "probe-core" / "config.toml").write_text(
        '[command.cluster]\nleast_bandwidth = "900GB/s"\n'
        'pair_seconds = "0.2s"\npair_bytes = "64MiB"\n'
    )
    command = ["cluster", "--json", "--network", "--most-round-trip", "1us", "--hosts", "desk,nas"]
    assert main(command) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [finding["code"] for finding in document["findings"]] == ["link-slow", "link-latency"]
    for finding in document["findings"]:
        assert finding["nodes"] == ["desk", "nas"]
        assert set(finding) == {"code", "severity", "nodes", "what", "why", "fix", "evidence"}
    assert ", less than 7200 Gbit/s" in document["findings"][0]["what"]
    assert printed.err.startswith("probe cluster: measures 1 pair of 2 nodes through ssh: about ")
    assert main([*command[:1], *command[2:]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("desk – nas") and "same-host" in line for line in lines)
    assert any(line.startswith("1 of 1 pair measured: ") for line in lines)


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind_a_command_that_is_ended(
    engines: Engines, home: Home, number: signal.Signals
) -> None:
    engines.command("ssh", SSH)
    reports(engines, home, "desk", "nas")
    marker = f"{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "probe_core", "cluster", "--network", "--json"]
    command += ["--pair-seconds", "60", "--pair-bytes", "1TiB", "--hosts", "desk,nas"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "AGENT_MARKER": marker},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A shell that runs the tests in the background may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    marker = f"AGENT_MARKER={marker}"
    until = time.monotonic() + 60
    while len([line for line in agents_of(marker) if "sh\0-c" not in line]) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    # What came is written, unless nothing can write it.
    nodes = [] if number == signal.SIGKILL else ["desk", "nas"]
    assert sorted(json.loads(out or '{"nodes": []}')["nodes"]) == nodes
    assert ended(marker)


def test_files_have_no_agents() -> None:
    assert not hasattr(Files([]), "agents")
