"""A stand-in for Celery 5.7, as far as the recipes use it: a task runs where it is called.

Names and parameters are those of Celery's API reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Retry(Exception):
    """Raised by `Task.retry`, so that the task ends here."""


class Task(Generic[P, R]):
    """A registered task; a bound one is the first argument of its own function."""

    def __init__(self, function: Callable[..., R], max_retries: int | None) -> None:
        self._function = function
        self.max_retries = max_retries

    def retry(self, *, countdown: float, exc: Exception) -> Retry:
        """Raise `Retry`: the worker runs the task again after `countdown` seconds."""
        raise Retry(f"in {countdown} s") from exc

    def __call__(self, *arguments: Any) -> R:
        return self._function(self, *arguments)


class Celery:
    """An application: its tasks."""

    def __init__(self, main: str) -> None:
        self.main = main

    def task(
        self, *, bind: bool, max_retries: int | None = 3
    ) -> Callable[[Callable[..., R]], Task[..., R]]:
        """Register a function."""
        assert bind, "the recipes use bound tasks only"
        return lambda function: Task(function, max_retries)
