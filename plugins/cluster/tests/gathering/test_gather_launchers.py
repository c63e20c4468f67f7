"""`probe cluster --slurm` and `--mpi`: one process that starts the nodes and mixes their lines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_engines import MPIRUN, SRUN, Engines

from probe_cluster import ClusterError, Gathered, Limits, gather
from probe_cluster.gathering import Mpi, Slurm
from probe_cluster.gathering.process import Ended
from probe_cluster.gathering.slurm import expand

Home = dict[str, dict[str, Any]]

SCONTROL = """#!/bin/sh
cat <<'TEXT'
NodeName=desk CPUTot=16 Gres=gpu:rtx4090:1(S:0) OS=Linux 6.12 SMP RealMemory=60000 State=IDLE
NodeName=rock CPUTot=8 Gres=(null) RealMemory=15000 State=MIXED+DRAIN Reason=not well [root@2026]
NodeName=elsewhere CPUTot=8 Gres=gpu:a100:2,gpu:h100:4,shard:8 RealMemory=1 State=DOWN
TEXT
"""


@pytest.fixture
def slurm(engines: Engines, home: Home) -> Engines:
    engines.command("srun", SRUN)
    engines.command("scontrol", SCONTROL)
    for name in ("desk", "rock", "nas"):
        engines.report(name, home[name])
    return engines


def gathered(*options: str, **limits: Any) -> Gathered:
    return asyncio.run(gather(Slurm(options), limits=Limits(**{"node": 20.0, **limits})))


def test_slurm_gives_reports_and_its_own_counts(slurm: Engines, home: Home) -> None:
    slurm.setenv(FAKE_NODES="desk rock", FAKE_NODELIST="desk,rock")
    answer = gathered("-N2", "--partition=gpu")
    assert answer.complete
    assert list(answer.nodes) == ["desk", "rock"]
    assert answer.nodes["rock"].report()["devices"] == home["rock"]["devices"]
    assert answer.nodes["desk"].engine == {
        "source": "scontrol show node",
        "gpus": 1,
        "cpus": 16,
        "memory": 60000 << 20,
        "state": "IDLE",
    }
    words = slurm.arguments("srun")
    assert words.startswith("--ntasks-per-node=1 --kill-on-bad-exit=0 -N2 --partition=gpu sh -c ")
    # Rockchip's board has a Mali, which no Gres line names.
    (entry,) = [entry for entry in answer.differences() if entry["code"] == "engine-count"]
    assert entry["nodes"] == ["rock"]
    assert entry["what"] == "rock: GPUs: scontrol show node counts 0, a process can use 1"


def test_a_step_of_a_job_shares_its_resources(slurm: Engines) -> None:
    slurm.setenv(FAKE_NODES="desk", FAKE_NODELIST="desk", SLURM_JOB_NUM_NODES="1")
    assert gathered().complete
    assert slurm.arguments("srun").startswith("--nodes=1 --overlap --ntasks-per-node=1")


def test_a_node_that_dies_costs_its_row_alone(slurm: Engines) -> None:
    slurm.setenv(FAKE_NODES="desk dead nas", FAKE_NODELIST="dead,desk,nas", FAKE_STATUS="137")
    answer = gathered()
    assert {id_: node.status for id_, node in answer.nodes.items()} == {
        "dead": "missing",
        "desk": "ok",
        "nas": "ok",
    }
    assert answer.nodes["dead"].reason == "srun: error: dead: task 1: Killed"
    assert answer.problem is None
    assert not answer.complete


@pytest.mark.heavy
def test_a_probe_that_hangs_and_a_step_that_never_ends(slurm: Engines) -> None:
    slurm.setenv(FAKE_NODES="desk silent-hang", FAKE_NODELIST="desk,silent-hang")
    answer = gathered(node=2.0)
    assert answer.nodes["desk"].status == "ok"
    node = answer.nodes["silent-hang"]
    assert (node.status, node.reason) == ("timeout", "`probe --json` runs there since 2 s")
    slurm.setenv(FAKE_NODES="desk nas", FAKE_NODELIST="desk,nas", FAKE_SRUN="late")
    assert gathered(node=60.0).seconds < 50


@pytest.mark.heavy
def test_an_allocation_that_is_refused_or_queued(slurm: Engines) -> None:
    slurm.setenv(FAKE_SRUN="refused")
    with pytest.raises(ClusterError, match="before any node started: srun: error: Unable to"):
        gathered("-p", "x")
    slurm.setenv(FAKE_SRUN="queued")
    with pytest.raises(ClusterError, match="slurm lists no node: none started within 1 s; look"):
        gathered(overall=1.0)


def test_no_srun_is_one_sentence(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(engines.folder / "nowhere"))
    with pytest.raises(ClusterError, match="srun: No such file or directory; install that command"):
        gathered()


def test_two_nodes_with_one_name_are_both_there(slurm: Engines) -> None:
    slurm.setenv(FAKE_NODES="desk desk", FAKE_NODELIST="")
    answer = gathered()
    assert {id_: node.status for id_, node in answer.nodes.items()} == {
        "desk": "ok",
        "desk#2": "ok",
    }
    assert "same-id" in {entry["code"] for entry in answer.differences()}


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n1", ["n1"]),
        ("n[1-3,07],login", ["n1", "n2", "n3", "n07", "login"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("n[1-", ["n[1-"]),
        ("n[a-b],x", ["n[a-b]", "x"]),
    ],
)
def test_host_lists_are_expanded(text: str, names: list[str]) -> None:
    assert expand(text) == names
    assert len(expand("n[1-999999999]")) == 100_000


@pytest.fixture
def mpi(engines: Engines, home: Home) -> Engines:
    engines.command("mpirun", MPIRUN)
    for name in ("desk", "nas"):
        engines.report(name, home[name])
    return engines


@pytest.mark.heavy
def test_mpi_starts_one_process_a_node(mpi: Engines) -> None:
    mpi.setenv(FAKE_NODES="desk nas")
    answer = asyncio.run(gather(Mpi(["--hostfile", "h"])))
    assert {id_: node.status for id_, node in answer.nodes.items()} == {"desk": "ok", "nas": "ok"}
    words = mpi.arguments("mpirun").split(" sh -c ")[0].split()
    assert words[:4] == ["--map-by", "ppr:1:node", "-x", "PROBE_CORE_PROGRAM"]
    assert words[-2:] == ["--hostfile", "h"]
    mpi.setenv(FAKE_MPI="HYDRA build details: Version: 4.2.0")
    assert asyncio.run(gather(Mpi())).complete
    assert mpi.arguments("mpirun").startswith("-ppn 1 sh -c ")


_BOX = f"""{74 * "-"}
There are not enough slots available in the system to satisfy the 400
slots that were requested by the application:

  true

