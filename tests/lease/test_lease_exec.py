"""`probe exec` hands devices out: one holder each, ended by the kernel, never widened."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lease_node import Node, gpu
from test_lease_keeper import soon

from probe_core.leasing.execute import CannotRun, replace

SLEEP = ("--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 60")


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def uuid(slot: int) -> str:
    return f"GPU-0000000{slot}-0000-0000-0000-00000000000{slot}"


@pytest.mark.heavy
def test_two_commands_get_two_gpus_and_a_third_none(node: Node) -> None:
    one, two = node.start("exec", "--gpus", "1", *SLEEP), node.start("exec", "-n1", *SLEEP)
    try:
        assert {first_line(one), first_line(two)} == {uuid(1), uuid(2)}
        third = node.run("exec", "--gpus", "1", "--", "true")
        assert third.returncode == 3
        assert "asked for 1 device: not free" in third.stderr
        assert f"by process {one.pid}" in third.stderr
        assert third.stderr.endswith("what would work: --wait to queue\n")
        told = {(entry["pid"], entry["state"], entry["share"]) for entry in node.held()}
        assert told == {(one.pid, "running", False), (two.pid, "running", False)}
    finally:
        ended(one)
        ended(two)
    assert soon(lambda: node.held() == [])


@pytest.mark.heavy
def test_sigkill_frees_at_once(node: Node) -> None:
    holder = node.start("exec", "--device", "0,1", *SLEEP)
    assert first_line(holder) == f"{uuid(1)},{uuid(2)}"
    assert node.run("exec", "--", "true").returncode == 3
    ended(holder)
    assert node.run("exec", "--gpus", "2", "--", "true").returncode == 0


@pytest.mark.heavy
def test_what_the_command_left_running_keeps_the_lease(node: Node) -> None:
    words = "sleep 60 & echo $!; exit 0"
    done = node.start("exec", "--device", "0", "--", "sh", "-c", words)
    child = int(first_line(done))
    done.wait()
    assert done.stdout is not None
    done.stdout.close()
    try:
        (entry,) = node.held()
        assert (entry["state"], entry["pid"]) == ("inherited", done.pid)
        assert entry["kept_by"] == [child]
    finally:
        os.kill(child, signal.SIGKILL)
    assert soon(lambda: node.held() == [])


@pytest.mark.heavy
def test_waiting_takes_what_comes_free(node: Node) -> None:
    holder = node.start("exec", "--gpus", "2", *SLEEP)
    first_line(holder)
    waiter = node.start("exec", "--gpus", "2", "--wait", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    time.sleep(0.2)
    assert waiter.poll() is None
    ended(holder)
    assert first_line(waiter) == f"{uuid(1)},{uuid(2)}"
    assert waiter.wait() == 0
    ended(waiter)


@pytest.mark.heavy
def test_nobody_stands_behind_a_wait_for_something_else(node: Node) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    waiter = node.start("exec", "--device", "0", "--wait", "--", "true")
    both = node.start("exec", "--device", "0,1", "--wait", "0.3", "--", "true")
    time.sleep(0.15)
    done = node.run("exec", "--gpus", "1", "--wait", "20", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert both.wait(timeout=20) == 3
    assert done.stdout.strip() == uuid(2)
    assert waiter.poll() is None
    ended(holder)
    assert waiter.wait(timeout=20) == 0
    ended(waiter)
    ended(both)


@pytest.mark.heavy
def test_waiters_for_different_sets_do_not_block_each_other_for_ever(node: Node) -> None:
    words = ("--wait", "--", "sleep", "0.01")
    wants = (("--gpus", "2"), ("--device", "1,0"), ("--device", "0,1"), ("--gpus", "1"))
    running = [node.start("exec", *want, *words) for want in wants * 4]
    assert [process.wait(timeout=30) for process in running] == [0] * 16
    for process in running:
        ended(process)


@pytest.mark.heavy
def test_waiting_ends_in_time(node: Node) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    begun = time.monotonic()
    done = node.run("exec", "--device", "0", "--wait", "0.2", "--", "true")
    ended(holder)
    assert done.returncode == 3
    assert "not free after 0.2 s" in done.stderr
    assert 0.2 <= time.monotonic() - begun < 10


def test_a_refusal_says_what_was_asked_and_what_would_work(node: Node) -> None:
    one = node.start("exec", "--device", "0", "--share", *SLEEP)
    try:
        first_line(one)
        counted = node.run("exec", "--gpus", "2", "--", "true").stderr
        listed = node.run("exec", "--device", "0,1", "--", "true").stderr
    finally:
        ended(one)
    assert "asked for 2 devices: not free" in counted
    what = "what would work: --wait to queue"
    assert counted.endswith(f"{what}, or ask for 1, or --share: their owners do\n")
    assert "asked for '0,1': not free" in listed
    assert listed.endswith(f"{what}, or --share: their owners do\n")


@pytest.mark.heavy
def test_sharers_share_and_exclude_others(node: Node) -> None:
    one = node.start("exec", "--device", "0", "--share", *SLEEP)
    first_line(one)
    two = node.start("exec", "--device", "0", "--share", *SLEEP)
    first_line(two)
    try:
        assert node.run("exec", "--device", "0", "--", "true").returncode == 3
        assert {entry["pid"] for entry in node.held()} == {one.pid, two.pid}
        ended(one)
        assert soon(lambda: [entry["pid"] for entry in node.held()] == [two.pid])
    finally:
        ended(two)


@pytest.mark.heavy
def test_status_signals_group_and_session_are_the_commands_own(node: Node) -> None:
    assert node.run("exec", "--", "sh", "-c", "exit 41").returncode == 41
    assert node.run("exec", "--", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    code = "import os; print(os.getpgid(0), os.getsid(0))"
    done = node.run("exec", "--", sys.executable, "-c", code)
    assert done.stdout.split() == [str(os.getpgid(0)), str(os.getsid(0))]


def test_the_command_inherits_no_ignored_signals_and_no_other_files(node: Node) -> None:
    words = ("sh", "-c", "grep SigIgn /proc/self/status; ls -l /proc/self/fd | grep -c leases")
    done = node.run("exec", "--", *words)
    ignored, files = done.stdout.split()[1:]
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # what Python ignores, as glibc does 32 and 33
        assert not int(ignored, 16) >> (number - 1) & 1
    assert files == "3"  # the locks, the record, and the folder


# --- what systemd says to the process that it starts

SHOW = """
import os, signal
own, names = str(os.getpid()), ("LISTEN_PID", "WATCHDOG_PID", "LISTEN_PIDFDID", "LISTEN_FDS")
print([{own: "own"}.get(os.environ.get(name), os.environ.get(name)) for name in names])
print(os.read(3, 20).decode())
print(signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL)
"""


def as_service(node: Node, words: str, path: Path) -> list[str]:
    """Run the command as the main process of a service, with a file in place of a socket."""
    path.write_text("of the socket")
    line = f'{words} exec "$@" 3<{path}'
    command = ["sh", "-c", line, "sh", *node.command("exec", "--", sys.executable, "-c", SHOW)]
    done = subprocess.run(
        command, env=node.environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.heavy
def test_the_command_takes_the_sockets_that_systemd_gave_to_its_caller(
    node: Node, tmp_path: Path
) -> None:
    """sd_listen_fds(3) and sd_watchdog_enabled(3) compare the number with their own process."""
    words = "LISTEN_PID=$$ WATCHDOG_PID=$$ LISTEN_PIDFDID=1234 LISTEN_FDS=1"
    assert as_service(node, words, tmp_path / "socket") == [
        "['own', 'own', None, '1']",
        "of the socket",
        "True",
    ]
    assert node.held() == []


@pytest.mark.heavy
def test_what_is_for_another_process_stays_so(node: Node, tmp_path: Path) -> None:
    words = "LISTEN_PID=1 WATCHDOG_PID=1 LISTEN_PIDFDID=1234 LISTEN_FDS=1"
    assert as_service(node, words, tmp_path / "socket") == [
        "['1', '1', '1234', '1']",
        "of the socket",
        "True",
    ]


def test_the_help_says_what_of_systemd_is_not_kept(node: Node) -> None:
    text = " ".join(node.run("exec", "--help").stdout.split())
    assert "LISTEN_PID, WATCHDOG_PID" in text
    assert "NotifyAccess= has to be all, and a PIDFile= is not kept" in text


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (("no-such-command-here",), 127, "command not found"),
        (("./nothing",), 127, "no such file"),
        (("/",), 126, "is a directory"),
        (("/etc/passwd",), 126, "permission denied"),
    ],
)
def test_commands_that_cannot_run(
    node: Node, command: tuple[str, ...], status: int, said: str
) -> None:
    done = node.run("exec", "--", *command)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.heavy
def test_a_script_without_interpreter_line_runs_as_in_a_shell(node: Node, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "from $1"\n')
    script.chmod(0o755)
    assert node.run("exec", "--", str(script), "sh").stdout == "from sh\n"
    script.write_text("#!/no/such/interpreter\n")
    assert node.run("exec", "--", str(script)).returncode == 127, "as env(1)"


@pytest.mark.heavy
def test_arguments_reach_the_command_untouched(node: Node) -> None:
    done = node.run("exec", "--", "printf", "%s|", "--gpus", "--", "a b", "")
    assert done.stdout == "--gpus|--|a b||"
    assert node.run("exec", "printf", "%s|", "-n").stdout == "-n|"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--gpus", "3", "--", "true"), 3),
        (("--device", "5", "--", "true"), 3),
        (("--device", "0,,1", "--", "true"), 2),
        (("--memory", "200GiB", "--", "true"), 3),
        (("--memory", "lots", "--", "true"), 2),
        (("--gpus", "0", "--", "true"), 2),
        (("--gpus", "1", "--device", "0", "--", "true"), 2),
        (("--layout", "2x1", "--", "true"), 2),
        (("--layout", "2x1", "--index", "2", "--", "true"), 3),
        (("--wait", "-1", "--", "true"), 2),
        (("--for", "hip", "--", "true"), 3),
        ((), 2),
    ],
)
def test_requests_that_cannot_be_met(node: Node, words: tuple[str, ...], status: int) -> None:
    done = node.run("exec", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("probe")
    assert "Traceback" not in done.stderr


def test_a_restricted_environment_is_never_widened(node: Node) -> None:
    done = node.run("exec", "--", "printenv", "CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="1")
    assert done.stdout.strip() == uuid(2)
    done = node.run("exec", "--gpus", "2", "--", "true", CUDA_VISIBLE_DEVICES="1")
    assert done.returncode == 3
    assert "change or unset CUDA_VISIBLE_DEVICES" in done.stderr
    done = node.run("exec", "--", "true", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 3


@pytest.mark.heavy
def test_within_a_lease_its_own_devices_can_be_handed_on(node: Node) -> None:
    inner = " ".join(f"'{word}'" for word in node.command("exec", "--gpus", "1", "--"))
    script = f"{inner} printenv CUDA_VISIBLE_DEVICES; {inner} {inner} true"
    done = node.run("exec", "--gpus", "1", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout.strip()) == (0, uuid(1)), done.stderr


def test_dry_run_prints_shell_lines_and_keeps_nothing(node: Node) -> None:
    done = node.run("exec", "--device", "1", "--dry-run", "--", "anything")
    assert f"export CUDA_VISIBLE_DEVICES={uuid(2)}" in done.stdout.splitlines()
    assert "export CUDA_DEVICE_ORDER=PCI_BUS_ID" in done.stdout.splitlines()
    assert "PROBE_LEASE" not in done.stdout
    assert node.held() == []


@pytest.mark.heavy
def test_idle_and_roomy_devices_come_first(tmp_path: Path) -> None:
    small = {"kind": "dedicated", "total": 80 << 30, "free": 8 << 30, "usable": 8 << 30}
    busy = gpu(2, processes=3)
    node = Node(tmp_path, 4, [gpu(1, memory=small), busy, gpu(3), gpu(4)])
    words = ("--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert node.run("exec", *words).stdout.strip() == uuid(3)
    assert node.run("exec", "--memory", "20GiB", "--gpus", "3", *words).stdout.strip() == ",".join(
        uuid(slot) for slot in (2, 3, 4)
    )


def test_layout_instances_do_not_overlap(tmp_path: Path) -> None:
    devices = [gpu(slot, numa_node=slot % 2) for slot in range(1, 5)]
    node = Node(tmp_path, 4, devices)
    seen = [
        node.run(
            "exec", "--layout", "2x2", "--index", str(k), "--", "printenv", "CUDA_VISIBLE_DEVICES"
        )
        for k in range(2)
    ]
    assert [one.stdout.strip() for one in seen] == [
        f"{uuid(1)},{uuid(3)}",
        f"{uuid(2)},{uuid(4)}",
    ]


@pytest.mark.heavy
def test_a_mig_instance_keeps_the_whole_gpu_from_others(tmp_path: Path) -> None:
    card = gpu(1)
    parts = [
        gpu(2)
        | {"id": f"uuid:MIG-{n}", "ids": [f"uuid:MIG-{n}"], "parent": card["id"]}
        | {"extra": {"gpu_instance": n, "compute_instance": 0}}
        for n in (1, 2)
    ]
    node = Node(tmp_path, 3, [card, *parts])
    holder = node.start("exec", "--device", "MIG-1", *SLEEP)
    assert first_line(holder) == "MIG-1"
    try:
        done = node.run("exec", "--", "printenv", "CUDA_VISIBLE_DEVICES")
        assert done.stdout.strip() == "MIG-2"
        assert node.run("exec", "--device", "MIG-1", "--", "true").returncode == 3
    finally:
        ended(holder)


@pytest.mark.heavy
def test_odd_bytes_in_variables_never_raise(node: Node) -> None:
    odd = "\udcff\udcfe,'$(x)\n"
    names = (
        "CUDA_VISIBLE_DEVICES",
        "DEV",
        "PROBE_LEASE",
        "ZE_AFFINITY_MASK",
        "HIP_VISIBLE_DEVICES",
    )
    for name in names:
        for words in (
            ("exec", "--", "true"),
            ("visible",),
            ("visible", "--json"),
            ("layout", "1x1"),
        ):
            done = node.run(*words, **{name: odd})
            assert done.returncode in (0, 3), (name, words, done.stderr)
            assert "Traceback" not in done.stderr


REPLACED = """
        held.keep_on_exec()
        replace("/bin/sh", words, held.environ)
