"""Which type of machine a cloud's files name, and what of it is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doctor_cases import complete
from readiness_nodes import nvidia
from reports import report_of

from probe_core.doctor.check import Request
from probe_core.doctor.checks.machine_type import fewer_than_type

AZURE = {"ds": {"meta_data": {"imds": {"compute": {"vmSize": "Standard_NC64as_T4_v3"}}}}}
XEN = {"ds": {"meta_data": {"instance-type": "p3.8xlarge", "ami-id": "ami-1"}}}


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (json.dumps(AZURE), "failed", "Standard_NC64as_T4_v3: 4 T4; here: 1"),
        (json.dumps(XEN), "failed", "p3.8xlarge: 4 V100; here: 1"),
        (json.dumps(XEN).replace("8xlarge", "2xlarge"), "passed", None),
        (json.dumps(XEN).replace("p3.8", "x9.8"), "not_applicable", "of the type x9.8xlarge"),
        (json.dumps({"ds": {"meta_data": {"instance-type": 5}}}), "not_applicable", "no file"),
        ('{"instance-type": ', "not_applicable", "no file"),
        ("[" * 99_999 + "instance-type", "not_applicable", "no file"),
        ("", "not_applicable", "no file"),
    ],
)
def test_what_cloud_init_keeps(data: str, status: str, reason: str | None, tmp_path: Path) -> None:
    node = nvidia(tmp_path / "root")
    node.file("/run/cloud-init/instance-data.json", data)
    complete(node)
    request = Request(node.machine(), report_of(node.machine()))  # type: ignore[arg-type]
    result = fewer_than_type.run(request)
    shown = result["reason"] or next((f["evidence"] for f in result["findings"]), None)
    assert (result["status"], (reason or "") in (shown or "")) == (status, True)


def test_an_expectation_counts_before_the_type(tmp_path: Path) -> None:
    node = nvidia(tmp_path / "root")
    node.file("/run/cloud-init/instance-data.json", json.dumps(XEN))
    complete(node)
    report = report_of(node.machine(), expect="1x RTX 4090")
    result = fewer_than_type.run(Request(node.machine(), report))  # type: ignore[arg-type]
    assert (result["status"], result["reason"]) == (
        "not_applicable",
        "a setting or a baseline says what should be here",
    )
