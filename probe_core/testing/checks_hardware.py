"""Checks on machines that have a prober's hardware, sound or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probe_core.isolation.run import Run
from probe_core.model.ids import pci_vendor
from probe_core.pipeline.validate import check_sighting
from probe_core.registry.prober import unmet
from probe_core.testing.case import Case, run_case, watch_case
from probe_core.testing.checks import EFFECTS, Declared, effects
from probe_core.testing.reading import undeclared

# Kinds of ids that other probers share; a prober's own name is the fifth.
STRONG = ("pci", "uuid", "dt", "cpu")
_ANSWERS = ("ok", "not_applicable", "unavailable")
_AVOIDED = 2
"""Announced devices that are avoided in turn: a prober may treat the first one specially."""


class WithHardware(Declared):
    """What the checks below share."""

    def found(self, root: Path) -> tuple[Case, Run]:
        """Run on the author's machine."""
        root.mkdir(exist_ok=True)
        case = self.hardware(root)
        return case, run_case(self.prober(), case)


class Hardware(WithHardware):
    """About nodes with the hardware."""

    def test_its_hardware_is_found(self, tmp_path: Path) -> None:
        """The one thing it is for."""
        _, run = self.found(tmp_path)
        assert run.status == "ok", f"on your machine it is {run.status}: {run.reason}"
        assert run.sightings, "it is ok, and found no device on your machine"

    def test_its_preconditions_let_it_run(self, tmp_path: Path) -> None:
        """Preconditions are necessary: wrong ones hide hardware without a trace."""
        case = self.hardware(tmp_path)
        vendors = {vendor for sighting in case.bus if (vendor := pci_vendor(sighting))}
        with case.surroundings():
            condition = unmet(self.prober().when, case.machine, vendors)
        assert condition is None, (
            f"`when` in the manifest keeps it from running on your machine: {condition}"
        )

    def test_every_value_can_be_believed(self, tmp_path: Path) -> None:
        """The core leaves out what cannot be true, and tells every user."""
        for device in self.found(tmp_path)[1].sightings:
            wrong = check_sighting(device)[1]
            assert not wrong, f"the core would leave out of {device.get('ids')}: {wrong}"

    def test_every_device_has_a_strong_id(self, tmp_path: Path) -> None:
        """Ordinals, names and sizes are none: nothing could be joined by them."""
        for device in self.found(tmp_path)[1].sightings:
            kinds = [identity.partition(":")[0] for identity in _ids(device)]
            listed = device.get("ids")
            assert any(kind in (*STRONG, self.name) for kind in kinds), (
                f"{listed} lacks a strong id: begin one with pci:, uuid:, dt:, {self.name}:"
            )

    def test_no_two_devices_share_an_id(self, tmp_path: Path) -> None:
        """They would become one."""
        ids = [i for device in self.found(tmp_path)[1].sightings for i in _ids(device)]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        assert not twice, f"several devices have these ids: {twice}"

    def test_ids_are_the_same_at_every_look(self, tmp_path: Path) -> None:
        """And in the same order."""
        case, first = self.found(tmp_path)
        second = run_case(self.prober(), case)
        before, after = ([d.get("ids") for d in run.sightings] for run in (first, second))
        assert before == after, "ids, and the order of devices, must be the same at every look"

    def test_the_place_of_the_machine_does_not_show(self, tmp_path: Path) -> None:
        """A machine in another folder is the same machine: paths are those on the machine."""
        _, first = self.found(tmp_path / "here")
        _, second = self.found(tmp_path / "elsewhere")
        assert first.sightings == second.sightings, (
            "say machine.realpath(…), and not machine.path(…)"
        )
        shows = str(tmp_path) in json.dumps(first.sightings)
        assert not shows, f"a path of this computer is in {first.sightings}"

    def test_answers_are_plain_data(self, tmp_path: Path) -> None:
        """No numpy numbers, no enums, no objects."""
        text = json.dumps(self.found(tmp_path)[1].sightings)
        assert "\\u0000invalid" not in text, f"give texts, numbers, lists and mappings: {text}"

    def test_what_is_unknown_is_left_out_with_a_reason(self, tmp_path: Path) -> None:
        """0 and "" look like answers, and hosts compute with them."""
        for device in self.found(tmp_path)[1].sightings:
            empty = _empty(device)
            assert not empty, f"leave out what is not known, and say why in `unknown`: {empty}"
            silent = [
                name for name, reason in device.get("unknown", {}).items() if not reason.strip()
            ]
            assert not silent, f"give reasons in `unknown` for {silent}"

    def test_with_hardware_it_takes_half_its_deadline(self, tmp_path: Path) -> None:
        """The other half is for a busy node."""
        _, run = self.found(tmp_path)
        seconds, deadline_s = run.ended - run.started, self.prober().deadline_s
        assert seconds <= deadline_s / 2, f"it took {seconds:.2f} s of its deadline, {deadline_s} s"

    def test_with_hardware_it_prints_nothing(self, tmp_path: Path) -> None:
        """What a person should know is a finding."""
        run, _ = watch_case(self.prober(), self.hardware(tmp_path))
        printed = run.stderr_tail()
        assert not printed, f"yield a finding instead of printing {printed}"

    def test_it_changes_nothing_on_the_machine(self, tmp_path: Path) -> None:
        """Probing is reading."""
        root = tmp_path / "machine"
        root.mkdir()
        case = self.hardware(root)
        before = contents(root)
        run_case(self.prober(), case)
        after = contents(root)
        changed = sorted(p for p in before | after if before.get(p, "") != after.get(p, ""))
        assert not changed, f"only read; it changed {changed}"

    def test_it_only_reads(self, tmp_path: Path) -> None:
        """Through request.machine; no device, tool or library but what `may` declares."""
        _, noted = watch_case(self.prober(), self.hardware(tmp_path))
        actions = effects(noted["events"], self.may)
        assert not actions, (
            f"only read files, or declare in `may` ({', '.join(EFFECTS)}): {actions}"
        )
        assert not noted["changed"], f"put back what the call changes: {noted['changed']}"
        assert not noted["left"], f"remove temporary files before you answer: {noted['left']}"

    def test_what_it_reads_is_declared(self, tmp_path: Path) -> None:
        """A file that nobody declares is missing from recordings, and the device with it."""
        missing = undeclared(self.prober(), self.hardware(tmp_path))
        assert not missing, "\n".join(missing)

    def test_what_it_announces_is_an_id(self, tmp_path: Path) -> None:
        """The core passes it back in `request.avoid`, and names the device by it in the report."""
        case = self.hardware(tmp_path)
        run, noted = watch_case(self.prober(), case)
        known = {i for sighting in (*case.bus, *run.sightings) for i in sighting.get("ids", ())}
        unknown = sorted(set(noted["touched"]) - known)
        assert not unknown, (
            f"announce ids of devices that you or the bus report, not {unknown}: {sorted(known)}"
        )

    def test_it_goes_around_a_device_to_avoid(self, tmp_path: Path) -> None:
        """A device over which it hung hides the others as long as it is asked again."""
        case = self.hardware(tmp_path)
        whole, noted = watch_case(self.prober(), case)
        for device in dict.fromkeys(noted["touched"][:_AVOIDED]):
            run, again = watch_case(self.prober(), case, avoid=[device])
            asked = device in again["touched"]
            assert not asked, f"it asks {device}, though request.avoid has it"
            assert run.status in _ANSWERS, f"with {device} in request.avoid it is {_end(run)}"
            missing = sorted(_shapes(whole, device) - _shapes(run, device))
            assert not missing, f"with {device} in request.avoid it omits of others: {missing}"

    def test_it_bears_an_empty_bus(self, tmp_path: Path) -> None:
        """The bus prober can be disabled."""
        run = run_case(self.prober(), self.hardware(tmp_path).without_bus())
        assert run.status in _ANSWERS, f"with an empty request.bus it is {_end(run)}"

    def test_it_bears_garbage_in_every_file(self, tmp_path: Path) -> None:
        """Firmware and drivers write what they like."""
        self._with_files(tmp_path, b"\xff\x00 garbage \xfe\n" * 3)

    def test_it_bears_empty_files(self, tmp_path: Path) -> None:
        """A driver that is just being loaded has not filled its files."""
        self._with_files(tmp_path, b"")

    def test_it_bears_absurd_numbers(self, tmp_path: Path) -> None:
        """A wrong register reads as all ones."""
        # More digits than 64 bits have: what overflows in C is a number to Python.
        self._with_files(tmp_path, b"99999999999999999999999999\n")

    def test_it_bears_missing_files(self, tmp_path: Path) -> None:
        """Each kernel version has other files."""
        # Every other file, the ones between, then all: a file is missing with and without its
        # neighbours.
        for number, missing in enumerate((slice(0, None, 2), slice(1, None, 2), slice(None))):
            root = tmp_path / str(number)
            root.mkdir()
            case = self.hardware(root)
            files = sorted(path for path in root.rglob("*") if not path.is_dir())
            for path in files[missing]:
                path.unlink()
            run = run_case(self.prober(), case)
            assert run.status in _ANSWERS, f"without {_some(files[missing])} it is {_end(run)}"

    def _with_files(self, root: Path, content: bytes) -> None:
        case = self.hardware(root)
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.write_bytes(content)
        run = run_case(self.prober(), case)
        assert run.status in _ANSWERS, f"where files hold {content[:30]!r} it is {_end(run)}"


