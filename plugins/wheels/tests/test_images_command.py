"""`probe will-run`: what it prints, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import image_files as make
import pytest
import yaml
from test_images_answers import IMAGES, RECORDINGS, split

from probe_core.cli import main
from probe_wheels.images.answers import Answer
from probe_wheels.images.nodes import Node
from probe_wheels.images.steps import Step
from probe_wheels.will_run_command import _answer_document, _status

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = main(["will-run", *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out, err

    return call


def image(path: Path, name: str) -> Path:
    config, files = IMAGES[name]
    return make.saved(path / f"{name}.tar", config, split(files))


def node(path: Path, name: str) -> Path:
    place = path / f"{name}.json"
    place.write_text(json.dumps(RECORDINGS[name]))
    return place


def test_the_table_names_each_node_and_the_fix(run: Run, tmp_path: Path) -> None:
    nodes = [node(tmp_path, name) for name in ("h100-570", "v100-580")]
    status, out, _ = run(image(tmp_path, "torch-cu130-compat"), "--on", *nodes)
    assert status == 1
    assert out.splitlines()[0].split() == ["NODE", "ANSWER", "WHY"]
    assert out.splitlines()[1].split() == ["h100-570", "runs"]
    assert "none of its code runs on sm_70" in " ".join(out.split())
    assert "fix: v100-580: take a build with sm_70" in out


def test_the_document_has_the_place_and_every_step(run: Run, tmp_path: Path) -> None:
    path = image(tmp_path, "one-wheel-short")
    status, out, _ = run(path, "--on", node(tmp_path, "5090-580"), "--json")
    (told,) = json.loads(out)["images"]
    (answer,) = told["nodes"]
    assert status == 0
    assert (told["kind"], told["arch"], told["vendors"]) == ("archive", "x86_64", ["nvidia"])
    assert (answer["node"], answer["answer"], answer["step"]) == (
        "5090-580",
        "runs-with-less",
        "code",
    )
    assert answer["reason"].startswith("flash-attn 2.8.3 has sm_80, sm_90: none of its code runs")
    assert answer["place"].endswith("/site-packages/flash_attn_2_cuda.so (layer 2)")
    assert answer["devices"][0]["answer"] == "runs-with-less"


@pytest.mark.parametrize(
    ("name", "nodes", "options", "status"),
    [
        ("torch-cu128", ["h100-570"], [], 0),
        ("torch-cu128", ["h100-570", "t4-470"], [], 1),
        ("torch-cu128", ["h100-570", "t4-470"], ["--any"], 0),
        ("torch-cu128", ["t4-470", "cpu"], ["--any"], 1),
        ("rocm-7.2", ["mi300x-intree"], [], 3),
        ("utility-only", ["h100-570"], [], 3),
        ("utility-only", ["h100-570"], ["--mode", "legacy"], 1),
        ("utility-only", ["h100-570"], ["--mode", "cdi"], 0),
    ],
)
def test_the_exit_status_tells(
    name: str, nodes: list[str], options: list[str], status: int, run: Run, tmp_path: Path
) -> None:
    paths = [node(tmp_path, one) for one in nodes]
    assert run(image(tmp_path, name), "--on", *paths, *options)[0] == status


def test_the_document_of_an_answer() -> None:
    node = Node("n1", "x86_64", "linux", [])
    answer = Answer("no", [
        Step("loader", "ok", "it is there"),
        Step("driver", "less", "it is old", "", "update it"),
        Step("code", "no", "it has none", "a.so (layer 2)", ""),
    ])  # fmt: skip
    answer.devices, answer.notes = [("no", "H100", "it has none"), ("runs", "A100", "")], ["a note"]
    assert _answer_document(node, answer) == {
        "node": "n1",
        "answer": "does-not-run",
        "step": "code",
        "reason": "it has none",
        "place": "a.so (layer 2)",
        "fix": None,
        "steps": [
            {"step": "driver", "answer": "runs-with-less", "reason": "it is old", "place": None},
            {
                "step": "code",
                "answer": "does-not-run",
                "reason": "it has none",
                "place": "a.so (layer 2)",
            },
        ],
        "devices": [
            {"name": "H100", "answer": "does-not-run", "reason": "it has none"},
            {"name": "A100", "answer": "runs", "reason": None},
        ],
        "notes": ["a note"],
    }
    found = _answer_document(node, Answer("less", answer.steps[:1]))
    assert (found["place"], found["fix"]) == (None, "update it")
    found = _answer_document(node, Answer("runs", []))
    assert [found[key] for key in ("step", "reason", "place", "fix")] == [None] * 4


def test_any_lists_where_it_runs(run: Run, tmp_path: Path) -> None:
    nodes = [node(tmp_path, name) for name in ("h100-570", "t4-470")]
    _, out, _ = run(image(tmp_path, "torch-cu128"), "--any", "--on", *nodes)
    assert "h100-570" in out
    assert "t4-470" not in out
    _, out, _ = run(image(tmp_path, "arm64"), "--any", "--on", *nodes)
    assert out == "none of these nodes runs it\n"


def test_a_report_is_a_node_too(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--json", "--machine", str(node(tmp_path, "h100-570"))])
    report = tmp_path / "report.json"
    report.write_text(capsys.readouterr().out)
    assert run(image(tmp_path, "torch-cu128"), "--on", report)[0] == 0


def test_the_driver_that_images_need(run: Run, tmp_path: Path) -> None:
    paths = [image(tmp_path, name) for name in ("torch-cu128", "torch-cu130", "cpu-only")]
    status, out, _ = run(*paths, "--what", "driver")
    first, second, third = out.splitlines()
    assert status == 0
    assert first == f"driver 525.60.13 serves 1 of 2; 1 need a newer one: {paths[1]}"
    assert second == "driver 580 serves 2 of 2"
    assert third == f"no NVIDIA driver needed: {paths[2]}"


def test_a_driver_may_be_too_new(run: Run, tmp_path: Path) -> None:
    """NVIDIA_REQUIRE_… is no minimum: an image that needs an older driver is named."""
    files = {**make.base(), **make.torch("sm_80 sm_90", "12.8")}
    config = make.config(("NVIDIA_REQUIRE_DRIVER=driver<570",))
    old = make.saved(tmp_path / "old.tar", config, split(files))
    new = image(tmp_path, "torch-cu130")
    _, out, _ = run(old, new, "--what", "driver")
    first, second = out.splitlines()
    assert first == f"driver 525.60.13 serves 1 of 2; 1 need a newer one: {new}"
    assert second == f"driver 580 serves 1 of 2; 1 need an older one: {old}"


def test_a_driver_of_an_image_that_cannot_be_read_is_unknown(run: Run, tmp_path: Path) -> None:
    raw = make.gz(make.layer(make.torch("sm_80", "12.8")))
    path = make.saved(tmp_path / "cut.tar", make.config(), [raw[: len(raw) // 2]])
    status, out, _ = run(path, "--what", "driver")
    assert (status, out) == (3, f"unknown: {path}: layer 1: its gzip data is cut off\n")


def test_what_uses_the_cpu_meanwhile_still_needs_its_driver(run: Run, tmp_path: Path) -> None:
    _, out, _ = run(image(tmp_path, "llama.cpp"), "--what", "driver")
    assert out == "driver 525.60.13 serves 1 of 1\n"


def test_the_driver_for_the_gpus_of_nodes(run: Run, tmp_path: Path) -> None:
    """PTX needs the driver of its toolkit, machine code that of its major version."""
    path = image(tmp_path, "sass-90-ptx")
    for name, driver in {"h100-570": "525.60.13", "b200-580": "570.26"}.items():
        _, out, _ = run(path, "--what", "driver", "--on", node(tmp_path, name), "--json")
        assert json.loads(out)["drivers"] == {str(path): driver}


def test_nfd_gets_the_devices_and_hears_what_it_cannot_check(run: Run, tmp_path: Path) -> None:
    _, out, _ = run(image(tmp_path, "torch-cu130"), "--as", "nfd")
    document = yaml.safe_load(out)
    (entry,) = document["compatibilities"]
    pci, module = entry["rules"][0]["matchFeatures"]
    devices = pci["matchExpressions"]["device"]["value"]
    assert document["version"] == "v1alpha1"
    assert pci["matchExpressions"]["vendor"] == {"op": "In", "value": ["10de"]}
    assert "2330" in devices
    assert "1db1" not in devices
    assert module == {
        "feature": "kernel.loadedmodule",
        "matchExpressions": {"nvidia": {"op": "Exists"}},
    }
    assert "the architecture (x86_64), NVIDIA's driver (580 or newer)" in entry["description"]


def test_an_affinity_has_a_term_for_each_major_capability(run: Run, tmp_path: Path) -> None:
    _, out, _ = run(image(tmp_path, "torch-cu130"), "--as", "affinity", "--json")
    required = json.loads(out)["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = [
        {
            e["key"].rpartition("/")[2]: (e["operator"], e["values"])
            for e in term["matchExpressions"]
        }
        for term in required["nodeSelectorTerms"]
    ]
    assert [term["gpu.compute.major"][1] for term in terms] == [["7"], ["8"], ["9"], ["10"], ["12"]]
    assert terms[0]["gpu.compute.minor"] == ("In", ["5"])
    assert all(term["cuda.driver.major"] == ("Gt", ["579"]) for term in terms)
    assert all(term["arch"] == ("In", ["amd64"]) for term in terms)


def test_a_cluster_hears_of_the_vendors_alone_that_an_image_runs_on(
    run: Run, tmp_path: Path
) -> None:
    """Triton has code for AMD's GPUs, too, and PyTorch beside it for CUDA alone."""
    triton = make.wheel("triton", "3.5.1", {"triton/_C/libtriton.so": make.binary("libc.so.6")})
    files = {**make.base(), **make.torch("sm_80 sm_90", "12.8"), **triton}
    path = make.saved(tmp_path / "a.tar", make.config(), split(files))
    _, out, _ = run(path, "--on", node(tmp_path, "cpu"))
    assert "it needs a GPU of NVIDIA, and the node has no GPU" in " ".join(out.split())
    for form, word in (("nfd", '"1002"'), ("affinity", "1002"), ("label", "amd")):
        status, out, _ = run(path, "--as", form)
        assert status == 0
        assert word not in out


