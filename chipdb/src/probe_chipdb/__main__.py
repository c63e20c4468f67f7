"""The command line for people who write and release the data."""

import argparse
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def main(argv: list[str] | None = None) -> int:
    """Exit 0: all is well. 1: the check failed. 2: usage, or a path that cannot be read."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        return int(options.run(options))
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
    notes = commands.add_parser("notes", help="write the notes of a release from the difference")
    notes.add_argument("old")
    notes.add_argument("new", nargs="?", default=_source_path("data"))
    notes.add_argument("--version", help="the calendar version; derived from OLD's if left out")
    notes.set_defaults(run=_notes)
    stale = commands.add_parser("stale", help="list what driver and id lists have beyond the table")
    stale.add_argument("files", nargs="+", metavar="FILE")
    stale.set_defaults(run=_stale)
    missing = commands.add_parser("missing", help="list the chips without figures, and why")
    missing.set_defaults(run=_missing)
    compare = commands.add_parser("compare", help="hold other projects' tables against the data")
    compare.add_argument("folder", nargs="?", default=_source_path("compare"))
    compare.set_defaults(run=_compare)
    pages = commands.add_parser("pages", help="write one Markdown page per family")
    pages.add_argument("into")
    pages.set_defaults(run=_pages)
    return parser


def _check(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import check, layout

    os.stat(options.path)
    if options.fix:
        for path in layout.fix(options.path):
            print(f"laid out {path}")
    result = check.check(options.path)
    for problem in result.problems:
        print(f"{problem.level}: {problem}")
    print(result.summary(), file=sys.stderr)
    return int(bool(result.problems if options.strict else result.errors))


def _build(options: argparse.Namespace) -> int:
    from probe_chipdb.tools.build import build

    os.stat(options.data)
    problems = build(options.data, options.into)
    for problem in problems:
        print(f"left out: {problem}")
    return int(bool(problems))


def _diff(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import diff

    for line in diff.diff(diff.open_data(options.old), diff.open_data(options.new)):
        print(line)
    return 0


def _schema(options: argparse.Namespace) -> int:
    from probe_chipdb.tools import schema

    print(*schema.write(options.into), sep="\n")
    return 0


def _pages(options: argparse.Namespace) -> int:
    from probe_chipdb.database import load
    from probe_chipdb.tools import pages

    written = pages.write(load(packages=False), options.into, _source_path("compare"))
    print(f"{len(written)} pages in {options.into}")
    return 0


def _notes(options: argparse.Namespace) -> int:
    import datetime

    from probe_chipdb.tools import diff, notes

    old, new = diff.open_data(options.old), diff.open_data(options.new)
    today = datetime.datetime.now(datetime.UTC).date()
    version = options.version or notes.next_version(old.version, today.year, today.month)
    return _print(notes.release(old, new, version))


def _stale(options: argparse.Namespace) -> int:
    from probe_chipdb.database import load
    from probe_chipdb.tools import stale

    return _print(stale.report(load(packages=False), options.files))


def _missing(options: argparse.Namespace) -> int:
    from probe_chipdb.database import load
    from probe_chipdb.tools import missing

    return _print(missing.page(load(packages=False)))


def _compare(options: argparse.Namespace) -> int:
    from probe_chipdb.database import load
    from probe_chipdb.tools import compare

    db = load(packages=False)
    _print(compare.page(db, options.folder))
    return int(bool(compare.unexplained(db, options.folder)))


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
