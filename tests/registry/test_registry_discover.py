"""Probers are found by reading metadata alone, whatever else lies on the path."""

from __future__ import annotations

import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_core.registry import (
    MAX_ENTRIES,
    locate,
    locate_by_hooks,
    scan,
    top_level_exists,
)
from probe_core.registry.prober import HOST, Prober, discover

Install = Callable[..., Path]


def found(site: Path, registered: dict[str, Any] | None = None) -> dict[str, Prober]:
    probers, _ = discover(registered or {}, [str(site)])
    return {prober.name: prober for prober in probers}


def told(site: Path) -> list[tuple[str, str]]:
    return [(one["what"], one["why"]) for one in discover({}, [str(site)])[1]]


def test_a_prober_with_its_manifest(install: Install, site: Path) -> None:
    manifest = {"summary": "S", "api": "1.0", "priority": 500, "deadline_s": 3, "active": True}
    install(manifest={**manifest, "when": {"os": ["linux"]}})
    (prober,) = found(site).values()
    assert (prober.name, prober.target, prober.owner) == ("acme", "x_acme", "probe-acme 1.0")
    assert (prober.summary, prober.api, prober.priority) == ("S", "1.0", 500)
    assert (prober.deadline_s, prober.active, prober.when) == (3.0, True, [{"os": ["linux"]}])
    assert (prober.rejection, prober.problems, prober.needs_site) == (None, [], False)


def test_without_a_manifest_defaults_hold(install: Install, site: Path) -> None:
    install()
    prober = found(site)["acme"]
    assert (prober.priority, prober.deadline_s, prober.active, prober.when) == (100, 5.0, False, [])


def test_no_plugin_is_imported(install: Install, site: Path) -> None:
    install(source="raise SystemExit('imported')")
    before = set(sys.modules)
    assert "acme" in found(site)
    assert "x_acme" not in set(sys.modules) - before


def gut(metadata: Path) -> Path:
    """Take the entry points out of a distribution; returns where they were."""
    path = metadata / "entry_points.txt"
    path.unlink()
    return path


