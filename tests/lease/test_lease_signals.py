"""`probe exec` behaves as the command itself would: signals, terminal, pipes, files."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from lease_node import Node
from test_lease_keeper import first_line, keeper_of, soon

COUNTER = """
import os, signal, sys
count = 0
def handle(number, frame):
    global count
    count += 1
    os.write(1, b"signal\\n")  # it may come inside a print, which cannot be entered again
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGQUIT", "SIGWINCH"):
    signal.signal(getattr(signal, name), handle)
print("ready", flush=True)
sys.stdin.readline()
print(count, flush=True)
"""


def counting(node: Node) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        node.command("exec", "--", sys.executable, "-c", COUNTER),
        env=node.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert first_line(process) == "ready"
    return process


def counted(process: subprocess.Popen[str]) -> int:
    """Wait for the first signal and a while for others; return how many the command had."""
    assert first_line(process) == "signal"
    time.sleep(0.1)
    output, _ = process.communicate("\n", timeout=20)
    return int(output.split()[-1])


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_a_signal_to_the_process_reaches_the_command_once(name: str, node: Node) -> None:
    process = counting(node)
    os.kill(process.pid, getattr(signal, name))
    assert counted(process) == 1


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_to_the_group_reaches_the_command_once(name: str, node: Node) -> None:
    process = counting(node)
    os.killpg(process.pid, getattr(signal, name))
    assert counted(process) == 1


def test_killing_the_group_kills_the_command_and_frees_the_device(node: Node) -> None:
    process = counting(node)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert node.run("exec", "--gpus", "2", "--", "true").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL])
def test_it_ends_by_the_signal_that_ended_the_command(
    number: int, node: Node, tmp_path: Path
) -> None:
    done = node.run("exec", "--", "sh", "-c", f"kill -{number} $$")
    assert done.returncode == -number


def test_ignored_signals_stay_ignored_and_blocked_ones_blocked(node: Node) -> None:
    code = (
        "import signal; print(int(signal.getsignal(signal.SIGHUP)), signal.pthread_sigmask(0, ()))"
    )

    def prepare() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    done = subprocess.run(
        node.command("exec", "--", sys.executable, "-c", code),
        env=node.environ,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=prepare,
    )
    assert done.stdout.strip() == f"1 {{{signal.SIGUSR2!r}}}"


@pytest.mark.parametrize("ignored", [(signal.SIGCHLD,), (signal.SIGCHLD, signal.SIGINT)])
def test_a_caller_that_ignores_its_children_gets_the_same(
    node: Node, ignored: tuple[int, ...]
) -> None:
    """The command ignores them, too, below the keeper of its lease; its status counts."""
    code = (
        "import os, signal, sys; print(int(signal.getsignal(signal.SIGCHLD)));"
        "print(int(signal.getsignal(signal.SIGINT) == signal.SIG_IGN));"
        "keeper = open(f'/proc/{os.getppid()}/status').read().split();"
        "print(keeper[keeper.index('PPid:') + 1]); sys.exit(9)"
    )

    def prepare() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    process = subprocess.Popen(
        node.command("exec", "--device", "0", "--", sys.executable, "-c", code),
        env=node.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
    )
    printed, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (9, "")
    assert printed == f"1\n{len(ignored) - 1}\n{process.pid}\n"
    assert node.run("exec", "--device", "0", "--", "true").returncode == 0


def test_a_pipe_that_the_command_closes_is_closed(node: Node) -> None:
    process = node.start("exec", "--", "sh", "-c", "echo; exec >&-; sleep 60")
    assert process.stdout is not None
    assert process.stdout.read() == "\n", "the end is seen while the command runs"
    process.kill()
    process.wait()
    process.stdout.close()


def test_what_runs_on_keeps_no_file_of_the_caller_open(node: Node) -> None:
    script = "sleep 60 >/dev/null 2>&1 </dev/null & echo $!"
    process = node.start("exec", "--device", "0", "--", "sh", "-c", script)
    worker = int(first_line(process))
    assert process.stdout is not None
    assert process.stdout.read() == ""
    process.stdout.close()
    assert process.wait() == 0
    os.kill(worker, signal.SIGKILL)


def test_input_and_status_pass_through(node: Node) -> None:
    done = subprocess.run(
        node.command("exec", "--", "sh", "-c", "cat; exit 9"),
        env=node.environ,
        input="words\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (9, "words\n")


class Terminal:
    """An interactive shell with job control on a terminal of its own."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            # A shell without job control starts `pytest &` with both ignored, and what is ignored
            # is inherited: the command would outlive SIGQUIT.
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.execve("/bin/bash", ["bash", "--norc", "-i"], {**environ, "PS1": "ready> "})
        self.text = ""
        attributes = termios.tcgetattr(self.handle)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self.handle, termios.TCSANOW, attributes)
        self.expect("ready> ")

    def expect(self, words: str) -> str:
        """Read until `words` come; return what came before them."""
        deadline = time.monotonic() + 20
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self.handle], [], [], 0.2)[0]:
                self.text += os.read(self.handle, 4096).decode()
        before, _, self.text = self.text.partition(words)
        return before

    def send(self, words: str) -> None:
        os.write(self.handle, words.encode())

    def close(self) -> None:
        os.close(self.handle)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


