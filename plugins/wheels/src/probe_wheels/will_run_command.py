"""`probe will-run`: whether a container's image runs on a node, derived from the image itself."""

from __future__ import annotations

from contextlib import contextmanager

from probe_core.commands import CommandError, add_probe_options, grid
from probe_core.wording import clean_text
from probe_wheels.images.answers import answer_of
from probe_wheels.images.nvidia import CDI, CSV, LEGACY
from probe_wheels.images.steps import LESS, NO, RUNS, UNKNOWN
from probe_wheels.rules import dotted, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_wheels.images.answers import Answer
    from probe_wheels.images.contents import Contents
    from probe_wheels.images.image import Image, Opening
    from probe_wheels.images.least import Need
    from probe_wheels.images.nodes import Node

    Row = tuple[str, Contents, Node, Answer]

HELP = """Tell whether an image runs on this node, or on recorded ones, from the image itself.

IMAGE is what `docker save` or `podman save` wrote, an OCI layout, a SIF, an unpacked root or a
Python environment. It is read where it lies: nothing is unpacked, executed or downloaded. The exit
status is 0 where it runs on each node, 1 where it does not on one, 3 where nobody can tell."""

EXAMPLES = (
    ("probe will-run image.tar", "on this node"),
    ("probe will-run image.tar --on nodes/*.json", "on each of these recorded nodes"),
    ("probe will-run *.tar --what driver", "the driver that these images need"),
)

