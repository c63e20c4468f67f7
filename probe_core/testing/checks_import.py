"""Checks of importing a prober's module: cheap, silent, without effects, with the hook in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from probe_core.isolation.launch import _paths
from probe_core.testing.case import run_case, watch_case
from probe_core.testing.checks_package import Declared

__all__ = ["EFFECTS", "Importing", "effects"]

# The core's child starts so, too: isolated, without site, with the host's path.
_TIMED = """
import sys, time
sys.path[:] = {paths!r}
import probe_core.api
start = time.perf_counter()
import {module}
print((time.perf_counter() - start) * 1000)
"""


class Importing(Declared):
    """About the module itself."""

    def test_it_can_be_imported_and_called(self, tmp_path: Path) -> None:
        """In the core's own child: no editable path, no user's site."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        failed = run.status in ("load_error", "crashed", "protocol")
        assert not failed, f"mend the module: {run.status}: {run.reason}"

    def test_importing_is_cheap(self) -> None:
        """Import a vendor's library inside the hook: most nodes do not need it."""
        code = _TIMED.format(paths=_paths(), module=self.target.partition(":")[0])
        times = []
        # The first may compile, and the least of four is what the module costs on a busy machine.
        for _ in range(4):
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", code],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"it cannot be imported:\n{done.stderr}"
            times.append(float(done.stdout.splitlines()[-1]))
        assert min(times) <= self.import_ms, (
            f"importing takes {min(times):.0f} ms of {self.import_ms:g}: "
            "import what is slow inside the hook, once hardware is found"
        )

    def test_importing_prints_nothing(self) -> None:
        """Output of a child is noise in the report's tail, where errors should be."""
        code = f"import sys; sys.path[:] = {_paths()!r}; import {self.target.partition(':')[0]}"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
        )
        printed = done.stdout + done.stderr
        assert not printed, f"importing prints {printed[:200]!r}: remove it, or yield a finding"

    def test_it_leaves_the_process_as_it_is(self, tmp_path: Path) -> None:
        """Environment, working directory, umask, signals, threads, streams."""
        _, noted = watch_case(self.prober(), self.empty(tmp_path)[0])
        assert not noted["changed"], f"put back what the call changes: {noted['changed']}"

    def test_it_has_no_effects_without_hardware(self, tmp_path: Path) -> None:
        """Nothing is written, no tool or library is loaded where nothing of its own is."""
        _, noted = watch_case(self.prober(), self.empty(tmp_path)[0])
        actions = effects(noted["events"], frozenset())
        assert not actions, f"look for your hardware among the machine's files first: {actions}"


EFFECTS = {
    "library": ("ctypes.dlopen",),
    "process": ("subprocess.Popen", "os.posix_spawn", "os.fork"),
    "device": ("device",),
    "temporary": ("temporary",),
}
"""What a prober may declare in `may`, and the events that it then may cause."""


def effects(events: list[list[str]], may: frozenset[str]) -> list[str]:
    """Return the events that the prober did not declare, as text."""
    allowed = {event for kind in may for event in EFFECTS[kind]}
    return [f"{event} {argument}" for event, argument in events if event not in allowed]
