"""The script that runs on a node, and what is made of its lines however an engine mixes them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from fake_engines import Engines

from probe_cluster.gathering.lines import Stream, Streams, node_script


def printed(engines: Engines, host: str, *, shell: str = "sh") -> bytes:
    engines.setenv(FAKE_HOST=host, SLURMD_NODENAME=host, SLURM_PROCID="0")
    return subprocess.run([shell, "-c", node_script()], capture_output=True, check=True).stdout


def parsed(*chunks: bytes) -> list[Stream]:
    """Return the streams that ended, with a copy of their pieces' text in `end`."""
    texts: list[Any] = []

    def ended(stream: Stream) -> None:
        try:
            texts.append((stream.node, stream.end and stream.end[0], stream.text()))
        except ValueError as error:
            texts.append((stream.node, stream.end and stream.end[0], str(error)))

    streams = Streams(ended)
    for chunk in chunks:
        streams.feed(chunk)
    return texts


def test_a_report_arrives_as_it_was_written(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    output = printed(engines, "desk")
    assert {len(line) for line in output.splitlines(keepends=True)} == {512}
    ((node, kind, text),) = parsed(output)
    assert (node, kind) == ("desk", "end")
    assert json.loads(text) == home["desk"]
    # Blanks at a piece's end are part of the text.
    assert text == json.dumps(home["desk"]).encode()


def test_output_may_be_cut_anywhere(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    output = printed(engines, "desk")
    for size in (1, 7, 511, 513, 4096):
        chunks = [output[at : at + size] for at in range(0, len(output), size)]
        ((_, _, text),) = parsed(*chunks)
        assert json.loads(text) == home["desk"]


def test_lines_of_nodes_may_be_mixed(engines: Engines, home: dict[str, Any]) -> None:
    outputs = []
    for name in ("desk", "rock"):
        engines.report(name, home[name])
        outputs.append(printed(engines, name).splitlines(keepends=True))
    mixed = b""
    while any(outputs):
        for lines in outputs:
            mixed += b"".join(lines[:2])
            del lines[:2]
        mixed += b"a banner\n"
    texts = {node: json.loads(text) for node, _, text in parsed(mixed)}
    assert texts == {"desk": home["desk"], "rock": home["rock"]}


@pytest.mark.parametrize("prefix", [b"0: ", b"[1,0]<stdout>:", b"Welcome! "])
def test_labels_and_carriage_returns_do_no_harm(
    engines: Engines, home: dict[str, Any], prefix: bytes
) -> None:
    engines.report("desk", home["desk"])
    lines = printed(engines, "desk").splitlines()
    ((_, _, text),) = parsed(b"".join(prefix + line + b"\r\n" for line in lines))
    assert json.loads(text) == home["desk"]


def test_a_lost_line_is_noticed(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    lines = printed(engines, "desk").splitlines(keepends=True)
    del lines[3]
    ((_, _, sentence),) = parsed(b"".join(lines))
    assert sentence == f"{len(lines) - 2} of the {len(lines) - 1} lines of its answer arrived"


def test_two_nodes_of_one_name_are_two_streams(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    first = printed(engines, "desk")
    second = first.replace(b"#probe-cluster desk 0 ", b"#probe-cluster desk 1 ")
    assert [node for node, _, _ in parsed(first + second)] == ["desk", "desk"]


def test_an_endless_line_is_dropped_and_the_next_is_read(engines: Engines) -> None:
    streams = []
    reader = Streams(lambda stream: streams.append(stream.node))
    for _ in range(200):
        reader.feed(b"x" * 100_000)
    reader.feed(b"\n#probe-cluster n1 0 absent |\n")
    assert streams == ["n1"]


@pytest.mark.parametrize(
    "line",
    [
        b"#probe-cluster",
        b"#probe-cluster |",
        b"#probe-cluster a b|",
        b"#probe-cluster a 0 end 0 99999999999999999999|",
        b"#probe-cluster \xff\xfe 0 end \xff|",
        b"#probe-cluster a 0 -1 x|",
    ],
)
def test_damaged_lines_raise_nothing(line: bytes) -> None:
    assert parsed(line + b"\n") == []


def line(text: bytes) -> bytes:
    return text.ljust(511) + b"\n"


def test_a_line_that_lost_a_part_or_took_one_is_none() -> None:
    first, second = (b"#probe-cluster %s 0 0 %s|" % (node, node * 300) for node in (b"a", b"b"))
    end = line(b"#probe-cluster b 0 end 0 1|")
    # Cut in the middle of the first, as a terminal of Open MPI does: the second is whole.
    assert parsed(first[:200], line(second), end) == [("b", "end", b"b" * 300)]
    # A part of the second within the first: it is as long as no line of ours.
    mixed = (second[:100] + first[50:] + b" ").ljust(700) + b"\n"
    assert parsed(mixed, end) == [("b", "end", "0 of the 1 lines of its answer arrived")]


def test_an_answer_is_bounded() -> None:
    lines = [line(b"#probe-cluster a 0 %d %s|" % (at, b"x" * 470)) for at in range(9500)]
    ((_, _, sentence),) = parsed(*lines, line(b"#probe-cluster a 0 end 0 9500|"))
    assert sentence == "its answer is longer than 4 MiB"


def test_the_script_suits_every_shell_as_one_quoted_word() -> None:
    script = node_script(("/opt/my probe/bin/probe", "--flag"))
    assert "\n" not in script
    assert "!" not in script  # csh expands it
    assert "'/opt/my probe/bin/probe' --flag --json" in script