"""
KEPT = """
        can_keep()
        run(held.kept, [("/bin/sh", words, held.environ)])
"""


def _storm(node: Node, count: int, start: str = REPLACED) -> list[str]:
    """Start `count` commands at once, forked from one interpreter; each checks that it is alone."""
    driver = f"""
import os, sys
from probe_core.leasing import lease
from probe_core.leasing.execute import replace
from probe_core.leasing.keeper import can_keep, run
import json
document = json.load(open({str(node.folder / "report.json")!r}))
from probe_core.pipeline.refresh import refresh
refresh(document, os.environ)
script = 'mkdir "$0/$CUDA_VISIBLE_DEVICES" || exit 9; sleep 0.002; rmdir "$0/$CUDA_VISIBLE_DEVICES"'
for number in range({count}):
    if os.fork() == 0:
        held = lease(1, wait=True, report=document, environ=os.environ)
        words = ["sh", "-c", script, {str(node.folder)!r}]
{start}
for number in range({count}):
    _, status = os.wait()
    print(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run(
        [sys.executable, "-c", driver],
        env=node.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.heavy
@pytest.mark.parametrize("start", [REPLACED, KEPT], ids=["replaced", "kept"])
def test_two_hundred_at_once_each_run_alone(start: str, tmp_path: Path) -> None:
    assert _storm(Node(tmp_path, 8), 200, start) == ["0"] * 200


@pytest.mark.heavy
def test_waiters_killed_at_any_moment_leave_nothing_behind(node: Node) -> None:
    holder = node.start("exec", "--gpus", "2", *SLEEP)
    first_line(holder)
    waiters = [node.start("exec", "--gpus", "2", "--wait", "--", "true") for _ in range(4)]
    for number, waiter in enumerate(waiters[:3]):
        time.sleep(0.05 * number)
        ended(waiter)
    ended(holder)
    assert waiters[3].wait(timeout=20) == 0
    ended(waiters[3])
    assert node.held() == []


@pytest.mark.heavy
def test_leases_as_a_table(node: Node) -> None:
    assert node.run("leases").stdout == ""
    holder = node.start("exec", "--device", "1", *SLEEP)
    first_line(holder)
    rows = node.run("leases").stdout.splitlines()
    for width in (60, 80):
        narrow = node.run("leases", COLUMNS=str(width)).stdout
        assert max(map(len, narrow.splitlines())) <= width
        assert {"02:00.0", str(holder.pid), "exclusive", "running"} <= set(narrow.split())
    ended(holder)
    assert rows[0].split() == ["DEVICE", "PID", "USER", "SINCE", "HOW", "STATE", "COMMAND"]
    words = rows[1].split()
    assert words[:2] == ["02:00.0", str(holder.pid)]
    assert words[4:6] == ["exclusive", "running"]


def test_a_process_that_cannot_be_replaced_keeps_its_signals(tmp_path: Path) -> None:
    """With SIGPIPE's default the next socket that its peer has closed ends the process."""
    before = [signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)]
    with pytest.raises(CannotRun):
        replace(str(tmp_path / "missing"), ["missing"], {})
    assert [signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)] == before
    assert before == [signal.SIG_IGN, signal.SIG_IGN]


def test_a_script_without_a_shell_to_run_it_cannot_be_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where a container has no /bin/sh: one sentence, and a shell's status."""
    tried = []

    def execve(file: str, line: list[str], environ: dict[str, str]) -> None:
        tried.append((file, line))
        raise OSError(*(ENOEXEC if len(tried) == 1 else NO_SHELL))

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)  # this process stays
    with pytest.raises(CannotRun, match=r"^script: No such file or directory$") as caught:
        replace("/bin/script", ["script", "a"], {})
    assert caught.value.status == 126
    assert tried == [("/bin/script", ["script", "a"]), ("/bin/sh", ["/bin/sh", "/bin/script", "a"])]


ENOEXEC = (errno.ENOEXEC, "Exec format error")
NO_SHELL = (errno.ENOENT, "No such file or directory")
