"""One cause that breaks a step of readiness, and the three kinds of causes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Severity

__all__ = ["Cause", "blocks", "intended", "limits"]


class Cause:
    """One cause.

    `step` is the link of the chain that it breaks. `limits` says that the device stays usable, with
    less than it has. `intended` says that somebody set it on purpose, so that it is a notice and no
    failure. `meaning` completes the sentence "DEVICE: …", `check` is how to see it by hand, `fix`
    what helps in general; names in braces are filled in for the device.
    """

    __slots__ = ("check", "code", "fix", "intended", "limits", "meaning", "step")

    def __init__(
        self, code: str, meaning: str, check: str, fix: str, *, limits: bool, intended: bool
    ) -> None:
        self.step = ""
        self.code = code
        self.meaning = meaning
        self.check = check
        self.fix = fix
        self.limits = limits
        self.intended = intended

    @property
    def severity(self) -> Severity:
        """The severity of its finding: a notice where somebody wanted it so, or it can wait."""
        return "info" if self.intended or self.limits else "error"

    @property
    def state(self) -> str:
        """The state of a device with it."""
        return "limited" if self.limits else "blocked"


def blocks(code: str, meaning: str, check: str, fix: str) -> Cause:
    return Cause(code, meaning, check, fix, limits=False, intended=False)


def limits(code: str, meaning: str, check: str, fix: str) -> Cause:
    return Cause(code, meaning, check, fix, limits=True, intended=False)


def intended(code: str, meaning: str, check: str, fix: str, limits: bool = False) -> Cause:
    return Cause(code, meaning, check, fix, limits=limits, intended=True)
