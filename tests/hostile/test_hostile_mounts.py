"""File systems whose server is dead, or answers as it likes: nobody waits for it in the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile_host import host
from trees import Tree


@pytest.fixture(autouse=True)
def nobody_left(untouched: object) -> None:
    """Every test here is followed by the check for processes."""


HUNG = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        target = sys.argv[1] + "/hung"
        os.mkdir(target)
        NEWNS, PRIVATE = 0x20000, 0x44000
        libc.unshare(NEWNS)
        libc.mount(b"none", b"/", None, PRIVATE, None)
        try:
            server = os.open("/dev/fuse", os.O_RDWR)  # nobody ever reads from it
        except OSError:
            server = -1
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"hung", target.encode(), b"fuse", 0, options):
            print("null")
            sys.exit()
"""


def test_a_precondition_on_a_mount_whose_server_is_dead(site: Path) -> None:
    hung = f"{site}/hung"
    (site / "link").symlink_to("hung/deep")
    paths = [f"{hung}/x", f"{hung}/*", f"{site}/h*/x", f"{site}/link/x", f"/dev/..{hung}/x"]
    probers = {"good": {"when": [{"all_path": [path]} for path in paths]}}
    manifest = {"schema": 1, "probers": probers}
    (site / "x_good.prober.json").write_text(json.dumps(manifest))
    answer = host(
        site,
        HUNG
        + """
        before = state()
        start = time.monotonic()
        statuses = once()
        took = time.monotonic() - start
        print(json.dumps([statuses, took, left(before)]))
        """,
    )
    if answer is None:
        pytest.skip("no file system may be mounted here")
    statuses, took, remains = answer
    assert (statuses, remains) == (["ok"], None)
    assert took < 9.0


