"""The causes that readiness does not judge, one file a topic.

They cost a file more, concern no single device, or are seen only in what happened before.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Check

TOPICS = (
    "absence",
    "boards",
    "containers",
    "devices",
    "drivers",
    "kernel_log",
    "machine_type",
    "systems",
)
"""Modules of this package; each has a list `CHECKS`."""


def further_checks() -> list[Check]:
    """Return the checks of all topics."""
    checks: list[Check] = []
    for topic in TOPICS:
        # Not by importlib, whose import of warnings takes 0.4 ms.
        module = __import__(f"probe_core.doctor.checks.{topic}", fromlist=["CHECKS"])
        checks += module.CHECKS
    return checks
