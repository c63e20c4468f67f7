"""One sentence about one bad value: which file, which entry, which field, what, and the fix."""


class Problem:
    """Something wrong in the data. level is "error" or "warning"."""

    __slots__ = ("entry", "field", "file", "fix", "level", "what")

    def __init__(
        self, file: str, entry: str, field: str, what: str, fix: str, level: str = "error"
    ) -> None:
        self.file = file
        self.entry = entry
        self.field = field
        self.what = what
        self.fix = fix
        self.level = level

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.entry, self.field) if part)
        return f"{where}: {self.what}; {self.fix}"

    def __repr__(self) -> str:
        return f"<{self.level} {self}>"
