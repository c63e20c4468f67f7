"""As root, nothing runs that others could have written; what root installed just works."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe_core.isolation import launch
from probe_core.machine import Machine, trust
from probe_core.machine.trust import untrusted
from probe_core.probing import document
from probe_core.recording.opening import open_machine
from probe_core.recording.paths import BadRecording
from probe_core.registry.prober import discover, select
from probe_core.setting_values import load_config

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


@pytest.mark.heavy
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
    assert document(config, []) == found


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
    assert time.monotonic() - start < 10.0
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


@pytest.mark.heavy
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


ABSENT = {"any_path": ["/sys/class/acme/no-such-device"]}


def packaged(site: Path, **fields: Any) -> Path:
    """Install a plugin `pkg` that is a package, and return its folder."""
    package, info = site / "x_pkg", site / "probe_pkg-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[probe_core.probers.v1]\npkg = x_pkg\n")
    (package / "inner").mkdir(parents=True)
    (package / "inner/deep.py").touch()
    (package / "__init__.py").write_text("raise SystemExit")
    manifest = {"schema": 1, "probers": {"pkg": fields}}
    (package / "prober.json").write_text(json.dumps(manifest))
    return package


def decided(site: Path) -> tuple[str | None, str]:
    """Return cause and reason of what is decided about the only plugin there."""
    probers, _ = discover({}, [str(site)])
    config, _ = load_config({}, {})
    (decision,) = select(probers, config, Machine("/nowhere", {}, "linux", "x86_64"), None)
    return decision.cause, decision.reason or ""


@root
def test_all_of_a_package_is_looked_at_when_it_is_to_run(tmp_path: Path) -> None:
    """What others may write deep in it runs never, and what does not run costs no look at it."""
    package = packaged(tmp_path, when=ABSENT)
    os.chown(package / "inner/deep.py", 1000, 1000)
    assert decided(tmp_path)[0] == "when"
    (package / "prober.json").unlink()
    cause, reason = decided(tmp_path)
    assert cause == "trust"
    assert f"{package}/inner/deep.py belongs to user 1000" in reason


@root
@pytest.mark.parametrize("which", ["x_pkg", "x_pkg/prober.json", "probe_pkg-1.0.dist-info"])
def test_no_manifest_is_read_where_others_may_write_on_the_way(tmp_path: Path, which: str) -> None:
    packaged(tmp_path, when=ABSENT)
    (tmp_path / which).chmod(0o777)
    cause, reason = decided(tmp_path)
    assert (cause, f"{tmp_path / which} is writable by everyone" in reason) == ("trust", True)


@root
@pytest.mark.parametrize(("group", "cause"), [(0, "when"), (50, "trust")])
def test_roots_group_counts_as_root(tmp_path: Path, group: int, cause: str) -> None:
    manifest = packaged(tmp_path, when=ABSENT) / "prober.json"
    os.chown(manifest, 0, group)
    manifest.chmod(0o664)
    assert decided(tmp_path)[0] == cause


@root
def test_a_package_whose_hardware_is_absent_is_not_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(tmp_path, when=ABSENT)
    listed: list[str] = []
    list_by(monkeypatch, lambda how, folder: (listed.append(str(folder)), how(folder))[1])
    assert decided(tmp_path)[0] == "when"
    assert not [folder for folder in listed if "x_pkg" in folder]


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


class Names(list[Any]):
    """A listing that is read already, also where `os.scandir` is one to be closed."""

    def __enter__(self) -> Names:
        return self

    def __exit__(self, *error: object) -> None:
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
        names = Names(list_(folder))
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


@root
@pytest.mark.heavy
def test_what_was_checked_is_what_is_imported(
    probe_with: Probe, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the same name in an earlier folder of the path ran as root, unchecked."""
    trusted_first(probe_with, site)
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    mark = tmp_path / "ran"
    (earlier / "x_bad.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(earlier))
    config, _ = load_config({"only": ["bad"]}, {})
    outcomes = {o["prober"]: o for o in document(config, [])["outcomes"]}
    assert outcomes["bad"]["status"] == "ok"
    assert not mark.exists()


IMPORTS = """
@hookimpl
def probe_devices(request):
    import x_needed
    return [ONE]
"""


@root
@pytest.mark.heavy
@pytest.mark.parametrize("how", ["a user's", "everybody's", "root's"])
def test_what_a_plugin_imports_comes_from_no_folder_of_others(
    probe_with: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Also the working directory, which `python -m` puts first, where it is a user's."""
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    (earlier / "x_needed.py").write_text("")
    if how == "a user's":
        os.chown(earlier, 1000, 1000)
    elif how == "everybody's":
        earlier.chmod(0o1777)
    monkeypatch.syspath_prepend(str(earlier))
    outcome = probe_with(IMPORTS)
    if how == "root's":
        assert outcome["status"] == "ok"
    else:
        assert outcome["status"] == "call_error"
        assert "No module named 'x_needed'" in outcome["reason"]


@root
def test_a_link_on_the_way_is_a_link_and_not_all_that_is_behind_it(
    probe_with: Probe, tmp_path: Path, site: Path
) -> None:
    """With /opt/app → app-1.2 a log folder in the application refused all plugins."""
    release = tmp_path / "app-1.2"
    (release / "log").mkdir(parents=True)
    os.chown(release / "log", 1000, 1000)
    package = release / "site" / "x_pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / "app").symlink_to("app-1.2")
    through = str(tmp_path / "app" / "site" / "x_pkg")
    assert untrusted([through]) is None
    os.lchown(tmp_path / "app", 1000, 1000)
    assert untrusted([through]) == f"running as root, and {tmp_path}/app belongs to user 1000"


@root
@pytest.mark.parametrize("where", ["in the package", "the package itself"])
def test_a_link_of_the_package_is_looked_into(tmp_path: Path, where: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data.py").touch()
    os.chown(outside / "data.py", 1000, 1000)
    package = tmp_path / "x_pkg"
    if where == "in the package":
        package.mkdir()
        (package / "inner").symlink_to(outside)
    else:
        package.symlink_to(outside)
    reason = f"running as root, and {outside}/data.py belongs to user 1000"
    assert untrusted([str(package)]) == reason


@root
@pytest.mark.parametrize("where", ["the package", "in the package"])
def test_two_dots_lead_up_from_where_the_link_before_them_leads(tmp_path: Path, where: str) -> None:
    """To the kernel `link/../x` is beside the link's target, to a text beside the link."""
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    for folder in (home / "package", tmp_path / "package"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    os.chown(home, 1000, 1000)
    (tmp_path / "link").symlink_to(home / "sub")
    if where == "the package":
        (tmp_path / "used").symlink_to("link/../package")
    else:
        (tmp_path / "used").mkdir()
        (tmp_path / "used" / "inner").symlink_to("../link/../package")
    reason = f"running as root, and {home} belongs to user 1000"
    assert untrusted([str(tmp_path / "used")]) == reason
    (tmp_path / "fine").symlink_to("./package/../package/.")
    assert untrusted([str(tmp_path / "fine")]) is None


@root
@pytest.mark.parametrize("folder", ["/sys", "/proc/self/task"])
def test_no_package_leads_into_the_kernels_folders(tmp_path: Path, folder: str) -> None:
    (tmp_path / "x_pkg").mkdir()
    (tmp_path / "x_pkg" / "inner").symlink_to(folder)
    assert "a folder of the kernel's, which no package has" in str(
        untrusted([str(tmp_path / "x_pkg")])
    )


@root
def test_a_package_that_takes_too_long_to_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x_pkg" / "inner").mkdir(parents=True)
    times = iter([0.0, 1.0, 10.1])
    monkeypatch.setattr(trust, "monotonic", lambda: next(times))
    reason = f"running as root, and {tmp_path}/x_pkg could not be checked within 10 s"
    assert untrusted([str(tmp_path / "x_pkg")]) == reason


@root
@pytest.mark.parametrize(
    ("uid_map", "is_trusted"),
    [
        ("         0       1000          1\n", True),  # unshare -r, by user 1000
        ("         0     100000      65536\n", True),  # a rootless engine
        ("         0          0          1\n", False),  # may be the real root
        ("         0          0 4294967295\n", False),
        ("", False),
    ],
)
def test_owners_that_a_user_namespace_does_not_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid_map: str, is_trusted: bool
) -> None:
    (tmp_path / "map").write_text(uid_map)
    monkeypatch.setattr(trust, "UID_MAP", str(tmp_path / "map"))
    module = tmp_path / "module.py"
    module.touch()
    os.chown(module, 65534, 65534)
    reason = f"running as root, and {module} belongs to user 65534"
    assert untrusted([str(module)]) == (None if is_trusted else reason)
    module.chmod(0o666)  # the mode counts as ever
    assert untrusted([str(module)]) is not None


@root
def test_an_empty_folder_of_bytecode_is_its_owners_to_fill(tmp_path: Path) -> None:
    (tmp_path / "x_single.py").touch()
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    assert trust.Trust().bytecode(str(tmp_path), "x_single") == []
    os.chown(cache, 1000, 1000)
    assert trust.Trust().bytecode(str(tmp_path), "x_single") == [str(cache)]


@root
@pytest.mark.parametrize(
    ("mode", "group", "who"),
    [
        (0o1777, 0, "is writable by everyone"),
        (0o1775, 70001, "is writable by group 70001"),
        (0o1755, 70001, None),
        (0o1775, 0, None),
    ],
)
def test_a_sticky_folder_is_of_those_who_may_add_to_it(
    tmp_path: Path, mode: int, group: int, who: str | None
) -> None:
    """They cannot replace root's files there, and can put a module or bytecode beside them."""
    package = tmp_path / "package"
    inner = package / "inner"
    cache = tmp_path / "__pycache__"
    for folder in (inner, cache):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    for folder in (package, inner):
        os.chown(folder, 0, group)
        folder.chmod(mode)
        reason = f"running as root, and {folder} {who}" if who else None
        assert untrusted([str(package)]) == reason
        assert trust.Trust().above(str(folder)) == (f"{folder} {who}" if who else None)
        folder.chmod(0o755)
    for folder in (cache, tmp_path):
        os.chown(folder, 0, group)
        folder.chmod(mode)
        assert trust.Trust().bytecode(str(tmp_path), "x_single") == ([str(folder)] if who else [])
        folder.chmod(0o755)


@root
@pytest.mark.parametrize("is_open", [False, True])
def test_a_link_that_leads_nowhere_is_of_those_who_may_make_its_target(
    tmp_path: Path, is_open: bool
) -> None:
    package, elsewhere = tmp_path / "package", tmp_path / "elsewhere"
    for folder in (package, elsewhere):
        folder.mkdir()
    (package / "__init__.py").touch()
    (package / "debug").symlink_to(elsewhere / "sub" / "missing")
    if is_open:
        elsewhere.chmod(0o1777)
    reason = f"running as root, and {elsewhere} is writable by everyone" if is_open else None
    assert untrusted([str(package)]) == reason


@pytest.mark.parametrize("is_root", [False, True])
def test_roots_child_runs_no_bytecode_of_a_folder_for_all(
    is_root: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a folder of root's another user's had bytecode for a plugin, and root ran it."""
    monkeypatch.setattr(trust, "applies", lambda: is_root)
    monkeypatch.setattr(sys, "pycache_prefix", "/var/cache/python")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    flags = launch._command()[1:-2]
    assert ("pycache_prefix=/var/cache/python" in flags) is not is_root
    assert ("-B" in flags) is is_root
