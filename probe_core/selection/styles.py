"""How devices are named to a program: by UUID, or by number where it cannot read UUIDs.

UUIDs mean the same whatever else is set. Numbers are right only together with an order, and are
for the programs that turn each entry of CUDA_VISIBLE_DEVICES into an integer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AUTO", "INDEX", "UUID", "style_for"]

AUTO, UUID, INDEX = "auto", "uuid", "index"

NUMBERS_ONLY = {
    # program or top-level module: where it was seen
    "vllm": "vllm-project/vllm issues 13815, 20939 and 41848",
    "deepspeed": "deepspeedai/DeepSpeed issue 5278",
    "openrlhf": "OpenRLHF/OpenRLHF issue 402",
    # Its AMD part refuses ROCR_VISIBLE_DEVICES, which style "index" does without.
    "ray": "ray-project/ray issue 53737",
}
"""Programs that take numbers alone: int() of each entry, or a check that only numbers pass."""


def style_for(style: str, command: Sequence[str]) -> str:
    """Return the style to use, ``uuid`` or ``index``: as asked for, else as the command needs.

    A program counts wherever it stands among the words: behind `uv run`, `python -m` or a path.
    """
    if style != AUTO:
        return style
    return INDEX if any(_program(argument) in NUMBERS_ONLY for argument in command) else UUID


def _program(argument: str) -> str:
    """Return what a word would run: the file without its folder, or the module's first name."""
    return argument.rpartition("/")[2].partition(".")[0].lower()
