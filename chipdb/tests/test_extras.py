"""Sites override, vendors add, and whatever is bad is left out with a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb.database import Database
from probe_chipdb.entry import files

Make = Callable[..., Database]
Pack = Callable[..., Path]

SITE = """
[family]
title = "Ours"
vendor = "acme"
source = ["ours"]
[source.ours]
title = "Our own measurements"
publisher = "us"
ref = "the wiki"
status = "read"
[[chip]]
id = "acme/fast-1"
name = "Acme Fast 1"
arch = "one"
units = 96
clock = { boost = 1800 }
pci = ["aaaa:0001"]
"""

VENDOR = """
[family]
title = "Gamma"
vendor = "gamma"
source = ["gamma-book"]
[source.gamma-book]
title = "Datasheet"
publisher = "Gamma"
ref = "gamma.example"
status = "read"
[arch.gamma1]
name = "Gamma 1"
family = "gamma"
vendor = "gamma"
unit = "tile"
source = ["gamma-book"]
confidence = "recalled"
rates = { "int8.matrix.int32" = 1000 }
[[chip]]
id = "gamma/g1"
name = "Gamma G1"
kind = "npu"
arch = "gamma1"
units = 10
clock = { boost = 1000 }
pci = ["cccc:0001"]
"""


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Installs a data-only distribution into a folder that serves as the path."""

    def install(text: str, name: str = "gamma", module: str = "", create: bool = True) -> Path:
        site = tmp_path / "site"
        info = site / f"probe_{name}-1.2.dist-info"
        info.mkdir(parents=True)
        value = module or f"{name}_chips"
        (info / "entry_points.txt").write_text(f"[probe_core.chipdb.v1]\n{name} = {value}\n")
        if create:
            (site / f"{name}_chips").mkdir()
            (site / f"{name}_chips" / "chips.toml").write_text(text)
        return site

    return install


def opened(make: Make, data: Path, site: Path, **options: object) -> Database:
    return make(data, packages=True, path=[str(site)], **options)


def test_a_vendor_package_adds(make: Make, data: Path, pack: Pack) -> None:
    db = opened(make, data, pack(VENDOR))
    chip = db.match(pci="cccc:0001").chip
    assert chip is not None
    assert (chip.id, chip.origin, chip.units) == ("gamma/g1", "package:probe_gamma 1.2", 10)
    assert [peak.tflops for peak in chip.peaks()] == [pytest.approx(10)]
    assert db.source("gamma-book") is not None
    assert db.problems == ()
    assert db.match(pci="aaaa:0001").chip is not None


def test_names_are_read_ahead_for_the_table_that_has_the_rules_alone(
    make: Make, data: Path, pack: Pack, tmp_path: Path
) -> None:
    (tmp_path / "ours.toml").write_text(SITE)
    site, _, package = opened(
        make, data, pack(VENDOR), extra=(str(tmp_path / "ours.toml"),)
    ).tables()
    for table, name in ((site, "Acme Fast 1"), (package, "Gamma G1")):
        assert table.ids(f"n:{name.lower()}")
        assert table.index.find(f"o:{name}") is None


def test_a_package_may_not_redefine_somebody_elses_chip(make: Make, data: Path, pack: Pack) -> None:
    stolen = VENDOR.replace('"gamma"', '"acme"').replace("gamma/g1", "acme/fast-1")
    db = opened(make, data, pack(stolen))
    chip = db.chip("acme/fast-1")
    assert chip is not None
    assert chip.units == 100
    assert db.match(pci="cccc:0001").chip is None
    (problem,) = db.problems
    assert problem == (
        "probe_gamma 1.2: chips.toml: chip 'acme/fast-1': id: the namespace 'acme' belongs to "
        "built; use a namespace of your own; a site file may override"
    )


def test_a_package_may_not_take_keys_and_names(make: Make, data: Path, pack: Pack) -> None:
    grabbing = VENDOR.replace('["cccc:0001"]', '["aaaa:0001", "cccc:0001"]').replace(
        "Gamma G1", "Acme Fast OEM"
    )
    db = opened(make, data, pack(grabbing))
    match = db.match(pci="aaaa:0001")
    assert match.chip is not None
    assert match.chip.id == "acme/fast-1"
    named = db.match(name="Acme Fast OEM")
    assert named.chip is not None
    assert named.chip.id == "acme/fast-oem"
    assert db.match(pci="cccc:0001").chip is not None
    assert [problem.split(": ")[3] for problem in db.problems] == ["p:aaaa:0001", "n:acme fast oem"]