SETTINGS = {
    "PROBE_CONFIG": ("restriction-unusable", "did not answer within 2 s"),
    "HOME": ("restriction-unusable", "did not answer within 1 s"),
    "PROBE_STATIC": ("static-unusable", "did not answer within 2 s"),
    "PROBE_CHIPDB": ("chip-file-unusable", "a server answers for it"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("variable", SETTINGS)
def test_a_setting_that_names_a_file_on_a_mount_whose_server_is_dead(
    site: Path, variable: str
) -> None:
    (site / "link").symlink_to("hung/deep")
    answer = host(
        site,
        HUNG
        + f"""
        os.environ.pop("XDG_CONFIG_HOME", None)
        os.environ["{variable}"] = sys.argv[1] + "/link/file.toml"
        before = state()
        start = time.monotonic()
        report = probe_core.probe(timeout=3, refresh=True)
        took = time.monotonic() - start
        findings = [[f.code, f.severity, f.why] for f in report.findings]
        probers = {{o.prober: o.status for o in report.outcomes}}
        print(json.dumps([findings, probers, took, left(before)]))
        """,
    )
    if answer is None:
        pytest.skip("no file system may be mounted here")
    findings, probers, took, remains = answer
    code, reason = SETTINGS[variable]
    severities = [s for c, s, why in findings if c == code and reason in why]
    assert len(severities) == 1
    if variable == "PROBE_CHIPDB":
        assert probers["good"] == "ok"
    else:
        assert severities == ["error"]
        assert probers["good"] == "skipped"
    assert (probers["cpu"], remains) == ("ok", None)
    assert took < 8.0


@pytest.mark.heavy
def test_state_on_a_mount_whose_server_is_dead(site: Path) -> None:
    answer = host(
        site,
        HUNG
        + """
        os.environ["XDG_STATE_HOME"] = sys.argv[1] + "/hung"
        before = state()
        start = time.monotonic()
        report = probe_core.probe(timeout=3, refresh=True)
        took = time.monotonic() - start
        findings = [[f.code, f.why] for f in report.findings]
        print(json.dumps([findings, report.to_json().get("expected"), took, left(before)]))
        """,
    )
    if answer is None:
        pytest.skip("no file system may be mounted here")
    findings, expected, took, remains = answer
    (why,) = (why for code, why in findings if code == "measured-unusable")
    assert "its server did not answer within" in why
    assert (expected, remains) == (None, None)
    assert took < 8.0


SERVED = """
        import fuse_server
        from probe_core.commands.reports import probe_document
        os.environ["PROBE_ONLY"] = "cpu"
        document = json.dumps(probe_document()).encode()
        del os.environ["PROBE_ONLY"]
        files = {
            "config.toml": b'disable = ["good"]',
            "report.json": document,
            "chips.toml": b"",
        }
        server = fuse_server.mount(sys.argv[1] + "/served", files, %s)
        if server is None:
            print("null")
            sys.exit()
        os.environ.update({name: f"{sys.argv[1]}/served/{file}" for name, file in %r.items()})
        before = state()
        start = time.monotonic()
        report = probe_core.probe(timeout=3, refresh=True)
        took = time.monotonic() - start
        probers = {o.prober: o.status for o in report.outcomes}
        findings = [[f.code, f.why] for f in report.findings]
        after = state()
        os.kill(server, 9)
        os.waitpid(server, 0)
        print(json.dumps([probers, findings, took, before == after]))
"""


def served(site: Path, variables: dict[str, str], hang_at: str = "None") -> Any:
    script = SERVED % (hang_at, variables)
    path = f"{' ' * 8}sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    answer = host(site, path + script)
    if answer is None:
        pytest.skip("no file system may be mounted here")
    return answer


@pytest.mark.heavy
def test_a_setting_that_names_a_file_on_a_mount_whose_server_answers(site: Path) -> None:
    probers, findings, _, same = served(site, {"PROBE_CONFIG": "config.toml"})
    assert (probers["good"], probers["cpu"], same) == ("skipped", "ok", True)
    assert "restriction-unusable" not in [code for code, _ in findings]
    probers, findings, _, same = served(site, {"PROBE_STATIC": "report.json"})
    assert "static-unusable" not in [code for code, _ in findings]
    assert (probers["good"], probers["cpu"], same) == ("skipped", "ok", True)
    _, findings, _, _ = served(site, {"PROBE_CONFIG": "missing.toml"})
    (reason,) = [why for code, why in findings if code == "restriction-unusable"]
    assert reason.endswith("cannot be read: No such file or directory")


@pytest.mark.heavy
@pytest.mark.parametrize("request_", ["GETATTR", "OPEN", "READ"])
def test_a_server_that_answers_for_the_file_system_but_not_for_the_file(
    site: Path, request_: str
) -> None:
    variables = {"PROBE_CONFIG": "config.toml"}
    probers, findings, took, same = served(site, variables, f"fuse_server.{request_}")
    (reason,) = [why for code, why in findings if code == "restriction-unusable"]
    assert reason.endswith("cannot be read: its server did not answer within 2 s")
    assert (probers["good"], probers["cpu"], same) == ("skipped", "ok", True)
    assert took < 8.0


LIBRARIES = """
        from probe_core.isolation.look import Looks
        from probe_core.machine import Machine
        from probe_core.readiness.library import Libraries
        before = state()
        start = time.monotonic()
        libraries = Libraries(Machine(environ={"LD_LIBRARY_PATH": folder}), Looks().allow)
        paths = libraries.find("libprobe-test.so.1")
        absent = libraries.surely_absent("libprobe-test.so.1")
        print(json.dumps([paths, absent, time.monotonic() - start, left(before)]))
"""


@pytest.mark.heavy
def test_libraries_in_a_folder_of_a_dead_server_are_not_known_to_be_absent(site: Path) -> None:
    script = HUNG + "        folder = target\n" + LIBRARIES
    answer = host(site, script)
    if answer is None:
        pytest.skip("no file system may be mounted here")
    paths, absent, took, remains = answer
    assert (paths, absent, remains) == ([], False, None)
    assert took < 5.0


def test_libraries_in_a_folder_of_a_server_that_answers(site: Path) -> None:
    mount = f"""
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import fuse_server
        folder = sys.argv[1] + "/served"
        server = fuse_server.mount(folder, {{"libprobe-test.so.1": b"x"}})
        if server is None:
            print("null")
            sys.exit()
    """
    end = "        os.kill(server, 9)\n"
    answer = host(site, mount + LIBRARIES.replace("left(before)", "None") + end)
    if answer is None:
        pytest.skip("no file system may be mounted here")
    assert answer[0] == [f"{site}/served/libprobe-test.so.1"]


@pytest.mark.heavy
def test_a_probe_with_a_folder_of_libraries_whose_server_is_dead(site: Path) -> None:
    tree = Tree(site / "fake")
    tree.pci("0000:01:00.0", "10de:2684", driver="nvidia", pci_class="030000")
    script = f"""
        if libc.mount({str(tree.root / "sys")!r}.encode(), b"/sys", None, 0x1000, None):
            print("null")
            sys.exit()
        os.environ["LD_LIBRARY_PATH"] = target
        before = state()
        start = time.monotonic()
        report = probe_core.probe(timeout=8, only=["none"])
        took = time.monotonic() - start
        steps = [d.readiness.steps for d in report.devices if d.vendor == "nvidia"]
        print(json.dumps([[dict(step) for step in steps[0]], took, left(before)]))
    """
    answer = host(site, HUNG + script)
    if answer is None:
        pytest.skip("no file system may be mounted here")
    steps, took, remains = answer
    (library,) = [step for step in steps if step["step"] == "library"]
    assert (library["status"], remains) == ("unknown", None), library
    assert took < 9.0


COMMANDS = {
    "leases": ({"PROBE_LEASES": "hung/leases"}, 3, " s; name another one in PROBE_LEASES"),
    "--machine {site}/hung/machine.json": ({}, 2, "its server did not answer within 1 s"),
    "--json --config {site}/hung/config.toml": ({}, 2, "its server did not answer within 2 s"),
    "--json --static {site}/hung/report.json": ({}, 2, "its server did not answer within 2 s"),
    "--json --chipdb {site}/hung/chips.toml": ({}, 2, "a server answers for it"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_about_a_file_on_a_mount_whose_server_is_dead(site: Path, words: str) -> None:
    variables, status, sentence = COMMANDS[words]
    answer = host(
        site,
        HUNG
        + f"""
        import io
        from probe_core.cli import main
        for name, value in {variables!r}.items():
            os.environ[name] = sys.argv[1] + "/" + value
        os.environ["PROBE_TIMEOUT"] = "3"
        sys.stderr = io.StringIO()
        status = main({words.format(site=site).split()!r})
        print(json.dumps([status, sys.stderr.getvalue()]))
        """,
    )
    if answer is None:
        pytest.skip("no file system may be mounted here")
    assert answer[0] == status, answer[1]
    assert sentence in answer[1]
