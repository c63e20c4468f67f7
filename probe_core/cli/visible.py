"""`probe visible`: which devices each runtime would see here, under which number, and why not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.cli.context import Context
    from probe_core.visibility.view import View

NAME = "visible"
HELP = "Show which devices a process with this environment would see, for each runtime."
_YES = ("1", "true", "yes", "on")
_UNCUT = 1000  # the reason is what the table is for: a terminal may wrap it
_HEAD = ("RUNTIME", "INDEX", "DEVICE", "NAME", "WHY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe visible`."""
    from probe_core.cli.options import add_probe_options

    parser.add_argument(
        "--for", dest="consumer", metavar="RUNTIME", help="only this runtime (cuda, hip, vulkan …)"
    )
    parser.add_argument(
        "--tinygrad", metavar="VERSION", help="tinygrad's version, whose rules changed (0.12.0)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Evaluate the rules for this process's environment."""
    from probe_core.cli.context import CommandError
    from probe_core.model.runtimes import RUNTIMES, canonical
    from probe_core.pipeline.refresh import refresh

    args.consumer = None if args.consumer is None else canonical(args.consumer)
    if args.consumer is not None and args.consumer not in RUNTIMES:
        known = ", ".join(RUNTIMES)
        raise CommandError(f"visible: {args.consumer!a} is no runtime known here ({known})", 2)
    document = context.report()
    versions = {"tinygrad": args.tinygrad} if args.tinygrad else {}
    views = refresh(document, context.environ, versions=versions)
    chosen = [name for name in RUNTIMES if args.consumer in (None, name)]
    asked = _ask(args, context, views, document)
    if args.json:
        told = {name: _told(views.get(name, ())) for name in chosen if _wanted(name, args, views)}
        for name, answer in asked.items():
            if name in told:
                told[name]["driver"] = answer
        context.json(told[args.consumer] if args.consumer else told)
        return 0
    _table(chosen, views, document, context)
    for name, answer in asked.items():
        context.out(f"{name}, asked itself: {answer['said']}")
    return 0


def _wanted(name: str, args: argparse.Namespace, views: Mapping[str, object]) -> bool:
    return name in views or name == args.consumer


def _told(views: Sequence[View]) -> dict[str, Any]:
    """Return a runtime's answer with an entry for each of its devices, seen ones first."""
    entries = [{"id": name, **view.entry(name)} for view in views for name in view.pool]
    entries.sort(key=lambda entry: (_rank(entry), entry["index"] or 0))
    return {**merged(views), "devices": entries}


def merged(views: Sequence[View]) -> dict[str, Any]:
    """Return a runtime's answer; its platforms' (OpenCL) one after the other."""
    parts = [view.as_json() for view in views]
    if len(parts) == 1:
        return {**parts[0]}
    merged: dict[str, Any] = {
        "visible": [name for part in parts for name in part["visible"]],
        "hidden": {name: why for part in parts for name, why in part["hidden"].items()},
        "variable": next((part["variable"] for part in parts if part["variable"]), None),
        "value": next((part["value"] for part in parts if part["variable"]), None),
        "certain": all(part["certain"] for part in parts),
    }
    return {**merged, "platforms": parts} if parts else merged


def _ask(
    args: argparse.Namespace,
    context: Context,
    views: Mapping[str, Sequence[View]],
    document: Mapping[str, Any],
) -> dict[str, Any]:
    """Ask the drivers themselves, where that was allowed; a disagreement is told on stderr."""
    allowed = args.active or context.environ.get("PROBE_ACTIVE", "").lower() in _YES
    wanted = {name: found for name, found in views.items() if args.consumer in (None, name)}
    if not allowed or not wanted:
        return {}
    from probe_core.runtimes import ask, disagreements

    answers = document.get("asked")  # an active probe has asked already; a static report has not
    if answers is None:
        answers = ask(wanted, document["devices"], context.environ)
    answers = {name: answer for name, answer in answers.items() if name in wanted}
    for finding in disagreements(answers):
        context.err(f"probe: {finding['what']}: {finding['why']}")
    return answers


def _table(
    chosen: Sequence[str],
    views: Mapping[str, Sequence[View]],
    document: Mapping[str, Any],
    context: Context,
) -> None:
    from probe_core.cli import text

    names = {one["id"]: one.get("name") or one.get("vendor") or "" for one in document["devices"]}
    rows: list[tuple[str, ...]] = [_HEAD]
    for consumer in chosen:
        for view in views.get(consumer, ()):
            rows += _rows(consumer, view, names)
    if len(rows) == 1:
        context.err("no device here belongs to a runtime that numbers devices")
        return
    for line in text.columns(rows, _UNCUT, right=(1,), flexible=4):
        context.out(line)


def _rows(consumer: str, view: View, names: Mapping[str, str]) -> list[tuple[str, ...]]:
    entries = [(view.entry(name), name) for name in view.pool]
    entries.sort(key=lambda one: (_rank(one[0]), one[0]["index"] or 0))
    return [
        (consumer, _index(entry), name, str(names.get(name, "")), entry["reason"] or "")
        for entry, name in entries
    ]


def _rank(entry: Mapping[str, Any]) -> int:
    return {True: 0, None: 1, False: 2}[entry["visible"]]


def _index(entry: Mapping[str, Any]) -> str:
    if entry["visible"] is False:
        return "hidden"
    if entry["index"] is not None:
        return str(entry["index"])
    return "/".join(str(one) for one in entry.get("one_of", ())) or "?"
