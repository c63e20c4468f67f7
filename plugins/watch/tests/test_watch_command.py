"""`probe watch` without a screen: lines, their readers, alerts with commands, the endpoint."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import argv
from watch_prober import Live, card

ROOT = Path(__file__).parents[3]
MACHINE = str(ROOT / "tests/machines/vm-cpu-only.json")
GPU = "pci:0000:01:00.0"
KEYS = [
    "time", "device", "status", "reason", "busy", "memory", "temperature_c", "power_w",
    "power_cap_w", "clocks_mhz", "links", "processes", "alerts", "unknown",
]  # fmt: skip


@pytest.fixture
def live(tmp_path: Path) -> Live:
    live = Live(tmp_path)
    live.set(card(1, 0.96), card(2, 0.0))
    return live


def watch(live: Live, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    keywords: dict[str, Any] = {"env": live.env, "timeout": 100, "text": True, "check": False}
    keywords |= {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    keywords |= {"stdout": subprocess.PIPE} | options
    return subprocess.run(argv("watch", *arguments), **keywords)


@contextmanager
def running(live: Live, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    keywords: dict[str, Any] = {"env": live.env, "text": True, "stdin": subprocess.DEVNULL}
    keywords |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    with subprocess.Popen(argv("watch", *arguments), **keywords) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def remaining() -> list[str]:
    from watch_terminal import remaining

    return remaining()


def until(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_json_has_a_line_for_each_device_and_sample(live: Live) -> None:
    done = watch(live, "--json", "-n", "3", "--interval", "0.1")
    assert (done.returncode, done.stderr) == (0, "")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    devices = ["pci:0000:01:00.0", "pci:0000:02:00.0", "cpu:0", "node:self"]
    assert [document["device"] for document in documents] == devices * 3
    assert {tuple(document) for document in documents} == {tuple(KEYS)}
    first = documents[0]
    assert first["status"] == "ok"
    assert first["busy"] == pytest.approx(0.96, abs=1e-4)
    assert first["memory"] == {"used": 40 << 30, "total": 80 << 30}
    assert (first["temperature_c"], first["power_w"], first["power_cap_w"]) == (60, 300, 700)
    assert first["clocks_mhz"] == {"sm": 1755, "memory": 2619}
    assert first["processes"] == [{"pid": 4242, "user": "u1001", "memory": 39 << 30}]
    assert first["alerts"] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    # Each figure that is not known has its reason.
    for document in documents:
        for key in ("busy", "temperature_c", "power_w", "clocks_mhz", "memory", "processes"):
            assert document[key] is not None or document["unknown"][key]
    assert remaining() == []


@pytest.mark.heavy
def test_all_adds_the_other_fields(live: Live) -> None:
    live.set(card(1, activity={"sm": 0.9, "tensor": 0.5, "memory": 0.2}, throttled=["power"]))
    done = watch(live, "--json", "--all", "-n", "1", "--device", "01:00.0")
    named, document = [json.loads(line) for line in done.stdout.splitlines()]
    assert (named["event"], named["name"]) == ("device", "NVIDIA H100 80GB HBM3")
    assert document["activity"] == {"sm": 0.9, "tensor": 0.5, "memory": 0.2}
    assert (document["throttled"], document["prober"]) == (["power"], "live")


@pytest.mark.heavy
def test_a_device_alone(live: Live) -> None:
    done = watch(live, "--json", "-n", "1", "--device", "02:00.0", "--device", "cpu:0")
    names = [json.loads(line)["device"] for line in done.stdout.splitlines()]
    assert names == ["pci:0000:02:00.0", "cpu:0"]


@pytest.mark.heavy
def test_an_allowlist_binds_the_samplers(live: Live) -> None:
    done = watch(live, "--json", "-n", "1", "--allow", "probe-other")
    assert done.returncode == 0
    assert [json.loads(line)["device"] for line in done.stdout.splitlines()] == [
        "cpu:0", "node:self",
    ]  # fmt: skip
    done = watch(live, "--json", "-n", "1", "--allow", "probe-x-live")
    assert json.loads(done.stdout.splitlines()[0])["busy"] == pytest.approx(0.96, abs=1e-4)


def test_a_wrong_option_of_probing_is_refused(live: Live) -> None:
    done = watch(live, "--json", "-n", "1", "--only", "nvidai")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("probe watch: --only nvidai: no such prober.")


def test_lines_come_when_they_are_written(live: Live) -> None:
    with running(live, "--json", "--interval", "600") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        assert json.loads(lines[3])["device"] == "node:self"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert remaining() == []


@pytest.mark.heavy
def test_without_a_terminal_lines_of_text(live: Live) -> None:
    done = watch(live, "-n", "1")
    assert (done.returncode, done.stderr) == (0, "")
    line = done.stdout.splitlines()[0]
    assert line.partition(" ")[2] == (
        "pci:0000:01:00.0 busy=96% mem=40.0GiB/80.0GiB temp=60C power=300/700W clock=1755MHz"
        " processes=1"
    )
    assert "\x1b" not in done.stdout


def test_rich_is_imported_for_a_screen_alone(live: Live) -> None:
    code = (
        "import sys; from probe_core.cli import main; main(['watch', '--json', '-n', '1']);"
        "sys.exit('rich' in sys.modules)"
    )
    command = [*argv()[:1], "-c", code]
    done = subprocess.run(command, env=live.env, stdout=subprocess.DEVNULL, check=False)  # type: ignore[arg-type]
    assert done.returncode == 0


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_a_signal_between_samples(number: signal.Signals, live: Live) -> None:
    with running(live, "--interval", "600") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert remaining() == []


@pytest.mark.heavy
def test_a_signal_that_the_caller_ignores_stays_ignored(live: Live) -> None:
    """As under nohup."""
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "from probe_core.cli import main; raise SystemExit(main(['watch', '--interval', '0.1']))"
    )
    command = [*argv()[:1], "-c", code]
    with subprocess.Popen(command, env=live.env, stdout=subprocess.PIPE, text=True) as process:  # type: ignore[arg-type]
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        for _ in range(20):
            assert process.stdout.readline()
        process.terminate()
        assert process.wait(60) == 143


def test_a_reader_that_goes_away_ends_it_quietly(live: Live) -> None:
    with running(live, "--json", "--interval", "0.1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert remaining() == []


@pytest.mark.heavy
def test_a_reader_that_stops_reading_does_not_keep_ctrl_c(live: Live) -> None:
    live.set(*(card(number) for number in range(1, 9)))
    with running(live, "--json", "--interval", "0.1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        until_full(process.stdout.fileno())  # now the write waits
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert remaining() == []


def until_full(pipe: int) -> None:
    """Wait until a pipe takes nothing more: for a second nothing came, at ten samples a second."""
    counts = [-1]
    until(lambda: _is_same(counts, pipe))


def _is_same(counts: list[int], pipe: int) -> bool:
    waiting = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
    counts.append(waiting)
    return waiting > 16 << 10 and len(counts) > 50 and len(set(counts[-50:])) == 1


def test_a_closed_output_is_one_sentence_and_no_endless_run(live: Live) -> None:
    shell = f"{shlex.join(map(str, argv('watch', '--interval', '0.1')))} >&-"
    done = subprocess.run(
        ["sh", "-c", shell], env=live.env, capture_output=True, text=True, timeout=100, check=False
    )
    sentence = "standard output is closed; give --listen or --on-alert, or open it"
    assert (done.returncode, done.stderr) == (2, f"probe watch: {sentence}\n")


@pytest.mark.heavy
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_one_sentence(live: Live) -> None:
    with open("/dev/full", "w") as full:
        done = watch(live, "--json", "--interval", "0.1", stdout=full)
    assert (done.returncode, done.stderr) == (
        1,
        "probe: the answer could not be written: No space left on device\n",
    )
    assert remaining() == []


ABSURD = {
    "busy": 6.55,
    "temperature_c": 65535,
    "power_w": -3,
    "memory": {"used": 81 << 30, "total": 80 << 30},
    "clocks_mhz": {"sm": "fast", "memory": 2619},
}


def test_absurd_samples_are_refused_by_name(live: Live) -> None:
    live.set(card(1, **ABSURD))
    done = watch(live, "--json", "-n", "1")
    assert done.returncode == 0
    document = json.loads(done.stdout.splitlines()[0])
    assert (document["busy"], document["temperature_c"], document["power_w"]) == (None, None, None)
    assert document["clocks_mhz"] == {"sm": None, "memory": 2619}
    assert document["memory"] == {"used": None, "total": 80 << 30}
    refused = ("busy", "temperature_c", "power_w", "memory.used", "clocks_mhz.sm")
    assert all(document["unknown"][name].startswith("refused: ") for name in refused)
    assert "Traceback" not in done.stderr


def events(text: str) -> list[dict[str, Any]]:
    documents = [json.loads(line) for line in text.splitlines()]
    return [document for document in documents if "event" in document]


@pytest.mark.heavy
def test_an_alert_is_an_event_and_stands_in_the_lines(live: Live) -> None:
    live.settings("[command.watch.alerts.temperature]\nabove = 50\nseconds = 0.1\n")
    done = watch(live, "--json", "-n", "5", "--interval", "0.1", "--device", GPU)
    (alert,) = events(done.stdout)
    assert (alert["event"], alert["device"], alert["alert"]) == ("alert", GPU, "temperature")
    assert (alert["state"], alert["severity"], alert["unit"]) == ("on", "warning", "°C")
    assert (alert["value"], alert["threshold"]) == (60, 50)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    alerts = [line["alerts"] for line in lines if line.get("device") == GPU and "alerts" in line]
    assert alerts[0] == []
    assert alerts[-1] == ["temperature"]
    text = watch(live, "-n", "5", "--interval", "0.1").stdout
    assert text.count(" alert temperature on: 60 °C, above 50 °C since ") == 2
    assert " alerts=temperature" in text


@pytest.mark.heavy
def test_a_command_runs_at_each_edge(live: Live, tmp_path: Path) -> None:
    live.settings("[command.watch.alerts.memory]\nabove = 0.3\nseconds = 0\n")
    script = tmp_path / "note.sh"
    script.write_text(
        "#!/bin/sh\n"
        'echo "$1 $PROBE_ALERT_NAME $PROBE_ALERT_STATE $PROBE_ALERT_DEVICE $PROBE_ALERT_VALUE'
        f' $PROBE_ALERT_THRESHOLD $PROBE_ALERT_SEVERITY" >> {tmp_path}/notes\n'
    )
    script.chmod(0o755)
    notes = tmp_path / "notes"
    live.set(card(1))
    with running(live, "--interval", "0.1", "--on-alert", f"{script} 'two words'") as process:
        until(lambda: notes.exists() and " on " in notes.read_text())
        live.set(card(1, memory={"used": 8 << 30, "total": 80 << 30}))
        until(lambda: " off " in notes.read_text())
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 143
    assert notes.read_text() == (
        f"two words memory on {GPU} 0.5 0.3 warning\ntwo words memory off {GPU} 0.1 0.27 warning\n"
    )


@pytest.mark.heavy
def test_commands_end_with_the_watch_and_no_shell_reads_them(live: Live, tmp_path: Path) -> None:
    live.settings("[command.watch.alerts.memory]\nabove = 0.3\nseconds = 0\n")
    live.set(*(card(number) for number in range(1, 9)))
    script = tmp_path / "slow.sh"
    script.write_text(f"#!/bin/sh\ntrap '' TERM\necho $$ \"$@\" >> {tmp_path}/pids\nsleep 600\n")
    script.chmod(0o755)
    pids = tmp_path / "pids"
    command = f"{script} '; touch {tmp_path}/shell'"
    with running(live, "--interval", "0.1", "--on-alert", command) as process:
        until(lambda: pids.exists() and pids.read_text().count("\n") == 4)
        time.sleep(0.5)
        assert process.poll() is None  # samples go on meanwhile
        assert pids.read_text().count("\n") == 4  # four at once, the others wait
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert time.monotonic() - began < 20
    assert not (tmp_path / "shell").exists()
    assert remaining() == []


@pytest.mark.heavy
def test_commands_end_with_a_watch_that_is_killed(live: Live, tmp_path: Path) -> None:
    live.settings("[command.watch.alerts.memory]\nabove = 0.3\nseconds = 0\n")
    live.set(card(1))
    pids = tmp_path / "pids"
    command = f"sh -c 'echo $$ >> {pids}; sleep 600; true'"
    with running(live, "--interval", "0.1", "--on-alert", command) as process:
        until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        process.kill()
        process.communicate(timeout=60)
    assert remaining() == []


@pytest.mark.heavy
def test_a_command_that_fails_is_a_note(live: Live) -> None:
    live.settings("[command.watch.alerts.memory]\nabove = 0.3\nseconds = 0\n")
    live.set(card(1))
    with running(live, "--interval", "0.1", "--on-alert", "false") as process:
        assert process.stderr is not None
        sentence = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 143
    assert sentence == "probe watch: --on-alert: false ended with status 1\n"


def get(url: str, path: str = "/metrics") -> tuple[str, str]:
    with urllib.request.urlopen(url.replace("/metrics", path), timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def first(url: str) -> tuple[list[str], str]:
    """Return what scrapes were answered until one had metrics, and those."""
    refused = []
    while True:
        try:
            return refused, get(url)[1]
        except urllib.error.HTTPError as error:
            error.close()
            refused.append(f"{error.code}, again after {error.headers['Retry-After']} s")
            time.sleep(0.01)


@pytest.mark.heavy
def test_the_port_answers_while_a_driver_hangs(live: Live, tmp_path: Path) -> None:
    """It refuses no scrape and gives no empty answer; the neighbours of what hangs are well."""
    live.set(card(1), card(2, hang=True), card(3))
    out = tmp_path / "out"
    with (
        open(out, "w") as file,
        running(live, "--json", "--listen", "127.0.0.1:0", stdout=file) as process,
    ):
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        refused, text = first(url)
        assert set(refused) <= {"503, again after 1 s"}
        assert "probecore_sample_time_seconds" in text
        assert "cpu:0" not in text  # a processor's figures are the node's
        until(lambda: 'probecore_device_up{device="0000:03:00.0"} 1.0' in get(url)[1])
        text = get(url)[1]
        assert 'probecore_device_up{device="0000:01:00.0"} 1.0' in text
        assert 'probecore_device_up{device="0000:02:00.0"} 0.0' in text
        assert 'probecore_device_pending{device="0000:03:00.0"} 0.0' in text
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    written = [json.loads(line) for line in out.read_text().splitlines()]
    statuses: dict[str, set[str]] = {}
    for line in written:
        statuses.setdefault(line["device"], set()).add(line["status"])
    assert statuses["pci:0000:02:00.0"] == {"unresponsive"}
    assert statuses["pci:0000:01:00.0"] <= {"ok", "pending"}
    assert statuses["pci:0000:03:00.0"] <= {"ok", "pending"}
    assert remaining() == []


@pytest.mark.heavy
def test_a_device_that_only_a_report_names_gets_its_name(live: Live) -> None:
    """A serial number joins nothing: until the report is there, such a device has no series."""
    part = card(1) | {"device": "uuid:GPU-a1000000-0000-4000-8000-000000000000"}
    live.set(part, card(2))
    with running(live, "--json", "--listen", "127.0.0.1:0", stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        until(lambda: 'probecore_device_up{device="gpu.0"} 1.0' in first(url)[1])
        text = get(url)[1]
        assert 'probecore_device_up{device="0000:02:00.0"} 1.0' in text
        told = [line.partition("{")[0] for line in text.splitlines() if "a1000000" in line]
        assert told in ([], ["probecore_device_info"])  # on loopback alone
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143


@pytest.mark.heavy
def test_the_endpoint_serves_the_last_round(live: Live) -> None:
    live.set(card(1, 0.96), {"device": card(2)["device"], "status": "unavailable", "reason": "x"})
    command = argv("watch", "--json", "--listen", "127.0.0.1:0", "--interval", "0.1")
    out = live.folder / "out"
    with (
        open(out, "w") as file,
        subprocess.Popen(
            command, env=live.env, stdout=file, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        # Its facts may be there before its figures, and the other way round.
        until(lambda: 'probecore_device_up{device="0000:01:00.0"} 1.0' in first(url)[1])
        until(lambda: "probecore_device_memory_used_bytes" in get(url)[1])
        kind, text = get(url)
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        series = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        gpu = '{device="0000:01:00.0"}'
        assert series[f"probecore_device_up{gpu}"] == "1.0"
        assert series['probecore_device_up{device="0000:02:00.0"}'] == "0.0"
        assert float(series[f"probecore_device_busy_ratio{gpu}"]) == pytest.approx(0.96, abs=1e-4)
        assert float(series[f"probecore_device_memory_used_bytes{gpu}"]) == 40 << 30
        assert float(series[f"probecore_device_clock_hertz{gpu}"]) == 1755e6
        assert series[f"probecore_device_processes{gpu}"] == "1.0"
        # What is not known is absent and never 0.
        assert 'probecore_device_busy_ratio{device="0000:02:00.0"}' not in series
        assert not any("tensor" in name for name in series)
        assert time.time() - float(series["probecore_sample_time_seconds"]) < 30
        live.set(card(1, 0.25))
        until(lambda: "0.25" in get(url)[1])
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(url, "/other")
        refused.value.close()
        promtool = shutil.which("promtool")
        if promtool is not None:
            checked = subprocess.run(
                [promtool, "check", "metrics"], input=text, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert remaining() == []


@pytest.mark.heavy
def test_latency_to_a_peer(live: Live) -> None:
    live.settings("[command.watch.alerts.latency]\nabove = 0\nseconds = 0.1\n")
    with socket.socket() as peer:
        peer.bind(("127.0.0.1", 0))
        peer.listen()
        place = f"127.0.0.1:{peer.getsockname()[1]}"
        done = watch(
            live, "--json", "--all", "-n", "15", "--interval", "0.1", "--device", GPU,
            "--peer", place,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    _, alert = events(done.stdout)  # the first one names the device
    assert (alert["device"], alert["alert"], alert["unit"]) == ("node:self", "latency", "ms")
    nodes = [json.loads(line) for line in done.stdout.splitlines() if "latency_ms" in line]
    assert {document["device"] for document in nodes} == {"node:self"}
    assert 0 < nodes[-1]["latency_ms"] < 1000


@pytest.mark.heavy
def test_latency_without_a_peer_is_not_measured(live: Live) -> None:
    done = watch(live, "--json", "--all", "-n", "1")
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["latency_ms"] is None
    assert document["unknown"]["latency_ms"].startswith("not measured: ")


@pytest.mark.heavy
def test_wrong_usage_is_one_sentence(live: Live) -> None:
    done = watch(live, "--device", "0a:00.0")
    assert (done.returncode, done.stdout) == (2, "")
    there = "01:00.0, 02:00.0, cpu:0"
    assert done.stderr == f"probe watch: --device 0a:00.0: no such device; there are {there}\n"


def test_a_place_that_is_taken_is_one_sentence(live: Live) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = watch(live, "--listen", place, "-n", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"probe watch: {place} cannot be listened on: Address already in use\n"


SETTINGS = [
    ("[command.watch]\nalerts = 5\n",
     "command.watch.alerts: expected a table, such as memory = { above = 0.9 }"),
    ("[command.watch]\ncolour = 1\n",
     "command.watch.colour is no setting; there are alerts and theme"),
    ("[command.watch.alerts]\nmemory = { above = 85 }\n",
     "command.watch.alerts.memory.above = 85: expected a fraction from 0 to 1"),
]  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize(("text", "sentence"), SETTINGS, ids=range(len(SETTINGS)))
def test_a_wrong_table_of_the_file_is_one_sentence(text: str, sentence: str, live: Live) -> None:
    live.settings(text)
    done = watch(live, "-n", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"probe watch: the file of settings: {sentence}\n"


def test_the_table_is_no_mistake_for_other_commands(live: Live) -> None:
    live.settings("[command.watch.alerts]\nmemory = false\n")
    env = live.env | {"PROBE_ALERT_NAME": "memory"}
    done = subprocess.run(argv("--json"), env=env, capture_output=True, text=True, check=True)
    codes = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert not {"restriction-unusable", "config-ignored"} & set(codes)


def test_a_file_that_cannot_be_read_is_one_sentence(live: Live) -> None:
    live.settings("[command.watch.alerts\n")
    done = watch(live, "-n", "1")
    # It may be the allowlist that cannot be read, so no plugin's command runs.
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not valid TOML" in done.stderr
    assert done.stderr.count("\n") == 1
