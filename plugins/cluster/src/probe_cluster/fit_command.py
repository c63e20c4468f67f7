"""`probe fit`: does a model fit on this computer, on which device, and what would make it fit."""

from __future__ import annotations

from itertools import chain

from probe_cluster.planning.options import MODEL_HELP, add_have, add_model_options
from probe_cluster.shared import sharing
from probe_core.commands import CommandError, add_probe_options, folded, grid, size
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from probe_cluster import Model
    from probe_cluster.planning.fitting import NodeFit
    from probe_core.commands import Context

HELP = "Check whether a model fits on this computer, or on those that report files describe."
EXAMPLES = (
    ("probe fit llama-3.1-8b --bits q4_k_m --context 8192", "on this computer"),
    ("probe fit gpt-oss-120b desk.json studio.json", "on each of these nodes"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe fit`."""
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="what `probe --json` wrote on a node (default: probe this computer)",
    )
    add_have(parser)
    group = parser.add_argument_group("model")
    add_model_options(group)
    group = parser.add_argument_group("memory")
    group.add_argument("--reserve", type=float, metavar="SHARE", help="memory left free (0.05)")
    group.add_argument(
        "--devices",
        default="all",
        metavar="WHICH",
        help="what counts: all visible GPUs (default), primary, cpu, or an id",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the answers; exit with 1 when the model fits on none of the nodes."""
    from probe_cluster.planning.model_spec import parse_model

    model = parse_model(vars(args))
    answers = dict(_answers(args, context, model))
    if args.json:
        from probe_cluster.planning.document import fit_document

        context.json(fit_document(model, answers))
    else:
        for line in _lines(model, answers, context):
            context.out(line)
    return 0 if any(answer.answer != "no" for answer in answers.values()) else 1


def _answers(
    args: argparse.Namespace, context: Context, model: Model
) -> Iterator[tuple[str, NodeFit]]:
    from probe_cluster.planning.fitting import node_fit
    from probe_cluster.planning.predict import RESERVE
    from probe_cluster.shared import ClusterError

    reserve = RESERVE if args.reserve is None else args.reserve
    reports = _reports(args, context)
    for name, report in reports:
        try:
            yield name, node_fit(report, model, args.devices, reserve)
        except ClusterError as error:
            raise CommandError(f"{name}: {error}") from None


def _reports(args: argparse.Namespace, context: Context) -> Iterable[tuple[str, Any]]:
    if args.files or args.have:
        from probe_cluster.planning.reading import described, each_report

        return chain(each_report(args.files), described(args.have, None))
    return [("this computer", context.report())]


def _lines(model: Model, answers: Mapping[str, NodeFit], context: Context) -> list[str]:
    lines: list[str] = []
    for name, answer in answers.items():
        lines += folded(f"{name}: {answer.sentence}", context.width)
    several = len(answers) > 1
    if several and all(each.answer == "no" and not each.refused for each in answers.values()):
        lines += folded("`probe partition` says whether they hold it together", context.width)
    lines += ["", *folded(_model(model), context.width)]
    for fact in ("origin", "left_out"):
        notes = sharing((name, getattr(each, fact)) for name, each in answers.items())
        for note, own in notes.items():
            lines += folded(f"{', '.join(own)}: {note}", context.width)
    for name, answer in answers.items():
        # Of what does not fit there is nothing to show beneath the answer.
        if answer.answer != "no":
            lines += ["", *([f"{name}:"] if several else []), *_table(answer, context)]
        if answer.context is not None and answer.answer == "yes":
            end = {"model": "as the model allows", "memory": "as its memory allows"}
            sentence = f"longest context: {answer.context} tokens, {end[answer.context_by or '']}"
            lines += folded(sentence, context.width)
    if model.unknown_cache is not None and any(own.answer != "no" for own in answers.values()):
        lines += folded(f"longest context: not known: {model.unknown_cache}", context.width)
    return lines


def _model(model: Model) -> str:
    name = model.name or f"{model.params / 1e9:.3g}b"
    tokens = counted(model.context, "token")
    cache = f", KV cache of {tokens} {size(model.kv_bytes)}" if model.context else ""
    active = f" ({model.active_params / 1e9:.3g} active)" if model.active_params else ""
    quant = f" ({model.quant})" if model.quant and not model.published else ""
    shape = f"; {model.source}" if model.name is None and model.source else ""
    return (
        f"{name}: {model.params / 1e9:.4g} billion parameters{active},"
        f" {counted(model.layers, 'layer')}, {size(model.weight_bytes)} at"
        f" {model.bits:.3g} bits{quant}{cache}{shape}"
    )


def _table(answer: NodeFit, context: Context) -> list[str]:
    rows: list[tuple[str, ...]] = [("DEVICE", "FREE", "LAYERS")]
    for device in answer.devices:
        layers = f"{device.layers} of {answer.layers}"
        rows.append((device.device, size(device.free), layers))
    return grid(rows, context.width, right=("FREE", "LAYERS"))
