"""A gather through real Slurm daemons and a real mpirun, all on this computer: nothing stays."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_processes import folders_of, is_probing, nothing_left, wait_for

from probe_cluster import Limits, gather
from probe_cluster.gathering import Mpi, Slurm

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
SLURMCTLD, SLURMD = (shutil.which(name, path=SBIN) for name in ("slurmctld", "slurmd"))
SRUN = shutil.which("srun")
MPIRUN = shutil.which("mpirun")

# Without munge: the daemons believe who says that he is root, on the loopback of this computer.
CONFIG = """
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ReturnToService=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
"""

HANGS = '{"devices": [], "then": "hang"}'


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A variable that all of a node's processes have; they have this Python, and no probe."""
    value = f"probe-test-{os.getpid()}-{time.monotonic_ns()}"
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("GATHER_MARKER", value)
    monkeypatch.setenv("PATH", f"{tmp_path}/python:/usr/bin:/bin")
    monkeypatch.setenv("PROBE_SYNTHETIC", str(tmp_path / "devices.json"))
    monkeypatch.setenv("PROBE_TIMEOUT", "60")
    (tmp_path / "devices.json").write_text("[]")
    return value


def ended_by(number: int, arguments: list[str], marker: str, tmp_path: Path) -> None:
    """End a gather whose prober hangs on the node, and wait until nothing is left there."""
    (tmp_path / "devices.json").write_text(HANGS)
    command = [sys.executable, "-m", "probe_core", "cluster", "--json", *arguments]
    # Its own processes have no marker, or it would look for itself.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: is_probing(marker))
    folders = folders_of(marker)
    assert folders
    process.send_signal(number)
    process.wait(60)
    wait_for(lambda: nothing_left(marker, folders), 60)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A controller and one node, whose daemons know nothing of the test's variables."""
    with socket.socket() as first, socket.socket() as second:
        for listener in (first, second):
            listener.bind(("127.0.0.1", 0))
        ports = [listener.getsockname()[1] for listener in (first, second)]
    for name in ("state", "spool"):
        (tmp_path / name).mkdir()
    config = tmp_path / "slurm.conf"
    config.write_text(CONFIG.format(ports=ports, folder=tmp_path))
    monkeypatch.setenv("SLURM_CONF", str(config))
    environ = {"PATH": SBIN, "SLURM_CONF": str(config)}
    assert SLURMCTLD is not None
    assert SLURMD is not None
    daemons = []
    for words in ([SLURMCTLD, "-D"], [SLURMD, "-D", "-N", "n1"]):
        with (tmp_path / f"{os.path.basename(words[0])}.log").open("w") as log:
            daemons.append(subprocess.Popen(words, env=environ, stdout=log, stderr=log))
    try:
        state = ["sinfo", "--noheader", "--format=%T"]
        wait_for(lambda: b"idle" in subprocess.run(state, capture_output=True).stdout, 60)
        yield
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(30)


needs_slurm = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        not (SLURMCTLD and SLURMD and SRUN), reason="needs slurmctld, slurmd and slurm-client"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root"),
]


class TestSlurm:
    pytestmark = needs_slurm

    @pytest.mark.usefixtures("slurm", "marker")
    def test_a_node_of_a_job_reports_through_what_is_sent(self) -> None:
        answer = asyncio.run(gather(Slurm(["-N1"]), limits=Limits(node=60.0, overall=120.0)))
        node = answer.nodes["n1"]
        assert (node.status, node.reason, node.sent) == ("ok", None, True)
        assert node.engine is not None
        assert node.engine["cpus"] == 2

    @pytest.mark.usefixtures("slurm")
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_a_command_that_is_ended_leaves_nothing_on_the_node(
        self, marker: str, tmp_path: Path, number: int
    ) -> None:
        ended_by(number, ["--slurm", "-N1"], marker, tmp_path)


needs_mpi = [
    pytest.mark.heavy,
    pytest.mark.skipif(MPIRUN is None, reason="needs mpirun: apt install openmpi-bin"),
]


class TestMpi:
    pytestmark = needs_mpi
    options = ("--allow-run-as-root",) if os.geteuid() == 0 else ()

    @pytest.mark.usefixtures("marker")
    def test_a_node_of_mpirun_reports_through_what_is_sent(self) -> None:
        answer = asyncio.run(gather(Mpi(self.options), limits=Limits(node=60.0, overall=120.0)))
        ((name, node),) = answer.nodes.items()
        assert name == os.uname().nodename
        assert (node.status, node.reason, node.sent) == ("ok", None, True)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_a_command_that_is_ended_leaves_nothing(
        self, marker: str, tmp_path: Path, number: int
    ) -> None:
        ended_by(number, ["--mpi", *self.options], marker, tmp_path)