BROKEN: dict[str, Callable[[Path], object]] = {
    "not UTF-8": lambda m: (m / "entry_points.txt").write_bytes(b"[probe_core.probers.v1]\n\xff=x"),
    "no equals sign": lambda m: (m / "entry_points.txt").write_text("[probe_core.probers.v1]\nx"),
    "no target": lambda m: (m / "entry_points.txt").write_text("[probe_core.probers.v1]\nx = "),
    "huge": lambda m: (m / "entry_points.txt").write_bytes(b"#" * ((1 << 20) + 1)),
    "a folder": lambda m: gut(m).mkdir(),
    "a FIFO": lambda m: os.mkfifo(gut(m)),
    "a device": lambda m: gut(m).symlink_to("/dev/zero"),
    "a loop": lambda m: gut(m).symlink_to("entry_points.txt"),
    "too many": lambda m: (m / "entry_points.txt").write_text(
        "[probe_core.probers.v1]\n" + "".join(f"x{n} = x\n" for n in range(MAX_ENTRIES + 1))
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_distribution_costs_itself(install: Install, site: Path, how: str) -> None:
    install("good")
    BROKEN[how](install("bad"))
    assert list(found(site)) == ["good"]
    ((what, why),) = told(site)
    assert what == "the distribution probe-bad was left out"
    assert why.startswith("entry_points.txt: ")


QUIET: dict[str, Callable[[Path], object]] = {
    "half removed": lambda m: list(map(os.unlink, m.iterdir())),
    "no entry points": lambda m: gut(m),
    "empty": lambda m: (m / "entry_points.txt").write_text(""),
    "another group": lambda m: (m / "entry_points.txt").write_text("[console_scripts]\nx = y:z"),
    "another group, not UTF-8": lambda m: (m / "entry_points.txt").write_bytes(b"[other]\n\xff=x"),
    "being replaced": lambda m: m.rename(m.with_name("~robe_bad-1.0.dist-info")),
    "egg-info of distutils": lambda m: gut(m).parents[1].joinpath("x-1.egg-info").touch(),
    "a link to nothing": lambda m: gut(m).parents[1].joinpath("y-1.dist-info").symlink_to("none"),
}


@pytest.mark.parametrize("how", QUIET)
def test_what_is_none_of_ours_is_passed_over(install: Install, site: Path, how: str) -> None:
    install("good")
    QUIET[how](install("bad"))
    assert list(found(site)) == ["good"]
    assert told(site) == []


def test_the_first_copy_on_the_path_counts(install: Install, site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    install(entries="[probe_core.probers.v1]\nacme = x_new")
    install(where=other)
    entries, problems = scan([str(site), str(other)])
    assert ([e.target for e in entries], problems) == (["x_new"], [])
    # Also a first copy that has no prober any more.
    (site / "probe_acme-1.0.dist-info/entry_points.txt").unlink()
    assert scan([str(site), str(other)]) == ([], [])
    # But not what is left of a removed one.
    (site / "probe_acme-1.0.dist-info/METADATA").unlink()
    assert [e.target for e in scan([str(site), str(other)])[0]] == ["x_acme"]


def test_a_copy_is_known_by_its_normalised_name(
    install: Install, site: Path, tmp_path: Path
) -> None:
    first = install(name="acme")
    install(name="acme_x", where=tmp_path / "other")
    install(name="acme", where=tmp_path / "other", entries="[probe_core.probers.v1]\nb = x_b")
    spelt = first.rename(first.with_name("Probe.ACME-1.0.dist-info"))
    paths = [str(site), str(tmp_path / "other")]
    assert [e.metadata.rpartition("/")[2] for e in scan(paths)[0]] == [
        "Probe.ACME-1.0.dist-info",
        "probe_acme_x-1.0.dist-info",
    ]
    # One that cannot be read hides none.
    (spelt / "entry_points.txt").write_bytes(b"x" * (1 << 21))
    assert [e.name for e in scan(paths)[0]] == ["b", "acme_x"]


def test_two_copies_side_by_side_are_told(install: Install, site: Path) -> None:
    install(version="1.0")
    install(version="1.1")
    assert found(site)["acme"].version == "1.0"
    assert told(site) == [
        (
            "the distribution probe-acme 1.1 was left out",
            "probe_acme-1.0.dist-info lies beside it, and was used",
        )
    ]


def test_findings_of_distributions_carry_what_was_read(install: Install, site: Path) -> None:
    path = install("bad", entries="[probe_core.probers.v1]\nacme") / "entry_points.txt"
    install("twice", version="1")
    second = install("twice", version="2")
    broken, copy = discover({}, [str(site)])[1]
    assert (broken["code"], broken["prober"]) == ("distribution-broken", None)
    assert broken["evidence"] == f"{path}: expected `name = module`, found 'acme'"
    assert (copy["code"], copy["prober"]) == ("distribution-broken", None)
    assert copy["evidence"] == str(second)


def test_scan_serves_any_group(install: Install, site: Path) -> None:
    text = "[probe_core.commands.v1]\ntop = a_b:c\n[probe_core.chipdb.v1]\nacme = chips\n"
    install(entries=f"{text}[probe_core.probers.v1]\nacme = x_acme\n")
    bad = install("bad", entries="[probe_core.commands.v1]\nbroken")
    for stem, entry in (("commands", ("top", "a_b:c")), ("chipdb", ("acme", "chips"))):
        entries, problems = scan([str(site)], f"probe_core.{stem}.v")
        assert [(e.name, e.target, e.distribution) for e in entries] == [(*entry, "probe-acme")]
        assert [p.evidence.partition(":")[0] for p in problems] == (
            [f"{bad}/entry_points.txt"] if stem == "commands" else []
        )


def test_scan_notices_other_groups_on_the_way(install: Install, site: Path) -> None:
    """One scan serves chipdb too, which read every file a second time."""
    mentioned = {"probe_core.chipdb.v1": False, "probe_core.commands.v1": False}
    install()
    scan([str(site)], mentioned=mentioned)
    assert mentioned == {"probe_core.chipdb.v1": False, "probe_core.commands.v1": False}
    install("chips", entries="[probe_core.chipdb.v1]\nacme = chips\n")
    scan([str(site)], mentioned=mentioned)
    assert mentioned == {"probe_core.chipdb.v1": True, "probe_core.commands.v1": False}
    # Nobody knows what a file that cannot be read would have said.
    (install("bad") / "entry_points.txt").write_bytes(b"\xff" * (1 << 21))
    scan([str(site)], mentioned=mentioned)
    assert mentioned == {"probe_core.chipdb.v1": True, "probe_core.commands.v1": True}


def test_odd_entries_of_the_path_are_passed_over(install: Install, site: Path) -> None:
    install()
    odd: list[Any] = [None, 5, b"/tmp", "\0", "/nowhere", str(site / "x_acme.py"), Path("/tmp")]
    assert [e.name for e in scan([*odd, str(site), str(site)])[0]] == ["acme"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "ASCII letters"),
        ("a b", "ASCII letters"),
        ("x" * 65, "ASCII letters"),
        ("../etc", "ASCII letters"),
        ("\u0441pu", "ASCII letters"),  # a Cyrillic letter that looks like a Latin one
        ("a\u202eb", "ASCII letters"),
        ("cpu", "reserved by the core"),
        ("FallBack", "reserved by the core"),
        ("all", "reserved by the core"),
    ],
)
def test_names_nobody_may_take(install: Install, site: Path, name: str, reason: str) -> None:
    install(entries=f"[probe_core.probers.v1]\n{name} = x_acme")
    (prober,) = found(site).values()
    assert reason in str(prober.rejection)
    assert prober.name.isprintable()


@pytest.mark.parametrize(
    "target", ["a b", "../x", "x:", "x:y z", ":y", "x" * 300, "1x", "x-y", "\0"]
)
def test_targets_that_are_none(install: Install, site: Path, target: str) -> None:
    install(entries=f"[probe_core.probers.v1]\nacme = {target}")
    rejection = found(site)["acme"].rejection
    if target == "x:":  # the same as without the colon, for every tool that reads entry points
        assert rejection is None
    else:
        assert "is not `module` or `module:attribute`" in str(rejection)


def test_another_major_version_of_the_contract(install: Install, site: Path) -> None:
    install(entries="[probe_core.probers.v2]\nacme = x_acme")
    assert found(site)["acme"].rejection == (
        "needs probe_core.probers.v2, this core has probe_core.probers.v1"
    )


def test_extras_and_comments_of_entry_points(install: Install, site: Path) -> None:
    install(
        entries="\ufeff# c\n; d\n[probe_core.probers.v1]\n\nacme = x_acme:P.q [extra1,b]\n[z]\na=b"
    )
    assert found(site)["acme"].target == "x_acme:P.q"


@pytest.mark.heavy
def test_two_thousand_distributions(site: Path) -> None:
    for number in range(2000):
        metadata = site / f"lib{number}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").touch()
        if number % 3 == 0:
            (metadata / "entry_points.txt").write_text("[console_scripts]\na = b:c\n")
    start = time.thread_time()  # a busy machine is no failure
    assert scan([str(site)]) == ([], [])
    assert time.thread_time() - start < 1.0


