"""OpenTelemetry's resource detector: entry point `opentelemetry_resource_detector`, name `probe`.

The SDK waits for a detector beyond its own timeout, so the probe has the core's deadlines, and what
goes wrong gives no attributes instead of an error. Needs opentelemetry-sdk, which imports this.
"""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource, ResourceDetector


class ProbeResourceDetector(ResourceDetector):  # type: ignore[misc]  # no stubs here
    """Adds what `probe export otel` prints to the resource."""

    def detect(self) -> Resource:
        """Return the node's attributes; none where it cannot be probed."""
        try:
            from probe_core.commands import probe_document
            from probe_export.otel import attributes

            return Resource(attributes(probe_document()))
        except Exception:
            if self.raise_on_error:
                raise
            return Resource.get_empty()
