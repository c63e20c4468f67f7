"""Real strings of real tools; every row is what that tool prints."""
# ruff: noqa: E501 - rows are whole sentences, as they are printed

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_chipdb import KINDS, NORMALISE_VERSION, normalise
from probe_chipdb.spelling import claimed_vendor, is_generic

TABLE = [
    ("nvml", "NVIDIA GeForce RTX 4090", "geforce rtx 4090"),
    ("nvml", "NVIDIA GeForce RTX 4090 Laptop GPU", "geforce rtx 4090 laptop gpu"),
    ("nvml", "NVIDIA GeForce RTX 4070 Ti SUPER", "geforce rtx 4070 ti super"),
    (
        "nvml",
        "NVIDIA GeForce RTX 2080 Super with Max-Q Design",
        "geforce rtx 2080 super with max q design",
    ),
    ("nvml", "NVIDIA A100-SXM4-80GB", "a100 sxm4 80gb"),
    ("nvml", "NVIDIA A100 80GB PCIe", "a100 80gb pcie"),
    ("nvml", "NVIDIA H100 80GB HBM3", "h100 80gb hbm3"),
    ("nvml", "NVIDIA H100 NVL", "h100 nvl"),
    ("nvml", "Tesla V100-SXM2-16GB", "tesla v100 sxm2 16gb"),
    ("nvml", "Quadro P2000", "quadro p2000"),
    ("nvml", "NVIDIA RTX 6000 Ada Generation", "rtx 6000 ada generation"),
    ("nvml", "NVIDIA Graphics Device", "nvidia graphics device"),
    ("nvml", "Orin (nvgpu)", "orin (nvgpu)"),
    ("amdgpu", "AMD Radeon RX 7900 XTX", "radeon rx 7900 xtx"),
    ("amdgpu", "AMD Radeon Graphics", "radeon graphics"),
    ("lspci", "AD102 [GeForce RTX 4090]", "geforce rtx 4090"),
    ("lspci", "GA100 [A100 SXM4 80GB]", "a100 sxm4 80gb"),
    ("lspci", "GA104M [GeForce RTX 3070 Mobile / Max-Q]", "geforce rtx 3070 mobile/max q"),
    ("lspci", "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]", "radeon rx 7900 xt/7900 xtx/7900m"),
    (
        "lspci",
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)",
        "geforce rtx 4090",
    ),
    (
        "lspci",
        "VGA compatible controller: Intel Corporation CoffeeLake-S GT2 [UHD Graphics 630] (rev 02)",
        "uhd graphics 630",
    ),
    (
        "lspci",
        "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)",
        "h100 sxm5 80gb",
    ),
    ("pci", "Aqua Vanjaram [Instinct MI300X]", "instinct mi300x"),
    ("pci", "UHD Graphics 620", "uhd graphics 620"),
    ("vulkan", "AMD Radeon RX 7900 XTX (RADV NAVI31)", "radeon rx 7900 xtx"),
    ("vulkan", "Intel(R) Arc(tm) A770 Graphics (DG2)", "arc a770 graphics"),
    ("vulkan", "NVIDIA GeForce RTX 4090", "geforce rtx 4090"),
    ("vulkan", "Turnip Adreno (TM) 740", "adreno 740"),
    ("vulkan", "Mali-G610 (Panfrost)", "mali g610"),
    ("vulkan", "Microsoft Direct3D12 (NVIDIA GeForce RTX 3070)", "geforce rtx 3070"),
    ("opencl", "Intel(R) Graphics [0x56a0]", "intel graphics"),
    ("opencl", "Mali-G610 r0p0", "mali g610"),
    ("opencl", "gfx1100", "gfx1100"),
    ("gl", "NVIDIA GeForce RTX 3080/PCIe/SSE2", "geforce rtx 3080"),
    ("gl", "Mesa Intel(R) UHD Graphics 620 (KBL GT2)", "uhd graphics 620"),
    ("gl", "Mesa DRI Intel(R) HD Graphics 520 (Skylake GT2)", "hd graphics 520"),
    (
        "gl",
        "AMD Radeon RX 6800 XT (radeonsi, navi21, LLVM 17.0.6, DRM 3.54, 6.5.0-14-generic)",
        "radeon rx 6800 xt",
    ),
    ("gl", "AMD Radeon Pro 5500M OpenGL Engine", "radeon pro 5500m"),
    ("gl", "D3D12 (NVIDIA GeForce RTX 4090)", "geforce rtx 4090"),
    ("gl", "zink Vulkan 1.3(AMD Radeon RX 6800 XT (RADV NAVI21))", "radeon rx 6800 xt"),
    (
        "gl",
        "ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)",
        "geforce rtx 4090",
    ),
    ("gl", "ANGLE (Intel, Intel(R) UHD Graphics 770)", "uhd graphics 770"),
    ("gl", "ANGLE (Samsung Xclipse 920)", "samsung xclipse 920"),
    (
        "gl",
        "ANGLE (Apple, ANGLE Metal Renderer: Apple M1 Pro, Unspecified Version)",
        "apple m1 pro",
    ),
    (
        "gl",
        "ANGLE (AMD, Vulkan 1.3.0 (AMD Radeon RX 6800 (RADV NAVI21) (0x000073BF)), radv)",
        "radeon rx 6800",
    ),
    ("drm", "Mali-G610", "mali g610"),
    ("metal", "Apple M3 Max", "apple m3 max"),
    ("wmi", "NVIDIA GeForce GTX 1060 6GB", "geforce gtx 1060 6gb"),
    ("windows", "Intel(R) UHD Graphics 620", "uhd graphics 620"),
    ("windows", "AMD Radeon(TM) 780M", "radeon 780m"),
    ("windows", "NVIDIA GeForce 210 (Microsoft Corporation - WDDM v1.1)", "geforce 210"),
    ("cpuinfo", "Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", "core i7 8650u"),
    ("cpuinfo", "AMD EPYC 7763 64-Core Processor", "epyc 7763"),
    ("cpuinfo", "AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", "ryzen 7 7840hs"),
    ("dt", "rockchip,rk3588-mali\0arm,mali-valhall-csf\0", "rockchip,rk3588-mali"),
    ("name", "RTX 3080 12 GB", "rtx 3080 12gb"),
    ("name", "Intel(R) Arc(tm) A770 Graphics (DG2)", "arc a770 graphics"),
    ("nvml", "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1b2c)", "geforce rtx 4090"),
    ("nvml", "Model: \t\t NVIDIA GeForce RTX 4090", "geforce rtx 4090"),
    ("gl", "OpenGL renderer string: Mesa Intel(R) UHD Graphics 620 (KBL GT2)", "uhd graphics 620"),
    ("metal", "Chipset Model: Apple M3 Max", "apple m3 max"),
    ("name", "", ""),
    ("name", "   ", ""),
]


