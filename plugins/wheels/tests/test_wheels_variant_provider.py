"""The provider's answers on recorded nodes, and that they have the protocol's shape."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from probe_core.commands import probe_document
from probe_core.recording.opening import open_machine
from probe_wheels.variant_provider import PROTOCOL, Feature, amd, nvidia, probe, supported

MACHINES = Path(__file__).parents[3] / "tests" / "machines"


def report(name: str) -> Any:
    (path,) = MACHINES.glob(f"{name}-*.json")
    with open_machine(str(path)) as machine:
        return probe_document(machine, {})


def values(features: list[Feature]) -> dict[str, list[str]]:
    return {feature.name: feature.values for feature in features}


def test_values_fit_the_node_best_first() -> None:
    features = values(supported(report("dgx-h100"), ("nvidia", "amd")))
    assert features["cuda_version_lower_bound"][:3] == ["13.0", "12.9", "12.8"]
    assert features["sm_arch"][:3] == ["90_real", "90_virtual", "89_virtual"]
    assert "gfx_arch" not in features


def test_code_for_one_of_several_targets_fits_and_bounds_are_one() -> None:
    found = supported(report("dgx-h100"), ("nvidia",))
    assert {feature.name: feature.multi_value for feature in found} == {
        "cuda_version_lower_bound": False,
        "cuda_version_upper_bound": False,
        "sm_arch": True,
    }


def test_a_newer_chip_takes_the_code_of_its_series() -> None:
    features = values(supported(report("dgx-spark"), ("nvidia",)))
    assert features["sm_arch"][:4] == ["121_real", "120_real", "121_virtual", "120_virtual"]


@pytest.mark.heavy
def test_amd_has_one_processor_or_none() -> None:
    assert values(supported(report("server--8x-amd"), ("amd",))) == {"gfx_arch": ["gfx942"]}
    assert supported(report("desktop--amd"), ("amd",)) == []  # gfx1100 and gfx1036


def test_no_gpu_no_feature() -> None:
    assert supported(report("vm-without-accelerator"), ("nvidia", "amd")) == []


@pytest.mark.parametrize("provider", [nvidia, amd, probe])
def test_the_shape_of_the_protocol(provider: Any) -> None:
    """variantlib 0.2.2: ``[a-z0-9_.]+`` for values, unique names, a list of each."""
    for features in (provider.get_all_configs(), provider.get_supported_configs()):
        names = [feature.name for feature in features]
        assert len(names) == len(set(names))
        for feature in features:
            assert isinstance(feature.multi_value, bool)
            assert feature.values
            assert len(feature.values) == len(set(feature.values))
            for value in feature.values:
                assert set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.")
    supported_names = {feature.name for feature in provider.get_supported_configs()}
    assert supported_names <= {feature.name for feature in provider.get_all_configs()}


def test_the_entry_point_names_the_provider_of_all_vendors() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    points = project["project"]["entry-points"]["variant_plugins"]
    (point,) = [EntryPoint(name, value, "variant_plugins") for name, value in points.items()]
    assert point.name == "probe"
    assert point.load() is probe


def test_nothing_is_printed() -> None:
    code = "from probe_wheels.variant_provider import probe; probe.get_supported_configs()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert PROTOCOL == "variantlib 0.2.2"


def test_a_variant_for_one_major_version_fits_by_both_bounds() -> None:
    """xgboost builds one with ``cuda_version_lower_bound :: 12.0`` and ``…upper_bound :: 13``."""
    features = values(supported(report("dgx-h100"), ("nvidia",)))  # driver 580: CUDA 13.0
    lower, upper = features["cuda_version_lower_bound"], features["cuda_version_upper_bound"]
    assert {"12.0", "12", "12.6", "13.0", "13"} <= set(lower)
    assert {"13.1", "13.3", "14", "14.0", "15.20"} <= set(upper)
    assert not {"13", "13.0", "12.9"} & set(upper)
    assert not {"13.1", "14"} & set(lower)
    assert upper[0] == "15.20"
    every = {feature.name: feature.values for feature in nvidia.get_all_configs()}
    assert all(set(features[name]) <= set(every[name]) for name in features)
