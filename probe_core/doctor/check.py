"""What a check is, what it is asked, and the four answers that it can give.

A check looks for causes of one kind. The author writes a function; the module that the entry point
in `probe_core.checks.v1` names has a list of them::

    from probe_core.doctor.check import check, failed, finding, passed

    @check("acme-firmware-old", step="driver", needs=("/sys/class/acme/*/firmware",))
    def firmware(request):
        '''The firmware of an Acme card is older than its driver supports.'''
        version = request.machine.read("/sys/class/acme/acme0/firmware")
        ...
        return failed(finding("acme-firmware-old", what=…, why=…, fix=…, device=…))

    CHECKS = [firmware]

A check of another distribution runs in a process of its own, under a deadline, and opens, wakes
and writes nothing. A class with the same attributes serves as well as the decorator.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol, TypeVar

    from probe_core.doctor.document import CheckFindingDoc as CheckFindingDoc
    from probe_core.doctor.document import ResultDoc as ResultDoc
    from probe_core.doctor.document import ShownFindingDoc
    from probe_core.doctor.document import Status as Status
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc, Severity
    from probe_core.readiness import Scene

    Value = TypeVar("Value")

    class Check(Protocol):
        """One check. `code` names it for `--only`; its findings may have codes of their own.

        `step` is the step of readiness that its causes break, "" for none. `needs` says what it
        reads, for `--list`: paths (patterns) on the machine, "report" for the report's own facts,
        or "environment" for a check that is run where a Python environment is to be looked at.
        `summary` completes "This check looks whether …" in a line.
        """

        @property
        def code(self) -> str: ...
        @property
        def step(self) -> str: ...
        @property
        def needs(self) -> Sequence[str]: ...
        @property
        def summary(self) -> str: ...

        def run(self, request: Request) -> ResultDoc:
            """Return the answer. What it raises makes the check `unknown`, with the error."""


__all__ = [
    "ASSUMED",
    "CHANGED",
    "ENVIRONMENT",
    "GROUP",
    "JOURNAL",
    "REPORT",
    "FunctionCheck",
    "Request",
    "check",
    "failed",
    "finding",
    "not_applicable",
    "passed",
    "unknown",
]

GROUP = "probe_core.checks.v1"
"""Group of entry points: name to a module, or an object in one, that has `CHECKS`."""

ENVIRONMENT, REPORT = "environment", "report"
"""Words of `needs` that are no paths. A check that needs an environment runs with one alone."""

CHANGED = "changed-since"
"""Code of the hint what changed since a blocked device worked: it stands in the first line."""

ASSUMED, JOURNAL = "assumed", "journal"
"""Words of a manifest's `needs` that gate a set: it runs where something is assumed (the next boot,
another driver), or where an accelerator is blocked and this computer has a journal of changes."""


class Request:
    """What a check is asked: one look at one machine.

    `machine`: read files and variables through it alone, so that a recording gives the same answer.
    `report` is the document of `probe --json`, complete. `environment` is the path that the user
    gave for a Python environment, as he gave it: a prefix (virtual, conda, an unpacked root) or an
    interpreter; of a bare `--env` the interpreter that the command `python` starts. None where no
    environment is to be looked at. `device` is the id of the only device that is asked about.
    `assumed` is what the user supposes, by name: "boot" (the next), "kernel", "driver", "torch".
    """

    def __init__(
        self,
        machine: Machine,
        report: ReportDoc,
        *,
        environment: str | None = None,
        device: str | None = None,
        scene: Scene | None = None,
        assumed: Mapping[str, str] | None = None,
    ) -> None:
        self.machine = machine
        self.report = report
        self.environment = environment
        self.device = device
        self.assumed = dict(assumed or {})
        self._scene = scene
        self._shared: dict[str, object] = {}
        self.facts: dict[str, str] = {}
        self.paths: set[str] = set()

    @property
    def scene(self) -> Scene:
        """What readiness knows of the machine: modules, libraries, the process, its container."""
        if self._scene is None:
            from probe_core.readiness import Scene

            self._scene = Scene(self.machine)
            self._scene.devices = self.report.get("devices", ())
        return self._scene

    def once(self, key: str, make: Callable[[], Value]) -> Value:
        """Return what `make` returned at the first call with this key.

        For what several checks of one distribution share, such as one walk over an environment.
        """
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]  # type: ignore[return-value]  # of the key's first call

    def supplies(self, words: Iterable[str]) -> bool:
        """Return whether what a set's manifest needs is here; a word of no gate always is."""
        gates = {
            ENVIRONMENT: self.environment is not None,
            ASSUMED: bool(self.assumed),
            JOURNAL: not self.assumed and self._has_blocked() and self._has_journal(),
        }
        return all(gates.get(word, True) for word in words)

    def _has_blocked(self) -> bool:
        from probe_core.model.ids import ACCELERATORS
        from probe_core.model.verdict import state_of

        devices = self.report["devices"]
        return any(state_of(d) == "blocked" for d in devices if d["kind"] in ACCELERATORS)

    def _has_journal(self) -> bool:
        from os.path import exists

        from probe_core.config import journal_file

        path = journal_file(self.machine.environ) if self.machine.live else None
        return path is not None and exists(path)

    def scene_of(self, machine: Machine) -> Scene:
        """Return what readiness knows of another machine, such as this one with other files."""
        from probe_core.readiness import Scene

        return Scene(machine)

    def findings_on(self, machine: Machine) -> tuple[list[ShownFindingDoc], dict[str, str]]:
        """Return the doctor's findings about the drivers on a machine as it will be.

        `machine` is this one with other files. Beside them the code of each device's broken driver
        or library now, by its id.
        """
        from probe_core.doctor.assumed import broken_now, findings_on

        return findings_on(self, machine), broken_now(self)

    def remember(self, paths: Iterable[str]) -> None:
        """Say that all answers of this set hold while these files and folders stay as they are.

        `paths` are absolute, those that do not exist included. It counts only where the manifest
        names the `variables` that the answers depend on. The report has then no figure that
        changes by itself. Until a path changes the doctor gives the answers without a process.
        """
        self.paths.update(paths)


