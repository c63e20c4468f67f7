"""The tables of a device's readiness: its steps, and what probers report of them."""

from __future__ import annotations

from probe_core.model.field import Field as F
from probe_core.model.field import by_name
from probe_core.model.readiness import STATES, STATUSES, STEPS
from probe_core.model.values import Choice, FreeTable, Items, Rejected, Text, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json

__all__ = ["READINESS", "STEP", "StepFact"]

STEP = by_name(
    (
        F(
            "step",
            Choice(*STEPS),
            "Which link of the chain: hardware, driver, node, permission, library, responding,"
            " granted, visible or runtime",
            always=True,
            nullable=False,
            required=True,
        ),
        F(
            "status",
            Choice(*STATUSES),
            "ok, broken, unknown (with the reason as evidence) or not_applicable",
            always=True,
            nullable=False,
            empty="unknown",
        ),
        F(
            "evidence",
            Text(),
            "The fact that it rests on, with its place: a file and its content, an error code, an"
            " answer of a library",
            always=True,
        ),
        F("code", Text(), "Word for the cause, as findings have it", always=True),
        F("prober", Text(), "The prober that reported it; absent where the core read it itself"),
    )
)

READINESS = by_name(
    (
        F(
            "state",
            Choice(*STATES),
            "ready, limited (usable, but with less than it has), blocked or unknown",
            always=True,
            nullable=False,
            empty="unknown",
        ),
        F(
            "broken",
            Choice(*STEPS),
            "The first step that is broken; null where none is",
            always=True,
        ),
        F(
            "steps",
            Items(FreeTable()),
            "Every step, in order",
            always=True,
            nullable=False,
            empty=[],
            fields=STEP,
            shape="step",
        ),
    )
)


class StepFact(FreeTable):
    """What a prober learnt of one step of a device's readiness."""

    __slots__ = ()
    noun = "a step"

    def check(self, value: object) -> dict[str, Json]:
        """Return the step, its status and evidence; a step without either is no fact."""
        fact = typed(value, STEP, "step")
        missing = [name for name in ("step", "status", "evidence") if fact.get(name) is None]
        if missing:
            raise Rejected(f"a step needs {', '.join(missing)}")
        return {name: fact.get(name) for name in ("step", "status", "evidence", "code")}
