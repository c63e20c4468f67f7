"""Builds a sample from the kernel's files: each figure, or the errno for which it is not known."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import RawSample

__all__ = ["Live", "share"]

_LIMIT = 64
"""Bytes of a file with one number."""

_OVER = 1.1
"""How much above 1 a computed share may be: the counter and the clock are read one by one."""


class Live:
    """One device's sample while it is put together.

    A file that is there may answer EOPNOTSUPP, EPERM or EBUSY: then the figure is unknown with
    that reason, and never 0.
    """

    def __init__(self, machine: Machine, device: str) -> None:
        self._machine = machine
        self.unknown: dict[str, str] = {}
        self.sample: RawSample = {"device": device, "unknown": self.unknown}

    def number(self, field: str, path: str, scale: float = 1) -> float | None:
        """Return the number in a file times `scale`; None with the reason for `field`."""
        try:
            text = self._machine.read_bytes(path, _LIMIT).decode("ascii", "replace").strip()
            return int(text) * scale
        except OSError as error:
            self.unknown[field] = f"{path}: {error.strerror or error}"
        except ValueError:
            self.unknown[field] = f"{path} holds no number"
        return None

    def first(self, field: str, *paths: str, scale: float = 1) -> float | None:
        """Return the number of the first file that has one; None with the reason of the first."""
        reason = None
        for path in paths:
            value = self.number(field, path, scale)
            if value is not None:
                self.unknown.pop(field, None)
                return value
            reason = reason or self.unknown[field]
        if reason:
            self.unknown[field] = reason
        return None

    def put(self, field: str, value: object, reason: str | None = None) -> None:
        """Set a figure; one that is None stays unknown, with `reason` if none is noted yet."""
        if value is not None:
            self.sample[field] = value  # type: ignore[literal-required]
            self.unknown.pop(field, None)
        elif reason:
            self.unknown.setdefault(field, reason)


def share(value: float | None) -> float | None:
    """Return a computed share of 0 to 1; None of what no rounding explains."""
    if value is None or not 0 <= value <= _OVER:
        return None
    return min(1.0, value)
