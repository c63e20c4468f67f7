"""Run in exo's own interpreter: place what standard input lists with exo's own `place_instance`.

Each case has nodes, connections and a model as plain data; what comes out is who has how many
layers, and by which address each node of a ring reaches the next. Works on exo with and without the
patches: what a version has no field for is left out.
"""

from __future__ import annotations

import json
import sys
from inspect import signature
from typing import Any

from exo.master.placement import place_instance
from exo.shared.models.model_cards import ModelCard, ModelId, ModelTask
from exo.shared.topology import Topology
from exo.shared.types.backends import Backend
from exo.shared.types.commands import PlaceInstance
from exo.shared.types.common import CommandId, NodeId
from exo.shared.types.memory import Memory
from exo.shared.types.multiaddr import Multiaddr
from exo.shared.types.profiling import MemoryUsage, NetworkInterfaceInfo, NodeNetworkInfo
from exo.shared.types.topology import Connection, SocketConnection
from exo.shared.types.worker.instances import InstanceMeta
from exo.shared.types.worker.shards import Sharding


def known(kind: Any, values: dict[str, Any]) -> Any:
    """Make a value of exo's of the fields that this version has."""
    return kind(**{name: value for name, value in values.items() if name in kind.model_fields})


def memory(node: dict[str, Any]) -> MemoryUsage:
    """Return what exo knows of a node's memory."""
    ram = Memory.from_bytes(node["ram"])
    engine = node["engine"]
    values = {
        "ram_total": ram,
        "ram_available": ram,
        "swap_total": Memory(),
        "swap_available": Memory(),
        "engine_available": None if engine is None else Memory.from_bytes(engine),
    }
    usage: MemoryUsage = known(MemoryUsage, values)
    return usage


def place(case: dict[str, Any]) -> dict[str, Any]:
    """Place one model on one cluster."""
    topology, nodes, model = Topology(), case["nodes"], case["model"]
    ids = {name: NodeId(name) for name in nodes}
    for node_id in ids.values():
        topology.add_node(node_id)
    for source, sink, address in case["edges"]:
        edge = SocketConnection(sink_multiaddr=Multiaddr(address=f"/ip4/{address}/tcp/1234"))
        topology.add_connection(Connection(source=ids[source], sink=ids[sink], edge=edge))
    card = ModelCard(
        model_id=ModelId("a/model"),
        storage_size=Memory.from_bytes(model["size"]),
        n_layers=model["layers"],
        hidden_size=8192,
        num_key_value_heads=8,
        supports_tensor=True,
        tasks=[ModelTask.TextGeneration],
        backends=[Backend(name) for name in model["backends"]],
    )
    more: dict[str, Any] = {}
    if case["by_speed"] and "engine_speeds" in signature(place_instance).parameters:
        from exo.shared.types.profiling import EngineSpeed

        more["engine_speeds"] = {
            ids[name]: EngineSpeed(**node["speed"]) for name, node in nodes.items() if node["speed"]
        }
    command = PlaceInstance(
        command_id=CommandId(),
        model_card=card,
        sharding=Sharding(case["sharding"]),
        instance_meta=InstanceMeta.MlxRing,
        min_nodes=case["min_nodes"],
    )
    try:
        instance: Any = place_instance(
            command,
            topology,
            {},
            {ids[name]: memory(node) for name, node in nodes.items()},
            {
                ids[name]: NodeNetworkInfo(
                    interfaces=[known(NetworkInterfaceInfo, face) for face in node["interfaces"]]
                )
                for name, node in nodes.items()
            },
            {ids[name]: [Backend(one) for one in node["backends"]] for name, node in nodes.items()},
            **more,
        ).popitem()[1]
    except ValueError as error:
        return {"error": str(error)}
    assigned = instance.shard_assignments
    layers = {}
    for node_id, runner_id in assigned.node_to_runner.items():
        shard = assigned.runner_to_shard[runner_id]
        layers[str(node_id)] = shard.end_layer - shard.start_layer
    hosts = {
        str(node_id): [host.ip for host in reached if host.ip not in ("0.0.0.0", "198.51.100.1")]
        for node_id, reached in instance.hosts_by_node.items()
    }
    return {"layers": layers, "hosts": hosts, "sharding": str(case["sharding"])}


json.dump([place(case) for case in json.load(sys.stdin)], sys.stdout)
