"""Run a plugin's source in a real child, as the core does, and hand back its run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe_core.isolation.launch import run_probers
from probe_core.isolation.run import Run
from probe_core.machine import Machine
from probe_core.registry.prober import Prober

HEAD = "import os, sys, time\nfrom probe_core.api import *\n"


@pytest.fixture
def make_prober(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Prober]:
    """Return a function that writes a module on the path and returns its prober."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(source: str, name: str = "x", deadline_s: float = 10.0, head: str = HEAD) -> Prober:
        (tmp_path / f"x_{name}.py").write_text(head + textwrap.dedent(source), encoding="utf-8")
        prober = Prober(name, f"x_{name}", f"probe-{name}", "1.0")
        prober.deadline_s = deadline_s
        return prober

    return make


@pytest.fixture
def run_source(make_prober: Callable[..., Prober]) -> Callable[..., Run]:
    """Return a function that runs one plugin's source; keywords go to `run_probers`."""

    def run(source: str, deadline_s: float = 10.0, **options: Any) -> Run:
        machine = options.pop("machine", None) or Machine()
        bus = options.pop("bus", ())
        return run_probers([make_prober(source, deadline_s=deadline_s)], machine, bus, **options)[0]

    return run


@pytest.fixture
def run_hook(run_source: Callable[..., Run]) -> Callable[..., Run]:
    """Return a function that runs the body of a `probe_devices(request)`."""

    def run(body: str, **options: Any) -> Run:
        body = textwrap.indent(textwrap.dedent(body), "    ")
        return run_source(f"@hookimpl\ndef probe_devices(request):\n{body}", **options)

    return run
