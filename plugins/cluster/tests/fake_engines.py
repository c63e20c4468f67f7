"""Fake ssh, srun, mpirun and kubectl on PATH: shell scripts below our code, no Python is patched.

Each runs the script that it is given, as the real one does on a node, with a fake `probe` that
prints the report of the node FAKE_HOST.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from probe_core import __version__

PROBE = """#!/bin/sh
[ "$1" = --version ] && { echo "probe-core ${FAKE_VERSION:-{version}}"; exit 0; }
cd {reports}
case $FAKE_HOST in
  broken) echo 'probe: internal error: KeyError' >&2; exit 70;;
  silent-hang) sleep 60;;
esac
cat $FAKE_HOST.json
"""

# The last two words are the host and the command, which sshd gives to the user's shell.
SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
export FAKE_HOST=${1#*@}
echo $1 >> {folder}/ssh.hosts
case $FAKE_HOST in
  hung) sleep 60;;
  stubborn) trap '' TERM; sleep 60; sleep 60;;
  waits) while [ ! -e {folder}/go ]; do sleep 0.1; done;;
  refused) echo 'ssh: connect to host refused port 22: Connection refused' >&2; exit 255;;
  nokey) echo "nokey: Permission denied (publickey)." >&2; exit 255;;
  nologin) echo 'This account is currently not available.'; exit 1;;
  changed) printf '@@@@@\\r\\nHost key verification failed.\\r\\n' >&2; exit 255;;
  replaced) printf 'Host key for [10.0.0.7]:2222 has changed' >&2
    printf ' and you have requested strict checking.\\r\\n' >&2
    printf 'Host key verification failed.\\r\\n' >&2; exit 255;;
  bare) PATH=/usr/bin:/bin; export PATH; HOME=/nonexistent; export HOME;;
  noisy) echo '#probe-cluster noisy 1 end'; head -c 3000000 /dev/zero | tr '\\0' x; echo;;
  banner) printf 'Welcome to banner, no newline: ';;
  closed) exec sh -c "$2" | head -c 2000; exit 1;;
  crlf) sh -c "$2" | sed 's/$/\\r/'; exit 0;;
esac
exec sh -c "$2"
"""

# FAKE_NODES tells on which nodes; all write into one pipe at once, as the tasks of a step do.
SRUN = f"""#!{sys.executable} -S
import os, subprocess, sys, threading, time

arguments = sys.argv[1:]
task = arguments[arguments.index("sh"):]
with open("{{folder}}/srun.arguments", "w") as file:
    file.write(" ".join(arguments))
fake = os.environ.get("FAKE_SRUN")
if fake == "refused":
    sys.exit("srun: error: Unable to allocate resources: Invalid partition name")
if fake == "queued":
    time.sleep(60)
children = []
for rank, name in enumerate(os.environ.get("FAKE_NODES", "").split()):
    if name == "dead":
        print(f"srun: error: dead: task {{rank}}: Killed", file=sys.stderr)
        continue
    own = {{"FAKE_HOST": name, "SLURMD_NODENAME": name, "SLURM_PROCID": str(rank)}}
    listed = {{"SLURM_STEP_NODELIST": os.environ.get("FAKE_NODELIST", "")}}
    child = subprocess.Popen(task, stdin=subprocess.PIPE, env={{**os.environ, **own, **listed}})
    children.append(child)

def broadcast():
    while data := os.read(0, 65536):
        for child in children:
            try:
                child.stdin.write(data)
                child.stdin.flush()
            except OSError:
                pass
    for child in children:
        try:
            child.stdin.close()
        except OSError:
            pass

threading.Thread(target=broadcast, daemon=True).start()
status = max((child.wait() for child in children), default=0)
if fake == "late":
    time.sleep(60)
os._exit(int(os.environ.get("FAKE_STATUS") or status))
"""
# A real launcher gives its input to all processes; in a shell each reads another part of it.

MPIRUN = """#!/bin/sh
if [ "$1" = --version ]; then echo "${FAKE_MPI:-mpirun (Open MPI) 5.0.5}"; exit 0; fi
echo "$@" > {folder}/mpirun.arguments
while [ "$1" != sh ]; do shift; done
rank=0
for node in $FAKE_NODES; do
  FAKE_HOST=$node SLURMD_NODENAME=$node OMPI_COMM_WORLD_RANK=$rank "$@" &
  rank=$((rank+1))
done
wait
[ -n "$FAKE_STATUS" ] && echo 'ORTE was unable to reliably start one or more daemons.' >&2
exit ${FAKE_STATUS:-0}
"""

KUBECTL = """#!/bin/sh
case "$1 $2" in
  "get pods") cat {folder}/pods.json;;
  "get nodes") [ -f {folder}/nodes.json ] || { echo 'Error: nodes is forbidden' >&2; exit 1; }
    cat {folder}/nodes.json;;
  exec*)
    shift
    while [ "$1" != -- ]; do pod=$1; shift; done
    shift
    echo 'Defaulted container "probe" out of: probe, side' >&2
    FAKE_HOST=$pod exec "$@";;
esac
"""


class Engines:
    """A folder of fake commands, and the reports that their nodes have."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        (folder / "reports").mkdir()
        (folder / "bin").mkdir()
        monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
        for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_PROCID", "SLURMD_NODENAME"):
            monkeypatch.delenv(name, raising=False)
        probe = PROBE.replace("{reports}", f"{folder}/reports")
        self.command("probe", probe.replace("{version}", __version__))

    def command(self, name: str, script: str) -> None:
        """Put a command on PATH."""
        path = self.folder / "bin" / name
        path.write_text(script.replace("{folder}", str(self.folder)))
        path.chmod(0o755)

    def report(self, host: str, document: Any) -> None:
        """Give a node its report: a document, or text as it is."""
        text = document if isinstance(document, str) else json.dumps(document)
        (self.folder / "reports" / f"{host}.json").write_text(text)

    def setenv(self, **values: str) -> None:
        """Set variables that the fakes read."""
        for name, value in values.items():
            self._monkeypatch.setenv(name, value)

    def arguments(self, name: str) -> str:
        """Return what a fake launcher was given; the script is one of the words."""
        return (self.folder / f"{name}.arguments").read_text()
