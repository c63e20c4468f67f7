"""The formats that this distribution has: name to module, function and summary, none imported.

Other distributions add theirs by entry points of the group `probe_core.exporters.v1`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import ReportDoc

    Exporter = Callable[[ReportDoc], str]
    """From a report's document to the text of the format."""

__all__ = ["FORMATS", "exporter"]

FORMATS = {
    "ansible": ("simple", "ansible", "Ansible's local facts, /etc/ansible/facts.d/probe.fact"),
    "dra": ("dra", "export", "devices of a Kubernetes ResourceSlice, as JSON"),
    "env": ("simple", "env", "NAME='value' lines for a shell or an EnvironmentFile"),
    "nfd": ("nfd", "export", "node-feature-discovery's local features"),
    "otel": ("simple", "otel", "OpenTelemetry's OTEL_RESOURCE_ATTRIBUTES"),
    "prometheus": ("prometheus", "export", "Prometheus' text format, a file or --listen"),
    "ray": ("ray", "export", "options of `ray start`"),
    "slurm": ("slurm", "export", "gres.conf, and the NodeName line for slurm.conf"),
}


def exporter(name: str) -> Exporter:
    """Return the function of a format of this distribution; raises `KeyError`."""
    from importlib import import_module

    module, function, _ = FORMATS[name]
    export: Exporter = getattr(import_module(f"probe_export.{module}"), function)
    return export
