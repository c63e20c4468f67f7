"""The command line of those who write and release the data."""

import argparse
import sys


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
    parser = argparse.ArgumentParser("python -m probe_chipdb", description="Check, build and compare chip data.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="judge a data folder or one file")
    check.add_argument("path")
    check.add_argument("--fix", action="store_true", help="lay the files out canonically first")
    check.add_argument("--strict", action="store_true", help="warnings fail too")
    check.set_defaults(run=_check)
    return parser


def _check(options: argparse.Namespace) -> int:
    import os

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


if __name__ == "__main__":
    raise SystemExit(main())
