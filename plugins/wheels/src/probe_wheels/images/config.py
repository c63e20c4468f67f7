"""What an image says of itself: platform, variables, user, and the program that it starts."""

from __future__ import annotations

from probe_core.jsontext import parse
from probe_wheels.images.streams import BadImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_JSON = 8 << 20
MAX_VARIABLES = 4096

ARCHES = {
    "amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64", "386": "i686",
    "arm": "armv7l", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64",
    "loong64": "loongarch64",
}  # fmt: skip
"""Architectures as images name them (Go's GOARCH) to those of ``uname -m``."""


class Config:
    """The configuration of an image; `arch` is as ``uname -m`` names it, None where none is said.

    `variant` is the level of the architecture, "" for its first: ``v3`` of x86-64. `program` is
    what it starts: Entrypoint and Cmd, one after the other, and `folder` where it starts.
    """

    def __init__(self) -> None:
        self.arch: str | None = None
        self.variant = ""
        self.os = "linux"
        self.environ: dict[str, str] = {}
        self.user = ""
        self.program: list[str] = []
        self.folder = ""


def json_of(raw: bytes | None, what: str) -> Any:
    """Return what a JSON file of an image holds; raises `BadImage`."""
    if raw is None:
        raise BadImage(f"{what} is not in it")
    try:
        return parse(raw)
    except (ValueError, RecursionError):
        raise BadImage(f"{what} is no JSON") from None


def config_of(raw: bytes | None, media: str = "") -> Config:
    """Return the configuration in a JSON text; raises `BadImage` where it is none of an image."""
    table = json_of(raw, "its config")
    known = isinstance(table, dict) and ("rootfs" in table or "architecture" in table)
    if not known or not isinstance(table.get("config") or {}, dict):
        kind = f" but {media}" if media else ""
        raise BadImage(f"it is no container image: its config is none of an image{kind}")
    config = Config()
    arch = table.get("architecture")
    config.arch = ARCHES.get(arch, arch) if isinstance(arch, str) and arch else None
    config.variant = variant_of(table)
    system = table.get("os")
    config.os = system if isinstance(system, str) and system else "linux"
    inner = table.get("config") or {}
    config.environ = _environ(inner.get("Env"))
    user = inner.get("User")
    config.user = user if isinstance(user, str) else ""
    folder = inner.get("WorkingDir")
    config.folder = folder if isinstance(folder, str) else ""
    config.program = [*_texts(inner.get("Entrypoint")), *_texts(inner.get("Cmd"))]
    return config


def variant_of(platform: Mapping[str, object]) -> str:
    """Return the level that a platform names, "" for the first one of its architecture."""
    variant = platform.get("variant")
    return variant if isinstance(variant, str) and variant != "v1" else ""


def _environ(value: object) -> dict[str, str]:
    pairs = (text.partition("=") for text in _texts(value)[:MAX_VARIABLES])
    return {name: text for name, equals, text in pairs if equals}


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def shell_variables(text: str) -> Mapping[str, str]:
    """Return what lines such as ``export CUDA_VERSION="${CUDA_VERSION:-"12.8.1"}"`` set.

    So Apptainer keeps the variables of the image that a SIF was made from. Nothing is run: a value
    with another variable in it is left out.
    """
    values: dict[str, str] = {}
    for line in text.splitlines()[:MAX_VARIABLES]:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or not name.replace("_", "a").isalnum():
            continue
        value = value.strip()
        start = f'"${{{name}:-'
        if value.startswith(start) and value.endswith('}"'):
            value = value[len(start) : -2]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if "$" not in value and "`" not in value:
            values[name] = value
    return values
