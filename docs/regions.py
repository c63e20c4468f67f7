"""The generated parts of the reference: functions that return Markdown made from the code."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

# Made from this checkout, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import source
from authors import author, checks, hooks, kit, machine, sysfs, tree
from sections import function, section, table
from typed import VIEWS

from probe_core.model.field import Field
from probe_core.model.fields import FIELDS
from probe_core.model.parts import LINK, MEMORY, PCI, SHARE
from probe_core.model.report_fields import REPORT
from probe_core.model.schema import sentence

__all__ = ["REGIONS"]


def settings() -> str:
    """Every setting: argument of `probe()`, option, variable, kind and meaning."""
    from probe_core.config import FILE_VARIABLE, SETTINGS

    rows = [
        (f"`{name}`", f"`--{name}`", f"`{variable}`", kind, meaning)
        for name, (kind, variable, meaning) in SETTINGS.items()
    ]
    rows.append(("`config`", "`--config`", f"`{FILE_VARIABLE}`", "path", "a TOML file of settings"))
    return table(("argument and key", "option", "variable", "kind", "meaning"), rows)


def statuses() -> str:
    """Every status that an outcome can have."""
    from probe_core.model.statuses import FAILURES, STATUSES

    rows = [
        (f"`{status}`", meaning, "yes" if status in FAILURES else "no")
        for status, meaning in STATUSES.items()
    ]
    return table(("status", "meaning", "the prober's failure"), rows)


def calls() -> str:
    """The public functions, apart from the author's contract."""
    import probe_core

    parts = []
    for name in probe_core.__all__:
        found = getattr(probe_core, name)
        if callable(found) and not isinstance(found, type) and found.__module__ != "probe_core.api":
            parts += [function(one) for one in source.functions(_home(found)) if one.name == name]
    return "\n\n".join(parts)


_TYPES = "Report Node NodeMemory Device ChipRef Memory Peak Outcome Decision Finding".split()


def report() -> str:
    """Every field of every type of the report, with its unit."""
    from probe_core import model

    names = dict.fromkeys([*_TYPES, *(n for n in model.__all__ if n[0].isupper())])
    return "\n\n".join(_type(name, _home(getattr(model, name))) for name in names)


def _home(thing: type | Callable[..., object]) -> str:
    """Return the file of a class or function, below the repository's root."""
    path = thing.__module__.replace(".", "/")
    return f"{path}/__init__.py" if (source.ROOT / path).is_dir() else f"{path}.py"


def _type(name: str, path: str) -> str:
    node = source.classes(path)[name]
    fields = source.attributes(node).items()
    rows = table(
        ("field", "type", "unit", "meaning"),
        (_field(name, field, kind, text) for field, (kind, text) in fields),
    )
    methods = [function(one, f"{name}.", 4) for one in source.functions(path, name)]
    return "\n\n".join([f"### {name}", source.docstring(node), rows, *methods])


def _field(owner: str, name: str, kind: str, text: str) -> tuple[str, str, str, str]:
    field = VIEWS.get(owner, REPORT).get(name)
    return f"`{name}`", f"`{kind}`", field.unit if field else "", text


def sighting() -> str:
    """Every field that a prober may report of a device, with what its value must be."""
    rows = [
        (f"`{name}`", _noun(field), sentence(field))
        for name, field in FIELDS.items()
        if field.reported
    ]
    return table(("field", "value", "meaning"), rows)


def tables() -> str:
    """The fields of the tables inside a sighting."""
    parts = []
    for name, fields in (("memory", MEMORY), ("pci", PCI), ("share", SHARE), ("links", LINK)):
        rows = [(f"`{key}`", _noun(field), sentence(field)) for key, field in fields.items()]
        parts.append(f"### `{name}`\n\n" + table(("key", "value", "meaning"), rows))
    return "\n\n".join(parts)


def _noun(field: Field) -> str:
    if field.fields is not None and field.single:
        return "a table, see below"
    return field.value.noun


def cli() -> str:
    """Every built-in command with its options; the options of all commands that probe, once."""
    from probe_core.cli import COMMANDS
    from probe_core.commands import add_probe_options

    options = _options(_actions(_parser(add_probe_options)))
    parts = [f"### Probing options\n\n{options}"]
    for name, (module, _, _) in COMMANDS.items():
        title = "probe" if name == "report" else f"probe {name}"
        parts.append(_command(title, f"probe_core.cli.{module}"))
    return "\n\n".join(parts)


def cluster() -> str:
    """The commands of probe-cluster with their options."""
    names = ("topology", "partition")
    return "\n\n".join(_command(f"probe {n}", f"probe_cluster.{n}_command") for n in names)


def contract() -> str:
    """What a command may import from `probe_core.commands`, classes first."""
    from probe_core import commands

    parts = []
    for name in sorted(commands.__all__):
        public = getattr(commands, name)
        path = _home(public)
        if isinstance(public, type):
            methods = [function(m, f"{name}.", 4) for m in source.functions(path, name)]
            parts.append("\n\n".join([section(path, name), *methods]))
        else:
            parts += [function(one) for one in source.functions(path) if one.name == name]
    return "\n\n".join(parts)


def _command(title: str, module: str) -> str:
    from probe_core.commands import add_probe_options

    command = import_module(module)
    shared = {action.dest for action in _actions(_parser(add_probe_options))}
    actions = _actions(_parser(command.add_arguments))
    own = [action for action in actions if action.dest not in shared or not _probes(actions)]
    probing = "\n\nAnd the [probing options](#probing-options)." if _probes(actions) else ""
    return f"### {title}\n\n{textwrap.fill(command.HELP, 100)}\n\n{_options(own)}{probing}"