launch.
{74 * "-"}
"""  # Open MPI 4.1.4, in part


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (
            _BOX,
            (
                "There are not enough slots available in the system to satisfy the 400 slots that"
                " were requested by the application:"
            ),
        ),
        (
            (
                "Warning: Permanently added 'n2' to the list of known hosts.\n"
                f"ssh: connect to host n3 port 22: Connection refused\n{_BOX}"
            ),
            "ssh: connect to host n3 port 22: Connection refused",
        ),
        (
            "mpirun: Error: unknown option \"--x\"\nType 'mpirun --help' for usage.\n",
            'mpirun: Error: unknown option "--x"',
        ),
        ("Host key verification failed.\n", "Host key verification failed."),
        ("-----\n", ""),
        (f"{74 * '-'}\n", ""),
        ("", ""),
    ],
)
def test_the_line_that_names_the_cause(stderr: str, cause: str) -> None:
    assert Ended(1, stderr).cause() == cause


def test_mpi_that_fails_is_a_problem_of_the_whole(mpi: Engines) -> None:
    mpi.setenv(FAKE_NODES="desk", FAKE_STATUS="213")
    answer = asyncio.run(gather(Mpi()))
    assert answer.nodes["desk"].status == "ok"
    assert answer.problem is not None
    assert answer.problem.startswith("mpirun ended with 213: ORTE was unable")
    assert not answer.complete
    mpi.setenv(FAKE_NODES="")
    with pytest.raises(ClusterError, match="before any node started"):
        asyncio.run(gather(Mpi()))
