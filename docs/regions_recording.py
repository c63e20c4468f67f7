"""The generated parts about recordings: what is kept, with which bounds and masks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import source
from blocks import class_text, file_of, function, table

__all__ = ["kept", "limits", "masks", "recordings"]


def recordings() -> str:
    """The calls that read recorded machines, and their classes."""
    from probe_core.recording.archives import read
    from probe_core.recording.document import Recording
    from probe_core.recording.opening import open_machine, unpack
    from probe_core.recording.paths import BadRecording

    parts = []
    for call in (open_machine, read, unpack):
        found = source.functions(file_of(call))
        parts += [function(one) for one in found if one.name == call.__name__]
    path = file_of(Recording)
    parts.append(class_text(path, "Recording"))
    parts += [function(one, "Recording.") for one in source.functions(path, "Recording")]
    error = source.classes(file_of(BadRecording))["BadRecording"]
    return "\n\n".join([*parts, f"### `BadRecording`\n\n{source.docstring(error)}"])


def limits() -> str:
    """Every limit of a recording."""
    from probe_core.recording import paths

    told = source.constants("probe_core/recording/paths.py")
    limits = [(text, getattr(paths, name)) for name, text in told.items()]
    rows = [(text, f"{limit:,}") for text, limit in limits if isinstance(limit, int)]
    return table(("what is counted", "at most"), rows)


def kept() -> str:
    """What `probe record` keeps, prober by prober, in part and not at all, and which variables."""
    from probe_core.probers.records import IN_PART, LEFT_OUT, RECORDS
    from probe_core.recording.gather import VARIABLES

    own = [_declaration(f"probe-core, {name}", records) for name, records in RECORDS.items()]
    plugins = []
    for manifest in sorted(source.ROOT.glob("plugins/*/src/*/prober.json")):
        owner = f"probe-{manifest.parents[2].name}"
        for name, fields in json.loads(manifest.read_text("utf-8"))["probers"].items():
            if records := fields.get("records"):
                plugins.append(_declaration(f"{owner}, {name}", records))
    by_part = "### Of every Linux machine, in part\n\n" + _by_text("what is kept", IN_PART)
    missing = "### Read, and never kept\n\n" + _by_text("why", LEFT_OUT)
    variables = "### Variables\n\nOf the environment, what decides which devices a program sees.\n"
    return "\n\n".join([*own, *plugins, by_part, missing, variables, _list(VARIABLES)])


def _by_text(heading: str, table_of_paths: Mapping[str, str]) -> str:
    """Return a table with a row for each text; paths that share one stand in one row."""
    paths: dict[str, list[str]] = {}
    for path, text in table_of_paths.items():
        paths.setdefault(text, []).append(f"`{path}`")
    return table(("path", heading), [(", ".join(group), text) for text, group in paths.items()])


def _declaration(title: str, records: Mapping[str, Any]) -> str:
    parts = [f"### {title}"]
    parts += _files("Of every machine.", records)
    for bus, kind in (("pci", "PCI"), ("platform", "platform")):
        for rule in records.get(bus, []):
            parts += _files(_devices_of(kind, rule), rule)
    if records.get("nodes"):
        parts += ["Device nodes, marked and never opened.", _list(records["nodes"])]
    if records.get("answers"):
        parts.append("What it answered, for it queries more than files.")
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
    from probe_core.recording.anonymise import KINDS

    rows = [(f"`{name}`", " ".join(str(kind.__doc__).split())) for name, kind in KINDS.items()]
    return table(("mask", "what it replaces"), rows)
