"""Plans as plain data for scripts; names and nesting are a contract, fields are only added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from probe_cluster.planning.answer import Answer
from probe_cluster.planning.fitting import Fit, NodeFit
from probe_cluster.planning.model import Model
from probe_cluster.planning.predict import Plan, Stage, token_seconds
from probe_cluster.planning.serving import Serving
from probe_cluster.planning.setting import Setting
from probe_cluster.planning.strategies import Comparison
from probe_cluster.planning.tensor import teams

SCHEMA = 1


def fit_document(model: Model, answers: Mapping[str, NodeFit]) -> dict[str, Any]:
    """Return the answers as plain data. Bytes; null is unknown."""
    nodes = [
        {"node": name, "sentence": answer.sentence} | asdict(answer)
        for name, answer in answers.items()
    ]
    return {"schema": SCHEMA, "model": model_document(model), "nodes": nodes}


def model_document(model: Model) -> dict[str, Any]:
    """Return the figures of a model that its plans rest on."""
    return {
        "name": model.name,
        "params": model.params,
        "active_params": model.active_params,
        "layers": model.layers,
        "bits": model.bits,
        "quant": model.quant,
        "context": model.context,
        "longest_context": model.longest,
        "weight_bytes": model.weight_bytes,
        "read_bytes": model.read_bytes,
        "kv_bytes": model.kv_bytes,
        "kind": model.kind,
        "source": model.source,
    }


def answer_document(found: Answer) -> dict[str, Any]:
    """Return the document of `probe partition --json`. Bytes and seconds; null is unknown."""
    engine = {
        "name": found.choice.engine,
        "reason": found.choice.reason,
        "nodes": [member.id for member in found.choice.members],
        "notes": list(found.notes),
    }
    return comparison_document(found.model, found.fit, found.comparison) | {"engine": engine}


def serving_document(served: Serving) -> dict[str, Any]:
    """Return the layouts of many requests. Seconds, bytes, tokens per second; null is unknown."""
    layouts = [
        {
            "best_at": best_at.split(", "),
            "name": layout.name,
            "total_range": served.total_range(layout),
        }
        | asdict(layout)
        for best_at, layout in served.layouts
    ]
    return {
        "load": served.load._asdict(),
        "nodes": list(served.nodes),
        "layouts": layouts,
        "like": None if served.like is None else served.like._asdict(),
        "notes": list(served.notes),
    }


def comparison_document(model: Model, answer: Fit, comparison: Comparison) -> dict[str, Any]:
    """Return a comparison and whether the model fits. Bytes and seconds; null is unknown."""
    return {
        "schema": SCHEMA,
        "model": model_document(model),
        "fit": asdict(answer) | {"sentence": answer.sentence},
        "best": comparison.best.strategy if comparison.best else None,
        "plans": [plan_document(plan) for plan in comparison.plans],
        "refused": [{"strategy": name, "reason": reason} for name, reason in comparison.refused],
        "costs": _costs(comparison.setting),
    }


# A page of hops is of use to a checker, a million of them to nobody.
_MOST_HOPS = 64


def _costs(setting: Setting | None) -> dict[str, Any] | None:
    """Return the costs that all plans are judged by, so that anybody can check one.

    A token takes, over the nodes with layers, layers x layer_seconds + fixed_seconds, and the hops
    of their ring in order, the last one back to the first; a node alone has no hop. A team of nodes
    that splits layers counts as one: its hop is the least of its nodes', and one to it takes its
    spread_seconds more.
    """
    if setting is None:
        return None
    size, links = setting.model.hop_bytes, setting.links
    names = [member.id for member in setting.members]
    nodes = {
        member.id: {
            "layer_seconds": token_seconds(member, setting.model),
            "fixed_seconds": 0.0,
            "most": most,
        }
        for member, most in zip(setting.members, setting.caps, strict=True)
    }
    pairs = names if len(names) <= _MOST_HOPS else []
    hops = {a: {b: links.seconds(a, b, size) for b in pairs if b != a} for a in pairs}
    return {
        "nodes": nodes,
        "hops": hops,
        "default_hop": links.default.seconds(size) + links.software,
        "teams": [
            {
                "nodes": [names[at] for at in team.nodes],
                "layer_seconds": team.layer,
                "most": min(team.most, setting.model.layers),
                "spread_seconds": team.reduce,
            }
            for team in teams(setting)
        ],
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return one plan as plain data."""
    return {
        "strategy": plan.strategy,
        "parallel": plan.parallel,
        "gap": plan.gap,
        "fits": plan.fits,
        "seconds_per_token": plan.seconds_per_token,
        "tokens_per_second": plan.tokens_per_second,
        "basis": list(plan.basis),
        "range": None if plan.tokens_range is None else list(plan.tokens_range),
        "measured_cases": 0 if plan.like is None else plan.like.cases,
        "measured_publications": 0 if plan.like is None else plan.like.publications,
        "measured_wider": plan.like.wider if plan.like else "",
        "lower_bound": plan.bound,
        "slowest_stage": plan.slowest_stage,
        "seconds_per_prompt_token": plan.seconds_per_prompt_token,
        "hop_seconds": plan.hop_seconds,
        "stages": [_stage(stage) for stage in plan.stages],
        "notes": list(plan.notes),
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "node": stage.node,
        "start_layer": stage.start_layer,
        "end_layer": stage.end_layer,
        "layers": stage.layers,
        "memory": stage.memory,
        "room": stage.room,
        "seconds": stage.seconds,
        "split_with": list(stage.split_with),
        "link": stage.link,
        "hop_seconds": stage.hop_seconds,
    }
