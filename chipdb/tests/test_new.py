"""A distribution that `new` begins passes the check, and is found when it is installed."""

from pathlib import Path

import pytest

from probe_chipdb.__main__ import main
from probe_chipdb.database import Database, load
from probe_chipdb.tools.check import check
from probe_chipdb.tools.new import Refused, new

Capture = pytest.CaptureFixture[str]


def installed(tmp_path: Path, name: str, vendor: str) -> Database:
    """What `pip install` of the folder leaves on the path."""
    site = tmp_path / "site"
    module = name.replace("-", "_")
    (site / f"{module}-0.1.dist-info").mkdir(parents=True)
    (site / f"{module}-0.1.dist-info/entry_points.txt").write_text(
        f"[probe_core.chipdb.v1]\n{vendor} = {module}\n"
    )
    (tmp_path / name / "src" / module).rename(site / module)
    return load(path=[str(site)])


def test_from_an_empty_folder_to_a_known_chip(tmp_path: Path) -> None:
    paths = new("Acme_Chips", str(tmp_path), pci="1ac0")
    assert [Path(path).relative_to(tmp_path).as_posix() for path in paths] == [
        "acme-chips/pyproject.toml",
        "acme-chips/README.md",
        "acme-chips/src/acme_chips/__init__.py",
        "acme-chips/src/acme_chips/chips.toml",
    ]
    for path in (tmp_path / "acme-chips", tmp_path / "acme-chips/src/acme_chips/chips.toml"):
        result = check(str(path))
        assert [str(problem) for problem in result.problems] == []
        assert (result.chips, result.full) == (1, 1)
    db = installed(tmp_path, "acme-chips", "acme")
    assert db.problems == ()
    match = db.match(pci="1ac0:0001")
    assert match.chip is not None
    assert (match.chip.id, round(match.chip.peaks()[0].tflops, 1)) == ("acme/one", 196.6)
    assert db.match(name="acme_one").chip == match.chip


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("nvidia-chips", {}, "the namespace 'nvidia' belongs to the built table"),
        ("acme-chips", {"vendor": "amd"}, "the namespace 'amd' belongs to the built table"),
        ("acme-chips", {"pci": "10de"}, "the PCI vendor id 10de is that of nvidia"),
        ("acme-chips", {"pci": "10DE:"}, "is no PCI vendor id"),
        ("acme-chips", {"vendor": "Acme Inc"}, "is no vendor's short name"),
        ("../acme", {}, "is no name of a distribution"),
        ("acme chips", {}, "is no name of a distribution"),
        ("", {}, "is no name of a distribution"),
        ("a" * 9 + "/" * 9000, {}, "is no name of a distribution"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(
    tmp_path: Path, name: str, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        new(name, str(tmp_path), **options)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, capsys: Capture) -> None:
    line = ["new", "acme-chips", "--into", str(tmp_path)]
    assert main(line) == 0
    assert "next: edit" in capsys.readouterr().out
    assert main(line) == 2
    assert "exists already" in capsys.readouterr().err


def test_check_reports_an_id_and_a_name_that_are_taken(tmp_path: Path) -> None:
    (*_, path) = new("acme-chips", str(tmp_path), pci="1ac0")
    text = Path(path).read_text()
    Path(path).write_text(
        text.replace("1ac0:0001", "10de:2684").replace('"Acme One"', '"NVIDIA L4"')
    )
    id_, name = [str(problem) for problem in check(path).problems]
    kept = "; remove it; the built table keeps it"
    label = f"{path}: chip 'acme/one'"
    assert id_ == f"{label}: pci: '10de:2684': it already means nvidia/geforce-rtx-4090{kept}"
    assert name == f"{label}: name: 'l4': it already means nvidia/l4{kept}"
    Path(path).write_text(text.replace("1ac0:0001", "10de:ffff"))
    (problem,) = check(path).problems
    assert "the PCI vendor id 10de is that of nvidia" in str(problem)


def test_check_reports_a_spelling_and_an_architecture_of_others(tmp_path: Path) -> None:
    (*_, path) = new("acme-chips", str(tmp_path), pci="1ac0")
    text = Path(path).read_text()
    match = '[arch.acme-v1.match]\ncompute_capability = ["13.0"]\n\n[[chip]]'
    aliases = 'name = "Acme One"\naliases = ["RTX4090", "A100 PCIe"]'
    Path(path).write_text(text.replace("[[chip]]", match).replace('name = "Acme One"', aliases))
    problems = [str(problem).removeprefix(f"{path}: ") for problem in check(path).problems]
    kept = "; remove it; the built table keeps it"
    pcie = "nvidia/a100-80gb-pcie, nvidia/a100-pcie-40gb"
    counted = "compute_capability is a number of nvidia"
    alone = "list keys of your own hardware alone"
    assert problems == [
        f"chip 'acme/one': name: 'rtx4090': it already means nvidia/geforce-rtx-4090{kept}",
        f"chip 'acme/one': name: 'a100 pcie': it already means {pcie}{kept}",
        f"arch 'acme-v1': match.compute_capability: {counted}; remove it; {alone}",
    ]


def test_check_knows_a_publisher_by_the_name_in_its_pyproject(tmp_path: Path) -> None:
    (project, *_, path) = new("acme-chips", str(tmp_path))
    text = Path(path).read_text().replace('vendor = "acme"', 'vendor = "nvidia"')
    Path(path).write_text(text.replace('id = "acme/', 'id = "nvidia/'))
    folder = str(Path(project).parent)

    def faults() -> list[str]:
        return [text for p in check(folder).problems if "namespace" in (text := str(p))]

    (fault,) = faults()
    assert "the namespace 'nvidia' belongs to the built table" in fault
    named = Path(project).read_text().replace('name = "acme-chips"', 'name = "probe_nvidia"')
    Path(project).write_text(named)
    assert faults() == []
    Path(project).write_text("not TOML")
    assert len(faults()) == 1
