"""The ROCm of AMD's own kernel driver."""

from __future__ import annotations

import pytest

from probe_core.model.rocm import release_of_driver


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("6.3.6\n", "6.0"),
        ("6.7.0", "6.1"),
        ("6.8.5", "6.2"),
        ("6.10.5", "6.3"),
        ("6.12.12.60400", "6.4"),
        ("6.14.14", "7.0"),
        ("6.16", "7.1"),
        ("6.9.1", None),
        ("5.12.1", None),
        ("6", None),
        ("6.x.12", None),
        ("600000.12", None),
        ("", None),
    ],
)
def test_the_release_of_a_driver(text: str, release: str | None) -> None:
    assert release_of_driver(text) == release