def test_a_sites_chip_of_a_built_ones_name_disagrees_with_its_id(
    make: Make, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "ours.toml").write_text(
        SITE.replace("acme/fast-1", "acme/ours").replace("aaaa:0001", "aaaa:0009")
    )
    db = make(data, extra=(str(tmp_path / "ours.toml"),))
    match = db.match(pci="aaaa:0001", name="Acme Fast 1")
    assert match.chip is not None
    assert (match.chip.id, match.confidence) == ("acme/fast-1", "medium")
    assert len(match.conflicts) == 1


def test_two_packages_of_one_namespace(make: Make, data: Path, pack: Pack) -> None:
    pack(VENDOR)
    site = pack(VENDOR.replace("gamma/g1", "gamma/g2"), name="later")
    db = opened(make, data, site)
    assert db.chip("gamma/g1") is not None
    assert db.chip("gamma/g2") is None
    assert any("the namespace 'gamma' belongs to probe_gamma 1.2" in text for text in db.problems)


def test_two_packages_that_share_a_key_are_ambiguous(make: Make, data: Path, pack: Pack) -> None:
    pack(VENDOR)
    other = VENDOR.replace('"gamma"', '"delta"').replace("gamma/g1", "delta/d1")
    site = pack(other.replace("arch.gamma1", "arch.delta1").replace("G1", "D1"), name="delta")
    db = opened(make, data, site)
    match = db.match(pci="cccc:0001")
    assert match.chip is None
    assert [chip.id for chip in match.candidates] == ["delta/d1", "gamma/g1"]
    assert any("'gamma/g1': p:cccc:0001: it means delta/d1 too" in text for text in db.problems)


def test_one_bad_value_leaves_the_rest(make: Make, data: Path, pack: Pack) -> None:
    bad = VENDOR.replace("units = 10", "units = -5\nspeed = 3").replace(
        "boost = 1000", "boost = nan"
    )
    db = opened(make, data, pack(bad))
    chip = db.match(pci="cccc:0001").chip
    assert chip is not None
    assert (chip.name, chip.units, chip.clock.boost, chip.peaks()) == ("Gamma G1", None, None, ())
    assert [text.split(": ")[3] for text in db.problems] == ["units", "speed", "clock.boost"]


def test_a_list_in_the_place_of_a_table_goes(make: Make, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE + 'explain = ["why"]\n')
    db = make(data, extra=(str(path),))
    chip = db.match(pci="aaaa:0001").chip
    assert chip is not None
    assert "explain" in db.problems[0]


def test_a_broken_package_hides_nobody(make: Make, data: Path, pack: Pack) -> None:
    pack("this is [ no toml", name="broken")
    (pack(VENDOR) / "bad.dist-info").mkdir()
    site = pack("", name="away", create=False)
    site_bad = pack("", name="odd", module="no package!", create=False)
    assert site == site_bad
    db = opened(make, data, site)
    assert db.match(pci="cccc:0001").chip is not None
    text = "\n".join(db.problems)
    assert "probe_broken 1.2: chips.toml: is no TOML" in text
    assert "probe_away 1.2: away: its package 'away_chips' is not on the path" in text
    assert "its value 'no package!' is no package name" in text


def test_no_code_of_a_package_runs(make: Make, data: Path, pack: Pack) -> None:
    site = pack(VENDOR)
    (site / "gamma_chips" / "__init__.py").write_text("raise SystemExit('imported')")
    assert opened(make, data, site).match(pci="cccc:0001").chip is not None


def test_the_host_may_refuse_a_file(make: Make, data: Path, pack: Pack) -> None:
    db = opened(make, data, pack(VENDOR), accept=lambda path: "somebody else may write it")
    assert db.match(pci="cccc:0001").chip is None
    assert db.problems == (
        "probe_gamma 1.2: chips.toml: somebody else may write it; see the host's policy",
    )


