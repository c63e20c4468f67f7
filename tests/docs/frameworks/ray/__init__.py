"""A stand-in for Ray 2.60, as far as the recipes use it: typed, and tasks run in this process.

Names, parameters and the keys of `nodes()` are those of Ray's public API reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypedDict, TypeVar

T = TypeVar("T")
_NODE = "ab" * 28


class _Node(TypedDict):
    NodeID: str
    Alive: bool


class ObjectRef(Generic[T]):
    """A value that a task will have."""

    def __init__(self, value: T) -> None:
        self.value = value


class RemoteFunction(Generic[T]):
    """A function that runs as a task; calling it directly is an error, as with Ray."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function

    def options(self, *, scheduling_strategy: object) -> RemoteFunction[T]:
        """Return the same function, to be placed by that strategy."""
        node = getattr(scheduling_strategy, "node_id", None)
        assert node == _NODE, f"no node {node}"
        return self

    def remote(self) -> ObjectRef[T]:
        """Start the task."""
        return ObjectRef(self._function())


def init(*, num_cpus: int | None = None, address: str | None = None) -> None:
    """Start a node here."""


def remote(
    *, num_cpus: float = 1, num_gpus: float = 0, max_retries: int = 3
) -> Callable[[Callable[[], T]], RemoteFunction[T]]:
    """Make a function a task."""
    return RemoteFunction


def nodes() -> list[_Node]:
    """Return the nodes of the cluster, dead ones too."""
    return [{"NodeID": _NODE, "Alive": True}, {"NodeID": "cd" * 28, "Alive": False}]


def wait(
    refs: list[ObjectRef[T]], *, num_returns: int, timeout: float
) -> tuple[list[ObjectRef[T]], list[ObjectRef[T]]]:
    """Return the refs that are ready, and the others."""
    assert num_returns == len(refs)
    return refs, []


def get(ref: ObjectRef[T]) -> T:
    """Return a task's value, which went through a pickle."""
    import pickle

    value: Any = pickle.loads(pickle.dumps(ref.value))
    result: T = value
    return result
