"""A machine more, a faster memory or a faster link never makes an answer slower."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Member
from probe_cluster.planning.answer import answer
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.reading import read_members

MACHINES = (
    "Mac Studio M3 Ultra 256GB", "Mac mini M4 Pro 64GB", "MacBook Pro M4 Max 128GB", "DGX Spark",
    "Framework Desktop 128GB", "2x RTX 3090", "2x RTX 3090, nvlink", "RTX 4090", "4x RTX 4090",
    "RTX 5090", "RTX 3060 12GB", "GTX 1080 Ti", "Tesla P40", "8x H100 SXM",
)  # fmt: skip
MODELS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "bits": "q4_k_m"}, {"model": "llama-3.3-70b", "bits": "q4_k_m"},
    {"model": "qwen3-30b-a3b", "bits": "8bit"}, {"model": "qwen3-235b", "bits": "4bit"},
    {"model": "gpt-oss-120b"}, {"model": "gemma-3-27b", "bits": "q8_0", "context": 32768},
)  # fmt: skip
# Each has no less bandwidth and no more latency than the one before.
SLOW_TO_FAST = ("wifi", "1gbe", "10gbe", "100gbe", "roce")


def seconds(members: Sequence[Member], model: dict[str, Any], kind: str, engine: str) -> float:
    try:
        return answer(members, model, links=Links(default=KINDS[kind]), engine=engine).seconds
    except ClusterError:
        return float("inf")


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(6))
def test_more_is_never_slower(seed: int) -> None:
    source = random.Random(seed)
    known = {name: read_members([], have=[name])[0] for name in MACHINES}
    answered = 0
    for _ in range(60):
        chosen = source.choices(MACHINES, k=source.randint(1, 4))
        members = [replace(known[name], id=f"n{at}") for at, name in enumerate(chosen)]
        model, place = source.choice(MODELS), source.randrange(len(SLOW_TO_FAST) - 1)
        kind, told = SLOW_TO_FAST[place], f"{chosen} {model} {SLOW_TO_FAST[place]}"
        before = seconds(members, model, kind, "auto") * (1 + 1e-9)
        answered += before < float("inf")
        another = source.choice(MACHINES)
        larger = [*members, replace(known[another], id="more")]
        assert seconds(larger, model, kind, "auto") <= before, f"{told} and {another}"
        # By one engine: what is usual may change with the link.
        engine = source.choice(["llama.cpp", "exo"])
        slower = seconds(members, model, kind, engine) * (1 + 1e-9)
        assert seconds(members, model, SLOW_TO_FAST[place + 1], engine) <= slower, told
        # A member without an offer keeps the bandwidth that it is given.
        bare = [replace(member, offer=None) for member in members]
        at = source.randrange(len(bare))
        bandwidth = bare[at].bandwidth
        assert bandwidth is not None
        faster = [*bare]
        faster[at] = replace(bare[at], bandwidth=2 * bandwidth)
        slower = seconds(bare, model, kind, "llama.cpp") * (1 + 1e-9)
        assert seconds(faster, model, kind, "llama.cpp") <= slower, told
    assert answered >= 30