@pytest.mark.parametrize(("kind", "text", "key"), TABLE)
def test_table(kind: str, text: str, key: str) -> None:
    assert normalise(text, kind) == key


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=300) | st.sampled_from([row[1] for row in TABLE]))
def test_idempotent_and_bounded(kind: str, text: str) -> None:
    key = normalise(text, kind)
    assert normalise(key, kind) == key
    assert len(key) <= 256 or kind == "dt"


IDENTITY = (
    "laptop gpu",
    "max-q",
    "super",
    "ti",
    "d",
    "sxm4",
    "pcie",
    "nvl",
    "8gb",
    "16gb",
    "s",
    "xt",
    "se",
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dt"])
@pytest.mark.parametrize("token", IDENTITY)
def test_words_of_identity_stay(kind: str, token: str) -> None:
    assert normalise(f"NVIDIA GeForce RTX 4080 {token}", kind) != normalise(
        "NVIDIA GeForce RTX 4080", kind
    )


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="unknown kind 'nmvl': one of name, nvml"):
        normalise("x", "nmvl")


def test_version_is_a_number() -> None:
    assert NORMALISE_VERSION == 2


@pytest.mark.parametrize(
    ("key", "generic"),
    [("radeon graphics", True), ("intel graphics", True), ("orin (nvgpu)", True), ("", True),
     ("radeon 780m", False), ("uhd graphics 620", False), ("geforce rtx 4090", False)],
)  # fmt: skip
def test_generic(key: str, generic: bool) -> None:
    assert is_generic(key) is generic


def test_claimed_vendor() -> None:
    assert claimed_vendor("Mesa Intel(R) Graphics (RPL-S)") == "intel"
    assert claimed_vendor("ATI Radeon HD 5870") == "amd"
    assert claimed_vendor("Quadro P2000") == ""
    assert claimed_vendor("Intelligent Chip 5") == ""
