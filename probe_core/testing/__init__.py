"""The contract kit: subclass `ProberContract`, and your prober is checked in some forty ways.

    from probe_core.testing import Case, ProberContract, Tree

    class TestAcme(ProberContract):
        name = "acme"
        target = "probe_acme.prober"

        def hardware(self, root):
            tree = Tree(root)
            tree.pci("0000:01:00.0", "1ac0:0001", pci_class="120000", driver="acme")
            return Case(tree.machine())

Nothing here is loaded by pytest on its own: who merely installed probe-core has no plugin.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine as Machine
    from probe_core.testing.case import Case as Case
    from probe_core.testing.check_contract import CheckContract as CheckContract
    from probe_core.testing.check_contract import CheckPair as CheckPair
    from probe_core.testing.contract import ProberContract as ProberContract
    from probe_core.testing.export_contract import ExporterContract as ExporterContract
    from probe_core.testing.tree import Tree as Tree

_MODULES = {
    "Case": "probe_core.testing.case",
    "CheckContract": "probe_core.testing.check_contract",
    "CheckPair": "probe_core.testing.check_contract",
    "ExporterContract": "probe_core.testing.export_contract",
    "Machine": "probe_core.machine",
    "ProberContract": "probe_core.testing.contract",
    "Tree": "probe_core.testing.tree",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    # Lazy: the spy is imported in the prober's process, which must not load pytest.
    if name not in _MODULES:
        raise AttributeError(f"module 'probe_core.testing' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_MODULES[name]), name)
    return value
