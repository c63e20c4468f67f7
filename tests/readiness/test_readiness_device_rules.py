"""The allow-list of a control group of version 1: which device it surely refuses."""

from __future__ import annotations

import pytest

from probe_core.readiness.device_rules import Rules
from probe_core.testing import Tree

FOLDER = "/sys/fs/cgroup/devices"


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("", True),
        ("a *:* rwm", False),
        ("c 195:0 rw", False),
        ("c 195:* rwm", False),
        ("c *:0 rwm", False),
        ("c 195:0 r\nc 195:0 w", True),  # each rule alone allows half
        ("c 195:1 rwm", True),
        ("c 194:0 rwm", True),
        ("b 195:0 rwm", True),  # a block device is another
        ("b 195:0 rwm\nc 195:0 rwm", False),
        # Of a file with other lines nothing is believed.
        ("c 195:1 rwm\nhello", False),
        ("c 195:1 rwx", False),
        ("d 195:1 rwm", False),
        ("c 195 rwm", False),
        ("c x:1 rwm", False),
        ("c 195:1", False),
        ("c 195:1 rwm more", False),
    ],
)
def test_a_list_refuses_what_no_rule_allows(text: str, refuses: bool, tree: Tree) -> None:
    tree.file(f"{FOLDER}/job/devices.list", text)
    rules = Rules(tree.machine(), "4:cpu,devices:/job\n0::/other")
    assert rules.refuses(195, 0) == refuses


@pytest.mark.parametrize(
    ("cgroup", "path"),
    [
        ("4:devices:/a/b", f"{FOLDER}/a/b/devices.list"),
        ("4:cpu,devices:/a/./../b", f"{FOLDER}/a/b/devices.list"),
        # A container's own group is the folder itself, wherever the host says it is.
        ("4:devices:/docker/0123", f"{FOLDER}/devices.list"),
        ("4:devices:/", f"{FOLDER}/devices.list"),
        ("4:cpu:/a/b\n0::/a/b", ""),
        ("4:mydevices:/a/b", ""),
        ("", ""),
    ],
)
def test_where_the_list_is(cgroup: str, path: str, tree: Tree) -> None:
    for folder in ("", "/a/b"):
        tree.file(f"{FOLDER}{folder}/devices.list", "c 1:3 rwm\n")
    rules = Rules(tree.machine(), cgroup)
    assert rules.path == path
    assert rules.refuses(1, 3) is False
    assert rules.refuses(1, 4) == bool(path)


def test_a_list_that_is_none_is_passed_over(tree: Tree) -> None:
    tree.file(f"{FOLDER}/a/devices.list", "no rule")
    tree.file(f"{FOLDER}/devices.list", "c 1:3 rwm")
    assert Rules(tree.machine(), "4:devices:/a").path == f"{FOLDER}/devices.list"
