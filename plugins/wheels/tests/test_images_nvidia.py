"""What NVIDIA's container hook checks, and which libcuda a program gets: each side of a rule."""

from __future__ import annotations

import pytest

from probe_wheels.devices import Gpu
from probe_wheels.images.nvidia import (
    APPTAINER,
    CDI,
    LEGACY,
    Compat,
    capabilities_of,
    last_branch,
    least_driver,
    start_check,
)


def gpu(driver: tuple[int, ...], *capability: int) -> Gpu:
    made = Gpu("pci:1", "nvidia", "NVIDIA GeForce RTX 4090")
    made.driver, made.capabilities = driver, (capability,) if capability else ()  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("requirement", "driver", "expected"),
    [
        ("cuda>=12.8", (570, 26), True),
        ("cuda>=12.8", (565, 57, 1), False),
        ("cuda<12.8", (565, 57, 1), True),
        ("cuda<=12.8", (570, 26), True),
        ("cuda>12.8", (570, 26), False),
        ("cuda=12.8", (570, 26), True),
        ("cuda!=12.8", (570, 26), False),
        ("cuda>=12.8", (), None),
        ("cuda>=11.0", (400, 10), False),
        ("cuda>=10.0", (400, 10), None),
        ("cuda>=13.2", (700, 10), True),
        ("cuda>=99.0", (700, 10), None),
        ("cuda>=99.0", (595, 45, 4), False),
        ("driver>=470,driver<471", (470, 42, 1), True),
        ("driver>=470,driver<471", (471,), False),
        ("driver>=470", (470,), True),
        ("driver=470.0", (470,), True),
        ("cuda>=12.8 driver>=470,driver<471", (470, 42, 1), True),
        ("cuda>=12.8 driver>=470,driver<471", (535, 54, 3), False),
        ("arch>=8.9", (570, 26), True),
        ("arch>=9.0", (570, 26), False),
    ],
)
def test_the_check_before_the_start(
    requirement: str, driver: tuple[int, ...], expected: bool | None
) -> None:
    assert start_check(requirement, gpu(driver, 8, 9)) is expected


def test_the_first_driver_that_passes() -> None:
    assert least_driver("cuda>=12.8", gpu((535, 54, 3), 8, 9)) == (570, 26)
    assert least_driver("cuda>=12.8", gpu((570, 26), 8, 9)) == (575, 51, 3)
    assert least_driver("cuda>=99.0", gpu((535, 54, 3), 8, 9)) == ()


@pytest.mark.parametrize(
    ("capability", "branch"),
    [((3, 0), 470), ((3, 7), 470), ((5, 0), 580), ((7, 0), 580), ((7, 5), None), ((9, 0), None),
     ((), None)],
)  # fmt: skip
def test_the_last_branch_of_a_gpu(capability: tuple[int, ...], branch: int | None) -> None:
    assert last_branch(gpu((), *capability)) == branch


NOTE = '{"Driver": [535, "550", "beta", 123456]}'


@pytest.mark.parametrize(
    ("mode", "driver", "note", "forced", "taken"),
    [
        (LEGACY, (535, 54, 3), NOTE, False, True),
        (LEGACY, (570, 86), NOTE, False, False),
        (LEGACY, (580, 65), NOTE, False, False),
        (LEGACY, (580, 65), NOTE, True, True),
        (APPTAINER, (535, 54, 3), NOTE, False, False),
        (APPTAINER, (580, 65), NOTE, True, True),
        (LEGACY, (), NOTE, False, None),
        (CDI, (535, 54, 3), NOTE, False, True),
        (CDI, (560, 28, 3), NOTE, False, False),
        (CDI, (560, 28, 3), "", False, True),
        (CDI, (560, 28, 3), "no JSON", False, True),
        (CDI, (560, 28, 3), '{"driver": 1}', False, True),
        (CDI, (570, 10), '{"DRIVER": [570]}', False, True),
        (CDI, (570, 26), '{"DRIVER": [570]}', False, False),
    ],
)
def test_whether_the_images_libcuda_stands_first(
    mode: str, driver: tuple[int, ...], note: str, forced: bool, taken: bool | None
) -> None:
    compat = Compat("/compat", (570, 26), note, {}, forced=forced)
    assert compat.is_taken(mode, driver) is taken
    assert Compat("/compat", (), note, {}, forced=forced).is_taken(CDI, driver) is (forced or None)


def test_which_drivers_it_works_with() -> None:
    clauses = (
        "cuda>=12.8",
        "brand=tesla,driver>=470,driver<471",
        "driver>=535,driver<537",
        "driver>=100000,driver<100001",
        "driver<551",
        "driver>=550,driver<551",
    )
    require = {"NVIDIA_REQUIRE_CUDA": " ".join(clauses)}
    noted = Compat("/compat", (570, 26), NOTE, require, forced=False)
    assert (noted.branches, noted.allowed) == ({535, 550}, {470, 550})
    assert [noted.fits((branch, 1)) for branch in (535, 550, 470)] == [True, True, False]
    plain = Compat("/compat", (570, 26), "", require, forced=False)
    assert [plain.fits((branch, 1)) for branch in (470, 550, 535)] == [True, True, None]


def test_what_a_container_asks_of_the_driver() -> None:
    name = "NVIDIA_DRIVER_CAPABILITIES"
    assert capabilities_of({}) == {"utility", "compute"}
    assert capabilities_of({name: "compute, video,"}) == {"compute", "video"}
    assert capabilities_of({name: "all,nonsense"}) >= {"compute", "graphics", "display"}
    with pytest.raises(ValueError, match="'nonsense'"):
        capabilities_of({name: "compute,nonsense"})
