"""`compare FOLDER`: the page that holds other projects' tables against the data."""

from collections import Counter
from collections.abc import Iterator

from probe_chipdb.database import Database
from probe_chipdb.tools.others import Other, read


def page(db: Database, folder: str) -> Iterator[str]:
    """Markdown: each table with its counts, then each entry. Raises OSError and ValueError."""
    yield "# Other tables of peaks"
    yield ""
    yield (
        "Each entry of a table that other projects keep, beside ours. TFLOPS, dense, per device as "
        "the operating system shows it; within 3 % it agrees."
    )
    for other in read(db, folder):
        yield from _table(other)


def unexplained(db: Database, folder: str) -> list[str]:
    """The entries that neither agree nor are explained, as "title: key"."""
    return [
        f"{other.head['title']}: {line.key}"
        for other in read(db, folder)
        for line in other.lines
        if line.verdict == "differs"
    ]


def _table(other: Other) -> Iterator[str]:
    head = other.head
    counts = Counter(line.verdict for line in other.lines)
    yield ""
    yield f"## {head['title']}"
    yield ""
    yield f"{head['ref']}, {head['version']} ({head['licence']}). {head['about']}"
    if not other.lines:
        return
    shares = ", ".join(f"{counts[key]} {key}" for key in ("agrees", "explained", "differs"))
    yield ""
    yield f"{len(other.lines)} entries, compared as `{head['rate']}`: {shares}."
    yield ""
    yield "| entry | theirs | ours | |"
    yield "| --- | --- | --- | --- |"
    for line in other.lines:
        yield f"| {line.key} | {line.theirs} | {line.ours} | {line.text or line.verdict} |"
