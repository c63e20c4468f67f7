"""Checks on machines that have none of a prober's hardware: the case on most nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from probe_core.testing.case import Case, run_case, watch_case
from probe_core.testing.checks_import import effects
from probe_core.testing.checks_package import Declared

__all__ = ["Empty", "Lacking"]

_ABSENT = ("not_applicable", "unavailable")


class Empty(Declared):
    """About nodes without the hardware."""

    def test_without_hardware_it_is_not_applicable(self, tmp_path: Path) -> None:
        """Also when its preconditions are wrong or missing, and it runs all the same."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        answer = f"it answered {run.status} ({run.reason}) with {len(run.sightings)} devices"
        right = run.status == self.absent and not run.sightings
        assert right, f"{answer}; without its hardware it is {self.absent}"

    def test_it_says_why_not(self, tmp_path: Path) -> None:
        """People read it in `probe plugins why-not`."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        reason = run.reason and run.reason != "it found no devices"
        assert reason, "return not_applicable(reason), and not an empty list"

    def test_without_hardware_it_prints_nothing(self, tmp_path: Path) -> None:
        """A log line per node and start is too much."""
        run, _ = watch_case(self.prober(), self.empty(tmp_path)[0])
        printed = run.stderr_tail()
        assert not printed, f"print nothing; what a person should know is the reason: {printed}"

    def test_without_hardware_it_takes_little_time(self, tmp_path: Path) -> None:
        """Half of the deadline on a test machine leaves room on a busy node."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        seconds, deadline_s = run.ended - run.started, self.prober().deadline_s
        assert seconds <= deadline_s / 2, f"it took {seconds:.2f} s of its deadline, {deadline_s} s"

    def test_it_bears_every_system(self, tmp_path: Path) -> None:
        """A recorded machine may be of any system and architecture."""
        for case in self.empty(tmp_path):
            run = run_case(self.prober(), case)
            where = f"{case.machine.os} on {case.machine.arch}"
            assert run.status in _ABSENT, f"on {where} it is {run.status}: {run.reason}"

    def test_it_reads_the_machine_and_not_this_one(self, tmp_path: Path) -> None:
        """An empty folder that stands for / has no devices, whatever this computer has."""
        run = run_case(self.prober(), Case(self.empty(tmp_path)[0].machine))
        ids = [sighting.get("ids") for sighting in run.sightings]
        assert not ids, f"read files through request.machine; it found {ids} in an empty folder"

    def test_it_bears_an_empty_environment(self, tmp_path: Path) -> None:
        """No HOME, no PATH: how services start."""
        run = run_case(self.prober(), self.empty(tmp_path, {})[0])
        answer = f"without any variable it is {run.status}: {run.reason}"
        assert run.status == self.absent, f"{answer}; use request.machine.environ.get(NAME)"

    def test_it_bears_files_where_folders_should_be(self, tmp_path: Path) -> None:
        """Containers mount odd things over /sys and /proc."""
        for name in ("sys", "proc", "dev"):
            (tmp_path / name).write_text("a file\n")
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        answer = f"where /sys is a file it is {run.status}: {run.reason}"
        assert run.status in _ABSENT, f"{answer}; machine.listdir bears it"


class Lacking(Declared):
    """About machines that might have the hardware, and have none."""

    def lacking(self, root: Path) -> Mapping[str, Case]:
        """Overridden by the author."""
        raise NotImplementedError

    def test_where_there_is_none_it_is_not_applicable(self, tmp_path: Path) -> None:
        """A driver without a device is no failure, and none of the user's concern."""
        for description, case in self.lacking(tmp_path).items():
            run = run_case(self.prober(), case)
            answer = f"{description}: it answered {run.status} ({run.reason})"
            right = run.status == "not_applicable" and not run.sightings
            assert right, f"{answer}; say not_applicable(reason)"

    def test_where_there_is_none_it_does_no_more_than_it_may(self, tmp_path: Path) -> None:
        """Most nodes with a driver's package have no such device."""
        for description, case in self.lacking(tmp_path).items():
            run, noted = watch_case(self.prober(), case)
            traces = effects(noted["events"], self.may) + run.stderr_tail()
            assert not traces, (
                f"{description}: look for hardware among files, print nothing: {traces}"
            )