def test_a_huge_file_is_left_out(make: Make, data: Path, pack: Pack) -> None:
    site = pack(VENDOR)
    with open(site / "gamma_chips" / "huge.toml", "wb") as file:
        file.truncate(2**30)  # a sparse gibibyte: nothing of it is read
    db = opened(make, data, site)
    assert db.match(pci="cccc:0001").chip is not None
    assert db.problems == (
        "probe_gamma 1.2: huge.toml: is larger than 524288 bytes; split it into families",
    )


def test_too_many_chips_and_too_deep(
    make: Make, data: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_CHIPS", 5)
    chip = VENDOR[VENDOR.index("[[chip]]") :]
    many = VENDOR + "".join(chip.replace("gamma/g1", f"gamma/h{n}") for n in range(5))
    db = opened(make, data, pack(many))
    assert db.problems == ("probe_gamma 1.2: chips.toml: has 6 chips; write at most 5 a file",)
    deep = pack("x = " + "[" * 20 + "]" * 20, name="deep")
    assert "nests deeper than 8" in opened(make, data, deep).problems[0]


def test_a_site_file_overrides(make: Make, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    db = make(data, extra=(str(path),))
    chip = db.match(pci="aaaa:0001").chip
    assert chip is not None
    assert (chip.units, chip.origin, chip.sources) == (96, f"site:{path}", ("ours",))
    assert db.match(pci="aaaa:0002").chip is not None
    assert db.problems == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "cannot be read: No such file or directory"), ("a = ", "is no TOML"),
     ("[[chip]]\nid = 'x'", "is missing"), ("\x00", "is no TOML"),
     ("a = " + "9" * 5000, "is no TOML: Exceeds the limit"),
     ("[[chip]]\nunits = 0x" + "f" * 5000, "has a whole number of more than 64 bits"),
     ("a = [-9223372036854775809]", "has a whole number of more than 64 bits"),
     ("a" + ".a" * 100_000 + " = 1", "has a line with more than 100 dots; write shorter keys")],
)  # fmt: skip
def test_a_bad_site_file_is_a_problem_and_no_failure(
    make: Make, data: Path, tmp_path: Path, text: str | None, problem: str
) -> None:
    path = tmp_path / "site.toml"
    if text is not None:
        path.write_text(text)
    db = make(data, extra=(str(path),))
    assert db.match(pci="aaaa:0001").chip is not None
    assert problem in "\n".join(db.problems)
    assert str(path) in db.problems[0]


def test_a_site_file_hides_no_chip_with_the_same_units(
    make: Make, data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE.replace("acme/fast-1", "acme/own").replace("units = 96", "units = 90"))
    match = make(data, extra=(str(path),)).match(arch="one", units=90)
    assert [chip.id for chip in match.candidates] == ["acme/own", "acme/fast-oem"]


def test_without_extras_no_parser_is_loaded(db: Database) -> None:
    assert db.problems == ()
    assert db.tables()[0].origin == "built"


PUBLISHER = VENDOR.replace('"gamma"', '"acme"').replace("gamma/g1", "acme/g1")
CONSENT = '[publishers]\nProbe_Gamma = ["acme"]\n'


def test_a_publisher_adds_to_its_own_vendors_namespace(
    make: Make, data: Path, pack: Pack, tmp_path: Path
) -> None:
    """Declared in chipdb's list, by the distribution's name in any spelling."""
    (data / "publishers").mkdir()
    (data / "publishers/publishers.toml").write_text('"probe.gamma" = ["acme"]\n')
    db = opened(make, data, pack(PUBLISHER.replace("cccc:0001", "aaaa:0042")))
    match = db.match(pci="aaaa:0042")
    assert match.chip is not None
    assert (match.chip.id, match.chip.vendor) == ("acme/g1", "acme")
    assert db.problems == ()


