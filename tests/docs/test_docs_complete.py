"""Nothing that an author, a host or a script can use is undocumented."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import attrs
import docpages
import generate
import pytest
import regions
import sourcewords
import typed

import probe_core
from probe_core import api, config, hookspecs, isolation, machine, model, setting_values, sysfs
from probe_core.cli import COMMANDS
from probe_core.isolation import run
from probe_core.model import device, field, ids
from probe_core.model.findings import CODES
from probe_core.model.ids import SEVERITIES
from probe_core.recording import declared, paths
from probe_core.registry import prober

REFERENCE = docpages.DOCS / "reference"


def page(name: str) -> str:
    return docpages.text(REFERENCE / f"{name}.md")


def missing(words: object, text: str) -> list[str]:
    return sorted(word for word in set(words) if f"`{word}`" not in text)  # type: ignore[call-overload]


@pytest.mark.heavy
def test_what_is_generated_is_up_to_date() -> None:
    stale = [str(path.relative_to(docpages.DOCS.parent)) for path, _ in generate.outdated()]
    assert stale == [], "run `python docs/generate.py`"


def test_every_generated_part_is_on_a_page() -> None:
    texts = [path.read_text("utf-8") for path in docpages.pages()]
    assert {name for text in texts for name in regions.names(text)} == set(regions.REGIONS)


@pytest.mark.heavy
def test_every_generated_part_is_printed_alone() -> None:
    script = docpages.DOCS / "regions.py"
    command = [sys.executable, str(script), *regions.REGIONS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert [name for name in regions.REGIONS if regions.region(name) not in ran.stdout] == []
    assert subprocess.run([sys.executable, str(script), "cil"], timeout=60).returncode == 2


def test_a_page_of_the_repository_says_where_its_generated_parts_are() -> None:
    """Nothing that is made from the code stands in git, where two changes of it would collide."""
    for path in docpages.pages():
        text = path.read_text("utf-8")
        for name in regions.names(text):
            between = text.partition(f"<!-- begin generated: {name} -->\n")[2]
            sentence = " ".join(between.partition("<!-- end generated -->")[0].split())
            assert re.fullmatch(
                rf"\[The site\]\(\S+\) has .+ here, made from \[.+\]\(\S+\);"
                rf" `python docs/regions.py {name}` prints it\.",
                sentence,
            ), (path, name)
            assert regions.region(name) in docpages.text(path)


def test_every_number_of_the_report_has_a_unit() -> None:
    lacking = [
        f"{name}.{field.name}"
        for name in typed.VIEWS
        for field in attrs.fields(getattr(model, name))
        if {"int", "float"} & set(re.findall(r"\w+", str(field.type)))
        and not typed.VIEWS[name][field.name].unit
    ]
    assert lacking == []


@pytest.mark.heavy
def test_every_field_of_the_report_says_what_it_means() -> None:
    silent = [
        line
        for line in page("report").splitlines()
        if line.startswith("| `") and not line.split("|")[-2].strip()
    ]
    assert silent == []


def test_every_hook_is_documented() -> None:
    headings = [f"### `{name}`" for name in hookspecs.__all__]
    assert [heading for heading in headings if heading not in page("hooks")] == []


@pytest.mark.heavy
def test_every_setting_and_variable_is_documented() -> None:
    known = {*config.SETTINGS, *(spec.variable for spec in config.SETTINGS.values())}
    assert missing(known | sourcewords.variables(), page("settings")) == []


def test_every_kind_of_setting_is_explained() -> None:
    kinds = {spec.kind for spec in config.SETTINGS.values()}
    assert [kind for kind in sorted(kinds) if f"\n| {kind} |" not in page("settings")] == []


def test_every_status_and_cause_is_documented() -> None:
    causes = sourcewords.causes()
    assert {"blocked", "when", "veto", "no-child"} <= causes
    assert missing({*run.STATUSES, *causes}, page("outcomes")) == []


def test_every_failure_has_advice() -> None:
    rows = page("outcomes").split("## Statuses")[1].split("## Why a prober")[0]
    advice = rows.split("<!-- end generated -->")[1]
    assert missing(run.FAILURES, advice) == []


@pytest.mark.heavy
def test_every_code_of_unavailable_is_documented() -> None:
    codes = sourcewords.unavailable_codes()
    assert {"client-missing", "version-mismatch"} <= codes
    assert missing(codes, page("outcomes")) == []


def test_every_core_finding_has_a_section_that_starts_with_its_meaning() -> None:
    section = re.compile(r"^### ([a-z-]+)\n\n(.+?)(?=\n##|\Z)", re.M | re.S)
    sections = dict(section.findall(page("findings")))
    assert set(sections) == set(CODES)
    plain = {code: " ".join(text.split()) for code, text in sections.items()}
    wrong = [
        code
        for code, meaning in CODES.items()
        if not plain[code].lower().startswith(meaning.lower() + ".")
    ]
    assert wrong == []


@pytest.mark.heavy
def test_every_other_finding_of_the_core_is_documented() -> None:
    codes = sourcewords.finding_codes("probe_core/**/*.py")
    codes -= sourcewords.finding_codes("probe_core/testing/*.py")  # the kit's own, seen by no user
    assert {"order-unknown", "display-only"} <= codes
    assert missing(codes - set(CODES), page("findings")) == []


PLUGINS = sorted(path.name for path in (docpages.ROOT / "plugins").iterdir() if path.is_dir())


@pytest.mark.heavy
@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_finding_of_our_own_probers_is_documented_with_its_prober(plugin: str) -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|", page("findings"), re.M))
    codes = sourcewords.finding_codes(f"plugins/{plugin}/src/**/*.py") - set(CODES)
    told = {code for code, probers in rows.items() if plugin in probers.split(", ")}
    assert told == codes


@pytest.mark.heavy
def test_no_finding_is_documented_that_nobody_makes() -> None:
    made = sourcewords.finding_codes("probe_core/**/*.py", "plugins/*/src/**/*.py") | set(CODES)
    from probe_core.visibility import CODES as seen

    rows = re.findall(r"^\| `([a-z-]+)` \|", page("findings"), re.M)
    assert sorted(set(rows) - made - set(seen) - set(SEVERITIES)) == []


def test_every_field_of_a_sighting_is_documented() -> None:
    text = page("sighting")
    reported = [field for field in device.FIELDS.values() if field.reported]
    nested = [key for field in reported for key in field.fields or () if field.shape != "peak"]
    assert len(reported) > 25
    assert missing({*(field.name for field in reported), *nested, "memory_bytes"}, text) == []


def test_every_device_kind_is_documented() -> None:
    assert missing(ids.KINDS, page("sighting")) == []


def test_the_bounds_on_the_pages_are_those_of_the_code() -> None:
    assert (device.MIB, device.MAX_MEMORY) == (1 << 20, 64 << 40)
    assert "1 MiB to 64 TiB" in page("sighting")
    assert f"1 to {field.MAX_ITEMS} strong ids" in page("sighting")
    many = f"At most {isolation.MAX_DEVICES} devices\nand {isolation.MAX_FINDINGS} findings"
    assert many in page("hooks")
    assert f"above 0 and up to {setting_values.MAX_TIMEOUT_S:g}" in page("settings")
    assert f"above 0, to {prober.MAX_DEADLINE_S:g}" in page("manifest")
    assert f"{prober.FILE_LIMIT >> 10} KiB" in page("manifest")
    assert f"declares at most {declared.MAX_PATTERNS} patterns" in page("manifest")
    assert f"names at most {paths.MAX_MATCHES:,} files" in page("manifest")
    assert [root for root in paths.ROOTS if f"`{root[:-1]}`" not in page("manifest")] == []
    assert f"at most {machine.READ_LIMIT >> 20} MiB" in page("machine")


def test_every_key_of_a_manifest_is_documented() -> None:
    assert missing({*prober._CHECKS, *prober.WHEN_KEYS}, page("manifest")) == []
    assert missing({*declared.RECORDS_KEYS, *declared.DEVICE_KEYS}, page("manifest")) == []


def test_every_reserved_name_is_told_to_authors() -> None:
    text = (docpages.DOCS / "how-to/package-a-prober.md").read_text("utf-8")
    assert missing(prober.RESERVED, text) == []


def test_every_public_name_is_documented() -> None:
    text = page("python") + page("hooks")
    assert missing({*probe_core.__all__, *api.__all__}, text + "`API_VERSION`") == []
    assert "probe_core.api.API_VERSION" in text


def test_every_method_of_a_machine_is_documented() -> None:
    public = {n: v for n, v in vars(machine.Machine).items() if n[0] != "_"}
    methods = [name for name, value in public.items() if callable(value)]
    assert [n for n in methods if f"### `Machine.{n}`" not in page("machine")] == []
    attributes = [name for name in vars(machine.Machine()) if name[0] != "_"]
    assert [n for n in attributes if f"`machine.{n}`" not in page("machine")] == []


@pytest.mark.heavy
def test_everything_in_the_authors_toolkit_is_documented() -> None:
    text, silent = page("sysfs"), []
    for name in sysfs.__all__:
        module = importlib.import_module(f"probe_core.sysfs.{name}")
        assert f"## `probe_core.sysfs.{name}`" in text
        for public in module.__all__:
            thing = getattr(module, public)
            if callable(thing) and not thing.__doc__:
                silent.append(f"{name}.{public}")
            named = f"`{public}`" in text or f"`{name}.{public}`" in text
            assert named, f"probe_core.sysfs.{name}.{public} needs a docstring below it"
            for method, value in vars(thing).items() if isinstance(thing, type) else ():
                if method[0] != "_" and isinstance(value, property) and not value.__doc__:
                    silent.append(f"{name}.{public}.{method}")
    assert silent == []
    files = {path.stem for path in Path(sysfs.__file__).parent.glob("*.py")}
    assert files - {"__init__"} == set(sysfs.__all__)


def test_every_command_is_documented() -> None:
    names = ["probe" if name == "devices" else f"probe {name}" for name in COMMANDS]
    assert [name for name in names if f"\n### {name}\n" not in page("cli")] == []


def test_every_page_of_the_reference_is_on_the_first_page() -> None:
    index = (docpages.DOCS / "index.md").read_text("utf-8")
    names = [docpages.name(path) for path in docpages.pages() if path.name != "index.md"]
    assert [name for name in names if f"({name})" not in index] == []


def test_every_state_that_is_not_ready_has_a_heading_that_a_search_hits() -> None:
    states = page("cli").partition("## States")[2].partition("\n## ")[0]
    words = set(re.findall(r"^\| `([A-Za-z ]+)` \|", states, re.M))
    assert {"no driver", "hidden", "ready"} <= words
    text = docpages.text(docpages.DOCS / "how-to/why-is-my-gpu-not-used.md")
    assert words - {"ready"} - set(re.findall(r"^## (.+)$", text, re.M)) == set()


def test_every_room_of_the_core_is_on_the_architecture_page() -> None:
    page = docpages.text(docpages.DOCS / "explanation" / "architecture.md")
    rooms = re.findall(r"^\| `([a-z]+)` \| [^|]+ \| [^|]+ \|$", page, re.M)
    core = Path(probe_core.__file__).parent
    packages = {path.parent.name for path in core.glob("*/__init__.py")} - {"__pyinstaller"}
    assert sorted(rooms) == sorted(packages)
    tops = {path.stem for path in core.glob("*.py") if not path.stem.startswith("_")}
    assert [name for name in sorted(tops) if f"`{name}`" not in page] == []


def test_one_run_makes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made from something made is made after it."""
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_text("old")
    steps = (lambda: {source: "new"}, lambda: {copy: source.read_text()})
    monkeypatch.setattr(generate, "STEPS", steps)
    monkeypatch.setattr(generate, "DOCS", tmp_path / "docs")
    assert generate.main([]) == 0
    assert copy.read_text() == "new"
    assert generate.main(["--check"]) == 0
