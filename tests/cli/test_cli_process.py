"""The command as a process: terminals, closed streams, broken pipes, Ctrl-C, odd arguments."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import recorded
from command import argv, environment, install, probe
from reports import validated

HANG = """
    import os, time
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        with open(os.environ["PID_FILE"], "w") as file:
            file.write(f"{os.getpid()}\\n")
        time.sleep(600)
"""


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(recorded.unpack(recorded.read("vm-without-accelerator--cpu"), tmp_path / "root"))


def test_json_is_exactly_one_document(root: str) -> None:
    done = probe("--json", "--machine", root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert validated(json.loads(done.stdout))["primary"] == "cpu:0"


def test_this_very_machine() -> None:
    done = probe("--json")
    assert done.returncode == 0, done.stderr
    assert validated(json.loads(done.stdout))["node"]["memory"]["total"] > 64 << 20


def test_text_goes_to_a_file_without_colours(root: str) -> None:
    done = probe("--machine", root)
    assert "\x1b" not in done.stdout
    assert "AMD EPYC (2 cores)" in done.stdout


def on_a_terminal(*arguments: str, columns: int, **variables: str) -> str:
    """Run `probe` on a pseudo-terminal; return what the terminal got."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = (
        environment(TERM="xterm", **variables)
        if "TERM" not in variables
        else environment(**variables)
    )
    child = subprocess.Popen(argv(*arguments), stdout=theirs, stdin=theirs, env=env)
    os.close(theirs)
    got = b""
    with contextlib.suppress(OSError):  # Linux: EIO when the other side is closed
        while piece := os.read(ours, 4096):
            got += piece
    os.close(ours)
    assert child.wait(30) == 0
    return got.decode("utf-8")


def test_terminal_gets_colours_and_its_own_width(root: str) -> None:
    got = on_a_terminal("--machine", root, columns=60)
    assert "\x1b[1m*" in got
    plain = re.sub(r"\x1b\[[0-9;]*m", "", got).replace("\r", "")
    assert max(map(len, plain.splitlines())) <= 60


@pytest.mark.heavy
@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_terminal_that_wants_no_colours(variables: dict[str, str], root: str) -> None:
    assert "\x1b" not in on_a_terminal("--machine", root, columns=80, **variables)


def shell(script: str, root: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line of sh in which $PROBE is the command."""
    env = environment(**variables)
    command = f"'{sys.executable}' -m probe_core --machine '{root}'"
    return subprocess.run(
        ["sh", "-c", script.replace("$PROBE", command)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.heavy
@pytest.mark.parametrize("option", ["", "--json"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams(closed: str, option: str, root: str) -> None:
    done = shell(f"$PROBE {option} {closed}", root)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_closed_error_stream_and_a_mistake(root: str) -> None:
    assert shell("$PROBE --only nobody 2>&-", root).returncode == 2


@pytest.mark.parametrize("option", ["", "--json"])
def test_reader_that_goes_away(option: str, root: str) -> None:
    done = shell(f"($PROBE {option}; echo $? >&3) 3>&2 | true", root)
    status, *rest = done.stderr.split()
    assert int(status) in (0, 141)  # 0 when all was written before the reader went
    assert rest == []


def test_reader_of_one_byte(root: str) -> None:
    done = shell("$PROBE --json | head -c 1", root)
    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_said_in_a_sentence(root: str) -> None:
    done = shell("$PROBE --json >/dev/full", root)
    assert done.returncode not in (0, 2)
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


def test_terminal_encoding_that_lacks_the_characters(root: str) -> None:
    done = shell("$PROBE", root, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0, done.stderr
    assert "Linux | x86_64" in done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    "arguments",
    [
        (b"--only", b"\xff\xfe"),
        (b"\xff",),
        (b"--\xff",),
        (b"explain", b"\xff"),
        (b"--config=\xff.toml",),
    ],
)
def test_arguments_that_are_not_utf8(arguments: tuple[bytes, ...], root: str) -> None:
    done = probe(*arguments, "--machine", root)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_values_of_variables_that_are_not_utf8(root: str) -> None:
    env: dict[bytes, bytes] = {os.fsencode(k): os.fsencode(v) for k, v in environment().items()}
    env |= {b"PROBE_\xff": b"\xfe", b"PROBE_TIMEOUT": b"\xff", b"CUDA_VISIBLE_DEVICES": b"\xff"}
    done = subprocess.run(
        argv("--json", "--machine", root), env=env, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert validated(json.loads(done.stdout))


def test_main_is_the_module() -> None:
    done = probe("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "probe-core")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_while_a_prober_hangs(number: signal.Signals, tmp_path: Path) -> None:
    plugins, pid_file = tmp_path / "plugins", tmp_path / "pid"
    plugins.mkdir()
    install(plugins, "hang", HANG)
    env = environment(plugins, PID_FILE=str(pid_file))
    child = subprocess.Popen(
        argv("--only", "hang", "--timeout", "60"),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 20
    while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
        assert time.monotonic() < deadline, "the prober never started"
        time.sleep(0.01)
    prober = int(pid_file.read_text())
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert out == ""
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert child.returncode == 130
    deadline = time.monotonic() + 20
    while alive(prober) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(prober)


@pytest.mark.heavy
def test_hanging_prober_ends_at_its_deadline(tmp_path: Path) -> None:
    install(tmp_path, "hang", HANG)
    env = environment(tmp_path, PID_FILE=str(tmp_path / "pid"))
    done = probe("--json", "--only", "hang", "--timeout", "0.5", env=env)
    report = validated(json.loads(done.stdout))
    outcome = next(o for o in report["outcomes"] if o["prober"] == "hang")
    assert (done.returncode, outcome["status"]) == (0, "timeout")
    assert outcome["distribution"] == "probe-x-hang 1.2"
    assert outcome["reason"].startswith("its call took longer than 0.5 s")
    assert 500 <= outcome["elapsed_ms"] < 2500
