"""The class that authors subclass: what they declare, and which checks follow from that."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from probe_core.testing.case import Case

# So that a failed check shows its values, as in a test of one's own. pytest warns of a module that
# another test imported before.
_CHECKS = (f"{__package__}.{name}" for name in ("checks", "checks_hardware", "checks_sampling"))
pytest.register_assert_rewrite(*(name for name in _CHECKS if name not in sys.modules))

from probe_core.testing.checks import EFFECTS, Empty, Importing, Lacking, Packaging  # noqa: E402
from probe_core.testing.checks_hardware import Broken, Hardware  # noqa: E402
from probe_core.testing.checks_sampling import Sampling  # noqa: E402

_OPTIONAL = {"hardware": Hardware, "broken": Broken, "lacking": Lacking, "sampled": Sampling}


class ProberContract(Packaging, Importing, Empty, Lacking, Hardware, Broken, Sampling):
    """Checks of one prober; subclass it as ``TestSomething``.

    `name` is the entry point's name, `target` its ``module`` or ``module:attribute``. `project` is
    the folder with its ``pyproject.toml``, if its packaging is to be checked. `import_ms` is what
    importing the module may take beyond ``probe_core.api``. `absent` is its answer on a machine
    without anything: ``unavailable`` for hardware that no machine of its system lacks. `may` names
    effects beyond reading that are this prober's way: ``library`` (loads a shared library),
    ``process`` (starts a tool, and ends it), ``temporary`` (makes files in the folder for temporary
    ones, and removes them), ``device`` (opens device nodes: its manifest says ``"active": true``).

    A method that is not overridden declares that there is nothing of that kind to check: its checks
    are then not collected at all, rather than skipped.
    """

    def hardware(self, root: Path) -> Case:
        """Make, below `root`, a machine with this prober's hardware on it."""
        raise NotImplementedError

    def broken(self, root: Path) -> Mapping[str, Case]:
        """Make, below `root`, machines on which the hardware is there but cannot be asked.

        Each needs a folder of its own; the keys are names for people.
        """
        raise NotImplementedError

    def lacking(self, root: Path) -> Mapping[str, Case]:
        """Make, below `root`, machines that might have the hardware and have none.

        An empty folder is checked anyway; these are a driver without a device, or a live machine
        whose library or tool finds nothing.
        """
        raise NotImplementedError

    def sampled(self, root: Path) -> Case:
        """Make, below `root`, a machine whose hardware has live figures (`open_sampler`)."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        unknown = sorted(cls.may - EFFECTS.keys())
        if unknown:
            raise TypeError(f"{cls.__name__}.may: {unknown} is none of {', '.join(EFFECTS)}")
        for method, checks in _OPTIONAL.items():
            if getattr(cls, method) is getattr(ProberContract, method):
                for name in vars(checks):
                    if name.startswith("test_"):
                        setattr(cls, name, None)
