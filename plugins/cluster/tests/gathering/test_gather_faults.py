"""Twelve faults of nodes in one gather by ssh: each is told rightly, and no other node loses by it.

The ssh is a fake executable that runs the node's script on this computer, in a PATH or in mounts of
its own; the probe that is sent is the real one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_engines import Engines

from probe_cluster import Gathered, Limits, gather
from probe_cluster.gathering import Ssh
from probe_core import __version__

Home = dict[str, dict[str, Any]]

OLD = next(
    (
        str(path)
        for minor in (9, 8, 7, 6, 10)
        for path in sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
    ),
    None,
)

TOOLS = ("sh", "uname", "head", "sed", "cat", "sleep", "env", "kill")

# A memory file system that takes 100 kB, over a folder of the node.
FULL = "mount -t tmpfs -o size=100k none"

SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
export FAKE_HOST=$1
within() { exec unshare -m sh -c "$1 && PATH=/usr/bin:/bin exec sh -c \\"\\$1\\"" x "$2"; }
case $1 in
  dead) echo 'ssh: connect to host dead port 22: No route to host' >&2; exit 255;;
  banner) echo '{ Unauthorized use of this system'; echo 'is prohibited. }'; echo '#probe-cluster';;
  old) PATH={folder}/old:{folder}/tools exec sh -c "$2";;
  no-python) PATH={folder}/tools exec sh -c "$2";;
  full-disk) within "{full} /var/tmp && {full} /tmp" "$2";;
  full) within "{full} /run && {full} /dev/shm && {full} /var/tmp && {full} /tmp" "$2";;
  read-only-home) within "mount -t tmpfs -o ro none $HOME" "$2";;
  lost) (while [ ! -e {folder}/runs ]; do sleep 0.1; done
    echo 'Connection to lost closed by remote host.' >&2; kill -9 -$$) & exec sh -c "$2";;
esac
exec sh -c "$2"
"""

PROBE = """#!/bin/sh
[ "$1" = --version ] && { echo probe-core {version}; exit 0; }
case $FAKE_HOST in
  banner) echo '{ modules.sh: line 4: warning: setlocale: LC_ALL: cannot change locale (de_DE) }'
    cat {folder}/a.json
    echo 'Unloading cuda/12.4';;
  killed) kill -9 $$;;
  slow) sleep 2; cat {folder}/a.json;;
  lost) touch {folder}/runs; sleep 60;;
  hanging) sleep 60;;
  cut) head -c 3000 {folder}/a.json;;
  *) cat {folder}/a.json;;
esac
"""


@pytest.fixture
def nodes(engines: Engines, home: Home) -> Engines:
    folder = engines.folder
    for name in ("tools", "old", "bare"):
        (folder / name).mkdir()
    for tool in TOOLS:
        if path := shutil.which(tool):
            (folder / "tools" / tool).symlink_to(path)
    if OLD is not None:
        (folder / "old" / "python3").symlink_to(OLD)
    report = home["desk"] | {"node": home["desk"]["node"] | {"id": "one-image-of-all"}}
    (folder / "a.json").write_text(json.dumps(report) + "\n")
    engines.command("ssh", SSH.replace("{full}", FULL))
    engines.command("probe", PROBE.replace("{version}", __version__))
    return engines


def gathered(*hosts: str, seconds: float = 60.0) -> Gathered:
    return asyncio.run(gather(Ssh(hosts), limits=Limits(node=seconds)))


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def has_system_python() -> bool:
    """Return whether a folder that each node looks into has a Python, whatever its PATH."""
    return shutil.which("python3", path="/usr/local/bin:/opt/probe/bin") is not None


