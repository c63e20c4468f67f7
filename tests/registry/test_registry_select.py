"""Every prober runs, or is left out with a reason; the rules hold in a fixed order."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from contextlib import nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probe_core.api import API_VERSION
from probe_core.machine import Machine, trust
from probe_core.registry.prober import HOST, MAX_NAMES, Prober, fits, select, unknown_names, unmet
from probe_core.setting_values import load_config

MACHINE = Machine("/nowhere", {}, "linux", "x86_64")


def prober(name: str = "acme", distribution: str = "probe-acme", **fields: Any) -> Prober:
    made = Prober(name, "x", distribution, "1.0", priority=fields.pop("priority", 100))
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def decide(*probers: Prober, **options: Any) -> list[tuple[str, str | None, str | None]]:
    stuck, veto = options.pop("stuck", ()), options.pop("veto", None)
    config, ignored = load_config(options, {})
    assert ignored == []
    decisions = select(probers, config, MACHINE, ["10de"], veto, stuck)
    return [(d.prober.name, d.cause, d.reason) for d in decisions]


def why(*probers: Prober, **options: Any) -> tuple[str | None, str | None]:
    (_, cause, reason), *_ = decide(*probers, **options)
    return cause, reason


def test_a_sound_prober_runs() -> None:
    assert why(prober()) == (None, None)


WHY_NOT: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"rejection": "is odd"}, {}, "rejected", "is odd"),
    ({}, {"only": ["other"]}, "blocked", "the arguments set only other"),
    ({}, {"disable": ["acme"]}, "blocked", "disabled by the arguments"),
    (
        {"api": "1.99"},
        {},
        "api",
        f"needs API 1.99, this core has {API_VERSION}: upgrade probe-core",
    ),
    ({"api": "2.0"}, {}, "api", f"needs API 2.0, this core has {API_VERSION}: upgrade probe-core"),
    ({}, {"allow": ["probe-other"]}, "trust", "probe-acme is not on the allowlist"),
    (
        {},
        {"allow": ["Probe_Acme==2.0"]},
        "trust",
        "the allowlist wants Probe_Acme==2.0, installed is 1.0",
    ),
    ({"when": [{"os": ["darwin"]}]}, {}, "when", "needs darwin, this is linux"),
    ({"active": True}, {}, "active", "it opens devices, which needs --active (PROBE_ACTIVE=1)"),
    (
        {},
        {"stuck": ["acme"]},
        "unkillable",
        "an earlier run in this process is stuck in the kernel",
    ),
    ({}, {"veto": lambda p: f"no {p.name}"}, "veto", "vetoed by the host: no acme"),
]


@pytest.mark.parametrize(("fields", "options", "cause", "reason"), WHY_NOT)
def test_every_reason_not_to_run(
    fields: dict[str, Any], options: dict[str, Any], cause: str, reason: str
) -> None:
    assert why(prober(**fields), **options) == (cause, reason)


def test_what_is_allowed_runs() -> None:
    assert why(prober(), allow=["probe.acme==1.0"]) == (None, None)
    assert why(prober(active=True), active=True) == (None, None)
    assert why(prober("mine", HOST), allow=["probe-acme"]) == (None, None)


def test_best_priority_first_then_the_host_then_by_name() -> None:
    probers = [prober("d"), prober("c", HOST), prober("b", priority=500), prober("a", "probe-zzz")]
    assert [name for name, _, _ in decide(*probers)] == ["b", "c", "d", "a"]
    assert [name for name, _, _ in decide(*probers, priority={"a": 999})] == ["a", "b", "c", "d"]


def test_of_two_with_one_name_the_better_owns_it() -> None:
    low, high = prober(distribution="probe-low"), prober(distribution="probe-high", priority=300)
    shadowed = "probe-high 1.0 has a prober of that name, and goes first"
    assert decide(low, high) == [("acme", None, None), ("acme", "shadowed", shadowed)]
    # A better one whose preconditions fail still owns the name; a broken one does not.
    high.when = [{"os": ["beos"]}]
    assert [cause for _, cause, _ in decide(low, high)] == ["when", "shadowed"]
    high.when, high.rejection = [], "is odd"
    assert [cause for _, cause, _ in decide(low, high)] == ["rejected", None]


def test_the_hosts_own_wins_whatever_its_priority() -> None:
    assert decide(prober(priority=999), prober(distribution=HOST, priority=1))[0][1] == "shadowed"


def test_names_nobody_has_are_told() -> None:
    config, _ = load_config({"only": ["acne"], "disable": ["bus"], "priority": {"cpu": 5}}, {})
    (one,) = unknown_names(config, ["acme", "bus", "cpu"])
    assert (one["code"], one["fix"]) == ("unknown-prober", "did you mean 'acme'?")
    assert (one["setting"], one["prober"]) == ("only", "acne")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for path in ("dev/acme0", "sys/class/accel/accel7/device/vendor", "dev/dri/card0"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    environ = {"ACME_FILE": "/acme", "EMPTY": ""}
    return Machine(str(tmp_path), environ, "linux", "aarch64")


WHEN: list[tuple[dict[str, Any], str | None]] = [
    ({"os": ["linux", "darwin"]}, None),
    ({"os": ["windows", "darwin"]}, "needs windows or darwin, this is linux"),
    ({"machine": ["x86_64"]}, "needs x86_64, this is aarch64"),
    ({"any_path": ["/dev/no", "/dev/acme0"]}, None),
    ({"any_path": ["/dev/no", "/dev/acme9"]}, "no path of /dev/no, /dev/acme9 exists"),
    ({"all_path": ["/dev/acme0", "/dev/dri"]}, None),
    ({"all_path": ["/dev/acme0", "/dev/no"]}, "the path /dev/no does not exist"),
    ({"any_path": ["/dev/acme*"]}, None),
    ({"any_path": ["/sys/class/*/accel*/device/vendor"]}, None),
    ({"any_path": ["/sys/class/*/accel*/device/missing"]}, "no path of"),
    ({"any_path": ["/etc/*"]}, "no path of /etc/* exists"),
    ({"any_path": ["/../../../../etc/passwd"]}, "no path of"),
    ({"pci_vendor": ["0x10DE"]}, None),
    ({"pci_vendor": ["1002"]}, "no PCI device of vendor 1002"),
    ({"any_module": ["no_such_thing", "json"]}, None),
    ({"any_module": ["no_such_thing.sub"]}, "no module no_such_thing.sub is installed"),
    ({"any_environ": ["UNSET", "ACME_FILE"]}, None),
    ({"any_environ": ["UNSET", "EMPTY"]}, "no environment variable UNSET or EMPTY is set"),
    ({"os": ["linux"], "any_path": ["/dev/acme0"], "pci_vendor": ["10de"]}, None),
]


@pytest.mark.parametrize(("when", "reason"), WHEN)
def test_preconditions(machine: Machine, when: dict[str, Any], reason: str | None) -> None:
    said = unmet([when], machine, ["10de"])
    assert (said is None) == (reason is None)
    assert (said or "").startswith(reason or "")


def test_one_alternative_is_enough(machine: Machine) -> None:
    assert unmet([{"os": ["beos"]}, {"os": ["linux"]}], machine, None) is None
    assert unmet([{"os": ["a"]}, {"os": ["a"]}, {"machine": ["b"]}], machine, None) == (
        "needs a, this is linux; and needs b, this is aarch64"
    )
    # As of the NVIDIA prober on Linux without a card: that Windows would do explains nothing.
    assert unmet([{"any_path": ["/no"]}, {"os": ["windows"]}], machine, None) == (
        "no path of /no exists"
    )


def test_a_bus_that_was_not_read_rules_nothing_out(machine: Machine) -> None:
    assert unmet([{"pci_vendor": ["1002"]}], machine, None) is None


def test_a_pattern_never_walks_a_disk(tmp_path: Path) -> None:
    for number in range(80):
        for inner in range(60):
            (tmp_path / f"d{number}/e{inner}").mkdir(parents=True)
    machine = Machine(str(tmp_path), {}, "linux", "x86_64")
    assert MAX_NAMES < 80 * 60
    assert unmet([{"any_path": ["/*/*/missing*"]}], machine, None) is None  # fails open
    assert unmet([{"any_path": ["/d1/*/missing*"]}], machine, None) is not None


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("/dev/dri/renderD*", True),
        ("/dev/dri/*128", True),
        ("/dev/dri/render*28", True),
        ("/dev/dri/renderD128*", True),
        ("/dev/dri/renderD12*28", False),  # the 2 is one character, not two
        ("/dev/dri/card*", False),
        ("/dev/dri/*D1*8", True),
        # Other signs of a shell's patterns stand for themselves: the reference names `*` alone.
        ("/dev/dri/render[A-E]*", False),
        ("/dev/dri/render?1*", False),
        ("/dev/*/renderD128", True),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, fits: bool) -> None:
    (tmp_path / "dev/dri/renderD128").mkdir(parents=True)
    machine = Machine(str(tmp_path), {}, "linux", "x86_64")
    assert (unmet([{"any_path": [pattern]}], machine, None) is None) == fits


root = pytest.mark.skipif(os.geteuid() != 0, reason="the rule is for root alone")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    package = tmp_path / "site" / "x_pkg"
    package.mkdir(parents=True)
    for name in ("__init__.py", "prober.py", "helper.py", "data.txt"):
        (package / name).touch()
    return package / "prober.py"


def give_to_group(path: Path, group: int) -> None:
    os.chown(path, 0, group)
    path.chmod(0o775)


@root
def test_what_only_root_can_write_is_trusted(module: Path) -> None:
    assert trust.untrusted([str(module), str(module.parent)]) is None


@root
@pytest.mark.parametrize(
    ("what", "change", "reason"),
    [
        ("prober.py", lambda p: os.chown(p, 1000, 0), "belongs to user 1000"),
        ("prober.py", lambda p: p.chmod(0o666), "is writable by everyone"),
        ("helper.py", lambda p: p.chmod(0o666), "is writable by everyone"),
        ("helper.py", lambda p: os.chown(p, 1000, 0), "belongs to user 1000"),
        ("", lambda p: p.chmod(0o777), "is writable by everyone"),
        ("..", lambda p: os.chown(p, 1000, 1000), "belongs to user 1000"),
        ("..", lambda p: give_to_group(p, 50), "is writable by group 50"),
        ("prober.py", lambda p: p.unlink(), "cannot be checked: No such file"),
    ],
)
def test_what_others_could_write_is_not(module: Path, what: str, change: Any, reason: str) -> None:
    path = (module.parent / what).resolve()
    change(path)
    said = str(trust.untrusted([str(module), str(module.parent)]))
    assert said.startswith(f"running as root, and {path}")
    assert reason in said


def outside(package: Path) -> Path:
    """Return a file of a user beside the package's folder."""
    path = package.parent.parent / "elsewhere.py"
    path.touch()
    os.chown(path, 1000, 1000)
    return path