def test_a_users_own_file_is_consent(make: Make, data: Path, pack: Pack, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(CONSENT)
    package = pack(PUBLISHER)
    db = opened(make, data, package, extra=(str(site),))
    assert db.chip("acme/g1") is not None
    assert db.problems == ()
    site.write_text(CONSENT.replace("acme", "beta"))
    db = opened(make, data, package, extra=(str(site),))
    assert db.chip("acme/g1") is None
    assert "the namespace 'acme' belongs to built" in db.problems[0]


def test_a_publisher_redefines_nothing_and_takes_nothing(
    make: Make, data: Path, pack: Pack, tmp_path: Path
) -> None:
    site = tmp_path / "site.toml"
    site.write_text(CONSENT)
    text = PUBLISHER.replace("acme/g1", "acme/fast-1") + PUBLISHER[
        PUBLISHER.index("[[chip]]") :
    ].replace("cccc:0001", "aaaa:0002")
    db = opened(make, data, pack(text), extra=(str(site),))
    assert db.match(pci="aaaa:0001").chip.units == 100
    assert db.match(pci="aaaa:0002").chip.id == "acme/fast-1-8gb"
    problems = "\n".join(db.problems)
    assert "chip 'acme/fast-1': id: the chip is defined already" in problems
    assert "chip 'acme/g1': p:aaaa:0002: it already means acme/fast-1-8gb" in problems


def test_a_package_lists_no_publishers(make: Make, data: Path, pack: Pack) -> None:
    db = opened(make, data, pack(CONSENT + PUBLISHER))
    assert db.chip("acme/g1") is None
    assert any("only a site's own file may list publishers" in problem for problem in db.problems)


def test_a_package_claims_no_pci_id_of_another_vendor(make: Make, data: Path, pack: Pack) -> None:
    db = opened(make, data, pack(VENDOR.replace('"cccc:0001"', '"cccc:0001", "aaaa:7777"')))
    assert db.match(pci="cccc:0001").chip.id == "gamma/g1"
    assert db.match(pci="aaaa:7777").chip is None
    (problem,) = db.problems
    assert problem == (
        "probe_gamma 1.2: chips.toml: chip 'gamma/g1': p:aaaa:7777: the PCI vendor id aaaa is that "
        "of acme; list PCI ids of your own vendor id alone"
    )


def grabbing(**keys: str) -> str:
    """The package, with other values for some fields of its chip."""
    chip = {"name": '"Gamma G1"', "pci": '["cccc:0001"]', **keys}
    head, _, _ = VENDOR.partition("[[chip]]")
    fields = "".join(f"{key} = {value}\n" for key, value in chip.items())
    return f'{head}[[chip]]\nid = "gamma/g1"\nkind = "npu"\narch = "gamma1"\nunits = 10\n{fields}'


@pytest.mark.parametrize(
    ("alias", "owner"),
    [
        ("RTX4090", "nvidia/geforce-rtx-4090"),
        ("4090 Mobile", "nvidia/geforce-rtx-4090-laptop-gpu"),
        ("p5.48xlarge", "nvidia/h100-sxm5-80gb"),
        ("tpu-v6e-8", "google/tpu-v6e"),
        ("GRID A100D-20C", "nvidia/a100-80gb-pcie"),
        ("A100 PCIe", ""),
    ],
)
def test_a_package_takes_no_spelling_that_means_another_chip(
    pack: Pack, alias: str, owner: str
) -> None:
    """Not only the exact name: the rules of spelling would find the package's chip first."""
    site = pack(grabbing(aliases=f'["{alias}"]'))
    db = probe_chipdb.load(path=[str(site)])
    match = db.match(name=alias)
    answers = [chip.id for chip in (match.chip, match.parent, *match.candidates) if chip]
    assert "gamma/g1" not in answers
    assert not owner or answers == [owner]
    (problem,) = db.problems
    assert "it already means" in problem
    assert db.match(name="Gamma G1").chip is not None


def test_a_package_whose_name_is_taken_keeps_its_ids(pack: Pack) -> None:
    db = probe_chipdb.load(path=[str(pack(grabbing(name='"RTX4090"')))])
    assert db.match(name="RTX4090").chip.id == "nvidia/geforce-rtx-4090"
    assert db.match(pci="cccc:0001").chip.id == "gamma/g1"


def test_a_package_takes_no_name_of_many(pack: Pack) -> None:
    db = probe_chipdb.load(path=[str(pack(grabbing(name='"Radeon Graphics"')))])
    assert db.match(name="Radeon Graphics").chip is None
    (problem,) = db.problems
    assert problem.endswith("n:radeon graphics: it names no product; remove it")


@pytest.mark.parametrize("register", ["arm:0xa867", "arm:0x0/0x0", "qualcomm:0x43059999"])
def test_a_package_takes_no_register_of_another_vendor(pack: Pack, register: str) -> None:
    site = pack(grabbing(gpu_id=f'["{register}"]'))
    db = probe_chipdb.load(path=[str(site)])
    match = db.match(gpu_id=register.partition("/")[0])
    assert match.chip is None or match.chip.vendor == "arm"
    (problem,) = db.problems
    assert f"g:{register}" in problem


def test_ids_beside_a_refused_one_stay(pack: Pack) -> None:
    ids = {
        "pci": '["cccc:0001", "10de:2684"]',
        "dt": '["gamma,g1", "arm,mali-next"]',
        "gpu_id": '["gamma:0x7", "arm:0xa867"]',
    }
    db = probe_chipdb.load(path=[str(pack(grabbing(**ids)))])
    for match in (
        db.match(pci="cccc:0001"), db.match(dt=["gamma,g1"]), db.match(gpu_id="gamma:0x7"),
    ):  # fmt: skip
        assert match.chip is not None
        assert match.chip.id == "gamma/g1"
    assert sorted(problem.split(": ")[3] for problem in db.problems) == [
        "d:arm,mali-next", "g:arm:0xa867", "p:10de:2684",
    ]  # fmt: skip


def test_a_package_defines_no_architecture_that_is_there(
    make: Make, data: Path, pack: Pack
) -> None:
    db = opened(make, data, pack(VENDOR.replace("[arch.gamma1]", "[arch.one]")))
    assert db.arch("one").name == "One"
    assert db.problems[0] == (
        "probe_gamma 1.2: chips.toml: arch 'one': arch: the architecture is defined already; give"
        " yours another name"
    )


def test_a_packages_architecture_answers_for_its_own_hardware_alone(pack: Pack) -> None:
    """`arch_for` would derive an unknown NVIDIA GPU's peaks from a stranger's rates."""
    keys = {
        "compute_capability": '["13.0"]',
        "gfx": '["gfx1399"]',
        "pci": '["10de:2330"]',
        "gpu_id": '["arm:0x1234"]',
        "dt": '["arm,mali-valhall-csf"]',
    }
    match = "[arch.gamma1.match]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
    site = pack(VENDOR.replace("[[chip]]", match + "[[chip]]"))
    db = probe_chipdb.load(path=[str(site)])
    facts = [
        {"compute_capability": "13.0"}, {"gfx": "gfx1399"}, {"pci": "10de:2330"},
        {"gpu_id": "arm:0x1234"},
    ]  # fmt: skip
    assert [db.arch_for(**fact)[0] for fact in facts] == [None] * len(facts)
    assert [problem.split(": ")[3] for problem in db.problems] == [f"match.{key}" for key in keys]


def test_a_packages_architecture_answers_for_its_own_hardware(pack: Pack) -> None:
    own = '[arch.gamma1.match]\npci = ["cccc:0001"]\ndt = ["gamma,g1"]\n'
    db = probe_chipdb.load(path=[str(pack(VENDOR.replace("[[chip]]", own + "[[chip]]")))])
    assert db.problems == ()
    assert db.arch_for(pci="cccc:0001")[0].id == db.arch_for(dt=("gamma,g1",))[0].id == "gamma1"


@pytest.mark.parametrize("extra", [[3], [None], 3, [b"nope"], "nope", Path("nope")])
def test_what_is_no_path_is_a_problem_and_no_failure(extra: object) -> None:
    db = probe_chipdb.load(extra=extra, packages=False)  # type: ignore[arg-type]
    (problem,) = db.problems
    assert "cannot be read: No such file or directory" in problem


def test_one_path_alone_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(VENDOR)
    for extra in (path, str(path), [path]):
        db = probe_chipdb.load(extra=extra, packages=False)  # type: ignore[arg-type]
        assert db.chip("gamma/g1") is not None
    assert probe_chipdb.load(extra=None, packages=False).problems == ()  # type: ignore[arg-type]