@pytest.mark.heavy
def test_faults_that_need_no_other_system(nodes: Engines, home: Home) -> None:
    answer = gathered(
        "good", "dead", "banner", "killed", "slow", "hanging", "cut", "lost", seconds=8
    )
    rows = {id_: (node.status, node.reason, node.fix) for id_, node in answer.nodes.items()}
    assert rows["good"][0] == rows["slow"][0] == rows["banner"][0] == "ok"
    for id_ in ("good", "slow", "banner"):
        assert answer.nodes[id_].report()["devices"] == home["desk"]["devices"]
    assert rows["dead"] == (
        "missing",
        "ssh: connect to host dead port 22: No route to host (the command ended with 255)",
        "check that dead is on and reachable",
    )
    assert rows["killed"] == (
        "failed",
        "`probe --json` was ended there by SIGKILL",
        "look for the cause there: journalctl -k -n 50",
    )
    assert rows["hanging"] == (
        "timeout",
        "`probe --json` runs there since 8 s",
        "give it more time: --timeout SECONDS",
    )
    assert rows["cut"] == (
        "invalid",
        "its document of 3000 bytes is damaged: its end is missing",
        "run it again, or run `probe --json` on that node",
    )
    assert rows["lost"][0] == "missing"
    assert (rows["lost"][1] or "").startswith("the connection ended before its answer was whole")
    (same,) = [entry for entry in answer.differences() if entry["code"] == "same-machine"]
    assert same["values"] == {"the same": ["good", "banner", "slow"]}
    assert not answer.complete


@pytest.mark.skipif(has_system_python(), reason="/usr/local/bin has a Python, which nodes find")
@pytest.mark.skipif(OLD is None, reason="no Python 3.6 to 3.10 is installed by pyenv")
def test_a_node_with_an_old_python_and_one_without(nodes: Engines) -> None:
    (nodes.folder / "bin" / "probe").unlink()
    answer = gathered("old", "no-python")
    old, none = answer.nodes["old"], answer.nodes["no-python"]
    assert old.status == none.status == "no-probe"
    assert OLD is not None
    code = "import sys; print(*sys.version_info[:3], sep='.')"
    python = subprocess.check_output([OLD, "-c", code], text=True).strip()
    assert (old.reason or "").startswith(
        f"no Python 3.11 or newer is there to run the probe: it has {python}; its PCI bus"
    )
    assert old.basics is not None
    memory = int(Path("/proc/meminfo").read_text().split()[1]) << 10
    assert (old.basics["memory"], old.basics["kernel"]) == (memory, os.uname().release)
    addresses = {row["address"] for row in old.basics["pci"] or ()}
    assert addresses == {
        folder.name
        for folder in Path("/sys/bus/pci/devices").glob("*")
        if (folder / "class").read_text()[2:4] in ("03", "12")
    }
    assert none.reason == "no Python 3.6 or newer is on its PATH, so no probe runs there"
    assert (none.fix or "").startswith("install Python 3.11")


@pytest.mark.skipif(has_system_python(), reason="/usr/local/bin has a Python, which nodes find")
def test_a_node_whose_python_does_not_start(nodes: Engines) -> None:
    """A limit of open files, a library that is gone: it is not said to be absent."""
    (nodes.folder / "bin" / "probe").unlink()
    broken = nodes.folder / "old" / "python3"
    broken.unlink(missing_ok=True)
    broken.write_text("#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n")
    broken.chmod(0o755)
    node = gathered("old").nodes["old"]
    assert (node.status, node.reason) == ("no-probe", "python3 is there and does not start")
    assert node.fix == "look why: run `python3 -I -S -c pass` there"


@pytest.mark.heavy
@pytest.mark.skipif(
    os.geteuid() != 0 or not can_mount(), reason="needs root, and mounts of its own"
)
@pytest.mark.skipif(
    shutil.which("python3.11", path="/usr/bin:/bin") is None, reason="needs /usr/bin/python3.11"
)
def test_a_full_disk_and_a_home_that_is_read_only(nodes: Engines) -> None:
    (nodes.folder / "bin" / "probe").unlink()
    answer = gathered("full-disk", "read-only-home", "full")
    for id_ in ("full-disk", "read-only-home"):
        node = answer.nodes[id_]
        assert (node.status, node.reason, node.sent) == ("ok", None, True)
    full = answer.nodes["full"]
    assert full.status == "failed"
    assert (full.reason or "").startswith("no probe could be started there: /run: No space left")
    assert "free 10 MB in one of these folders" in (full.fix or "")