def _probes(actions: Iterable[argparse.Action]) -> bool:
    """Return whether a command probes: the others have options of the same name (`--chipdb`)."""
    return "static" in {action.dest for action in actions}


def _parser(add: Callable[[argparse.ArgumentParser], None]) -> argparse.ArgumentParser:
    from probe_core.cli.parser import Parser

    parser = Parser(prog="probe", allow_abbrev=False, add_help=False)
    add(parser)
    return parser


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions


def _options(actions: Iterable[argparse.Action]) -> str:
    rows = [(f"`{_written(one)}`", one.help or "") for one in actions]
    return table(("argument", "meaning"), rows) if rows else "It takes no options of its own."


def _written(action: argparse.Action) -> str:
    """Return an argument as a person writes it: ``-n N``, ``--json``, ``NAME``."""
    values = "/".join(map(str, action.choices or ())) or str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return values
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {values}"


def recordings() -> str:
    """The calls that read recorded machines, and their classes."""
    parts = []
    for name, call in (("opening", ""), ("read", ""), ("unpack", ""), ("recording", "Recording")):
        path = f"probe_core/recording/{name}.py"
        found = source.functions(path, call or None)
        parts += [section(path, call)] if call else []
        parts += [function(one, f"{call}." if call else "") for one in found]
    error = source.classes("probe_core/recording/errors.py")["BadRecording"]
    return "\n\n".join([*parts, f"### `BadRecording`\n\n{source.docstring(error)}"])


def limits() -> str:
    """Every limit of a recording."""
    from probe_core.recording import limits as numbers

    told = source.constants("probe_core/recording/limits.py")
    rows = [(text, f"{getattr(numbers, name):,}") for name, text in told.items()]
    return table(("what is counted", "at most"), rows)


def kept() -> str:
    """What `probe record` keeps, prober by prober, and which variables."""
    from probe_core.probers.records import RECORDS
    from probe_core.recording.gather import VARIABLES

    own = [_declaration(f"probe-core, {name}", records) for name, records in RECORDS.items()]
    plugins = []
    for manifest in sorted(source.ROOT.glob("plugins/*/src/*/prober.json")):
        owner = f"probe-{manifest.parents[2].name}"
        for name, fields in json.loads(manifest.read_text("utf-8"))["probers"].items():
            if records := fields.get("records"):
                plugins.append(_declaration(f"{owner}, {name}", records))
    variables = "### Variables\n\nOf the environment, what decides which devices a program sees.\n"
    return "\n\n".join([*own, *plugins, variables, _list(VARIABLES)])


def _declaration(title: str, records: Mapping[str, Any]) -> str:
    parts = [f"### {title}"]
    parts += _files("Of every machine.", records)
    for bus, kind in (("pci", "PCI"), ("platform", "platform")):
        for rule in records.get(bus, []):
            parts += _files(_devices_of(kind, rule), rule)
    if records.get("nodes"):
        parts += ["Device nodes, marked and never opened.", _list(records["nodes"])]
    if records.get("cgroup"):
        parts += ["Of each control group of the process.", _list(records["cgroup"])]
    return "\n\n".join(parts)


def _files(title: str, table: Mapping[str, Any]) -> list[str]:
    masks = table.get("masks", {})
    lines = [f"{f}  [{masks[f]}]" if f in masks else f for f in table.get("files", [])]
    return [title, _list(lines)] if lines else []


def _list(lines: Iterable[str]) -> str:
    return "```text\n" + "\n".join(lines) + "\n```"


def _devices_of(kind: str, rule: Mapping[str, Any]) -> str:
    words = [f"Below each {kind} device"]
    if rule.get("pci_vendor"):
        words.append(f"of vendor {', '.join(rule['pci_vendor'])}")
    if rule.get("pci_class"):
        words.append(f"whose class begins with {', '.join(rule['pci_class'])}")
    if kind == "platform":
        words.append("that the device tree describes")
    title = " ".join(words)
    title += ", also while it sleeps" if rule.get("asleep") else ", while it is awake"
    if rule.get("only_if"):
        pairs = ", ".join(f"`{file}` is {text}" for file, text in rule["only_if"].items())
        title += f" and one of these holds: {pairs}"
    return f"{title}."


def masks() -> str:
    """Every kind of identity that a mask replaces."""
    from probe_core.recording.masks import KINDS

    rows = [(f"`{name}`", " ".join(str(kind.__doc__).split())) for name, kind in KINDS.items()]
    return table(("mask", "what it replaces"), rows)


def rooms() -> str:
    """Which room may import which, from the contracts that the linter holds the code to."""
    contracts = tomllib.loads((source.ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    imports: dict[str, list[str]] = {}
    for contract in contracts:
        if contract["type"] == "protected":
            for importer in contract["allowed_importers"]:
                imports.setdefault(importer, []).extend(contract["protected_modules"])
    rows = [
        (f"`{room}`", ", ".join(f"`{name}`" for name in names)) for room, names in imports.items()
    ]
    return table(("room", "may import"), sorted(rows))


REGIONS: dict[str, Callable[[], str]] = {
    one.__name__: one
    for one in (
        *(settings, statuses, hooks, author, calls, machine, report, cli, kit, checks),
        *(cluster, contract),
        *(sighting, tables, rooms),
        *(recordings, limits, kept, masks, tree, sysfs),
    )
}
"""Name of a region, as pages write it, to the function that makes it."""
