"""The table of runtimes says what the rules read; schema and reference page say the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import visibility_nodes as nodes
from report_schema import schema

from probe_core.model.runtimes import NATIVE, RUNTIMES, canonical
from probe_core.model.verdict import native_runtime, usable_here
from probe_core.visibility import (
    amd,
    annotate,
    container,
    cuda,
    metal,
    oneapi,
    opencl,
    see,
    tinygrad,
    vulkan,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "visibility.md"
DEVICES: list[Any] = [
    nodes.nvidia(1, pci={"id": "10de:2330"}),
    nodes.amd(2, 7),
    nodes.intel(3),
]
BELOW = see(DEVICES, {})
FIRST = {name: views[0] for name, views in BELOW.items()}
RELEASES = ("0.8.0", "0.9.2", "0.12.0", "0.14.0")

# Each runtime's own rules, what is below it having been seen already.
READERS: dict[str, Callable[[Mapping[str, str]], object]] = {
    "cuda": lambda environ: cuda.see(DEVICES, environ),
    "rocr": lambda environ: amd.see_rocr(DEVICES, environ),
    "hip": lambda environ: (
        amd.see_hip(DEVICES, environ, FIRST["rocr"]),
        amd.see_pal(DEVICES, environ, "hip", amd.VARIABLES),
    ),
    "level-zero": lambda environ: oneapi.see_level_zero(DEVICES, environ),
    "sycl": lambda environ: opencl.see_sycl(DEVICES, environ, FIRST["level-zero"]),
    "opencl": lambda environ: (
        opencl.see(DEVICES, environ, FIRST),
        opencl.see(DEVICES, environ, {"hip": FIRST["hip"]}),
    ),
    "vulkan": lambda environ: vulkan.see_vulkan(DEVICES, environ),
    "ggml-vulkan": lambda environ: vulkan.see_ggml(environ, FIRST["vulkan"]),
    "nvidia-container": lambda environ: container.see(DEVICES, environ),
    "tinygrad": lambda environ: [tinygrad.see(DEVICES, environ, one) for one in RELEASES],
    "metal": lambda environ: metal.see(DEVICES),
}
# One variable is read only where another is set.
SETTINGS: list[dict[str, str]] = [
    {},
    {"MESA_VK_DEVICE_SELECT": "10de:2330"},
    {"CUDA_VERSION": "12"},
]


class Recorder(Mapping[str, str]):
    """An environment that remembers which variables were looked up."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values_ = dict(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the rules look variables up by name")

    def __len__(self) -> int:
        return len(self.values_)


def read_by(reader: Callable[[Mapping[str, str]], object]) -> set[str]:
    names: set[str] = set()
    for values in SETTINGS:
        environ = Recorder(values)
        reader(environ)
        names |= environ.read
    return names


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_table_has_the_variables_that_the_rules_read(name: str) -> None:
    assert read_by(READERS[name]) == set(RUNTIMES[name].variables)


@pytest.mark.parametrize("system", ["linux", "windows", "darwin"])
def test_no_rule_reads_a_variable_that_no_runtime_has(system: str) -> None:
    known = {variable for runtime in RUNTIMES.values() for variable in runtime.variables}
    for release in RELEASES:
        versions = {"tinygrad": release}
        names = read_by(lambda environ: see(DEVICES, environ, os=system, versions=versions))  # noqa: B023
        assert names <= known


def test_every_view_is_of_a_runtime_of_the_table() -> None:
    views = [see(DEVICES, {}, os=system) for system in ("linux", "windows", "darwin")]
    assert {name for one in views for name in one} == set(RUNTIMES)
    assert all(view.runtime == name for one in views for name in one for view in one[name])


def test_the_schema_lists_the_runtimes() -> None:
    visibility = schema()["$defs"]["device"]["properties"]["visibility"]
    assert visibility["propertyNames"]["examples"] == list(RUNTIMES)


def rows() -> dict[str, list[str]]:
    """Return the rows of the reference page's table of runtimes, by the runtime's name."""
    section = PAGE.read_text("utf-8").split("## Runtimes\n")[1].split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if "| `" in line]
    return {row[0].strip("`"): row for row in cells}


def test_the_page_lists_the_runtimes_in_order() -> None:
    assert list(rows()) == list(RUNTIMES)


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_page_lists_names_and_variables(name: str) -> None:
    row = rows()[name]
    assert set(re.findall(r"`([^`]+)`", row[1])) == set(RUNTIMES[name].aliases)
    assert set(re.findall(r"`([^`]+)`", row[2])) == set(RUNTIMES[name].variables)


def test_each_alias_means_one_runtime() -> None:
    aliases = [alias for runtime in RUNTIMES.values() for alias in runtime.aliases]
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & set(RUNTIMES)
    assert {alias: canonical(alias) for alias in ("ze", "VK", "mps")} == {
        "ze": "level-zero",
        "VK": "vulkan",
        "mps": "metal",
    }


def test_hidden_is_what_the_vendors_own_runtime_says() -> None:
    devices: list[Any] = [dict(device) for device in DEVICES]
    annotate(devices, see(devices, {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "0"}))
    assert [usable_here(device).usable is False for device in devices] == [True, False, False]
    assert [native_runtime(device) for device in devices] == ["cuda", "hip", "level-zero"]
    unsure: Any = nodes.nvidia(1, visibility={"cuda": {"visible": None, "index": None}})
    assert usable_here(unsure).usable is not False
    npu: Any = nodes.whole({"id": "dt:/npu", "kind": "npu", "vendor": "rockchip"})
    assert usable_here(npu).usable is not False
    assert native_runtime(npu) == "vulkan"
    assert set(NATIVE) == {"nvidia", "amd", "intel", "apple"}
