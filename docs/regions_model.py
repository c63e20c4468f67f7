"""The generated parts about the report: its types, what a prober may report, and the rooms."""

from __future__ import annotations

import tomllib

import source
from blocks import file_of, function, table
from regions_doctor import plain_sentence
from report_schema import noun_of, sentence
from typed import VIEWS

from probe_core.model.causes import Cause
from probe_core.model.device import ALLOWED, FIELDS
from probe_core.model.field import Field
from probe_core.model.parts import ECC, LINK, PCI, POWER, SHARE, STEP

__all__ = ["causes", "drivernodes", "report", "rooms", "sighting", "tables"]


_TYPES = "Report Node NodeMemory Device ChipRef Memory Peak Outcome Decision Finding".split()


def report() -> str:
    """Every field of every type of the report, with its unit."""
    from probe_core import model

    names = dict.fromkeys([*_TYPES, *(n for n in model.__all__ if n[0].isupper())])
    return "\n\n".join(_type(name, file_of(getattr(model, name))) for name in names)


def _type(name: str, path: str) -> str:
    node = source.classes(path)[name]
    rows = table(
        ("field", "type", "unit", "meaning"),
        (
            (f"`{one}`", f"`{kind}`", VIEWS[name][one].unit, f"{sentence(VIEWS[name][one])}.")
            for one, kind in source.attributes(node).items()
        ),
    )
    methods = [function(one, f"{name}.", 4) for one in source.functions(path, name)]
    return "\n\n".join([f"### {name}", source.docstring(node), rows, *methods])


def sighting() -> str:
    """Every field that a prober may report of a device, with what its value must be."""
    rows = [
        (f"`{name}`", _noun(field), sentence(field))
        for name, field in FIELDS.items()
        if field.reported
    ]
    return table(("field", "value", "meaning"), rows)


_TABLES = {
    "memory": VIEWS["Memory"],
    "pci": PCI,
    "share": SHARE,
    "allowed": ALLOWED,
    "power": POWER,
    "ecc": ECC,
    "links": LINK,
    "step_facts": STEP,
}


def tables() -> str:
    """The fields of the tables inside a sighting."""
    parts = []
    for name, fields in _TABLES.items():
        rows = [(f"`{key}`", _noun(field), sentence(field)) for key, field in fields.items()]
        parts.append(f"### `{name}`\n\n" + table(("key", "value", "meaning"), rows))
    return "\n\n".join(parts)


def _noun(field: Field) -> str:
    if field.fields is not None and field.single:
        return "a table, see below"
    return noun_of(field.value)


def causes() -> str:
    """Every cause that breaks a step, with its effect, how to see it by hand, and its fix."""
    from probe_core.model.causes import CAUSES
    from probe_core.model.ids import STEPS

    parts = []
    for step in STEPS:
        rows = [
            (
                f"`{cause.code}`",
                cause.state,
                cause.severity,
                *_sentences(cause),
            )
            for cause in CAUSES.values()
            if cause.step == step
        ]
        columns = ("code", "state", "severity", "meaning", "verify by hand", "fix")
        parts.append(f"### `{step}`\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def _sentences(cause: Cause) -> tuple[str, str, str]:
    meaning, check, fix = map(plain_sentence, (cause.meaning, cause.check, cause.fix))
    return meaning, check, fix


def drivernodes() -> str:
    """The device nodes of each driver outside of GPUs, with their sources."""
    from probe_core.readiness.driver_nodes import ROWS

    rows = []
    for row in ROWS:
        own = dict.fromkeys([*(form for _, form in row.index), *row.patterns])
        paths = [*row.shared, *own]
        rows.append(
            (
                row.name,
                ", ".join(f"`{driver}`" for driver in row.drivers),
                ", ".join(f"`{path.replace('#', 'N')}`" for path in paths),
                f"`{row.group}`" if row.group else "not known",
                plain_sentence(row.container),
                plain_sentence(row.source),
            )
        )
    columns = ("accelerator", "kernel driver", "nodes", "group", "in a container", "source")
    return table(columns, rows)


def rooms() -> str:
    """The layers of the core, from the contract that the linter holds the code to."""
    project = tomllib.loads((source.ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one.get("containers") == ["probe_core"])
    lines = (layer.split(" | ") for layer in layers)
    return "\n".join("- " + ", ".join(f"`{room}`" for room in rooms) for rooms in lines)
