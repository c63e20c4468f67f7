"""The page of all chips: built from the data by one command, and used in a real Chromium."""

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from probe_chipdb.__main__ import main
from probe_chipdb.database import Database
from probe_chipdb.tools import export

pytestmark = pytest.mark.heavy


HARNESS = Path(__file__).parent / "harness.html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
Seen = dict[str, object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, real: Database) -> Path:
    into = tmp_path_factory.mktemp("site")
    export.write_site(real, str(into))
    return into


def data(path: Path) -> dict[str, object]:
    """The object of a script `window.x = {...};`."""
    loaded: dict[str, object] = json.loads(path.read_text().partition(" = ")[2].removesuffix(";\n"))
    return loaded


def test_the_list_has_every_chip_and_the_readers_figures(real: Database, folder: Path) -> None:
    index = data(folder / "chips.js")
    rows = {row[0]: row for row in index["chips"]}  # type: ignore[attr-defined]
    assert set(rows) == {chip.id for chip in real.chips()}
    figures = dict(zip(index["dtypes"], rows["nvidia/geforce-rtx-4090"][7], strict=True))  # type: ignore[arg-type, call-overload]
    assert (figures["bf16"], figures["fp32"], figures["fp4"]) == (165.2, 82.58, None)


def test_a_vendors_file_has_its_chips_with_the_sources(real: Database, folder: Path) -> None:
    for vendor in {chip.vendor for chip in real.chips()}:
        content = data(folder / "vendors" / f"{vendor}.js")
        chips, sources = content["chips"], content["sources"]
        assert set(chips) == {chip.id for chip in real.chips() if chip.vendor == vendor}  # type: ignore[call-overload]
        for chip in chips.values():  # type: ignore[attr-defined]
            assert all(sources[key]["title"] for key in chip["sources_used"])  # type: ignore[index]


def test_nothing_of_the_page_is_elsewhere(folder: Path) -> None:
    for name in ("index.html", "page.css", "page.js"):
        text = (folder / name).read_text()
        assert not re.search(r"https?:|//[a-z]+\.|innerHTML|eval\(", text.replace("// ", "")), name
    assert "default-src 'none'" in (folder / "index.html").read_text()


def test_a_script_cannot_be_ended_by_data() -> None:
    assert export._json({"a": "</script>\u2028"}) == '{"a":"\\u003c/script>\\u2028"}'


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", str(tmp_path / "out")]) == 0
    assert "open " in capsys.readouterr().out
    assert (tmp_path / "out" / "chips.json").exists()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def browser() -> str:
    """Chromium, which .ci/run installs where it can."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip("the page is tested in Chromium, and there is none here (apt install chromium)")


@pytest.fixture(scope="module")
def seen(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What a reader sees who opens, types and clicks: tests/harness.html in a real browser."""
    chromium = browser()
    shutil.copy(HARNESS, folder / "harness.html")
    profile = tmp_path_factory.mktemp("profile")
    with served(folder) as address:
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--window-size=390,844", "--virtual-time-budget=60000", "--dump-dom",
             f"{address}/harness.html"],
            capture_output=True, text=True, timeout=180,
        )  # fmt: skip
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert result, done.stderr[-2000:]
    values: Seen = json.loads(unescape(result[1]))
    assert "error" not in values, values
    return values


def test_it_opens_with_all_chips_and_asks_nobody_else(seen: Seen, real: Database) -> None:
    count = len(real.chips())
    assert str(seen["status"]).startswith(f"{count} of {count} chips, ")
    assert seen["rows"] == 100
    assert set(seen["requests"]) == {seen["host"]}  # type: ignore[call-overload]


def test_it_opens_on_a_view_that_is_not_mostly_empty(seen: Seen) -> None:
    """Sorted by name, the first hundred were old cards without a figure."""
    cells, figures = seen["cells"], seen["figures"]
    assert len(figures) == 100  # type: ignore[arg-type]
    assert all(float(figure.lstrip("≤ ")) > 0 for figure in figures)  # type: ignore[attr-defined]
    assert sum(not cell for cell in cells) < 0.05 * len(cells)  # type: ignore[arg-type, attr-defined]