def make(path: Path, owner: int = 1000) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.chown(path, owner, owner)
    return path


def sticky(path: Path) -> None:
    path.mkdir()
    path.chmod(0o1777)


INSIDE: dict[str, Callable[[Path], object]] = {
    "a file of a subfolder": lambda package: make(package / "inner/deep.py"),
    "bytecode": lambda package: make(package / "__pycache__/prober.cpython-311.pyc"),
    "bytecode without source": lambda package: make(package / "stray.pyc"),
    "an extension module": lambda package: make(package / "fast.abi3.so"),
    "data that a prober may load": lambda package: make(package / "libacme.so.1"),
    "a link out of it": lambda package: (package / "link.py").symlink_to(outside(package)),
    "a folder linked from outside": lambda package: (package / "linked").symlink_to(
        make(package.parent.parent / "user" / "x.py").parent
    ),
    "a sticky folder": lambda package: sticky(package / "drop"),
    "the last of many files": lambda package: (
        [make(package / f"n{i}.py", 0) for i in range(1500)] and make(package / "zz.py")
    ),
}


@root
@pytest.mark.parametrize("case", INSIDE)
def test_everything_in_a_package_counts(module: Path, case: str) -> None:
    """Names without a known suffix, subfolders and all beyond the thousandth were not looked at."""
    INSIDE[case](module.parent)
    assert trust.untrusted([str(module), str(module.parent)]) is not None


