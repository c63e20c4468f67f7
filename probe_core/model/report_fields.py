"""The tables of a report's own fields: outcomes, decisions, findings, the whole."""

from __future__ import annotations

from probe_core.model.field import Field as F
from probe_core.model.field import by_name
from probe_core.model.fields import FIELDS
from probe_core.model.findings import SEVERITIES
from probe_core.model.node_fields import NODE
from probe_core.model.values import Choice, Flag, FreeTable, Items, Number, TableOf, Text

__all__ = [
    "DECISION",
    "FALLBACK",
    "FINDING",
    "OUTCOME",
    "REPORT",
]

BYTES = Number(whole=True)
COUNT = Number(whole=True)
FALLBACK = Choice("no-accelerator", "degraded")

OUTCOME = by_name(
    (
        F("prober", Text(), "Its name", always=True, nullable=False, empty=""),
        F(
            "distribution",
            Text(),
            "The distribution that ships it, with version",
            always=True,
            nullable=False,
            empty="",
        ),
        F("status", Text(), "How it ended", always=True, nullable=False, empty=""),
        F(
            "reason",
            Text(least=1),
            "Why; never null unless the status is ok",
            always=True,
        ),
        F(
            "partial",
            Flag(),
            "Whether devices arrived before it failed",
            always=True,
            nullable=False,
            empty=False,
        ),
        F(
            "devices",
            COUNT,
            "How many devices it reported",
            unit="count",
            always=True,
            nullable=False,
            empty=0,
        ),
        F(
            "elapsed_ms",
            Number(),
            "How long it took",
            unit="milliseconds",
            always=True,
            nullable=False,
            empty=0,
        ),
        F("code", Text(), "The prober's own word for why, for scripts"),
        F("fix", Text(), "What would help"),
        F(
            "phase",
            Choice("start", "import", "call", "cleanup"),
            "Where it failed: start (its process), import (its module), call (its hook) or cleanup"
            " (after all its devices were read)",
        ),
        F("signal", Text(), "Name of the signal that killed its process: SIGSEGV"),
        F(
            "exit_status",
            COUNT,
            "Status with which its process exited before it had answered",
            unit="number",
        ),
        F(
            "stuck_at",
            Text(),
            "The line that ran at the deadline: /path/prober.py:5 in probe_devices",
        ),
        F(
            "avoided",
            Items(Text()),
            "Devices over which its process hung, died or raised; another process read the others",
        ),
        F("replayed", Flag(), "Whether it is the answer of a recording, and no process ran"),
        F(
            "stderr",
            Items(Text()),
            "The last lines that it wrote, where it failed or `verbose` is set",
            nullable=False,
            empty=[],
        ),
    )
)

DECISION = by_name(
    (
        F("prober", Text(), "Its name", always=True, nullable=False, empty=""),
        F(
            "distribution",
            Text(),
            "The distribution that ships it, with version",
            always=True,
            nullable=False,
            empty="",
        ),
        F("selected", Flag(), "Whether it was run", nullable=False, always=True, empty=False),
        F(
            "cause",
            Text(),
            "Word for scripts: blocked, when, api, shadowed, trust, sealed, active, veto,"
            " unkillable, rejected, no-child",
        ),
        F("reason", Text(), "Why it was not run; null when it was", always=True),
        F(
            "priority",
            COUNT,
            "Its priority from 1 to 999, after the settings",
            unit="1 to 999",
            nullable=False,
            empty=100,
        ),
        F(
            "deadline_s",
            Number(1e-6),
            "Its deadline, after the settings",
            unit="seconds",
            nullable=False,
            empty=5.0,
        ),
        F("active", Flag(), "Whether it opens devices", nullable=False, empty=False),
        F("setting", Text(), "The setting that kept it from running, by its name in the settings"),
        F("variable", Text(), "The environment variable that set it"),
    )
)

FINDING = by_name(
    (
        F(
            "code",
            Text(least=1),
            "Word for scripts: see the core's list of codes; probers add theirs",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "severity",
            Choice(*SEVERITIES),
            "info, warning or error",
            always=True,
            nullable=False,
            empty="info",
        ),
        F("what", Text(least=1), "What was found", always=True, nullable=False, empty=""),
        F("why", Text(least=1), "Its cause", always=True, nullable=False, empty=""),
        F("fix", Text(least=1), "What would help", always=True, nullable=False, empty=""),
        F("device", Text(), "Id of the device it is about", always=True),
        F(
            "prober",
            Text(),
            "Name of the prober it is about, or that reported it",
            always=True,
            added=True,
        ),
        F(
            "setting",
            Text(),
            "The setting that matters, by its name in the settings",
            always=True,
            added=True,
        ),
        F("variable", Text(), "The environment variable that matters", always=True, added=True),
        F("step", Text(), "The step of readiness that it breaks", always=True, added=True),
        F(
            "evidence",
            Text(),
            "What it was read from: a path and its content, an error code, a library's own text",
            always=True,
            added=True,
        ),
    )
)

REPORT = by_name(
    (
        F(
            "schema",
            COUNT,
            "Number of this schema; raised only when a field changes its meaning or goes away",
            unit="number",
            always=True,
            nullable=False,
        ),
        F(
            "probe_core",
            Text(),
            "Version of the core that made the report",
            always=True,
            nullable=False,
            empty="",
        ),
        F("chipdb", Text(), "Version of the chip data; null without chipdb", always=True),
        F(
            "node",
            FreeTable(),
            "The machine itself",
            always=True,
            nullable=False,
            empty={},
            fields=NODE,
            shape="node",
        ),
        F("primary", Text(), "Id of the device to use first", always=True),
        F(
            "devices",
            Items(FreeTable(), least=1),
            "GPUs, other accelerators, CPUs, displays; a part follows its parent",
            always=True,
            nullable=False,
            empty=[],
            fields=FIELDS,
            shape="device",
        ),
        F(
            "outcomes",
            Items(FreeTable()),
            "How each prober's run ended",
            always=True,
            nullable=False,
            empty=[],
            fields=OUTCOME,
            shape="outcome",
        ),
        F(
            "decisions",
            Items(FreeTable()),
            "Which probers were run, and why the others were not",
            always=True,
            nullable=False,
            empty=[],
            fields=DECISION,
            shape="decision",
        ),
        F(
            "fallback",
            FALLBACK,
            "null when an accelerator is primary; no-accelerator when there is none; degraded when"
            " something failed, so that there may be one",
            always=True,
        ),
        F(
            "findings",
            Items(FreeTable()),
            "What a person should know, worst first",
            always=True,
            nullable=False,
            empty=[],
            fields=FINDING,
            shape="finding",
        ),
        F(
            "timings_ms",
            TableOf(Number()),
            "Milliseconds per step, and their total",
            unit="milliseconds",
            always=True,
            nullable=False,
            empty={},
        ),
        F(
            "asked",
            TableOf(FreeTable()),
            "Runtime to what it itself showed, where the user allowed to open devices",
        ),
    )
)
"""Name to field, in the document's order."""
