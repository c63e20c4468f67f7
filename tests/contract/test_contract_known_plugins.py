"""The list of known plugins says what the distributions themselves say; names are warned of."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probe_core import __version__
from probe_core.cli import main
from probe_core.testing.scaffold import known_plugins, taken

if TYPE_CHECKING:
    from probe_core.testing.scaffold import KnownPlugin

ROOT = Path(__file__).resolve().parents[2]
KEYS = (
    *("distribution", "probers", "group", "devices", "needs", "licence", "source", "tested"),
    "kit",
)
GROUPS = ("accelerators", "platforms", "tools")
ENTRIES = known_plugins()
OURS = {path.parent.name: path for path in ROOT.glob("plugins/*/pyproject.toml")}


def project_of(path: Path) -> dict[str, object]:
    project: dict[str, object] = tomllib.loads(path.read_text("utf-8"))["project"]
    return project


def probers_of(path: Path) -> list[str]:
    groups = project_of(path).get("entry-points", {})
    assert isinstance(groups, dict)
    return sorted(groups.get("probe_core.probers.v1", {}))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["distribution"])
def test_an_entry_has_every_key_and_keeps_its_bounds(entry: KnownPlugin) -> None:
    assert tuple(entry) == KEYS
    assert entry["group"] in GROUPS
    assert 10 < len(entry["devices"]) <= 70
    for key in ("needs", "licence", "source", "tested"):
        assert entry[key].strip() == entry[key] != ""  # type: ignore[literal-required]
    assert bool(entry["kit"]) is bool(entry["probers"])
    if entry["kit"]:
        version = [int(part) for part in entry["kit"].split(".")]
        assert version <= [int(part) for part in __version__.split(".")[:2]]


def test_entries_are_in_the_order_of_group_and_name_and_named_once() -> None:
    order = [(GROUPS.index(entry["group"]), entry["distribution"]) for entry in ENTRIES]
    assert order == sorted(set(order))
    names = [name for entry in ENTRIES for name in entry["probers"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_own_plugins_are_listed_as_they_are(name: str) -> None:
    path = OURS[name]
    entry = next((e for e in ENTRIES if e["source"] == f"plugins/{name}"), None)
    if entry is None:
        assert probers_of(path) == [], f"add plugins/{name} to known_plugins.toml"
        return
    project = project_of(path)
    assert (entry["distribution"], entry["licence"]) == (project["name"], project["license"])
    assert sorted(entry["probers"]) == probers_of(path)


def test_a_source_in_this_repository_exists() -> None:
    paths = [entry["source"] for entry in ENTRIES if "://" not in entry["source"]]
    assert [path for path in paths if not (ROOT / path / "README.md").is_file()] == []


def test_a_free_name_is_not_warned_of() -> None:
    assert list(taken("a-name-that-nobody-has")) == []


def test_each_owner_of_a_name_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    info = site / "probe_x-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: probe-x\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[probe_core.probers.v1]\nnpu9 = x_prober\n")
    (site / "probe_npu9.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setattr("sys.path", [str(site)])
    sentences = list(taken("npu9"))
    assert sentences[0].startswith("probe-x 1.2 has a prober 'npu9': of two, ")
    assert sentences[1] == f"the module probe_npu9 can be imported already, from {site}"
    # Listed, and not installed on this path.
    (sentence,) = taken("nvidia")
    assert sentence.startswith("probe-nvidia is a known plugin (NVIDIA GPUs")
    (sentence,) = taken("cluster")
    assert sentence.startswith("probe-cluster is a known plugin (commands for many nodes")
    assert main(["plugins", "new", "npu9", "--folder", str(tmp_path), "--pci", "1ac0"]) == 0
    out, err = capsys.readouterr()
    assert err.count("probe: warning: ") == 2
    assert "rename yours unless it is to replace that" in err
    assert f"{tmp_path}/probe-npu9/LICENSE\n" in out


def test_an_invented_vendor_id_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "new", "npu9", "--folder", str(tmp_path)]) == 0
    assert "its PCI vendor id is 1ac0, an invented one: `--pci ID` sets yours" in (
        capsys.readouterr().err
    )


MISTAKES = [
    (["cpu"], "probe plugins: the plugin 'cpu' was not written: the name is reserved: "),
    (["class"], "probe plugins: the plugin 'class' was not written: the name is reserved: "),
    (["npu9", "--pci", "0x1ac0"], "'0x1ac0' is no PCI vendor id: give four hexadecimal digits"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES)
def test_what_cannot_be_written(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "new", *arguments, "--folder", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert (out, list(tmp_path.iterdir())) == ("", [])
    assert sentence in err