STARTED = "printf 'star%s\\n' ted"
"""Prints a word that does not stand in the line itself, which the shell's readline echoes."""


def line(node: Node, script: str) -> str:
    script = script.replace("$STARTED", STARTED)
    words = [*node.command("exec", "--device", "0", "--"), "sh", "-c", script]
    return " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)


@pytest.fixture
def terminal(node: Node) -> object:
    terminal = Terminal(node.environ)
    yield terminal
    terminal.close()


@pytest.mark.heavy
def test_ctrl_c_comes_once_and_ends_the_command(node: Node, terminal: Terminal) -> None:
    # In two parts: a shell may print the command that it saw end.
    counter = "trap 'printf cau%s ght' INT; $STARTED; while :; do sleep 0.05; done"
    terminal.send(line(node, counter) + "; echo status $?\n")
    terminal.expect("started")
    terminal.send("\x03")
    terminal.expect("caught")
    time.sleep(0.3)
    terminal.send("\x1c")
    assert "caught" not in terminal.expect("status 131"), "a second SIGINT"
    terminal.expect("ready> ")


def test_ctrl_z_stops_the_job_and_fg_continues_it(node: Node, terminal: Terminal) -> None:
    script = "$STARTED; read word; echo got $word; exit 5"
    terminal.send(line(node, script) + "\n")
    terminal.expect("started")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    terminal.expect("ready> ")
    terminal.send("jobs\n")
    terminal.expect("Stopped")
    assert node.run("exec", "--device", "0", "--", "true").returncode == 3
    terminal.send("fg\n")
    terminal.expect("read word")  # the shell shows the job before it hands over the terminal
    terminal.send("here\n")
    terminal.expect("got here")
    terminal.expect("ready> ")
    terminal.send("echo status $?\n")
    terminal.expect("status 5")


def test_a_command_that_ignores_ctrl_z_is_not_stopped(node: Node, terminal: Terminal) -> None:
    script = "trap '' TSTP; $STARTED; read word; echo got $word"
    terminal.send(line(node, script) + "; echo status $?\n")
    terminal.expect("started")
    terminal.send("\x1a")
    time.sleep(0.2)
    terminal.send("on\n")
    terminal.expect("got on")
    terminal.expect("status 0")


def test_hanging_up_ends_the_command_and_frees_the_device(node: Node) -> None:
    terminal = Terminal(node.environ)
    terminal.send(line(node, "$STARTED; exec sleep 60") + "\n")
    terminal.expect("started")
    assert keeper_of(node)
    terminal.close()
    assert soon(lambda: node.held() == [])


def test_as_process_1_of_a_namespace_it_ends_as_the_command(node: Node) -> None:
    """A container's first process: the kernel sends it no signal that it does not wait for."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        unshare = []  # where namespaces are not allowed it is a process among others
    words = [*unshare, *node.command("exec", "--", "sh", "-c", "kill -TERM $$")]
    done = subprocess.run(words, env=node.environ, capture_output=True, text=True, check=False)
    assert done.returncode in (128 + signal.SIGTERM, -signal.SIGTERM), done.stderr
