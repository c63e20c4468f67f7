"""The limits on the page about isolation are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from probe_core import background, isolation, registry, setting_values
from probe_core.isolation import (
    confine,
    ending,
    launch,
    look,
    processes,
    resident,
    run,
    start,
    wire,
)
from probe_core.pipeline import chip_reading, file_reading, static
from probe_core.sampling import engine, sampler

PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/isolation.md"


def test_every_limit_is_the_one_of_the_code() -> None:
    limits_of_children = PAGE.read_text().partition("## Data in the host")[0]
    rows = dict(re.findall(r"^\| ([a-z .`()]+) \| (.*) \|$", limits_of_children, re.MULTILINE))
    rows.pop("limit")
    assert rows == {
        "devices of a prober": f"{isolation.MAX_DEVICES}",
        "findings of a prober": f"{isolation.MAX_FINDINGS}",
        "one frame": f"{isolation.FRAME_LIMIT >> 20} MiB",
        "all frames of a prober": f"{run.TOTAL_LIMIT >> 20} MiB",
        "nesting of a value": f"{wire.DEPTH_LIMIT}",
        "resident memory": "4 GiB, or half of the machine's or the control group's",
        "processes of a prober": f"{processes.MAX_PROCESSES:,}",
        "frames of a process": f"{isolation.MAX_FRAMES:,}",
        "probers at once": f"{launch.MAX_CHILDREN}",
        "processes of a prober that goes around devices": f"{launch.MAX_ATTEMPTS}, or "
        f"{launch.MAX_ATTEMPTS + 1} where it asked side by side",
        "standard error that is kept": f"{run.TAIL_LIMIT >> 10} KiB",
        "size of a file that it writes": f"{start.FILE_SIZE_LIMIT >> 20} MiB",
        "cleanup after `request.done()`": f"{run.CLEANUP_S:g} s",
    }


def test_the_budget_is_the_one_of_the_code() -> None:
    page = PAGE.read_text().partition("## Data in the host")[2]
    rows = re.findall(r"^\| ([a-z ]+) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    both = [registry.SHARE, registry.TOTAL]
    assert rows[1:] == [
        ("files", *(f"{limits['files']:,}" for limits in both)),
        ("bytes", *(f"{int(limits['bytes']) >> 20} MiB" for limits in both)),
        ("names that patterns look at", *(f"{limits['names']:,}" for limits in both)),
        ("processor time", *(f"{limits['seconds']} s" for limits in both)),
    ]
    assert f"The host reads {chip_reading.HOST_BYTES >> 10} KiB." in page
    assert f"a deadline of {chip_reading.CHIPS_S:g} s" in page
    sizes = f"have {setting_values.FILE_LIMIT >> 10} KiB and {static.FILE_LIMIT >> 20} MiB at most"
    assert sizes in page


def test_the_sentences_hold() -> None:
    text = " ".join(PAGE.read_text().split())
    assert f"{start.FILE_SIZE_LIMIT >> 20} MiB a file" in text
    assert "half a second is abandoned" in text
    assert ending.REAP_S == 0.5
    assert "alarm a second after the deadline" in text
    assert confine.GRACE_S == 1.0
    assert "a quarter of the time that remains (at least a tenth of the deadline)" in text
    assert (run.QUIET_SHARE, run.QUIET_LEAST) == (0.25, 0.1)
    assert f"with less than {launch.LEAST_S:g} s left" in text
    assert f"is ended after {run.CLEANUP_S:g} s" in text
    assert f"After {ending._ASKING_S:g} s the host kills the supervisor" in text
    assert f"begins to end the children within {background.TICK_S:g} s" in text
    assert f"Up to {background.INTERRUPTIONS} more exceptions" in text
    assert f"Polling looks every {background.TICK_S:g} s, or after ten times as long" in text
    assert processes._PAUSE_SHARE == 10
    assert "is looked for once a second" in text
    assert processes._PAUSE_OF_FILES_S == 1.0
    assert f"with statfs(2) first. It has {look.LOOK_S:g} s." in text
    seconds = f"{file_reading.DEADLINE_S:g} s, chip files {chip_reading.CHIPS_S:g} s"
    assert f"Configuration and report have {seconds} (`PROBE_TIMEOUT`)" in text


def test_the_sentences_about_a_process_that_stays_hold() -> None:
    text = " ".join(PAGE.read_text().split())
    assert "silent for two seconds, a whole round may take ten" in text
    assert (sampler.ROUND_S, sampler.ROUND_S * resident.LONGEST) == (2.0, 10.0)
    assert "pauses that grow from 10 s to 10 minutes" in text
    assert (sampler.FIRST_S, sampler.LONGEST_S) == (10.0, 600.0)
    assert f"memory is looked at every {engine._CHECK_S:g} s" in text
