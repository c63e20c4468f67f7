"""One device, one question at a time: an answer, or the reason why there is none.

No figure depends on another: a driver that does not know one call still answers the others.
"""

from __future__ import annotations

from probe_nvidia.codes import LOST, MISSING, NO_PERMISSION, ORDINARY, code_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["Asker", "text"]


class Asker:
    """Asks NVML about one device handle.

    `unknown` maps fields to reasons; `faults` maps fields to the codes that a healthy device does
    not answer; `lost` is the reason once the device is gone: then nothing more is asked.
    `answers` counts what was answered, `refused` are the functions that this process may not call.
    """

    __slots__ = (
        "answers",
        "code",
        "faults",
        "handle",
        "lost",
        "lost_code",
        "nvml",
        "refused",
        "unknown",
    )

    def __init__(self, nvml: Any, handle: Any) -> None:
        self.nvml = nvml
        self.handle = handle
        self.unknown: dict[str, str] = {}
        self.faults: dict[str, int] = {}
        self.lost: str | None = None
        self.lost_code: int | None = None
        self.code: int | None = None
        self.answers = 0
        self.refused: set[str] = set()

    def get(self, field: str | None, call: str, *arguments: Any) -> Any:
        """Return what the NVML function `call` answers; None, with a reason for `field`, if not.

        Without a `field` the lack is not worth a word (a card without NVLink has no links). The
        code of the last failure stays in `code`.
        """
        self.code = None
        if self.lost:
            return self._note(field, self.lost)
        function = getattr(self.nvml, call, None)
        if function is None:
            return self._note(field, f"this nvidia-ml-py has no {call}")
        try:
            answer = function(self.handle, *arguments)
            self.answers += 1
            return answer
        except UnicodeDecodeError as error:
            self.answers += 1
            return error.object  # a name that is not UTF-8: nvidia-ml-py decodes strictly
        except Exception as error:
            return self._fail(field, call, error)

    def first(self, field: str | None, *calls: tuple[Any, ...]) -> Any:
        """Ask the newest of several calls, and an older one only where the newer is missing."""
        for call, *arguments in calls:
            value = self.get(field, call, *arguments)
            if value is not None:
                self.unknown.pop(field or "", None)
                return value
            if self.lost or (self.code is not None and self.code not in MISSING):
                return None
        return None

    def each(self, call: str, arguments: Iterable[int]) -> Iterator[Any]:
        """Yield what `call` answers for each argument, None where it does not, as `get` does.

        Of the parts of a device there can be many: 18 links of each GPU, asked twice.
        """
        function = getattr(self.nvml, call, None)
        for argument in arguments:
            if function is None or self.lost:
                yield self.get(None, call, argument)
                continue
            try:
                answer = function(self.handle, argument)
            except Exception as error:
                self._fail(None, call, error)
                answer = None
            else:
                self.answers += 1
            yield answer

    def number(self, field: str, call: str, *arguments: Any) -> int | None:
        """Return a count or figure; 0 is no answer, for none of these can be 0."""
        value = self.get(field, call, *arguments)
        if value == 0:
            self.unknown[field] = f"{call} answered 0"
        return value or None

    def _fail(self, field: str | None, call: str, error: Exception) -> None:
        self.code = code = code_of(error)
        if code is None:
            return self._note(field, f"{call}: {type(error).__name__}: {str(error)[:120]}")
        reason = f"{name_of(code)} from {call}"
        if code in LOST:
            self.lost, self.lost_code = reason, code
        if code == NO_PERMISSION:
            self.refused.add(call)
        if code not in ORDINARY:
            self.faults[field or call] = code
        return self._note(field, reason)

    def _note(self, field: str | None, reason: str) -> None:
        if field:
            self.unknown[field] = reason


def text(value: Any) -> str | None:
    """Return a name or UUID as text: nvidia-ml-py may give bytes, and bytes may be no UTF-8."""
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).partition(b"\0")[0].decode("utf-8", "replace")
    return value.strip() or None if isinstance(value, str) else None