class FunctionCheck:
    """A check made of a function; see `check`."""

    def __init__(
        self,
        code: str,
        run: Callable[[Request], ResultDoc],
        *,
        step: str = "",
        needs: Sequence[str] = (),
        summary: str = "",
    ) -> None:
        self.code = code
        self.run = run
        self.step = step
        self.needs = tuple(needs)
        self.summary = summary or (run.__doc__ or "").strip().partition("\n")[0]


def check(
    code: str, *, step: str = "", needs: Sequence[str] = (), summary: str = ""
) -> Callable[[Callable[[Request], ResultDoc]], FunctionCheck]:
    """Make a check of a function; `summary` is the first line of its docstring where it is ""."""

    def make(run: Callable[[Request], ResultDoc]) -> FunctionCheck:
        return FunctionCheck(code, run, step=step, needs=needs, summary=summary)

    return make


def passed() -> ResultDoc:
    """Say that what is looked for is not there."""
    return {"status": "passed", "findings": [], "reason": None}


def failed(*findings: CheckFindingDoc) -> ResultDoc:
    """Say what is wrong, in one finding a device and cause."""
    return {"status": "failed", "findings": list(findings), "reason": None}


def unknown(reason: str, fix: str = "") -> ResultDoc:
    """Say that it could not be looked at, and why: a closed file, a recording without it.

    `fix` is the command that would let it look; people are shown those alone.
    """
    result: ResultDoc = {"status": "unknown", "findings": [], "reason": reason}
    return result | {"fix": fix} if fix else result


def not_applicable(reason: str) -> ResultDoc:
    """Say that this machine has nothing that the check is about."""
    return {"status": "not_applicable", "findings": [], "reason": reason}


def finding(
    code: str,
    *,
    what: str,
    why: str,
    fix: str,
    severity: Severity = "warning",
    device: str | None = None,
    variable: str | None = None,
    step: str | None = None,
    evidence: str | None = None,
    wheel: str | None = None,
    has: str | None = None,
    needs: str | None = None,
) -> CheckFindingDoc:
    """Return a finding. `what`, `why` and `fix` are sentences for people, the rest is for scripts.

    `severity` is "error" for what makes a device or an environment useless, "warning" for what
    makes it worse, "info" for what somebody may have wanted. `fix` is the exact command.
    """
    result: CheckFindingDoc = {
        "code": code,
        "severity": severity,
        "what": what,
        "why": why,
        "fix": fix,
        "device": device,
        "prober": None,
        "setting": None,
        "variable": variable,
        "step": step,
        "evidence": evidence,
    }
    of_environment = {"wheel": wheel, "has": has, "needs": needs}
    result |= {name: text for name, text in of_environment.items() if text is not None}  # type: ignore[typeddict-item]  # its keys
    return result
