"""Checks on machines that have none of a prober's hardware: the case on most nodes."""

from __future__ import annotations

from pathlib import Path

from probe_core.testing.case import Case, run_case, watch_case
from probe_core.testing.checks_package import Declared

__all__ = ["Empty"]

_ABSENT = ("not_applicable", "unavailable")


class Empty(Declared):
    """About nodes without the hardware."""

    def test_without_hardware_it_is_not_applicable(self, tmp_path: Path) -> None:
        """Also when its preconditions are wrong or missing, and it runs all the same."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        assert (run.status, run.sightings) == (self.absent, []), run.reason

    def test_it_says_why_not(self, tmp_path: Path) -> None:
        """People read it in `probe plugins why-not`."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        assert run.reason
        assert run.reason != "it found no devices", "return not_applicable(reason)"

    def test_without_hardware_it_prints_nothing(self, tmp_path: Path) -> None:
        """A log line per node and start is too much."""
        run, _ = watch_case(self.prober(), self.empty(tmp_path)[0])
        assert run.stderr_tail() == []

    def test_without_hardware_it_takes_little_time(self, tmp_path: Path) -> None:
        """Half of the deadline on a test machine leaves room on a busy node."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        assert run.ended - run.started <= self.prober().deadline_s / 2

    def test_it_bears_every_system(self, tmp_path: Path) -> None:
        """A recorded machine may be of any system and architecture."""
        for case in self.empty(tmp_path):
            run = run_case(self.prober(), case)
            assert run.status in _ABSENT, f"{case.machine}: {run.reason}"

    def test_it_reads_the_machine_and_not_this_one(self, tmp_path: Path) -> None:
        """An empty folder that stands for / has no devices, whatever this computer has."""
        run = run_case(self.prober(), Case(self.empty(tmp_path)[0].machine))
        assert run.sightings == []

    def test_it_bears_an_empty_environment(self, tmp_path: Path) -> None:
        """No HOME, no PATH: how services start."""
        run = run_case(self.prober(), self.empty(tmp_path, {})[0])
        assert run.status == self.absent, run.reason

    def test_it_bears_files_where_folders_should_be(self, tmp_path: Path) -> None:
        """Containers mount odd things over /sys and /proc."""
        for name in ("sys", "proc", "dev"):
            (tmp_path / name).write_text("a file\n")
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        assert run.status in _ABSENT, run.reason
