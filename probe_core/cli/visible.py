"""`probe visible`: which devices each runtime would see here, under which number, and why not."""

from __future__ import annotations

from probe_core.commands.options import JSON, SHARED_OPTIONS, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc
    from probe_core.visibility.view import View

    Views = Mapping[str, Sequence[View]]

HELP = "Show which devices are visible to a process with this environment, for each runtime."
_HEAD = ("RUNTIME", "INDEX", "DEVICE", "NAME", "STATE", "WHY")
EXAMPLES = (
    ("probe visible", "what each runtime would see here"),
    ("probe visible --for cuda", "only CUDA"),
    ("CUDA_VISIBLE_DEVICES=1 probe visible --for cuda", "what a variable would change"),
)


ARGUMENTS = (
    Option("for", "RUNTIME", "only this runtime (cuda, hip, vulkan …)", dest="runtime"),
    Option("tinygrad", "VERSION", "tinygrad's version, whose rules changed (0.12.0)"),
    JSON,
    *SHARED_OPTIONS,
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Evaluate the rules for this process's environment, which goes over that of a recording."""
    from probe_core.pipeline.refresh import refresh

    runtimes = _chosen(args.runtime)
    report = context.report()
    versions = {"tinygrad": args.tinygrad} if args.tinygrad else {}
    environ = {**context.recorded, **context.environ}
    views = refresh(report, environ, versions=versions)
    views = {name: views[name] for name in runtimes if name in views}
    answers = _driver_answers(context, views, report)
    if args.json:
        documents = {name: _document(name, views, answers) for name in runtimes if name in views}
        only = args.runtime is not None
        context.json(_document(runtimes[0], views, answers) if only else documents)
        return 0
    _print_table(views, report, context)
    from probe_core.commands.text import folded

    for name, answer in answers.items():
        for line in folded(f"{name}, as its driver reports: {answer['reason']}", context.width):
            context.out(line)
    return 0


def _chosen(runtime: str | None) -> list[str]:
    """Return the runtime of `--for` by the name that reports use, or all; raises `CommandError`."""
    from probe_core.cli.refusals import known_runtime
    from probe_core.model.runtimes import RUNTIMES

    name = known_runtime(runtime)
    return list(RUNTIMES) if name is None else [name]


def _document(name: str, views: Views, answers: Mapping[str, object]) -> dict[str, Any]:
    """Return a runtime's document with an entry for each of its devices, visible ones first."""
    own = views.get(name, ())
    entries = [{"id": device, **view.entry(device)} for view in own for device in view.pool]
    entries.sort(key=lambda entry: (_rank(entry), entry["index"] or 0))
    document = {**merged(own), "devices": entries}
    return {**document, "driver": answers[name]} if name in answers else document


def merged(views: Sequence[View]) -> dict[str, Any]:
    """Return a runtime's document; its platforms' (OpenCL, SYCL, tinygrad) one after the other."""
    parts = [view.as_json() for view in views]
    if len(parts) == 1:
        return {**parts[0]}
    joined: dict[str, Any] = {
        "visible": [device for part in parts for device in part["visible"]],
        "hidden": {device: why for part in parts for device, why in part["hidden"].items()},
        "variable": next((part["variable"] for part in parts if part["variable"]), None),
        "value": next((part["value"] for part in parts if part["variable"]), None),
        "certain": all(part["certain"] for part in parts),
    }
    if not joined["certain"]:
        joined["uncertain"] = next(part["uncertain"] for part in parts if not part["certain"])
        joined["possible"] = [
            device for part in parts for device in part.get("possible", part["visible"])
        ]
    return {**joined, "platforms": parts} if parts else joined


def _driver_answers(context: Context, views: Views, report: Mapping[str, Any]) -> dict[str, Any]:
    """Query the drivers, where `--active` allows that; a disagreement goes to standard error."""
    if not views or not context.config().active:
        return {}
    from probe_core.runtimes import ask, disagreements

    # An active probe has queried them already; a static report has not.
    answers = report.get("asked")
    if answers is None:
        answers = ask(views, report["devices"], context.environ)
    answers = {name: answer for name, answer in answers.items() if name in views}
    for finding in disagreements(answers):
        context.err(f"probe: {finding['what']}: {finding['why']}")
    return answers


def _print_table(views: Views, report: ReportDoc, context: Context) -> None:
    from probe_core.commands.tables import grid
    from probe_core.model.naming import nameless, short_ids
    from probe_core.model.verdict import state_word

    ids = short_ids(device["id"] for device in report["devices"])
    titles = {
        d["id"]: (ids[d["id"]], d["name"] or nameless(d), state_word(d)) for d in report["devices"]
    }
    rows = [row for runtime in views for row in _rows(runtime, views[runtime], titles)]
    if not rows:
        context.err("no device of this computer belongs to a runtime that numbers devices")
        return
    shown = [_HEAD, *([context.encodable(cell) for cell in row] for row in rows)]
    for line in grid(shown, context.width, right=("INDEX",), wrap="WHY"):
        context.out(line)


def _rows(
    runtime: str, views: Sequence[View], titles: Mapping[str, tuple[str, str, str]]
) -> Iterator[tuple[str, ...]]:
    for view in views:
        entries = [(view.entry(device), device) for device in view.pool]
        entries.sort(key=lambda pair: (_rank(pair[0]), pair[0]["index"] or 0))
        for entry, device in entries:
            title = titles.get(device, (device, "", ""))
            yield runtime, _index(entry), *title, entry["reason"] or ""


def _rank(entry: Mapping[str, Any]) -> int:
    return {True: 0, None: 1, False: 2}[entry["visible"]]


def _index(entry: Mapping[str, Any]) -> str:
    if entry["visible"] is False:
        return "hidden"
    if entry["index"] is not None:
        return str(entry["index"])
    return "/".join(str(index) for index in entry.get("one_of", ())) or "?"
