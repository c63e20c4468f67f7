"""Something about an environment that a person should know; a finding is made of it."""

from __future__ import annotations

__all__ = ["Problem"]


class Problem:
    """Something about an environment that a person should know: a code, and three sentences."""

    __slots__ = ("code", "evidence", "fix", "reason", "severity", "summary")

    def __init__(
        self,
        code: str,
        summary: str,
        reason: str,
        fix: str,
        *,
        evidence: str | None = None,
        severity: str = "error",
    ) -> None:
        self.code = code
        self.summary = summary
        self.reason = reason
        self.fix = fix
        self.evidence = evidence
        self.severity = severity
