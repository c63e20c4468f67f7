"""What stands below the devices, and the keys that choose it. Pure: nothing here draws."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COLUMNS", "KEYS", "Panel"]

COLUMNS = {
    "#, ID, DEVICE": "place in the report, short id, and the name where names differ",
    "BUSY": "share of time in which anything ran, and its history",
    "PEAK": "share of the matrix units' peak, where the hardware counts it",
    "MEMORY": "used and total; * is memory that the CPU shares",
    "TEMP": "temperature of the chip",
    "POWER": "power drawn, and the cap of the driver",
    "CLOCK": "clock of the compute units",
    "LINK": "PCIe generation × lanes of now; 1 is usual when idle",
    "PROC": "processes that use the device",
    "! –": "above its threshold; not known, whose reason is in the history",
}
"""Head of a column, or a mark, to what it means."""

KEYS = {
    "q": "quit; so does Ctrl-C",
    "p, space": "pause the screen; samples and alerts go on",
    "s": "sort by state, device, busy, memory, temperature",
    "t": "thresholds of the alerts",
    "P": "processes, shown or hidden",
    "m, g": "processes by memory, by GPU",
    "0 to 9": "history of the device with that number; 1 and 2 at once is 12",
    "?": "this help; Esc or the same key ends it",
}
"""Key to what it does."""

_TOGGLES = {"t": "thresholds", "?": "help"}
_PROCESS_ORDERS = {"m": "memory", "g": "device"}

TWO_DIGITS_S = 1.0
"""Seconds between the two digits of a number."""


class Panel:
    """What is shown: "processes", "thresholds", "history", "help", or "" for nothing."""

    def __init__(self) -> None:
        self.name = "processes"
        self.process_order = "memory"
        self.number = 0
        self._digit_at = -TWO_DIGITS_S

    def press(self, key: str, last: int, now: float) -> bool:
        """Take a key at a monotonic time; return whether it changes the panel.

        `last` is the highest number of a device, -1 where there is none.
        """
        if key in _TOGGLES:
            self._toggle(_TOGGLES[key])
        elif key == "P":
            self.name = "" if self.name == "processes" else "processes"
        elif key in _PROCESS_ORDERS:
            self.name, self.process_order = "processes", _PROCESS_ORDERS[key]
        elif key == "\x1b":
            self.name = "processes"
        elif key.isascii() and key.isdecimal():
            return self._choose(int(key), last, now)
        else:
            return False
        return True

    def _toggle(self, name: str) -> None:
        self.name = "processes" if self.name == name else name

    def _choose(self, digit: int, last: int, now: float) -> bool:
        is_second = self.name == "history" and now - self._digit_at < TWO_DIGITS_S
        whole = self.number * 10 + digit
        self._digit_at = now
        if is_second and digit < whole <= last:
            self.number = whole
        elif digit > last:
            return False
        elif self.name == "history" and self.number == digit:
            self.name = "processes"
        else:
            self.name, self.number = "history", digit
        return True


def hints(order: str, last: int, columns: int, note: str) -> str:
    """Return the line of keys: all that the screen has room for, then a note."""
    numbers = "0" if last == 0 else f"0–{last}"
    always = ["q quit", "p pause", f"s sort: {order}"]
    others = [*([f"{numbers} history"] if last >= 0 else []), "t thresholds", "P processes"]
    for count in range(0 if note else len(others), -1, -1):
        line = "  ".join([*always, *others[:count], "? help"])
        if len(line) <= columns:
            break
    return f"{line}   {note}" if note else line


def help_lines() -> Iterator[tuple[str, str]]:
    """Yield the lines of the help: what is explained, and its sentence; both empty for a gap."""
    yield from COLUMNS.items()
    yield "", ""
    yield from KEYS.items()
