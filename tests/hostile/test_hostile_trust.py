"""As root, nothing runs that others could have written; what root installed just works."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe_core.config import load_config
from probe_core.probing import document
from probe_core.recording.limits import BadRecording
from probe_core.recording.opening import open_machine

Probe = Callable[..., dict[str, Any]]
OK = "@hookimpl\ndef probe_devices(request):\n    return [ONE]\n"
root = pytest.mark.skipif(os.geteuid() != 0, reason="the rule is for root alone")

Listing = Callable[[Any], Any]


def trusted_first(probe_with: Probe, site: Path) -> None:
    """Install a plugin with a manifest, which runs as long as nothing is changed."""
    manifest = {"schema": 1, "probers": {"bad": {"priority": 500}}}
    (site / "x_bad.prober.json").write_text(json.dumps(manifest))
    assert probe_with(OK)["status"] == "ok"


def list_by(monkeypatch: pytest.MonkeyPatch, how: Callable[[Listing, Any], Any]) -> None:
    """Have folders listed by `how`, which gets the function that does it and the folder."""
    scandir, listdir = os.scandir, os.listdir
    monkeypatch.setattr(os, "scandir", lambda folder=".": how(scandir, folder))
    monkeypatch.setattr(os, "listdir", lambda folder=".": how(listdir, folder))


CHANGES: dict[str, Callable[[Path], object]] = {
    "module of a user": lambda site: os.chown(site / "x_bad.py", 1000, 1000),
    "module anybody may write": lambda site: (site / "x_bad.py").chmod(0o666),
    "metadata of a user": lambda site: os.chown(site / "probe_bad-1.0.dist-info", 1000, 0),
    "entry points anybody may write": lambda site: (
        site / "probe_bad-1.0.dist-info/entry_points.txt"
    ).chmod(0o666),
    "manifest of a user": lambda site: os.chown(site / "x_bad.prober.json", 1000, 0),
    "link of a user": lambda site: relink(site),
    "bytecode of a user": lambda site: bytecode(site),
    "folder of a user, which can become a package": lambda site: (
        (site / "x_bad").mkdir(),
        os.chown(site / "x_bad", 1000, 1000),
    ),
    "extension module of a user, which an import prefers": lambda site: os.chown(
        touched(site / f"x_bad{EXTENSION}"), 1000, 1000
    ),
}


EXTENSION = importlib.machinery.EXTENSION_SUFFIXES[0]


def touched(path: Path) -> Path:
    path.touch()
    return path


def bytecode(site: Path) -> None:
    compiled = Path(importlib.util.cache_from_source(str(site / "x_bad.py")))
    compiled.parent.mkdir(exist_ok=True)
    os.chown(touched(compiled), 1000, 1000)


def relink(site: Path) -> None:
    (site / "real.py").write_bytes((site / "x_bad.py").read_bytes())
    (site / "x_bad.py").unlink()
    (site / "x_bad.py").symlink_to("real.py")
    os.lchown(site / "x_bad.py", 1000, 1000)


@root
@pytest.mark.parametrize("change", CHANGES)
def test_a_plugin_that_others_could_have_written(
    probe_with: Probe, site: Path, change: str
) -> None:
    trusted_first(probe_with, site)
    CHANGES[change](site)
    config, _ = load_config({"only": ["bad", "good"]}, {})
    outcomes = {o["prober"]: o for o in document(config, [])["outcomes"]}
    assert (outcomes["bad"]["status"], outcomes["bad"]["code"]) == ("skipped", "trust")
    assert outcomes["bad"]["reason"].startswith("running as root, and /")
    assert outcomes["good"]["status"] == "ok"


@root
def test_a_users_site_folder_under_sudo(probe_with: Probe, site: Path) -> None:
    home = site / "home/site-packages"
    home.mkdir(parents=True)
    outcome = probe_with(OK)
    assert outcome["status"] == "ok"
    for path in (site / "x_bad.py", site / "probe_bad-1.0.dist-info"):
        path.rename(home / path.name)
    os.chown(home.parent, 1000, 1000)
    config, _ = load_config({"only": ["bad", "good"]}, {})
    import sys

    sys.path.insert(0, str(home))
    try:
        outcomes = {o["prober"]: o for o in document(config, [])["outcomes"]}
    finally:
        sys.path.remove(str(home))
    assert f"{home.parent} belongs to user 1000" in outcomes["bad"]["reason"]


def test_an_allowlist_with_versions(probe_with: Probe) -> None:
    assert probe_with(OK, allow=["probe-good", "probe_bad==1.0"])["status"] == "ok"


def test_what_is_not_on_the_allowlist(probe_with: Probe) -> None:
    outcome = probe_with(OK, allow=["probe-good", "probe-bad==2.0"])
    assert (outcome["status"], outcome["code"]) == ("skipped", "trust")
    assert outcome["reason"] == "the allowlist wants probe-bad==2.0, installed is 1.0"


def test_a_static_report_starts_nothing(probe_with: Probe, site: Path, tmp_path: Path) -> None:
    found = probe_with(OK)["document"]
    (tmp_path / "report.json").write_text(json.dumps(found))
    (site / "x_bad.py").write_text("raise SystemExit")
    config, _ = load_config({"static": str(tmp_path / "report.json")}, {})
    start = time.monotonic()
    assert document(config, []) == found
    assert time.monotonic() - start < 0.5


STATIC: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "a FIFO": lambda path: os.mkfifo(path),
    "the kernel's log, which blocks": lambda path: path.symlink_to("/proc/kmsg"),
    "empty": lambda path: path.touch(),
    "not JSON": lambda path: path.write_text("{"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "another schema": lambda path: path.write_text('{"schema": 2}'),
    "no devices": lambda path: path.write_text('{"schema": 1, "devices": []}'),
    "not UTF-8": lambda path: path.write_bytes(b'{"\xff": 1}'),
    "huge": lambda path: path.write_bytes(b" " * ((16 << 20) + 1)),
}


@pytest.mark.parametrize("how", STATIC)
def test_a_static_report_that_is_none(
    tmp_path: Path, untouched: Callable[[], Any], how: str
) -> None:
    STATIC[how](tmp_path / "report.json")
    config, _ = load_config({"static": str(tmp_path / "report.json"), "only": []}, {})
    start = time.monotonic()
    with untouched():
        found = document(config, [])
    assert time.monotonic() - start < 2.0
    assert found["findings"][0]["code"] == "static-unusable"
    assert found["findings"][0]["severity"] == "error"
    assert found["devices"]


SEALED: dict[str, tuple[str, str | None]] = {
    # case: (PROBE_ALLOW, content of the configuration file; None where there is none)
    "allowlist with one equals sign": ("probe-bad=1.0", None),
    "allowlist with another operator": ("probe-bad>=1.0", None),
    "allowlist without a version": ("probe-bad==", None),
    "misspelt key": ("", "alow = ['probe-good']\n"),
    "wrong type": ("", "allow = 5\n"),
    "no TOML": ("", "allow = [\n"),
    "bad value of another key": ("", "timeout = 'soon'\nallow = ['probe-bad']\n"),
    "no file": ("", ""),
}


@pytest.mark.parametrize("case", SEALED)
def test_a_restriction_that_cannot_be_used_lets_no_plugin_run(
    probe_with: Probe, tmp_path: Path, case: str
) -> None:
    assert probe_with(OK)["status"] == "ok"
    allow, content = SEALED[case]
    environ = {"PROBE_ALLOW": allow} if allow else {"PROBE_CONFIG": str(tmp_path / "c.toml")}
    if content:
        (tmp_path / "c.toml").write_text(content)
    found = document(*load_config({}, environ))
    plugins = {o["prober"]: o for o in found["outcomes"] if o["prober"] in ("bad", "good")}
    assert {(o["status"], o.get("code")) for o in plugins.values()} == {("skipped", "sealed")}
    assert found["findings"][0]["code"] == "restriction-unusable"
    assert found["findings"][0]["severity"] == "error"
    assert (allow and "PROBE_ALLOW") in found["findings"][0]["why"]
    assert [device["kind"] for device in found["devices"]].count("cpu") >= 1


def test_an_argument_replaces_the_broken_variable(probe_with: Probe) -> None:
    config, ignored = load_config({"allow": ["probe-bad"]}, {"PROBE_ALLOW": "a=1"})
    assert (config.sealed, [setting.seals for setting in ignored]) == (None, [True])


def test_a_broken_static_report_stops_the_hosts_own_probers_too(tmp_path: Path) -> None:
    config, _ = load_config({"static": str(tmp_path / "none.json")}, {})
    found = document(config, [], probers={"own": {"target": "x_bad"}})
    outcome = next(o for o in found["outcomes"] if o["prober"] == "own")
    assert (outcome["status"], outcome.get("code")) == ("skipped", "sealed")


@root
def test_not_even_the_manifest_of_untrusted_code_is_shown(probe_with: Probe, site: Path) -> None:
    assert probe_with(OK)["status"] == "ok"
    fields = {"priority": "of-a-user", "summary": "of-a-user"}
    manifest = json.dumps({"schema": 1, "probers": {"bad": fields}})
    (site / "x_bad.prober.json").write_text(manifest)
    os.chown(site / "x_bad.prober.json", 1000, 1000)
    config, _ = load_config({"only": ["bad", "good"]}, {})
    assert "of-a-user" not in json.dumps(document(config, []))


@root
def test_root_reads_no_chip_file_of_a_user(tmp_path: Path) -> None:
    chips = tmp_path / "chips.toml"
    chips.write_text("[[chip]]\nid = 'user/own'\n")
    os.chown(chips, 1000, 1000)
    config, _ = load_config({"only": []}, {"PROBE_CHIPDB": str(chips)})
    findings = [f for f in document(config, [])["findings"] if f["code"] == "chip-file-unusable"]
    (finding,) = findings
    assert finding["why"] == f"running as root, and {chips} belongs to user 1000"
    assert finding["setting"] == "chipdb"


@pytest.mark.skipif(not os.path.exists("/proc/kmsg"), reason="Linux alone has it")
def test_no_data_is_read_from_a_file_of_the_kernel_that_blocks(
    probe_with: Probe, site: Path, tmp_path: Path
) -> None:
    (site / "x_bad.prober.json").symlink_to("/proc/kmsg")
    other = site / "probe_other-1.0.dist-info"
    other.mkdir()
    (other / "entry_points.txt").symlink_to("/proc/kmsg")
    chips = tmp_path / "chips.toml"
    chips.symlink_to("/proc/kmsg")
    start = time.monotonic()
    found = probe_with(OK, chipdb=str(chips))
    assert time.monotonic() - start < 5.0
    codes = [finding["code"] for finding in found["document"]["findings"]]
    assert {"manifest-problem", "distribution-broken", "chip-file-unusable"} <= set(codes)
    _, (ignored,) = load_config({}, {"PROBE_CONFIG": str(chips)})
    assert ignored.seals
    assert ignored.reason.endswith("cannot be read: a file of the kernel")
    with pytest.raises(BadRecording, match="a file of the kernel"), open_machine(str(chips)):
        pass


@root
def test_bytecode_that_is_just_being_written_is_no_reason(
    probe_with: Probe, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process compiles the plugin: its files have a name for a moment, then another."""
    trusted_first(probe_with, site)
    cache = site / "x_bad" / "__pycache__"  # a folder of that name can become a package
    cache.mkdir(parents=True)
    (site / "__pycache__").mkdir(exist_ok=True)
    listed: list[str] = []

    def vanishing(list_: Listing, folder: Any) -> Any:
        """List a folder in which a file and a folder are gone right after."""
        if os.fspath(folder) not in (str(cache), str(site / "__pycache__")):
            return list_(folder)
        gone, inner = Path(folder) / "x_bad.cpython-399.pyc.140296639276800", Path(folder) / "inner"
        gone.touch()
        inner.mkdir()
        names = list(list_(folder))
        gone.unlink()
        inner.rmdir()
        listed.append(str(folder))
        return names

    list_by(monkeypatch, vanishing)
    config, _ = load_config({"only": ["bad", "good"]}, {})
    outcomes = {o["prober"]: o for o in document(config, [])["outcomes"]}
    assert outcomes["bad"]["status"] == "ok", outcomes["bad"]
    assert set(listed) == {str(cache), str(site / "__pycache__")}


@root
def test_bytecode_that_cannot_be_listed_is_refused(
    probe_with: Probe, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may not list a folder on a file server, and Python opens the file by its name."""
    trusted_first(probe_with, site)
    cache = site / "__pycache__"
    cache.mkdir(exist_ok=True)

    def refusing(list_: Listing, folder: Any) -> Any:
        if os.fspath(folder) == str(cache):
            raise PermissionError(13, "Permission denied", str(cache))
        return list_(folder)

    list_by(monkeypatch, refusing)
    config, _ = load_config({"only": ["bad"]}, {})
    outcomes = {o["prober"]: o for o in document(config, [])["outcomes"]}
    assert (outcomes["bad"]["status"], outcomes["bad"]["code"]) == ("skipped", "trust")
    reason = f"running as root, and {cache} cannot be checked: Permission denied"
    assert outcomes["bad"]["reason"] == reason
