"""One sentence about one bad value: which file, entry and field, what is wrong, and the fix."""


class Problem:
    """Something wrong in the data. level is "error" or "warning"."""

    __slots__ = ("entry", "fault", "field", "file", "fix", "level")

    def __init__(
        self, file: str, entry: str, field: str, fault: str, fix: str, level: str = "error"
    ) -> None:
        self.file = file
        self.entry = entry
        self.field = field
        self.fault = fault
        self.fix = fix
        self.level = level

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.entry, self.field) if part)
        return f"{where}: {self.fault}; {self.fix}"

    def __repr__(self) -> str:
        return f"<{self.level} {self}>"
