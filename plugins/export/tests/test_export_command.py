"""`probe export`: files that appear whole, an endpoint that nobody can block, and errors."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import recorded
from command import environment, install, probe_here

MACHINE = str(recorded.path("server--8x-amd-instinct-mi300x"))
PROBE = [sys.executable, "-m", "probe_core", "export"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return probe_here("export", *words, "--machine", MACHINE)


def wait_for(condition: object, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def test_file_appears_whole_readable_by_all_and_alone(tmp_path: Path) -> None:
    path, link = tmp_path / "probe.prom", tmp_path / "link"
    link.symlink_to(path.name)
    for name in (path, link):  # new, then replaced through the link
        done = run("prometheus", "--output", str(name))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == ["link", "probe.prom"]
    assert os.readlink(link) == path.name
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert path.read_text().endswith("\n")


def test_file_that_cannot_be_written_is_named_and_nothing_stays(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "probe.prom"
    done = run("nfd", "--output", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == (
        f"probe export: {path} cannot be written: No such file or directory"
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    assert run("nfd", "--output", str(folder)).returncode == 2
    assert sorted(os.listdir(tmp_path)) == ["folder"]


SECONDS = "expected seconds, 1 to 86400"
PLACE = "expected HOST:PORT, such as 127.0.0.1:10935"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("slrum", "slrum: no such format. Did you mean slurm?"),
        ("nfd --watch 5", "--watch replaces a file; name it with --output FILE"),
        ("nfd --output x --watch 0", f"--watch 0: {SECONDS}"),
        ("nfd --output x --watch nan", f"--watch nan: {SECONDS}"),
        ("nfd --listen :1", "--listen serves prometheus alone, not nfd"),
        ("nfd --output=", "--output is empty; name a file"),
        ("prometheus --listen 127.0.0.1:٩٩", f"--listen 127.0.0.1:٩٩: {PLACE}"),
        ("prometheus --listen x", f"--listen x: {PLACE}"),
        ("prometheus --listen 127.0.0.1:99999", f"--listen 127.0.0.1:99999: {PLACE}"),
    ],
)
def test_wrong_words_get_one_sentence(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = probe_here("export", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"probe export: {sentence}"
    assert os.listdir(tmp_path) == []


def test_formats_are_listed() -> None:
    done = probe_here("export", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == sorted(names)
    assert {"nfd", "prometheus", "ray", "slurm"} <= set(names)


@pytest.mark.heavy
def test_watch_replaces_the_file_until_sigterm(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    process = subprocess.Popen(
        [*PROBE, "nfd", "--output", str(path), "--watch", "1", "--machine", MACHINE]
    )
    try:
        assert wait_for(path.exists)
        first = path.stat().st_ino
        assert wait_for(lambda: path.stat().st_ino != first)
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert os.listdir(tmp_path) == ["probe"]
    first, second = path.read_text().splitlines()[:2]
    # Format: NFD's source/local, parseDirectives. Three periods of a second are over soon.
    end = datetime.fromisoformat(first.removeprefix("# +expiry-time=").replace("Z", "+00:00"))
    assert abs((end - datetime.now(UTC)).total_seconds()) < 60
    assert second.startswith("feature.node.kubernetes.io/")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = int(free.getsockname()[1])
    words = ["prometheus", "--listen", f"127.0.0.1:{number}", "--machine", MACHINE]
    process = subprocess.Popen([*PROBE, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line == f"probe export: serving http://127.0.0.1:{number}/metrics; Ctrl-C ends it\n"
    yield number
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    process.stderr.close()


def asked(
    port: int, path: str = "/metrics", method: str = "GET", **headers: str
) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("Content-Type") or "", text


@pytest.mark.heavy
def test_scrape_gets_the_text_with_its_exact_type(port: int) -> None:
    for _ in range(2000):
        status, kind, text = asked(port)
        if "probecore_devices_usable" in text:
            break
        time.sleep(0.01)  # the report is made beside the first scrapes
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "\nprobecore_devices_usable " in text
    assert asked(port, method="HEAD") == (status, kind, "")
    wanted = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    _, kind, text = asked(port, Accept=wanted)
    assert kind.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert text.endswith("\n# EOF\n")


def test_only_metrics_and_health_are_answered(port: int) -> None:
    assert asked(port, "/healthz")[::2] == (200, "ok\n")
    assert asked(port, "/")[::2] == (404, "")
    assert asked(port, "/metrics/<script>")[::2] == (404, "")
    assert asked(port, method="POST")[::2] == (405, "")
    assert asked(port, Host="attacker.example")[::2] == (403, "")
    assert asked(port, Host=f"localhost:{port}")[0] == 200


def test_half_a_request_blocks_nobody(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127")
        begin = time.monotonic()
        assert [asked(port)[0] for _ in range(50)] == [200] * 50
        assert time.monotonic() - begin < 5


def test_address_in_use_is_an_error(port: int) -> None:
    done = run("prometheus", "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"probe export: 127.0.0.1:{port} cannot be listened on: ")


HANGS = """
    import os, time
    from pathlib import Path
    from probe_core.api import hookimpl

    @hookimpl
    def probe_devices(request):
        Path(os.environ["HOME"], "started").write_text(str(os.getpid()))
        time.sleep(60)
"""


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["--watch", "--listen"])
def test_sigterm_ends_a_probe_of_a_hung_driver(tmp_path: Path, way: str) -> None:
    site, output = tmp_path / "site", tmp_path / "out" / "probe.prom"
    site.mkdir()
    output.parent.mkdir()
    install(site, "slow", HANGS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = int(free.getsockname()[1])
    place = {
        "--watch": ["--output", str(output), "--watch", "1"],
        "--listen": ["--listen", f"127.0.0.1:{number}"],
    }
    process = subprocess.Popen(
        [*PROBE, "prometheus", *place[way], "--only", "slow", "--timeout", "50"],
        env=environment(site, HOME=str(tmp_path)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    started = tmp_path / "started"
    connection = http.client.HTTPConnection("127.0.0.1", number, timeout=20)
    try:
        if way == "--listen":
            process.stderr.readline()
            connection.request("GET", "/metrics")
        assert wait_for(lambda: started.exists() and started.read_text())
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - begin < 5
    finally:
        connection.close()
        process.kill()
        process.stderr.close()
    child = Path("/proc", started.read_text())
    assert wait_for(lambda: not child.exists()), "the prober's process outlives the command"
    assert os.listdir(output.parent) == []