@pytest.mark.parametrize("form", ["nfd", "affinity", "label"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("alpine", "it runs nowhere: its C library is musl"),
        ("sycl-alone", "it runs on no GPU that is known here"),
    ],
)
def test_an_image_that_runs_nowhere_has_nothing_for_a_cluster(
    form: str, name: str, words: str, run: Run, tmp_path: Path
) -> None:
    status, out, err = run(image(tmp_path, name), "--as", form)
    assert (status, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("name", ["torch-cu128", "torch-cu130", "rocm-6.4", "cpu-only", "sass-90"])
def test_a_label_is_one_that_kubernetes_takes(name: str, run: Run, tmp_path: Path) -> None:
    _, out, _ = run(image(tmp_path, name), "--as", "label")
    key, _, value = out.strip().partition("=")
    assert key == "probe-will-run"
    assert 0 < len(value) <= 63
    assert value[0].isalnum()
    assert value[-1].isalnum()
    assert all(char.isalnum() or char in "-_." for char in value)


def test_a_label_tells_targets_driver_and_digest(run: Run, tmp_path: Path) -> None:
    _, out, _ = run(image(tmp_path, "sass-90"), "--as", "label")
    digest = make.hashlib.sha256(json.dumps(IMAGES["sass-90"][0]).encode()).hexdigest()
    assert out.strip() == f"probe-will-run=sm90_d525_{digest[:12]}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.tar"], "gone.tar: no such file or folder; save an image to a file first"),
        (["IMAGE", "--on", "gone.json"], "no such file or folder"),
        (["IMAGE", "--image", "other"], "it has no image other: take --image with one of image:1"),
        (["LAYOUT", "--image", "other"], "it has no image other: take --image with one of"),
        (["ROOT", "--image", "other"], "one image without a name: leave out --image"),
        (["IMAGE", "--on", "NODE", "--machine", "NODE"], "cannot be used together"),
        (["NODE"], "no tar archive"),
    ],
)
def test_wrong_usage_ends_with_one_sentence(
    arguments: list[str], words: str, run: Run, tmp_path: Path
) -> None:
    places = {"IMAGE": image(tmp_path, "cpu-only"), "NODE": node(tmp_path, "h100-570")}
    places["LAYOUT"] = make.folder(tmp_path / "oci", make.layout([(make.config(), [])]))
    (tmp_path / "root" / "etc").mkdir(parents=True)
    places["ROOT"] = str(tmp_path / "root")
    status, out, err = run(*(places.get(word, word) for word in arguments))
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "all_of_them", "any_of_them"),
    [
        (["runs", "less"], 0, 0),
        (["runs", "no"], 1, 0),
        (["no", "no"], 1, 1),
        (["no", "unknown"], 1, 3),
        (["runs", "unknown"], 3, 0),
        (["unknown"], 3, 3),
    ],
)
def test_the_exit_status_of_words(words: list[str], all_of_them: int, any_of_them: int) -> None:
    assert _status(words, any_=False) == all_of_them
    assert _status(words, any_=True) == any_of_them
