"""The command line for people who write and release the data."""

import argparse
import os
import sys

from probe_chipdb.peaks import DTYPES, PATHS, SPARSITIES
from probe_chipdb.table import NotBuilt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_chipdb.database import Database


def main(argv: list[str] | None = None) -> int:
    """Exit 0: all is well. 1: the check failed. 2: usage, or a path that cannot be read."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        return int(options.run(options))
    except NotBuilt as error:
        print(f"probe_chipdb: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"probe_chipdb: {error}; check the path", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m probe_chipdb", description="Check, build and compare chip data."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="judge a data folder or one file")
    check.add_argument("path")
    check.add_argument("--fix", action="store_true", help="lay the files out canonically first")
    check.add_argument("--strict", action="store_true", help="warnings fail too")
    check.set_defaults(run=_check)
    new = commands.add_parser("new", help="begin a distribution of a vendor's chips")
    new.add_argument("name", help="the distribution's name (acme-chips)")
    new.add_argument("--vendor", default="", help="the vendor's short name (default: by NAME)")
    new.add_argument("--pci", default="", metavar="VVVV", help="the vendor's PCI vendor id")
    new.add_argument("--into", default=".", metavar="DIR", help="where its folder is made")
    new.set_defaults(run=_new)
    build = commands.add_parser("build", help="pack a data folder into a table")
    build.add_argument("data", nargs="?", default=_source_path("data"))
    build.add_argument("--into", default=_source_path("src", "probe_chipdb", "table"))
    build.set_defaults(run=_build)
    diff = commands.add_parser("diff", help="list what changed between two data folders or tables")
    diff.add_argument("old")
    diff.add_argument("new")
    diff.set_defaults(run=_diff)
    schema = commands.add_parser("schema", help="write the JSON Schemas for editors")
    schema.add_argument("into", nargs="?", default=_source_path("schema"))
    schema.set_defaults(run=_schema)
    export = commands.add_parser("export", help="write chips.json, chips.csv and hardware.ts")
    export.add_argument("into")
    export.set_defaults(run=_export)
    _add_audit(commands)
    site = commands.add_parser("site", help="write a searchable page of all chips")
    site.add_argument("into")
    site.set_defaults(run=_site)
    notes = commands.add_parser("notes", help="write the notes of a release from the difference")
    notes.add_argument("old")
    notes.add_argument("new", nargs="?", default=_source_path("data"))
    notes.add_argument("--version", help="the calendar version; derived from OLD's if left out")
    notes.set_defaults(run=_notes)
    stale = commands.add_parser("stale", help="list what driver and id lists have beyond the table")
    stale.add_argument("files", nargs="+", metavar="FILE")
    stale.add_argument(
        "--since", type=_year, default=0, metavar="DATE", help="leave out older ones"
    )
    stale.add_argument("--kind", choices=("gpu", "npu"), help="only these")
    stale.set_defaults(run=_stale)
    unread = commands.add_parser("unread", help="list figures that nobody read, by document")
    unread.set_defaults(run=_unread)
    missing = commands.add_parser("missing", help="list the chips without figures, and why")
    missing.set_defaults(run=_missing)
    compare = commands.add_parser("compare", help="hold other projects' tables against the data")
    compare.add_argument("folder", nargs="?", default=_source_path("compare"))
    compare.set_defaults(run=_compare)
    pages = commands.add_parser("pages", help="write one Markdown page per family")
    pages.add_argument("into")
    pages.set_defaults(run=_pages)
    return parser


def _add_audit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    audit = commands.add_parser("audit", help="compare somebody's own table of peaks with ours")
    audit.add_argument("table", help="JSON (name to number, or a list), CSV or TOML")
    audit.add_argument("--dtype", choices=DTYPES, default="bf16")
    audit.add_argument("--path", choices=PATHS, default="matrix")
    audit.add_argument("--sparsity", choices=SPARSITIES, default="dense")
    audit.add_argument("--within", type=float, default=3.0, metavar="PERCENT")
    audit.add_argument("--scale", type=float, default=1.0, help="figures x this are TFLOPS")
    audit.add_argument("--name", default="", metavar="COLUMN", help="the column of names")
    audit.add_argument("--value", default="", metavar="COLUMN", help="the column of figures")
    audit.set_defaults(run=_audit)


def _check(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import check, layout

    _require_files(options.path)
    if options.fix:
        for path in layout.fix(options.path):
            print(f"laid out {path}")
    result = check.check(options.path)
    for problem in result.problems:
        print(f"{problem.level}: {problem}")
    print(result.summary(), file=sys.stderr)
    return int(bool(result.problems if options.strict else result.errors))


def _require_files(path: str) -> None:
    """Raise `OSError` for a path that is not there or holds no data.

    A table made of an empty folder would take the place of the one that ships.
    """
    from errno import ENOENT

    from probe_chipdb.entry.files import toml_files

    os.stat(path)
    if next(toml_files(path), None) is None:
        raise FileNotFoundError(ENOENT, "no TOML file is in it", path)


def _new(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import new

    try:
        written = new.new(options.name, options.into, options.vendor, options.pci)
    except new.Refused as refusal:
        print(f"probe_chipdb: {refusal}", file=sys.stderr)
        return 2
    print(*written, sep="\n")
    folder = os.path.dirname(written[0])
    print(f"next: edit {written[-1]}, then `python -m probe_chipdb check {folder}`")
    return 0


def _build(options: argparse.Namespace) -> int:
    from probe_chipdb.tools.build import build

    _require_files(options.data)
    problems = build(options.data, options.into)
    for problem in problems:
        print(f"left out: {problem}")
    return int(bool(problems))


def _diff(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import diff

    for line in diff.diff(diff.open_data(options.old), diff.open_data(options.new)):
        print(line)
    return 0


def _export(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import export

    print(*export.write(_open(), options.into), sep="\n")
    return 0


def _site(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import export

    written = export.write_site(_open(), options.into)
    print(f"{len(written)} files; open {written[0]}")
    return 0


def _audit(options: argparse.Namespace) -> int:
    """Exit 1 where a figure differs; an unknown name is no mistake of the table."""
    from probe_chipdb.tools import compare

    try:
        table = compare.table_of(options.table, options.name, options.value, options.scale)
    except compare.Unreadable as refusal:
        print(f"probe_chipdb: {refusal}", file=sys.stderr)
        return 2
    db = _open()
    verdicts = list(
        compare.audit(
            db, table, options.dtype, options.sparsity, options.path, options.within / 100
        )
    )
    annotate = os.environ.get("GITHUB_ACTIONS") == "true"
    for line in compare.report(options.table, verdicts, annotate):
        print(line)
    return int(any(verdict.kind == "differs" for verdict in verdicts))


def _schema(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import build

    print(*build.write_schemas(options.into), sep="\n")
    return 0


def _pages(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import pages

    written = pages.write(_open(), options.into, _source_path("compare"))
    print(f"{len(written)} pages in {options.into}")
    return 0


def _notes(options: argparse.Namespace) -> int:
    import datetime

    from probe_chipdb.tools import diff

    old, new = diff.open_data(options.old), diff.open_data(options.new)
    today = datetime.datetime.now(datetime.UTC).date()
    version = options.version or diff.next_version(old.version, today.year, today.month)
    return _print(diff.release(old, new, version))


def _year(text: str) -> int:
    import argparse

    from probe_chipdb.tools import stale

    try:
        return stale.year_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _stale(options: argparse.Namespace) -> int:
    """Exit 1 where a list has something that the table lacks."""
    from probe_chipdb.tools import stale

    found = stale.Stale(_open(), options.since, options.kind)
    _print(found.report(options.files))
    return int(bool(found.missing))


def _unread(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import pages

    return _print(pages.unread_page(_open()))


def _missing(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import pages

    return _print(pages.missing_page(_open()))


def _compare(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import compare

    db = _open()
    _print(compare.compare_page(db, options.folder))
    return int(bool(compare.unexplained(db, options.folder)))


def _open() -> "Database":
    """The built table. Raises NotBuilt in a checkout whose data has changed since."""
    from probe_chipdb.database import load
    from probe_chipdb.tools.build import outdated

    if reason := outdated(_source_path()):
        raise NotBuilt(reason)
    return load(packages=False)


def _print(lines: "Iterable[str]") -> int:
    for line in lines:
        print(line)
    return 0


def _source_path(*parts: str) -> str:
    """A path of the source tree, for people who work in it."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, *parts)


if __name__ == "__main__":
    raise SystemExit(main())