def test_search_by_name_and_id_is_in_the_address(seen: Seen) -> None:
    found = seen["search"]
    assert "NVIDIA GeForce RTX 4090" in found  # type: ignore[operator]
    assert all("4090" in name for name in found)  # type: ignore[attr-defined]
    assert seen["by_pci"] == ["NVIDIA GeForce RTX 4090"]
    assert seen["address"] == "#/?q=rtx+4090"


def test_filters_and_order_and_their_permanent_link(seen: Seen) -> None:
    assert seen["filtered"][0] in ("AMD Instinct MI355X", "AMD Instinct MI455X")  # type: ignore[index]
    assert "AMD Instinct MI300X" in seen["filtered"]  # type: ignore[operator]
    assert seen["filtered_address"] == "#/?vendor=amd&memory=192&dtype=fp8"
    assert seen["filtered_again"] == seen["filtered"]


def test_a_click_opens_the_chip_under_its_own_address(seen: Seen) -> None:
    name, address, title = seen["clicked"]  # type: ignore[misc]
    assert name == seen["filtered"][0]  # type: ignore[index]
    assert address.startswith("#/chip/amd/instinct-mi")
    assert title == f"{name} · chipdb"


def test_a_chips_link_shows_each_figure_with_source_and_derivation(seen: Seen) -> None:
    assert seen["chip"] == "NVIDIA GeForce RTX 4090"
    assert "128 SM" in seen["facts"]  # type: ignore[operator]
    (row,) = [row for row in seen["peaks"] if row[:4] == ["bf16", "matrix", "fp32", "dense"]]  # type: ignore[attr-defined]
    assert (row[4], row[5]) == ("165.2", "boost")
    assert (row[6], row[7] in ("vendor", "derived")) == ("derived", True)
    assert "128 SM x 512 op/clk x 2520 MHz boost; rates [" in row[8]
    assert any("(read)" in text or "(cited)" in text for text in seen["sources"])  # type: ignore[attr-defined]
    assert seen["wide"] <= 390  # type: ignore[operator] # no sideways scrolling on a phone


def test_a_chip_without_figures_says_why_and_an_unknown_id_is_a_sentence(seen: Seen) -> None:
    assert "No theoretical peaks: chipdb has no " in str(seen["no_peaks"])
    assert seen["unknown"] == "No chip has the id nvidia/no-such-chip."


def test_up_to_four_chips_side_by_side(seen: Seen) -> None:
    assert seen["tray"] == "Compare 2"
    assert seen["compared"] == ["AMD Instinct MI300X", "AMD Instinct MI325X"]
    table = {row[0]: row[1:] for row in seen["comparison"]}  # type: ignore[attr-defined]
    assert table["bf16 matrix fp32 dense"] == ["1307", "1307"]
    assert table["Bandwidth"] == ["5300 GB/s", "6000 GB/s"]
    assert seen["most"] == 4


def test_what_stands_in_an_address_is_text(seen: Seen) -> None:
    status, images = seen["hostile"]  # type: ignore[misc]
    assert status.startswith("0 of ")
    assert images == 0


def test_a_malformed_address_is_a_sentence(seen: Seen) -> None:
    assert seen["malformed"] == "No chip has the id %E0%A4%A."


def test_the_list_shows_the_top_of_a_range_as_one(seen: Seen) -> None:
    listed = seen["listed"]
    assert listed["NVIDIA GeForce RTX 4090"] == "165.2"  # type: ignore[index]
    assert listed["NVIDIA GeForce RTX 4090 Laptop GPU"] == "≤ 79.38"  # type: ignore[index]


def test_a_chips_own_view_shows_the_range_of_its_clock(seen: Seen) -> None:
    assert "boost 1455 to 2040 MHz, set by the laptop" in seen["laptop"]  # type: ignore[operator]
    assert seen["narrow"] <= 390  # type: ignore[operator]
