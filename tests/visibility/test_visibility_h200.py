"""What CUDA itself showed of one GPU, for every value that was tried on a real driver.

An NVIDIA H200, driver 580.159.04, 2026-11-27: cuInit and cuDeviceGetCount under each value of
CUDA_VISIBLE_DEVICES, the GPU's own UUID in place of the names in braces.
"""

from __future__ import annotations

import pytest
import visibility_nodes as nodes

from probe_core.visibility import see

SHOWN = (
    "0",
    "0,1",
    "0,-1",
    " 0",
    "0 ",
    "00",
    "0x0",
    "+0",
    "0,",
    "0;1",
    "0a",
    "0 1",
    "{uuid}",
    "GPU-{DIGITS}",
    "{uuid},0",
    "0,{uuid}",
    "{uuid} ",
    "{uuid:.12},",
    "4294967296",
    "0.0",
    "-0",
    "0\t",
    "\t0",
    "0\n",
    "0,9",
    "{uuid:.8}",
    "{uuid:.5}",
    "GPU-{DIGITS:.9}",
    "GPU-{DIGITS:.1}",
    "GPU-{plain}",
    "GPU-{plain:.12}",
    "{uuid}\t",
    "{uuid}x",
    "{uuid} x",
    "{uuid}, 0",
    "{uuid} ,0",
    "{uuid:.12}-",
    "8589934592",
    "-4294967296",
    "9223372036854775808",
    "0 ,1",
    "0x",
    "00000",
    "0b0",
    "0_0",
    "\n0",
    "\u000b0",
    "\f0",
    "0\u000b",
    "0,-2",
    "0,x",
    "0,GPU-",
    "{uuid},GPU-ffffffff",
    "MIG-{digits}",
    "{uuid}-",
    "  0",
    "0.",
    "0e0",
    "0-",
    "0/0",
    "0:0",
    "{uuid},",
)
HIDDEN = (
    "",
    "1",
    "-1",
    "1,0",
    "0,0",
    "-1,0",
    ",0",
    "a",
    "NoDevFiles",
    "none",
    "all",
    "void",
    "gpu-{digits}",
    "GPU-",
    "GPU",
    "{digits}",
    "{uuid},{uuid}",
    "MIG-{uuid}",
    "GPU-ffffffff",
    " {uuid}",
    "2147483648",
    "18446744073709551616",
    "1e0",
    "'0'",
    '"0"',
    "9,0",
    "\u0660",
    "Gpu-{digits}",
    "GPU-,0",
    "GPU- ",
    "GPU-g",
    "{uuid:.12}g",
    "{uuid:.12} ",
    "4294967295",
    "4294967297",
    "2147483647",
    "-18446744073709551616",
    "9223372036854775807",
    "\u00a00",
    "MIG-{uuid}/0/0",
    "\t{uuid}",
    "- 1",
    "--1",
    "+ 0",
    "++0",
    ".0",
    "GPU0",
    "cuda:0",
)


def visible(template: str) -> list[str]:
    gpu = nodes.nvidia(1) | {"ids": ["pci:0000:01:00.0", f"uuid:{UUID}"]}
    digits = UUID[4:]
    value = template.format(
        uuid=UUID, digits=digits, DIGITS=digits.upper(), plain=digits.replace("-", "")
    )
    (view,) = see([gpu], {"CUDA_VISIBLE_DEVICES": value})["cuda"]
    assert view.certain
    return [*view.visible]


UUID = "GPU-d1c2b3a4-0f1e-2d3c-4b5a-69788796a5b4"


@pytest.mark.parametrize("value", SHOWN)
def test_it_is_shown(value: str) -> None:
    assert visible(value) == ["pci:0000:01:00.0"]


@pytest.mark.parametrize("value", HIDDEN)
def test_it_is_hidden(value: str) -> None:
    assert visible(value) == []