class Broken(Declared):
    """About hardware that is there but cannot be asked."""

    def test_what_cannot_be_asked_is_unavailable(self, tmp_path: Path) -> None:
        """Not "no devices": the node would pass for one without."""
        for description, case in self.broken(tmp_path).items():
            run = run_case(self.prober(), case)
            facts = [fact for s in run.sightings for fact in s.get("step_facts", ())]
            broken = any(fact["status"] == "broken" for fact in facts)
            assert run.status == "unavailable" or run.findings or broken, (
                f"{description}: raise Unavailable(reason, code=…), yield a finding, or a broken"
                f" step in step_facts; {_end(run)}"
            )

    def test_what_it_reads_of_broken_hardware_is_declared(self, tmp_path: Path) -> None:
        """A recording is made most often where something is broken."""
        for description, case in self.broken(tmp_path).items():
            missing = undeclared(self.prober(), case)
            assert not missing, f"{description}: " + "\n".join(missing)

    def test_what_is_unavailable_has_a_code_and_a_reason(self, tmp_path: Path) -> None:
        """A code for scripts: `driver-not-loaded`, and not just `unavailable`."""
        for description, case in self.broken(tmp_path).items():
            run = run_case(self.prober(), case)
            if run.status == "unavailable":
                code = run.details.get("code", "")
                good = re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", code)
                assert good, (
                    f"{description}: give Unavailable a code such as driver-failed, not {code!r}"
                )
                assert run.reason != "no reason given", f"{description}: give Unavailable a reason"


