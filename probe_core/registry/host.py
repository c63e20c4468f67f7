"""The host's own hooks: watch a run, deny probers, name chips. Never found from entry points."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.wording import clean_text, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pluggy

    from probe_core.model.document import FindingDoc
    from probe_core.registry.prober import Prober


class Host:
    """Calls the host's hooks through pluggy; what they raise becomes a finding.

    Raises `ConfigError` when a plugin object implements no hook, or one with a wrong signature.
    """

    def __init__(self, plugins: Iterable[object]) -> None:
        self.findings: list[FindingDoc] = []
        self._manager = _manager(plugins)

    def observe(self, event: str, details: Mapping[str, object]) -> None:
        """Call every observer; one that raises does not keep the others from being called."""
        for implementation in self._manager.hook.probe_observe.get_hookimpls():
            try:
                arguments = {"event": event, "details": dict(details)}
                implementation.function(*[arguments[a] for a in implementation.argnames])
            except Exception as error:
                self._note("probe_observe", error)

    def veto(self, prober: Prober) -> str | None:
        """Return the host's reason not to run a prober."""
        try:
            reason = self._manager.hook.probe_veto(
                prober=prober.name, distribution=prober.owner, target=prober.target
            )
        except Exception as error:
            self._note("probe_veto", error)
            return None
        return clean_text(str(reason), 400) if reason else None

    def resolve_chip(self, device: Mapping[str, object]) -> str | None:
        """Return the id of the chip that the host says a device is."""
        from copy import deepcopy

        try:
            chip = self._manager.hook.probe_resolve_chip(device=deepcopy(device))
        except Exception as error:
            self._note("probe_resolve_chip", error)
            return None
        return chip if isinstance(chip, str) and chip else None

    def _note(self, hook: str, error: Exception) -> None:
        sentence = f"the host's own hook {hook} raised"
        self.findings.append(
            finding("hook-failed", sentence, error_text(error), "correct the hook")
        )


def _manager(plugins: Iterable[object]) -> pluggy.PluginManager:
    import pluggy

    from probe_core import hookspecs
    from probe_core.config import ConfigError

    manager = pluggy.PluginManager("probe_core")
    manager.add_hookspecs(hookspecs)
    for plugin in plugins:
        try:
            name = manager.register(plugin)
            manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            raise ConfigError(
                f"a host hook cannot be used: {' '.join(str(error).split())}"
            ) from None
        if not manager.get_hookcallers(plugin):
            raise ConfigError(
                f"the host plugin {name} implements no hook; mark functions named probe_observe,"
                " probe_veto or probe_resolve_chip with probe_core.hookimpl"
            )
    return manager
