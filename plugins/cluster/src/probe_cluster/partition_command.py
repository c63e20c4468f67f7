"""`probe partition`: share a model's layers among nodes, and compare what each way would cost."""

from __future__ import annotations

from dataclasses import asdict

from probe_cluster.planning.options import (
    MODEL_HELP,
    add_cluster_options,
    add_model_options,
    layers_of,
    links_of,
    members_of,
)
from probe_cluster.shared import names, sharing
from probe_core.commands import CommandError, folded, grid, size
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence
    from typing import Any

    from probe_cluster import Plan
    from probe_cluster.planning.answer import Answer
    from probe_cluster.planning.efficiency import Range
    from probe_cluster.planning.launch import Line
    from probe_cluster.planning.serving import Load, Serving
    from probe_cluster.planning.strategies import Comparison
    from probe_core.commands import Context

HELP = "Share a model's layers among nodes, and compare what each strategy would cost."
EXAMPLES = (
    ("probe partition *.json --model llama-3.1-70b", "compare all strategies"),
    ("probe partition *.json --model 70b --bits 4 --context 8192", "quantised, with a KV cache"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe partition`."""
    add_cluster_options(parser)
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        required=True,
        metavar="M",
        help=MODEL_HELP,
    )
    add_model_options(group)
    group = parser.add_argument_group("many requests")
    for flag, metavar, meaning in (
        ("requests", "N", "so many requests at once: throughput, speed of each, first token"),
        ("prompt", "TOKENS", "tokens of each prompt, such as 2k"),
        ("answer", "TOKENS", "tokens of each answer (256)"),
    ):
        group.add_argument(f"--{flag}", metavar=metavar, help=meaning)
    parser.add_argument(
        "--as",
        dest="starts",
        metavar="ENGINE",
        help="print what starts the plan: vllm, llama.cpp, mlx or exo; each figure with its reason",
    )
    group = parser.add_argument_group("planning")
    group.add_argument("--strategy", metavar="S", help="plan by this one alone")
    group.add_argument(
        "--use", default="available", choices=("available", "total"), help="memory that may be used"
    )
    group.add_argument("--reserve", type=float, metavar="SHARE", help="memory left free (0.05)")
    group.add_argument(
        "--fit", default="available", metavar="POLICY", help="available, total, or home (twice)"
    )
    group.add_argument(
        "--bandwidth",
        action="append",
        default=[],
        metavar="NODE=SPEED",
        help="memory bandwidth of a node whose report lacks it: pi=17GB/s",
    )
    group.add_argument("--assume-bandwidth", metavar="SPEED", help="… of all such nodes")
    group.add_argument(
        "--engine",
        default="auto",
        metavar="ENGINE",
        help="llama.cpp, mlx, exo, vllm, sglang, ollama …, or none: theoretical peaks (auto)",
    )
    for flag, metavar, meaning in (
        ("layers-on", "NODE=N", "give a node so many layers by hand; 0 leaves it out"),
        ("memory", "NODE=SIZE", "memory of a node that a model may take: studio=96GiB"),
    ):
        group.add_argument(f"--{flag}", action="append", default=[], metavar=metavar, help=meaning)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the plans; exit with 1 when the model does not fit."""
    from probe_cluster.planning.answer import answer, answer_many
    from probe_cluster.planning.predict import RESERVE
    from probe_cluster.planning.strategies import STRATEGIES

    if args.starts is not None:
        args.starts = _form(args.starts)
        # Who wants an engine's line wants the plan that it makes.
        args.engine = args.starts if args.engine == "auto" else args.engine
    links = links_of(args)
    members = members_of(args, links)
    load = _load(args)
    options: dict[str, Any] = {
        "links": links,
        "engine": args.engine,
        "policy": args.fit,
        "use": args.use,
        "reserve": RESERVE if args.reserve is None else args.reserve,
        "strategies": _strategies(args.strategy, STRATEGIES),
        "pinned": layers_of(args.layers_on),
    }
    if load is None:
        found, served = answer(members, vars(args), **options), None
    else:
        found, served = answer_many(members, vars(args), load, **options)
    started = _started(args, found, served)
    if args.json:
        from probe_cluster.planning.document import answer_document, serving_document

        extra: dict[str, Any] = {} if served is None else {"serving": serving_document(served)}
        extra |= {"launch": [asdict(line) for line in started]} if started else {}
        context.json(answer_document(found) | extra)
    else:
        for line in _lines(found, context) if served is None else _serving(found, served, context):
            context.out(line)
        for line in _launch(started, context):
            context.out(line)
    if served is not None:
        return 0
    return 0 if found.fit.ok and found.comparison.best is not None else 1


def _form(text: str) -> str:
    """Return the engine whose line is to be printed; raises `CommandError` for others."""
    from probe_cluster.planning.engines import engine_name
    from probe_cluster.planning.launch import FORMS
    from probe_cluster.shared import ClusterError

    try:
        name = engine_name(text)
    except ClusterError:
        name = ""
    if name not in FORMS:
        raise CommandError(f"there is no line for {text!r}; there are {', '.join(FORMS)}")
    return name


def _load(args: argparse.Namespace) -> Load | None:
    """Return how many requests are to be served, where they are asked for."""
    from probe_cluster.planning.model_spec import tokens
    from probe_cluster.planning.serving import ANSWER, Load

    if args.requests is None and args.prompt is None:
        return None
    if args.requests is None or args.prompt is None:
        raise CommandError("--requests needs --prompt, and --prompt needs --requests")
    answer = ANSWER if args.answer is None else int(tokens(args.answer, "answer"))
    return Load(int(tokens(args.requests, "requests")), int(tokens(args.prompt, "prompt")), answer)


def _started(args: argparse.Namespace, found: Answer, served: Serving | None) -> list[Line]:
    """Return what starts the plan, where it is asked for: of many requests the most throughput."""
    if args.starts is None:
        return []
    from probe_cluster.planning.launch import launch
    from probe_cluster.planning.predict import RESERVE

    return launch(
        found,
        args.starts,
        layout=None if served is None else served.most,
        load=None if served is None else served.load,
        reserve=RESERVE if args.reserve is None else args.reserve,
    )


def _launch(lines: Sequence[Line], context: Context) -> list[str]:
    """Return each line as it is to be run, and beneath it the reasons of its figures."""
    shown: list[str] = []
    for line in lines:
        shown += ["", f"{line.node}:", f"  {line.text}"]
        for figure, why in line.why:
            shown += [f"    {row}" for row in folded(f"{figure}: {why}", context.width - 4)]
    return shown


def _serving(found: Answer, served: Serving, context: Context) -> list[str]:
    """Return the page of many requests."""
    from probe_cluster.planning.serving import throughput

    load, lines = served.load, _head(found, context)
    sentence = (
        f"{counted(load.requests, 'request')} of {counted(load.prompt, 'token')},"
        f" {counted(load.answer, 'token')} of answer each"
    )
    columns = ("TOKENS/S", "EACH", "FIRST TOKEN", "LAST'S", "MEMORY")
    rows: list[tuple[str, ...]] = [("BEST FOR", "LAYOUT", "DEVICES", *columns)]
    for best_at, layout in served.layouts:
        rows.append(
            (
                best_at,
                layout.name,
                str(layout.devices),
                " to ".join(map(throughput, served.total_range(layout) or (layout.total,))),
                f"{layout.each:.3g}",
                _time(layout.first_token),
                _time(layout.last_first_token),
                size(layout.memory),
            )
        )
        if layout.waiting:
            sentence += f"; {layout.name}: {layout.running} have room at once, others wait"
    lines += ["", *folded(sentence, context.width)]
    lines += ["", *grid(rows, context.width, right=rows[0][2:], wrap="LAYOUT")]
    notes = [*found.notes, *served.notes]
    for note in notes:
        lines += folded(note, context.width)
    rule = (
        "TOKENS/S of all answers, prompts included in the time; EACH while an answer is written;"
        " FIRST TOKEN of a request that comes alone, and the LAST'S of all that come at once;"
        f" MEMORY of each device. {_throughputs(served)}"
    )
    return [*lines, "", *folded(rule, context.width)]


def _throughputs(served: Serving) -> str:
    """Return what the range of TOKENS/S rests on."""
    if served.like is None:
        return "No measured case is like this, so no range is given."
    return f"TOKENS/S is a range, predicted without the publication: {_off(served.like)}."


def _off(like: Range) -> str:
    """Return how far predictions of a class were off."""
    own = (
        f"{counted(like.cases, 'measured case')} like this, of"
        f" {counted(like.publications, 'publication')},"
    )
    few = f" {'is' if like.cases == 1 else 'are'} too few; {like.wider}," if like.wider else ""
    were = "was" if like.cases == 1 and not few else "were"
    return f"{own}{few} {were} off at most {like.factor:g} times in nine of ten"


def _strategies(name: str | None, names: Iterable[str]) -> tuple[str, ...]:
    if name is None:
        return tuple(names)
    if name not in names:
        from probe_core.commands import did_you_mean

        raise CommandError(f"{name!r} is no strategy: {did_you_mean(name, names)}")
    return (name,)


def _head(found: Answer, context: Context) -> list[str]:
    """Return whether the model fits, the engine, what nobody probed, and what is not counted."""
    from probe_cluster.planning.offers import left_out

    model = found.model
    name = model.name or f"{model.params / 1e9:.3g}b ({model.source or 'of equal layers'})"
    layers = counted(model.layers, "layer")
    lines = folded(f"{name}, {layers}: {found.fit.sentence}", context.width)
    lines += folded(f"engine {found.choice.engine}: {found.choice.reason}", context.width)
    members = found.choice.members
    for reasons in (
        sharing((member.id, member.reasons.get("origin")) for member in members),
        sharing((member.id, left_out(member.reasons)) for member in members),
    ):
        for reason, own in reasons.items():
            lines += folded(f"{names(own)}: {reason}", context.width)
    return lines


def _lines(found: Answer, context: Context) -> list[str]:
    lines, comparison = _head(found, context), found.comparison
    rows: list[tuple[str, ...]] = [
        ("", "STRATEGY", "TOKENS/S", "SLOWEST", "HOPS", "NODES", "WHERE")
    ]
    rows += [_row(plan, plan is comparison.best) for plan in comparison.plans]
    lines += ["", *grid(rows, context.width, right=rows[0][2:6], wrap="WHERE")]
    for strategy, reason in comparison.refused:
        lines += folded(f"{strategy}: no plan: {reason}", context.width)
    if comparison.best is not None:
        lines += ["", *_stages(comparison.best, context)]
    # Where a plan is chosen, what is wrong with the others is of no use.
    notes = [comparison.best] if comparison.best is not None else comparison.plans
    sentences = [*found.notes, *(note for plan in notes for note in plan.notes)]
    for note in dict.fromkeys(sentences):
        lines += folded(note, context.width)
    return [*lines, "", *folded(context.encodable(_rule(comparison, notes)), context.width)]


def _rule(comparison: Comparison, shown: Sequence[Plan]) -> str:
    """Return what the star means, and what the times rest on, where one is known."""
    timed = [plan for plan in shown if plan.seconds_per_token is not None]
    if timed:
        star = "* least time per token · " if comparison.best else ""
        return f"{star}{_basis(timed)}"
    return "* the time per token is unknown" if comparison.best else "no time per token is known"


def _basis(plans: Sequence[Plan]) -> str:
    """Return what the times rest on, and how far off such predictions were."""
    from probe_cluster.planning.predict import PEAKS

    sentences = dict.fromkeys(sentence for plan in plans for sentence in plan.basis)
    basis = "; ".join(sentences)
    if not plans or all(plan.bound for plan in plans):
        if sentences.keys() <= {PEAKS}:
            return "times are lower bounds, from theoretical peaks"
        return f"times are lower bounds · {basis}"
    return f"{_measured(plans[0])} · {basis}"


def _measured(plan: Plan) -> str:
    return "no measured case is like this" if plan.like is None else f"the range: {_off(plan.like)}"


def _speed(plan: Plan) -> str:
    """Return tokens per second: a range where it is known how far off such predictions are."""
    if plan.tokens_per_second is None or not plan.fits:
        return "–"
    if plan.tokens_range is None:
        return f"{plan.tokens_per_second:.3g}"
    low, high = plan.tokens_range
    return f"{low:.3g} to {high:.3g}"


def _row(plan: Plan, best: bool) -> tuple[str, ...]:
    where = ", ".join(f"{stage.node} {stage.layers}" for stage in plan.stages)
    return (
        "*" if best else "",
        plan.strategy,
        _speed(plan),
        _time(plan.slowest_stage),
        _time(plan.hop_seconds),
        str(len(plan.stages)),
        where if plan.fits else f"does not fit: {where}",
    )


def _stages(plan: Plan, context: Context) -> list[str]:
    rows: list[tuple[str, ...]] = [("NODE", "LAYERS", "MEMORY", "OF", "TIME", "NEXT BY", "HOP")]
    rows += [
        (
            stage.node,
            f"{stage.start_layer}–{stage.end_layer}",
            size(stage.memory),
            size(stage.room),
            _time(stage.seconds),
            stage.link or "",
            _time(stage.hop_seconds) if stage.link else "",
        )
        for stage in plan.stages
    ]
    right = ("LAYERS", "MEMORY", "OF", "TIME", "HOP")
    return grid(rows, context.width, right=right, wrap="NODE")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds >= 600:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
