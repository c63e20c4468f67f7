"""The script that runs on a node, and what is made of its lines however an engine mixes them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from fake_engines import Engines

from probe_cluster import Limits
from probe_cluster.gathering.answers import answer_of, document_of, message_of, unanswered
from probe_cluster.gathering.known_texts import KnownTexts
from probe_cluster.gathering.lines import MOST_TEXT, Stream, Streams
from probe_cluster.gathering.model import LONGER
from probe_cluster.gathering.process import Ended
from probe_cluster.gathering.sending import node_script, program


def printed(engines: Engines, host: str) -> bytes:
    """Return what the program of a node prints, whose `probe` prints the report of `host`."""
    engines.setenv(FAKE_HOST=host, SLURMD_NODENAME=host, PROBE_CORE_PROGRAM=program().decode())
    command = ["sh", "-c", node_script(Limits(), alone=True)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def parsed(*chunks: bytes) -> list[tuple[str, str, bytes | str]]:
    """Return node, kind of end and text of the messages, or why a text is not whole."""
    texts: list[tuple[str, str, bytes | str]] = []

    def ended(stream: Stream) -> None:
        assert stream.end is not None
        try:
            texts.append((stream.node, stream.end[0], stream.text()))
        except ValueError as error:
            texts.append((stream.node, stream.end[0], str(error)))

    streams = Streams(ended)
    for chunk in chunks:
        streams.feed(chunk)
    return texts


def answers(*chunks: bytes) -> list[tuple[str, Any]]:
    """Return node and report of each answer."""
    messages = [(node, json.loads(text)) for node, _, text in parsed(*chunks)]
    return [(node, json.loads(message["out"])) for node, message in messages if "out" in message]


def test_a_report_arrives_as_it_was_written(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    output = printed(engines, "desk")
    assert {len(line) for line in output.splitlines(keepends=True)} == {512}
    messages = [json.loads(text) for _, _, text in parsed(output)]
    assert [message["kind"] for message in messages] == ["start", "answer"]
    # To the last byte, blanks at its end included.
    assert messages[1]["out"] == json.dumps(home["desk"])
    assert (messages[1]["status"], messages[1]["sent"]) == (0, False)


def test_output_may_be_cut_anywhere(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    output = printed(engines, "desk")
    for size in (1, 7, 511, 513, 4096):
        chunks = [output[at : at + size] for at in range(0, len(output), size)]
        assert answers(*chunks) == [("desk", home["desk"])]


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
    assert dict(answers(mixed)) == {"desk": home["desk"], "rock": home["rock"]}


@pytest.mark.parametrize("prefix", [b"0: ", b"[1,0]<stdout>:", b"Welcome! "])
def test_labels_and_carriage_returns_do_no_harm(
    engines: Engines, home: dict[str, Any], prefix: bytes
) -> None:
    engines.report("desk", home["desk"])
    lines = printed(engines, "desk").splitlines()
    labelled = b"".join(prefix + line + b"\r\n" for line in lines)
    assert answers(labelled) == [("desk", home["desk"])]


def test_a_lost_line_is_noticed(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    lines = printed(engines, "desk").splitlines(keepends=True)
    _, (_, _, whole) = parsed(b"".join(lines))
    assert isinstance(whole, bytes)
    del lines[3]
    *_, (_, _, sentence) = parsed(b"".join(lines))
    count = len(lines) - 2  # without the message of the start, and the line of the end
    assert sentence == f"{count - 1} of the {count} lines of its answer arrived"


def test_a_changed_byte_is_noticed(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    lines = printed(engines, "desk").splitlines(keepends=True)
    at = lines[3].rindex(b"|") - 200
    lines[3] = (
        lines[3][:at] + (b"A" if lines[3][at : at + 1] != b"A" else b"B") + lines[3][at + 1 :]
    )
    *_, (_, _, sentence) = parsed(b"".join(lines))
    assert sentence == "its answer was damaged on the way"


def test_two_nodes_of_one_name_are_two_streams(engines: Engines, home: dict[str, Any]) -> None:
    engines.report("desk", home["desk"])
    both = printed(engines, "desk") + printed(engines, "desk")
    assert [node for node, _ in answers(both)] == ["desk", "desk"]


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
        b"#probe-cluster a 0 end plain 99999999999999999999|",
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
    end = line(b"#probe-cluster b 0 end plain 1|")
    # Cut in the middle of the first, as a terminal of Open MPI does: the second is whole.
    assert parsed(first[:200], line(second), end) == [("b", "end", b"b" * 300)]
    # A part of the second within the first: it is as long as no line of ours.
    mixed = (second[:100] + first[50:] + b" ").ljust(700) + b"\n"
    assert parsed(mixed, end) == [("b", "end", "0 of the 1 lines of its answer arrived")]


def test_a_line_without_its_mark_or_end_is_none() -> None:
    whole = line(b"#probe-cluster a 0 end plain 0|")
    assert parsed(whole) == [("a", "end", b"")]
    assert parsed(whole.replace(b"|", b" ")) == parsed(whole.replace(b"#", b"$")) == []
    assert parsed(b"|\n", b"#probe-cluster a 0 absent|\n") == []


def test_an_answer_is_bounded() -> None:
    lines = [line(b"#probe-cluster a 0 %d %s|" % (at, b"x" * 470)) for at in range(9500)]
    ((_, _, sentence),) = parsed(*lines, line(b"#probe-cluster a 0 end plain 9500|"))
    assert sentence == "its answer is longer than 4 MiB"


def test_the_script_suits_every_shell_as_one_quoted_word() -> None:
    script = node_script(Limits(command=("/opt/my probe/bin/probe", "--flag"), send=False))
    assert "\n" not in script
    assert "!" not in script  # csh expands it
    assert script.endswith('absent $b|"')
    assert " lifeline - - '/opt/my probe/bin/probe' --flag;" in script


OLD = "no Python 3.11 or newer is there to run the probe: it has "
HERE = "run `probe --json` on that node"
PCI = [{"address": "0000:01:00.0", "class": "0300", "id": "10de:2684"}, {"id": "10de:2204"}]
LAST: list[tuple[dict[str, Any], str, str, str]] = [
    ({"kind": "no-python"}, "no-probe", ("no Python 3.6 or newer is on its PATH, so no probe runs"
     " there"), "install Python 3.11 or newer there"),
    ({"kind": "no-python", "broken": "/usr/bin/python3"}, "no-probe",
     "/usr/bin/python3 is there and does not start",
     "look why: run `/usr/bin/python3 -I -S -c pass` there"),
    ({"kind": "absent"}, "no-probe", "probe-core is not installed there, or not on PATH",
     "install it there: pip install probe-core"),
    ({"kind": "late"}, "timeout", "`probe --json` did not end there in time", ""),
    ({"kind": "lost"}, "failed", "no probe could be started there: it gave no reason", "free 10"),
    ({"kind": 3, "reason": "a\nb"}, "failed", "no probe could be started there: a b", "free 10 MB"),
    ({"kind": "old"}, "no-probe", f"{OLD}older; its PCI bus cannot be read", "install Python 3.11"),
    ({"kind": "old", "python": "3.8.10", "installed": "0.9", "basics": {"pci": []}}, "no-probe",
     (f"{OLD}3.8.10; its own probe-core is 0.9; its PCI bus has no display device and no"
     " accelerator"), "install Python 3.11"),
    ({"kind": "old", "python": "3.10", "basics": {"pci": PCI[:1], "memory": 16 << 30}}, "no-probe",
     f"{OLD}3.10; its PCI bus has 1 such device: 1 x 10de:2684; 16.0 GiB of memory",
     "install Python 3.11"),
    ({"kind": "old", "python": "3.10", "basics": {"pci": [*PCI, *PCI]}}, "no-probe",
     f"{OLD}3.10; its PCI bus has 4 such devices: 2 x 10de:2204, 2 x 10de:2684",
     "install Python 3.11"),
    ({"kind": "answer", "out": "x\n", "status": 1, "err": "y\n \n"}, "failed",
     "`probe --json` ended with 1 there: y", HERE),
    ({"kind": "answer", "out": " ", "status": 0, "err": ""}, "failed",
     "`probe --json` ended with 0 there: it printed nothing", HERE),
    ({"kind": "answer", "out": 3, "status": -9, "err": ""}, "failed",
     "`probe --json` was ended there by SIGKILL", "look for the cause there: journalctl -k -n 50"),
    ({"kind": "answer", "out": "", "status": -200, "err": ""}, "failed",
     "`probe --json` was ended there by signal 200", "look for the cause"),
    ({"kind": "answer", "out": "{" + " " * MOST_TEXT, "status": 0}, "invalid",
     f"its answer is longer than {MOST_TEXT >> 20} MiB", HERE),
]  # fmt: skip


@pytest.mark.parametrize(("message", "status", "reason", "fix"), LAST)
def test_the_last_message_of_a_node_is_its_answer(
    message: dict[str, Any], status: str, reason: str, fix: str
) -> None:
    answer = answer_of("n", message)
    assert (answer.id, answer.status, answer.reason) == ("n", status, reason)
    assert answer.fix is not None
    assert answer.fix.startswith(fix or LONGER)


@pytest.mark.parametrize(
    ("out", "status", "given"),
    [("{}", 1, True), ("up\n{", 1, True), ("x", 0, True), ("x", 1, False), ("", 0, False)],
)
def test_what_may_be_a_document_is_an_answer(out: str, status: int, given: bool) -> None:
    message: dict[str, Any] = {"kind": "answer", "out": out, "status": status, "installed": "0.3"}
    answer = answer_of("n", message | {"sent": True})
    assert (answer.status == "ok") is given
    if given:
        assert (answer.text, answer.version, answer.sent) == (out.encode(), "0.3", True)
        assert not answer_of("n", message | {"sent": 1}).sent


def test_an_answer_may_be_as_long_as_a_report() -> None:
    message = {"kind": "answer", "out": "{".ljust(MOST_TEXT), "status": 0}
    assert answer_of("n", message).status == "ok"


@pytest.mark.parametrize(
    ("count", "shown"), [(8, "8 such devices: 1 x 10de:1, "), (9, "9 such devices: 1 x 10de:1, ")]
)
def test_eight_kinds_of_devices_are_named(count: int, shown: str) -> None:
    devices = [{"id": f"10de:{number}"} for number in range(1, count + 1)]
    reason = answer_of("n", {"kind": "old", "basics": {"pci": devices}}).reason or ""
    assert f"its PCI bus has {shown}" in reason
    assert reason.endswith(", 1 x 10de:8")


@pytest.mark.parametrize(
    ("data", "broken"), [(b"", ""), (b" /bin/python3 ", "/bin/python3"), (b"\xff", "\ufffd")]
)
def test_a_node_without_a_python_says_which_is_broken(data: bytes, broken: str) -> None:
    stream = Stream("n")
    stream.add("absent", data)
    assert message_of(stream) == {"kind": "no-python", "broken": broken}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"a": 1}', b'{"a": 1}'),
        (b'up\n{"a": 1}\nbye\n', b'{"a": 1}'),
        (b'{x\n{"a": 1}', b'{"a": 1}'),
        (b'up {\n{\n "a": 1\n}\n done', b'{\n "a": 1\n}'),
        (b"{\n" * 63 + b'{"a": 1}', b'{"a": 1}'),
        (b"{\n" * 64 + b'{"a": 1}', "its document of 136 bytes is damaged: Expecting property"),
        (b"", "it printed no document, but: nothing"),
        (b"\n  up\n", "it printed no document, but: up"),
        (b'x\n{"a"\n', "its document of 5 bytes is damaged: its end is missing"),
        (b'{"a": 1}}', "its document of 9 bytes is damaged: Extra data"),
    ],
)
def test_a_document_is_found_among_other_lines(text: bytes, found: bytes | str) -> None:
    if isinstance(found, bytes):
        assert document_of(text, KnownTexts()) == (found, {"a": 1})
        return
    with pytest.raises(ValueError, match=f"^{found}"):
        document_of(text, KnownTexts())


CHANGED = "Host key for [10.0.0.7]:22 has changed and you have requested strict checking."


@pytest.mark.parametrize(
    ("ended", "started", "status", "reason", "fix"),
    [
        (Ended(None, "", unstarted="ssh: not found"), False, "failed", "ssh: not found",
         "install that command on this computer"),
        (Ended(None, "x", timed_out=True), False, "timeout",
         "nothing came of it for 2.5 s", LONGER),
        (Ended(None, "x", timed_out=True), True, "timeout",
         "`probe --json` runs there since 2.5 s", LONGER),
        (Ended(255, f"@@@\n{CHANGED}\r\nHost key verification failed."), False, "missing",
         "the host key of [10.0.0.7]:22 has changed (the command ended with 255)",
         "compare the key, then forget the old one: ssh-keygen -R '[10.0.0.7]:22'"),
        (Ended(255, "me@a: Permission denied (publickey).\n--\n"), False, "missing",
         "me@a: Permission denied (publickey). (the command ended with 255)",
         "let a accept a key without a password: ssh-copy-id me@a"),
        (Ended(1, "", stdout="This account is closed.\n"), False, "missing",
         "This account is closed. (the command ended with 1)", None),
        (Ended(1, "", stdout="This account is closed.\n"), True, "missing",
         "the connection ended before its answer was whole: the command ended with 1 and no answer",
         "run it again"),
    ],
)  # fmt: skip
def test_the_end_of_a_node_without_an_answer(
    ended: Ended, started: bool, status: str, reason: str, fix: str | None
) -> None:
    answer = unanswered("n", "me@a", ended, started=started, seconds=2.5)
    assert (answer.id, answer.status, answer.reason, answer.fix) == ("n", status, reason, fix)