@root
def test_a_folder_that_cannot_be_listed_is_not_trusted(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(trust.os, "scandir", refuses)
    reason = trust.untrusted([str(module), str(module.parent)])
    assert reason == (f"running as root, and {module.parent} cannot be checked: Permission denied")


@root
def test_an_entry_that_cannot_be_looked_at_is_named(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        path = str(module.parent / "lost")

        def stat(self, *, follow_symlinks: bool) -> None:
            raise OSError(5, "Input/output error", self.path)

    monkeypatch.setattr(trust.os, "scandir", lambda folder: nullcontext([Entry()]))
    reason = trust.untrusted([str(module), str(module.parent)])
    assert reason == f"running as root, and {Entry.path} cannot be checked: Input/output error"


@root
def test_a_package_too_large_to_check_is_refused(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "MAX_ENTRIES", 3)
    assert "too many to check" in str(trust.untrusted([str(module.parent)]))


@root
def test_links_in_circles_end(module: Path) -> None:
    (module.parent / "up").symlink_to("..")
    (module.parent / "self").symlink_to("self")
    assert trust.untrusted([str(module), str(module.parent)]) is None


@root
def test_access_control_lists_count(module: Path) -> None:
    """Mode and group look like root's own: -rw-rw-r-- root root, and user 1000 may write."""
    entries = [(1, 6, -1), (2, 6, 1000), (4, 4, -1), (16, 6, -1), (32, 4, -1)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(module, "system.posix_acl_access", packed)
    except OSError as error:
        pytest.skip(f"this file system has no access control lists: {error}")
    said = str(trust.untrusted([str(module)]))
    assert "is writable by those on its access control list" in said


@root
def test_data_beside_the_code_does_not_matter(module: Path) -> None:
    (module.parent / "data.txt").chmod(0o666)
    assert trust.untrusted([str(module)]) is None


@root
def test_links_are_followed_step_by_step(module: Path, tmp_path: Path) -> None:
    """A user's link to root's own file can be turned to another file at any moment."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(module.parent.parent)
    (tmp_path / "way").symlink_to("home/link")
    path = str(tmp_path / "way/x_pkg/prober.py")
    assert trust.untrusted([path]) is None
    os.chown(home, 1000, 1000)
    assert f"{home} belongs to user 1000" in str(trust.untrusted([path]))
    os.chown(home, 0, 0)
    os.lchown(home / "link", 1000, 1000)
    assert f"{home}/link belongs to user 1000" in str(trust.untrusted([path]))


@root
def test_a_module_in_an_archive_is_as_trusted_as_the_archive(tmp_path: Path) -> None:
    archive = tmp_path / "app.zip"
    archive.touch()
    assert trust.untrusted([f"{archive}/x/y.py"]) is None
    archive.chmod(0o666)
    assert f"{archive} is writable by everyone" in str(trust.untrusted([f"{archive}/x/y.py"]))


def test_an_ordinary_user_checks_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert trust.untrusted([str(tmp_path / "missing")]) is None


@pytest.mark.parametrize(
    ("environ", "arguments", "expected"),
    [
        ({"PROBE_DISABLE": "acme"}, {}, ("blocked", "disable", "PROBE_DISABLE")),
        ({"PROBE_ONLY": "other"}, {}, ("blocked", "only", "PROBE_ONLY")),
        ({"PROBE_ONLY": "acme"}, {"only": "other"}, ("blocked", "only", None)),
        ({"PROBE_ALLOW": "probe-other"}, {}, ("trust", "allow", "PROBE_ALLOW")),
        ({}, {"allow": ["probe-other"]}, ("trust", "allow", None)),
        ({}, {}, (None, None, None)),
    ],
)
def test_a_decision_names_the_setting_and_the_variable(
    environ: dict[str, str], arguments: dict[str, Any], expected: tuple[str | None, ...]
) -> None:
    config, _ = load_config(arguments, environ)
    (decision,) = select([prober()], config, Machine("/nowhere"), set())
    assert (decision.cause, decision.setting, decision.variable) == expected


def test_an_unknown_name_carries_its_setting_and_variable() -> None:
    config, _ = load_config({}, {"PROBE_DISABLE": "nvidai"})
    (finding,) = unknown_names(config, ["nvidia"])
    assert (finding["prober"], finding["setting"]) == ("nvidai", "disable")
    assert finding["variable"] == "PROBE_DISABLE"
    assert finding["fix"] == "did you mean 'nvidia'?"


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
@example("*", "")
@example("a*a", "a")
@example("a**b", "ab")
def test_a_star_stands_for_anything(pattern: str, name: str) -> None:
    assert fits(name, pattern) == fnmatchcase(name, pattern)


def test_other_signs_stand_for_themselves() -> None:
    assert fits("card[0]?", "card[0]*")
    assert not fits("card0", "card[0]*")
    assert not fits("card0x", "card?*")
