"""`probe exec` where a caller closed its streams, or the system lacks what a lease uses."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lease_node import Node
from test_lease_keeper import keeper_of, soon

# The command looks whether its device is kept, and which of the standard streams it has.
ASKING = """
import os, subprocess, sys
os.environ.pop("PROBE_LEASE"), os.environ.pop("CUDA_VISIBLE_DEVICES")
open_ones = [number for number in (0, 1, 2) if os.path.exists(f"/proc/self/fd/{number}")]
null = subprocess.DEVNULL
status = subprocess.call(sys.argv[2:], stdin=null, stdout=null, stderr=null)
with open(sys.argv[1], "w") as file:
    file.write(f"{status} {open_ones}")
"""


@pytest.mark.heavy
@pytest.mark.parametrize("streams", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_closed_streams_cost_no_lock_and_stay_closed(
    streams: tuple[int, ...], node: Node, tmp_path: Path
) -> None:
    script, answer = tmp_path / "asking.py", tmp_path / "answer"
    script.write_text(ASKING)
    inner = node.command("exec", "--device", "0", "--", "true")
    words = node.command("exec", "--device", "0", "--", sys.executable, str(script), str(answer))
    done = subprocess.run(
        [*words, *inner],
        env=node.environ,
        preexec_fn=lambda: [os.close(number) for number in streams] and None,
        check=False,
    )
    remaining = [number for number in (0, 1, 2) if number not in streams]
    assert (done.returncode, answer.read_text()) == (0, f"3 {remaining}")
    assert node.held() == []


WITHOUT = {
    "/proc": "umount -l /proc",
    "/proc and /sys": "umount -l /sys; umount -l /proc",
    "/dev/null": "mount -t tmpfs none /dev",
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", WITHOUT)
def test_a_container_that_lacks_folders(name: str, node: Node, tmp_path: Path) -> None:
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace may be made here")
    answer = tmp_path / "answer"
    words = node.command("exec", "--", "sh", "-c", f"sleep 0.2; echo ran > {answer}; exit 7")
    before = f'{WITHOUT[name]}; exec "$@"'
    done = subprocess.run(
        [*unshare, "sh", "-c", before, "sh", *words],
        env=node.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")
    assert answer.read_text() == "ran\n", "it was waited for"


# A user of this process's alone: the limit counts all processes of a user.
USER = 80_000 + os.getpid() % 10_000
AS_A_USER = ["setpriv", f"--reuid={USER}", "--clear-groups", "--inh-caps=+dac_override"]
AS_A_USER += ["--ambient-caps=+dac_override"]


def limited(which: int, number: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(which, (number, number))


@pytest.mark.heavy
@pytest.mark.parametrize("count", [1, 2])
def test_no_room_for_a_process_is_an_error_and_not_success(count: int, node: Node) -> None:
    if subprocess.run([*AS_A_USER, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no other user may be become here")
    done = subprocess.run(
        [*AS_A_USER, *node.command("exec", "--", "true")],
        env=node.environ,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited(resource.RLIMIT_NPROC, count),
    )
    assert done.returncode == 126
    reason = "Resource temporarily unavailable"
    assert done.stderr == f"probe exec: no command can be started: {reason}\n"
    assert soon(lambda: node.held() == [])


def test_no_room_for_a_file_is_named(node: Node) -> None:
    for room in (6, 7):  # CPython 3.15 holds a file more once it can call C
        done = subprocess.run(
            node.command("exec", "--", "true"),
            env=node.environ,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limited(resource.RLIMIT_NOFILE, room),
        )
        *_, last = done.stderr.splitlines()
        if done.returncode != 3:
            break
        assert "leases/locks cannot be used: Too many open files" in last
    assert done.returncode == 126
    assert last == "probe exec: no command can be started: Too many open files"


def test_ten_open_files_are_room_enough(node: Node) -> None:
    """Seven are on CPython 3.11 to 3.14; 3.15 needs more."""
    done = subprocess.run(
        node.command("exec", "--", "sh", "-c", "exit 5"),
        env=node.environ,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited(resource.RLIMIT_NOFILE, 10),
    )
    assert done.returncode == 5
    assert "no command can be started" not in done.stderr


def test_a_killed_keeper_costs_no_commands_status(node: Node) -> None:
    command = subprocess.Popen(
        node.command("exec", "--device", "0", "--", "sh", "-c", "echo on; read line; exit 3"),
        env=node.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    # A keeper that is killed before it started the command has none to pass on.
    assert command.stdout is not None
    assert command.stdout.readline() == b"on\n"
    os.kill(keeper_of(node), signal.SIGKILL)
    command.communicate(b"go\n")
    assert command.returncode == 3
    assert node.held() == []


def test_a_stopped_front_delays_nobody(node: Node) -> None:
    command = node.start("exec", "--device", "0", "--", "sleep", "60")
    try:
        keeper = keeper_of(node)
        os.kill(command.pid, signal.SIGSTOP)
        assert node.run("exec", "--device", "1", "--", "true").returncode == 0
        os.kill(keeper, 0)
    finally:
        command.kill()
        command.communicate()
    assert soon(lambda: node.held() == [])


@pytest.mark.heavy
def test_a_lease_in_another_pid_namespace_is_seen_and_ended_from_outside(node: Node) -> None:
    """As of a container that shares the folder: its process numbers mean nothing here."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no PID namespace may be made here")
    inner = node.command("exec", "--device", "0", "--", "sh", "-c", "echo; exec sleep 60")
    command = subprocess.Popen(
        [*unshare, *inner], env=node.environ, stdout=subprocess.PIPE, text=True
    )
    try:
        assert command.stdout is not None
        command.stdout.readline()
        (entry,) = node.held()
        assert (entry["state"], entry["pid"], entry["proven"]) == ("unknown", 1, False)
        seen = ", ".join(map(str, entry["kept_by"]))
        refused = node.run("exec", "--device", "0", "--", "true")
        assert (refused.returncode, f", here seen as {seen}" in refused.stderr) == (3, True)
        other = node.command("exec", "--device", "0", "--", "true")
        assert subprocess.run([*unshare, *other], env=node.environ, check=False).returncode == 3
        assert node.run("leases", "--kill", "pci:0000:01:00.0").returncode == 0
        assert node.held() == []
    finally:
        command.kill()
        command.communicate()