def test_the_host_registers_probers(install: Install, site: Path) -> None:
    install("acme")
    probers, _ = discover({"acme": {"target": "x_mine", "priority": 7}}, [str(site)])
    assert [(p.distribution, p.priority) for p in probers] == [("probe-acme", 100), (HOST, 7)]


def test_no_distribution_passes_for_the_host(install: Install, site: Path) -> None:
    install().rename(site / f"{HOST}-1.dist-info")
    assert found(site)["acme"].rejection == f"no distribution may be named {HOST}"


def test_modules_are_located_without_running_anything(tmp_path: Path) -> None:
    package = tmp_path / "acme" / "deep"
    package.mkdir(parents=True)
    (tmp_path / "acme/__init__.py").write_text("raise SystemExit('imported')")
    (package / "prober.py").touch()
    (tmp_path / "single.py").touch()
    paths = [str(tmp_path)]
    place = locate("acme.deep.prober", paths=paths)
    assert place is not None
    assert (place.file, place.is_package) == (str(package / "prober.py"), False)
    assert locate("single", paths=paths) is not None
    assert locate("acme.deep", paths=paths) is not None  # a namespace package inside
    for missing in ("acme.other", "nothing", "single.below"):
        assert locate(missing, paths=paths) is None


class Finder:
    """An import hook, as editable installs set up."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        return self.answer(name)


def test_a_module_behind_an_import_hook(
    install: Install, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.machinery import PathFinder

    source = tmp_path / "src"
    (source / "x_hooked").mkdir(parents=True)
    (source / "x_hooked/__init__.py").write_text("raise SystemExit('imported')")
    (source / "x_hooked/prober.json").write_text(
        '{"schema": 1, "probers": {"acme": {"priority": 321}}}'
    )
    install(entries="[probe_core.probers.v1]\nacme = x_hooked")
    bad = Finder(lambda name: 1 / 0)
    good = Finder(lambda name: PathFinder.find_spec(name, [str(source)]))
    monkeypatch.setattr(sys, "meta_path", [bad, *sys.meta_path, good])
    prober = found(site)["acme"]
    assert (prober.priority, prober.needs_site) == (321, True)
    assert str(source / "x_hooked/__init__.py") in prober.files
    assert top_level_exists("x_hooked")
    assert not top_level_exists("x_nothing")


def test_a_module_in_a_zip_needs_no_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("x_zipped/__init__.py", "")
        archive.writestr("x_single.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "app.zip"))
    place, by_site = locate_by_hooks("x_single")
    assert place is not None
    assert (place.file, by_site) == (str(tmp_path / "app.zip/x_single.py"), False)


def test_a_namespace_package_is_a_module_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nvidia` of NVIDIA's wheels has no __init__.py."""
    (tmp_path / "x_space/inner").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert top_level_exists("x_space.inner")
    assert top_level_exists("sys")
    assert not top_level_exists("")
    assert not isinstance(sys.modules.get("x_space"), ModuleType)


@pytest.mark.parametrize(
    "module", ["sys", "_frozen_importlib", "sys.inner", "no_such_module_at_all"]
)
def test_what_has_no_file_has_no_place(module: str) -> None:
    assert locate_by_hooks(module) == (None, False)