_TOLD = {RUNS: "runs", LESS: "runs with less", NO: "does not run", UNKNOWN: "unknown"}
_WORDS = {RUNS: "runs", LESS: "runs-with-less", NO: "does-not-run", UNKNOWN: "unknown"}
_STATUS_UNKNOWN = 3
MAX_CELL = 2000
MAX_LINE = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe will-run`."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a file or a folder")
    parser.add_argument(
        "--on",
        nargs="+",
        default=[],
        metavar="FILE",
        help="recorded machines, or what `probe --json` wrote (default: this node)",
    )
    parser.add_argument("--image", metavar="NAME", help="the image to take, of several in a file")
    parser.add_argument(
        "--any", action="store_true", help="list where it runs; one such node is enough"
    )
    parser.add_argument(
        "--what", choices=("driver",), metavar="WHAT", help="driver: the least that the images need"
    )
    parser.add_argument(
        "--mode",
        choices=(LEGACY, CDI, CSV),
        metavar="MODE",
        help="how containers get NVIDIA's GPUs: legacy (the hook), cdi, or csv (Jetson)",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=("nfd", "affinity", "label"),
        metavar="FORM",
        help="nfd, affinity or label: what to give a cluster, for any node",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the answers; returns the worst: 1 for a node without, 3 for an unknown one."""

    openings: list[Opening] = []
    try:
        if args.form:
            return _form(args, context, openings)
        nodes = _nodes(args, context)
        if args.what:
            return _least_drivers(args, context, nodes, openings)
        rows = [row for path in args.images for row in _rows(path, args, nodes, openings)]
    finally:
        for opening in openings:
            opening.close()
    if args.json:
        context.json(_document(rows))
    else:
        _print(args, context, rows)
    return _status([answer.word for _, _, _, answer in rows], any_=args.any)


def _status(words: Sequence[str], *, any_: bool) -> int:
    good = [word in (RUNS, LESS) for word in words]
    if any(good) if any_ else all(good):
        return 0
    return 1 if NO in words and (not any_ or UNKNOWN not in words) else _STATUS_UNKNOWN


def _nodes(args: argparse.Namespace, context: Context) -> list[Node]:
    from probe_wheels.images.nodes import node_of, read_node

    if args.on and args.machine:
        raise CommandError("--on and --machine cannot be used together: --on takes recordings, too")
    if args.what and not args.on:
        return []
    if args.on:
        nodes = [read_node(path) for path in args.on]
    else:
        name = args.machine or "this node"
        nodes = [context.examined(lambda machine, report: node_of(name, machine, report))]
    for node in nodes:
        node.mode = args.mode or node.mode
    return nodes


def _rows(
    path: str, args: argparse.Namespace, nodes: Sequence[Node], openings: list[Opening]
) -> Iterator[Row]:
    """Yield the answer for each node, of the platform that an engine takes there."""
    images = _images(path, args, openings)
    known: dict[int, Contents] = {}
    for node in nodes:
        fitting = [
            (image.config.variant, number)
            for number, image in enumerate(images)
            if image.config.arch == node.arch
        ]
        number = min(fitting)[1] if fitting else 0  # an engine takes the first level
        if number not in known:
            known[number] = _contents(path, images[number])
        yield path, known[number], node, answer_of(known[number], node)


def _images(path: str, args: argparse.Namespace, openings: list[Opening]) -> list[Image]:
    """Return an image, once for each platform; raises `CommandError` with one sentence."""
    from probe_wheels.images.image import Opening
    from probe_wheels.images.sources import open_images

    opening = Opening(shared=openings[0].shared if openings else None)
    openings.append(opening)
    with _told_problems(path):
        return open_images(path, opening, args.image)


def _contents(path: str, image: Image) -> Contents:
    from probe_wheels.images.contents import contents_of

    with _told_problems(path):
        return contents_of(image)


@contextmanager
def _told_problems(path: str) -> Iterator[None]:
    """Raise `CommandError` for what is wrong with a path."""
    from probe_wheels.files import Exhausted
    from probe_wheels.images.streams import BadImage

    try:
        yield
    except (BadImage, Exhausted) as error:
        raise CommandError(f"{path}: {error}") from None
    except FileNotFoundError:
        hint = "save an image to a file first: docker save -o FILE NAME"
        raise CommandError(f"{path}: no such file or folder; {hint}") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None


def _print(args: argparse.Namespace, context: Context, rows: Sequence[Row]) -> None:
    several = len({path for path, _, _, _ in rows}) > 1
    table = [["IMAGE", "NODE", "ANSWER", "WHY"]]
    fixes: dict[str, None] = {}
    for path, _, node, answer in rows:
        if args.any and answer.word not in (RUNS, LESS):
            continue
        # Names and variables of an image are foreign text.
        cells = [path if several else "", node.name, _TOLD[answer.word], _why(answer)]
        table.append([clean_text(cell, MAX_CELL) for cell in cells])
        if answer.step is not None and answer.step.fix:
            fixes.setdefault(clean_text(f"{node.name}: {answer.step.fix}", MAX_CELL))
    if len(table) == 1:
        context.out("none of these nodes runs it")
        return
    for line in grid(table, context.width, wrap="WHY"):
        context.out(line)
    for fix in fixes:
        context.out(f"fix: {fix}")


def _why(answer: Answer) -> str:
    step = answer.step
    if step is None:
        return "; ".join(answer.notes)
    others = [other.reason for other in answer.steps if other is not step and other.word == LESS]
    reason = "; ".join([step.reason, *others]) if answer.word == LESS else step.reason
    return f"{reason} [{step.place}]" if step.place else reason


def _document(rows: Sequence[Row]) -> dict[str, object]:
    images: dict[int, dict[str, object]] = {}
    answers: dict[int, list[object]] = {}
    for path, contents, node, answer in rows:
        key = id(contents)
        images.setdefault(key, _image_document(path, contents))
        answers.setdefault(key, []).append(_answer_document(node, answer))
    return {
        "schema": 1,
        "images": [{**image, "nodes": answers[key]} for key, image in images.items()],
    }


def _image_document(path: str, contents: Contents) -> dict[str, object]:
    image = contents.image
    return {
        "path": path,
        "kind": image.kind,
        "name": image.name,
        "digest": image.digest,
        "arch": contents.arch,
        "vendors": contents.vendors,
        "cuda": text_of(contents.toolkit) or None,
        "rocm": text_of(contents.rocm) or None,
        "compat": [text_of(compat.version) for compat in contents.compat],
        "problems": contents.problems,
    }


def _answer_document(node: Node, answer: Answer) -> dict[str, object]:
    step = answer.step
    return {
        "node": node.name,
        "answer": _WORDS[answer.word],
        "step": step.name if step else None,
        "reason": step.reason if step else None,
        "place": step.place or None if step else None,
        "fix": step.fix or None if step else None,
        "steps": [
            {"step": s.name, "answer": _WORDS[s.word], "reason": s.reason, "place": s.place or None}
            for s in answer.steps
        ],
        "devices": [
            {"name": name, "answer": _WORDS[word], "reason": reason or None}
            for word, name, reason in answer.devices
        ],
        "notes": answer.notes,
    }


def _form(args: argparse.Namespace, context: Context, openings: list[Opening]) -> int:
    """Print what to give a cluster, for the first platform of each image."""
    from probe_wheels.images.outputs import affinity, compatibility, label, yaml

    for path in args.images:
        contents = _contents(path, _images(path, args, openings)[0])
        problem = _problem(contents)
        if problem is not None:
            raise CommandError(f"{path}: {problem}")
        if args.form == "label":
            context.out(label(contents))
            continue
        document = compatibility(contents) if args.form == "nfd" else affinity(contents)
        if args.json:
            context.json(document)
            continue
        if len(args.images) > 1:
            context.out("---")
        for line in yaml(document):
            context.out(line)
    return 0


def _problem(contents: Contents) -> str | None:
    """Return why there is nothing to give a cluster: the image cannot be read, or runs nowhere."""
    from probe_wheels.images.least import vendors_of_image
    from probe_wheels.images.nodes import Node
    from probe_wheels.images.system import system_steps

    if contents.problems:
        return contents.problems[0]
    config = contents.image.config
    somewhere = Node("", contents.arch or "unknown", config.os, [])
    refused = next((s for s in system_steps(contents, somewhere) if s.word == NO), None)
    if refused is not None:
        return f"it runs nowhere: {refused.reason}"
    if contents.vendors and not vendors_of_image(contents) and not contents.falls_back:
        return "it runs on no GPU that is known here"
    return None


def _least_drivers(
    args: argparse.Namespace, context: Context, nodes: Sequence[Node], openings: list[Opening]
) -> int:
    """Print the driver that the images need at least, and those that need a newer one."""
    from probe_wheels.images.least import Need

    needs: dict[str, Need | None] = {}
    for path in args.images:
        contents = _contents(path, _images(path, args, openings)[0])
        is_nvidia = "nvidia" in contents.vendors and not contents.shaders
        is_read = is_nvidia or contents.problems
        needs[path] = Need(contents, nodes) if is_read else None
    if args.json:
        told = {path: need and need.driver for path, need in needs.items()}
        table = {path: dotted(driver) if driver else None for path, driver in told.items()}
        context.json({"schema": 1, "drivers": table})
    else:
        for line in _told_drivers(needs):
            context.out(clean_text(line, MAX_LINE))
    known = all(need is None or need.driver for need in needs.values())
    return 0 if known else _STATUS_UNKNOWN


def _told_drivers(needs: Mapping[str, Need | None]) -> list[str]:
    """Return ``driver 570.26 serves 38 of 40``, and a line for each newer driver that is needed."""
    asking = {path: need for path, need in needs.items() if need is not None}
    known = sorted({need.driver for need in asking.values() if need.driver})
    lines = []
    for driver in known:
        served = [path for path, need in asking.items() if need.is_met(driver)]
        later = [path for path, need in asking.items() if need.driver > driver]
        older = [path for path, need in asking.items() if () < need.driver < driver]
        older = [path for path in older if path not in served]
        lines.append(f"driver {dotted(driver)} serves {len(served)} of {len(asking)}")
        if later:
            lines[-1] += f"; {len(later)} need a newer one: {', '.join(later)}"
        if older:
            lines[-1] += f"; {len(older)} need an older one: {', '.join(older)}"
    for path, need in asking.items():
        if need.problem is not None:
            lines.append(f"unknown: {path}: {need.problem}")
        elif not need.driver:
            lines.append(f"unknown, no driver known here is enough: {path}")
    lines += [f"no NVIDIA driver needed: {path}" for path, need in needs.items() if need is None]
    return lines
