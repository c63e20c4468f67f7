"""Files that can be opened and not read, and figures that are none: each has its sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from probe_cluster import ClusterError
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.weights import _head
from probe_cluster.planning.whatif import _lines
from probe_cluster.shared import figure_of, is_cluster_file, read_document

UNREADABLE = "/proc/self/mem"
"""Its first page is never mapped: reading it is an error of input (proc_pid_mem(5))."""

needs_proc = pytest.mark.skipif(not os.path.isfile(UNREADABLE), reason="needs Linux's /proc")


@needs_proc
@pytest.mark.parametrize(
    "read",
    [
        read_document,
        lambda path: parse_model({"model": path}),
        _head,
        lambda path: list(_lines([path])),
    ],
    ids=["document", "model", "weights", "computers"],
)
def test_an_error_of_input_names_the_file(read: Callable[[str], Any]) -> None:
    with pytest.raises(ClusterError, match=rf"^{UNREADABLE}: .*Input/output error$"):
        read(UNREADABLE)


@needs_proc
def test_what_cannot_be_read_is_no_document_of_a_cluster() -> None:
    assert is_cluster_file(UNREADABLE) is False


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("50us", 50e-6),
        ("1e3us", 1e-3),
        ("2ms", None),
        ("xus", None),
        ("us", None),
        ("0us", None),
        ("-1us", None),
        ("nanus", None),
        ("infus", None),
    ],
)
def test_a_figure_with_its_unit(text: str, figure: float | None) -> None:
    assert figure_of(text, {"us": 1e-6}) == (figure if figure is None else pytest.approx(figure))
