"""Runs a sampler for some rounds, as the core does, and keeps what it did in each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from probe_core.isolation import launch
from probe_core.isolation.resident import Resident
from probe_core.isolation.worker import Worker
from probe_core.model.sample_check import check_sample
from probe_core.registry.prober import Prober
from probe_core.sampling import sampler
from probe_core.testing.case import Case, staged, staged_machine
from probe_core.testing.checks import Declared
from probe_core.testing.checks_hardware import contents


class SampledRound:
    """One round: the `samples` as they came, ids that were `touched`, how it ended, `seconds`.

    `status` is ``ok``, or why there are no (more) samples, with its `reason`. Of the
    last round, `closing` is how the process closed: ``ok`` or why not, and what it printed then.
    """

    closing: str | None = None
    closing_stderr: Sequence[str] = ()

    def __init__(self, run: _Watched, seconds: float) -> None:
        self.samples: list[Any] = list(run.samples)
        self.findings: list[Any] = list(run.findings)
        self.touched = list(run.touched)
        answer = run.answer or (run.status or "protocol", run.reason)
        self.status, self.reason = answer
        self.seconds = seconds
        self.pid = run.pid
        self.stderr = run.stderr_tail()


class _Watched(Resident):
    """A resident process that keeps what it announced."""

    touched: list[str]

    def _take_frame(self, kind: str, frame: dict[str, Any], now: float) -> None:
        if kind == "touching":
            self.touched.append(str(frame["device"]))
        super()._take_frame(kind, frame, now)


def sample_case(
    prober: Prober,
    case: Case,
    *,
    count: int = 2,
    avoid: Iterable[str] = (),
    asleep: Iterable[Sequence[str]] = ((),),
    pause: Any = None,
) -> list[SampledRound]:
    """Return `count` rounds of one process of the prober's sampler, which then closes.

    `asleep` has the ids of sleeping devices, round by round; the last goes on. `pause` is called
    with the number of the round before each but the first.
    """
    sleeping = list(asleep)
    rounds: list[SampledRound] = []
    driver = launch.new_driver()
    stage, machine = staged(prober), staged_machine(case, prober.target)

    def message(number: int) -> Any:
        names = frozenset(sleeping[min(number, len(sleeping)) - 1])
        return sampler.failure_message(number, frozenset(avoid), names)

    def work(worker: Worker) -> None:
        first = message(1)
        run = _Watched(stage, os.urandom(8).hex(), os.urandom(8).hex(), monotonic(), first)
        run.touched = []
        try:
            begin = monotonic()
            launch.start(driver, run, machine, case.bus, prober.active, first)
            for number in range(1, count + 1):
                if number > 1:
                    if pause is not None:
                        pause(number)
                    begin, run.touched = monotonic(), []
                    sampler.ask(driver, run, message(number))
                driver.watch(monotonic, lambda: worker.stopping, lambda now: None)
                rounds.append(SampledRound(run, monotonic() - begin))
                if run.status is not None:
                    return
            sampler.ask_to_close(driver, [run])
            rounds[-1].closing = run.status or "timeout"
        finally:
            driver.end_all(monotonic)
        rounds[-1].closing_stderr = run.stderr_tail()[len(rounds[-1].stderr) :]

    with case.surroundings():
        Worker(work, driver.start_thread).run()
    return rounds


# Checks of a prober's live figures, on a machine that has its hardware.

_ANSWERS = ("ok", "not_applicable", "unavailable")
_FRAME = {"device", "status", "reason", "unknown"}


class Sampling(Declared):
    """About `open_sampler`, or `sample_devices`."""

    def _rounds(self, root: Path, **options: Any) -> list[SampledRound]:
        root.mkdir(exist_ok=True)
        rounds = sample_case(self.prober(), self.sampled(root), **options)
        for result in rounds:
            assert result.status == "ok", f"it is {result.status}: {result.reason}"
        return rounds

    def test_it_samples_its_hardware(self, tmp_path: Path) -> None:
        """At least one device, with at least one figure."""
        samples = self._rounds(tmp_path)[-1].samples
        figures = [name for sample in samples for name in sample if name not in _FRAME]
        assert figures, f"yield figures of a device; it yields {samples}"

    def test_every_figure_can_be_believed(self, tmp_path: Path) -> None:
        """The core refuses by name what cannot be true."""
        for result in self._rounds(tmp_path):
            for sample in result.samples:
                refused = check_sample(sample, self.name)[1]
                assert not refused, f"the core would refuse of {sample}: {refused}"

    def test_figures_are_plain_data(self, tmp_path: Path) -> None:
        """No numpy numbers, no enums, no objects."""
        text = json.dumps([result.samples for result in self._rounds(tmp_path)])
        assert "\\u0000invalid" not in text, f"give texts, numbers, lists and mappings: {text}"

    def test_one_process_answers_all_rounds(self, tmp_path: Path) -> None:
        """And with the same devices: nothing has changed between the rounds."""
        rounds = self._rounds(tmp_path, count=4)
        assert len({result.pid for result in rounds}) == 1, "it ended between two rounds"
        devices = [[sample["device"] for sample in result.samples] for result in rounds]
        assert all(names == devices[0] for names in devices), f"the devices differ: {devices}"
        assert len(set(devices[0])) == len(devices[0]), f"a device is yielded twice: {devices[0]}"

    def test_every_device_is_announced_before_it_is_asked(self, tmp_path: Path) -> None:
        """Else a hang is nobody's, and costs the figures of all devices."""
        for result in self._rounds(tmp_path):
            sampled = [s["device"] for s in result.samples if s.get("status", "ok") == "ok"]
            silent = sorted(set(sampled) - set(result.touched) - _children_of(result))
            assert not silent, f"call request.touching(id) before you ask {silent}"

    def test_it_goes_around_devices(self, tmp_path: Path) -> None:
        """Those in request.avoid and request.asleep: ask `request.skip(id)`."""
        first = self._rounds(tmp_path / "whole")[0]
        for number, device in enumerate(dict.fromkeys(first.touched[:2])):
            for how in ({"avoid": [device]}, {"asleep": [[device]]}):
                case = self.sampled(_made(tmp_path / f"{number}{next(iter(how))}"))
                for result in sample_case(self.prober(), case, **how):
                    assert result.status in _ANSWERS, f"without {device}: {result.reason}"
                    assert device not in result.touched, f"it asks {device}: {how}"
                    named = [s["device"] for s in result.samples if s.get("status", "ok") == "ok"]
                    assert device not in named, f"it has figures of {device}: {how}"

    def test_a_round_is_quick(self, tmp_path: Path) -> None:
        """Two seconds of silence over one device count as a hang."""
        slowest = max(result.seconds for result in self._rounds(tmp_path, count=3)[1:])
        assert slowest < 1, f"a round took {slowest:.2f} s"

    def test_sampling_prints_nothing(self, tmp_path: Path) -> None:
        """Once a second it would be a flood; its end must be clean, too."""
        printed = self._rounds(tmp_path)[-1].stderr
        assert not printed, f"yield a finding instead of printing {printed}"

    def test_it_closes_what_it_opened(self, tmp_path: Path) -> None:
        """Within the fifth of a second that the process is given, and without a word."""
        last = self._rounds(tmp_path)[-1]
        assert last.closing == "ok", f"it is {last.closing}: close within 0.2 s"
        assert not last.closing_stderr, f"closing prints {list(last.closing_stderr)}"

    def test_sampling_changes_nothing(self, tmp_path: Path) -> None:
        """Watching is reading."""
        case = self.sampled(_made(tmp_path / "machine"))
        before = contents(tmp_path / "machine")
        sample_case(self.prober(), case)
        assert contents(tmp_path / "machine") == before, "only read"

    def test_sampling_bears_what_files_hold(self, tmp_path: Path) -> None:
        """A driver that is unloaded, reset or broken between two rounds."""
        for number, content in enumerate((b"", b"\xff\x00 garbage\n", b"9" * 30, None)):
            root = _made(tmp_path / str(number))
            case = self.sampled(root)

            def spoil(_: int, root: Path = root, content: bytes | None = content) -> None:
                _spoil(root, content)

            last = sample_case(self.prober(), case, pause=spoil)[-1]
            assert last.status in _ANSWERS, f"with {content!r} in every file: {last.reason}"
            for sample in last.samples:
                refused = check_sample(sample, self.name)[1]
                assert content is not None or not refused, f"without files: {refused}"


def _spoil(root: Path, content: bytes | None) -> None:
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)


def _made(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    return root


def _children_of(result: SampledRound) -> set[str]:
    """Return the ids of parts of a device, which is announced for them: MIG instances."""
    return {s["device"] for s in result.samples if s["device"].startswith("uuid:MIG-")}
