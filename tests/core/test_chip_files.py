"""Many chips of a site or a vendor are read in a child: same answers, with a deadline."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from reports import report_of

from probe_chipdb import Database
from probe_core import Machine
from probe_core.isolation import launch
from probe_core.model.document import FindingDoc
from probe_core.pipeline.chip_reading import HOST_BYTES
from probe_core.pipeline.settings import open_chips
from probe_core.registry import CHIPS
from probe_core.resolve import open_chipdb
from probe_core.resolve.tables import pieces_of, tables_of
from probe_core.setting_values import load_config

HEAD = '[family]\ntitle = "Acme"\nvendor = "acme"\n'


def chips(count: int, vendor: str = "acme") -> str:
    return HEAD.replace("acme", vendor) + "".join(
        f'[[chip]]\nid = "{vendor}/chip-{n}"\nname = "Acmé Chip {n}"\nkind = "npu"\n'
        f'pci = ["1ac0:{n:04x}"]\nunits = {n + 1}\n'
        for n in range(count)
    )


def opened(packages: bool = False, **settings: Any) -> tuple[Database, list[FindingDoc]]:
    config, _ = load_config(settings, {})
    database, findings = open_chips(config, packages, -1)
    assert database is not None
    return database, findings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is too much for the host, with a mistake in it."""
    path = tmp_path / "site.toml"
    path.write_text(chips(1000) + '[[chip]]\nid = "acme/bad"\nname = 7\n', encoding="utf-8")
    assert path.stat().st_size > HOST_BYTES
    return path


@pytest.mark.heavy
def test_a_child_reads_what_the_host_would_have_read(file: Path) -> None:
    here, nothing = open_chipdb([str(file)], packages=False)
    database, findings = opened(chipdb=str(file))
    assert (nothing, findings) == ([], [])
    assert here is not None
    assert database.problems == here.problems != ()
    assert database.chips() == here.chips()
    assert [t.origin for t in database.tables()] == [t.origin for t in here.tables()]
    chip = database.match(pci="1ac0:03e7").chip
    assert chip is not None
    assert (chip.name, chip.units) == ("Acmé Chip 999", 1000)


def test_a_package_of_a_newer_group_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "acme_chips-3.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[{CHIPS}2]\nacme = acme_chips\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    report = report_of(Machine(str(tmp_path)), only=["cpu"])
    (finding,) = (f for f in report["findings"] if f["code"] == "chipdb-problem")
    assert finding["why"].startswith(
        "acme_chips 3.0: acme: it needs 'probe_core.chipdb.v2', this chipdb reads"
        " 'probe_core.chipdb.v1'"
    )


@pytest.mark.heavy
def test_a_vendors_package_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "acme_chips-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[{CHIPS}1]\nacme = acme_chips\n")
    (tmp_path / "acme_chips").mkdir()
    for number in range(3):
        text = chips(300, f"acme{number}").replace("1ac0", f"1ac{number}")
        (tmp_path / f"acme_chips/f{number}.toml").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    database, _ = opened(packages=True)
    match = database.match(pci="1ac2:0007")
    assert match.chip is not None
    assert match.chip.id == "acme2/chip-7"
    assert "package:acme_chips 1.0" in [table.origin for table in database.tables()]


def test_a_dangling_link_in_a_vendors_package_is_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "acme_chips-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[{CHIPS}1]\nacme = acme_chips\n")
    (tmp_path / "acme_chips").mkdir()
    (tmp_path / "acme_chips/good.toml").write_text(chips(3), encoding="utf-8")
    (tmp_path / "acme_chips/gone.toml").symlink_to(tmp_path / "nowhere.toml")
    monkeypatch.syspath_prepend(str(tmp_path))
    database, _ = opened(packages=True)
    match = database.match(pci="1ac0:0002")
    assert match.chip is not None
    assert match.chip.id == "acme/chip-2"


def test_what_takes_too_long_is_left_out_and_named(file: Path) -> None:
    begin = time.monotonic()
    database, findings = opened(chipdb=str(file), timeout=0.05)
    assert time.monotonic() - begin < 10
    assert database.match(pci="1ac0:0007").chip is None
    codes = [finding["code"] for finding in findings]
    assert codes == ["chip-file-unusable", "budget-exceeded"]
    named = findings[-1]
    assert named["why"].startswith("reading them failed: ")
    assert named["why"].count("took longer than 0.05 s") == 1
    assert named["setting"] == "timeout"


def test_a_process_that_cannot_start_children_leaves_them_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(launch.MARK_VARIABLE, "1")
    left = opened(chipdb=str(file))[1][-1]
    assert left["code"] == "budget-exceeded"
    assert left["why"] == "this is itself the process of a prober: probers start no probers"


def test_a_few_chips_cost_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "small.toml"
    path.write_text(chips(20), encoding="utf-8")
    assert path.stat().st_size < HOST_BYTES
    monkeypatch.setenv(launch.MARK_VARIABLE, "1")  # so that none could be started
    database, _ = opened(chipdb=str(path))
    assert database.match(pci="1ac0:0007").chip is not None


def test_any_answer_of_the_child_makes_tables() -> None:
    foreign = [None, 7, {}, {"origin": "site:x"}, {"origin": "site:x", "file": "chips.txt"}]
    sites, packages, problems = tables_of([*foreign, {"problems": ["a", 1]}, {"text": "x"}])
    assert ([t.origin for t in sites], packages, problems) == (["site:x"], [], ("a",))
    assert [*pieces_of(sites, ["p"])][-1] == {"problems": ["p"]}


def test_a_packages_rules_of_names_travel_with_its_chips() -> None:
    from probe_chipdb.table import FILES, RULES, Table

    files = dict.fromkeys(FILES, b"acme/one\tx\n")
    own = Table("package:acme 1", "", {**files, RULES: b"set\tstate\tbusy\n" * 3000})
    bare = Table("package:beta 1", "", files)
    _, packages, _ = tables_of(pieces_of([own, bare], []))
    assert [table.rules for table in packages] == [own.rules, ""]