def _empty(value: Any, path: str = "") -> list[str]:
    """Return the paths of values that stand for nothing: null, empty texts, zero totals."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in _empty(v, f"{path}.{k}") if k != "extra"]
    if value is None or value == "":
        return [path]
    last = path.rpartition(".")[2]
    return [path] if value == 0 and last in ("total", "units", "cores", "bandwidth") else []


def _ids(device: Mapping[str, Any]) -> list[str]:
    """Return the texts among a device's ids: another check tells of what else stands there."""
    ids = device.get("ids")
    return [i for i in ids if isinstance(i, str)] if isinstance(ids, list) else []


def _shapes(run: Run, device: str) -> set[tuple[str, str]]:
    """Return (id, field) of all that is reported of other devices than this one and its parts.

    Values are not compared: free memory changes from look to look.
    """
    own = {i for s in run.sightings if device in s["ids"] for i in s["ids"]} | {device}
    others = [s for s in run.sightings if own.isdisjoint(s["ids"]) and s.get("parent") not in own]
    return {(sighting["ids"][0], field) for sighting in others for field in sighting}


def _end(run: Run) -> str:
    """Return how a run ended, with the end of what it wrote to standard error."""
    return " | ".join([f"{run.status}: {run.reason}", *run.stderr_tail()[-3:]])


def _some(files: list[Path]) -> str:
    return ", ".join(path.name for path in files[:5]) + (" …" if len(files) > 5 else "")


def contents(root: Path) -> dict[str, object]:
    """Return what is below `root`, without what Python itself keeps of modules it imports."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
        if "__pycache__" not in path.parts
    }
