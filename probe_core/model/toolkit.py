"""How containers get NVIDIA's GPUs: what the configuration of nvidia-container-toolkit says."""

from __future__ import annotations

TOOLKIT = "/etc/nvidia-container-runtime/config.toml"
_SECTION, _KEY = "nvidia-container-runtime", "mode"
_MODES = ("auto", "legacy", "cdi", "jit-cdi", "csv")
"""The modes of nvidia-container-toolkit 1.20.0, internal/info/resolver.go and internal/modifier."""


def mode_of_toolkit(text: str) -> str:
    """Return the mode that a configuration fixes, "auto" included; "" for none that is known."""
    if not text:
        return ""
    import tomllib

    try:
        table = tomllib.loads(text).get(_SECTION)
    except (ValueError, RecursionError):
        return ""
    value = table.get(_KEY) if isinstance(table, dict) else None
    return value if isinstance(value, str) and value in _MODES else ""
