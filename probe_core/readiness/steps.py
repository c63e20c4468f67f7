"""Makes the entries of a chain: a step with its status, and the fact that it rests on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import StepDoc

__all__ = ["broken", "not_applicable", "ok", "unknown"]


def ok(step: str, evidence: str) -> StepDoc:
    """Return a step that holds."""
    return {"step": step, "status": "ok", "evidence": evidence, "code": None}


def broken(step: str, code: str, evidence: str) -> StepDoc:
    """Return a step that does not hold; `code` is one of `model.causes`."""
    return {"step": step, "status": "broken", "evidence": evidence, "code": code}


def unknown(step: str, reason: str, code: str | None = None) -> StepDoc:
    """Return a step of which nothing can be told, with the reason."""
    return {"step": step, "status": "unknown", "evidence": reason, "code": code}


def not_applicable(step: str, reason: str) -> StepDoc:
    """Return a step that this device does not have."""
    return {"step": step, "status": "not_applicable", "evidence": reason, "code": None}
