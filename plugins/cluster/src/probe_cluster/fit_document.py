"""The document of `probe fit --json`; names and nesting are a contract, fields are only added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from probe_cluster.model import Model
from probe_cluster.node_fit import NodeFit

__all__ = ["fit_document", "model_document"]

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
        "context": model.context,
        "weight_bytes": model.weight_bytes,
        "read_bytes": model.read_bytes,
        "kv_bytes": model.kv_bytes,
        "kind": model.kind,
        "source": model.source,
    }
