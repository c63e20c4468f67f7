"use strict";
// The page of chipdb: a list with filters, one view per chip, and up to four chips side by side.
// All state is in the address behind "#", so that every view has a link. Nothing is fetched from
// elsewhere; details come from one file per vendor, when a chip of it is opened.

const { about, columns, dtypes, chips } = window.chipdb;
const at = Object.fromEntries(columns.map((name, index) => [name, index]));
const details = {};
const SHOWN = 100; // rows at first: a phone draws these in some 20 ms
const MOST = 4; // chips side by side
const $ = (id) => document.getElementById(id);
const squash = (text) => text.toLowerCase().replace(/[\s_-]+/g, "");
let shown = SHOWN;

function element(tag, content = "", attributes = {}) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  for (const item of [content].flat()) node.append(item);
  return node;
}

const plain = (value, unit = "") => (value === null || value === undefined ? "" : `${value}${unit}`);
const figure = (value) => (value === null || value === undefined ? "" : Number(value.toPrecision(4)).toString());
const chipLink = (id, name) => element("a", name, { href: `#/chip/${id}` });

// The address: #/?q=4090&vendor=nvidia, #/chip/nvidia/l4, #/compare/nvidia/l4,nvidia/l40s
function place() {
  let hash = location.hash.slice(1) || "/";
  try {
    hash = decodeURI(hash);
  } catch { /* "%" without two digits stands for itself */ }
  const [path, query = ""] = hash.split("?");
  return { path, query: new URLSearchParams(query) };
}

function filters() {
  const state = {};
  for (const name of ["q", "vendor", "kind", "dtype", "memory", "sort"]) state[name] = $(name).value;
  return state;
}

function remember() {
  const query = new URLSearchParams(Object.entries(filters()).filter(([, value]) => value));
  query.delete("dtype");
  if ($("dtype").value !== dtypes[0]) query.set("dtype", $("dtype").value);
  const compared = place().query.get("with");
  if (compared) query.set("with", compared);
  history.replaceState(null, "", `#/${query.size ? `?${query}` : ""}`);
}

function chosen(state) {
  const words = state.q.trim().split(/\s+/).map(squash).filter(Boolean);
  const index = dtypes.indexOf(state.dtype);
  const value = (chip) => chip[at.figures][index];
  const fits = (chip) =>
    (!state.vendor || chip[at.vendor] === state.vendor) &&
    (!state.kind || chip[at.kind] === state.kind) &&
    (!state.memory || chip[at.memory] >= Number(state.memory)) &&
    words.every((word) => chip[at.search].includes(word));
  const rows = chips.filter(fits);
  const by = { "": value, memory: (chip) => chip[at.memory], year: (chip) => chip[at.year] }[state.sort];
  if (by) rows.sort((left, right) => (by(right) ?? -1) - (by(left) ?? -1));
  return { rows, value };
}

function list() {
  const state = filters();
  const { rows, value } = chosen(state);
  const known = rows.filter((chip) => value(chip) !== null).length;
  $("status").textContent = `${rows.length} of ${chips.length} chips, ${known} with a ${state.dtype} figure`;
  const head = element("tr", [
    element("th", "Chip"), element("th", "Memory", { class: "number" }),
    element("th", "GB/s", { class: "number wide-only" }), element("th", "Year", { class: "number wide-only" }),
    element("th", `${state.dtype} TFLOPS`, { class: "number" }), element("th", "", { class: "wide-only" }),
  ]);
  const body = element("tbody", rows.slice(0, shown).map((chip) => element("tr", [
    element("td", [chipLink(chip[at.id], chip[at.name]), element("div", chip[at.id], { class: "id" })]),
    element("td", plain(chip[at.memory], " GiB"), { class: "number" }),
    element("td", plain(chip[at.bandwidth]), { class: "number wide-only" }),
    element("td", plain(chip[at.year]), { class: "number wide-only" }),
    element("td", (chip[at.ranged] && value(chip) !== null ? "≤ " : "") + figure(value(chip)), { class: "number" }),
    element("td", compareButton(chip[at.id]), { class: "wide-only" }),
  ])));
  const parts = [element("div", element("table", [element("thead", head), body]), { class: "scroll" })];
  if (rows.length > shown) {
    const more = element("button", `Show ${Math.min(SHOWN * 5, rows.length - shown)} more`, { type: "button", id: "more" });
    more.addEventListener("click", () => { shown += SHOWN * 5; list(); });
    parts.push(more);
  }
  $("list").replaceChildren(...parts);
}

// Chips to compare are kept in the address of the list (with=...) and of the comparison.
function tray() {
  const { path, query } = place();
  const ids = path.startsWith("/compare/") ? path.slice(9).split(",") : (query.get("with") || "").split(",");
  return [...new Set(ids.filter((id) => chips.some((chip) => chip[at.id] === id)))].slice(0, MOST);
}

let picked = [];

function compareButton(id) {
  const inside = picked.includes(id);
  const button = element("button", inside ? "Remove" : "Compare", { type: "button", "data-compare": id });
  button.disabled = !inside && picked.length >= MOST;
  button.addEventListener("click", () => {
    picked = inside ? picked.filter((other) => other !== id) : [...picked, id];
    draw();
  });
  return button;
}

function drawTray() {
  const names = picked.map((id) => chips.find((chip) => chip[at.id] === id)[at.name]);
  $("tray").hidden = !picked.length || place().path.startsWith("/compare/");
  const clear = element("button", "Clear", { type: "button" });
  clear.addEventListener("click", () => { picked = []; draw(); });
  $("tray").replaceChildren(
    element("span", names.join(" · ")),
    element("a", `Compare ${picked.length}`, { href: `#/compare/${picked.join(",")}`, id: "compare" }), clear,
  );
}

// One file per vendor holds what the list does not show.
function detailsOf(ids) {
  const vendors = [...new Set(ids.map((id) => id.split("/")[0]))];
  return Promise.all(vendors.map((vendor) => details[vendor] || new Promise((resolve, reject) => {
    const script = element("script", "", { src: `vendors/${vendor}.js` });
    script.onload = () => resolve((details[vendor] = window.chipdb.vendors[vendor]));
    script.onerror = () => reject(new Error(`vendors/${vendor}.js cannot be read`));
    document.head.append(script);
  })));
}

const detail = (id) => details[id.split("/")[0]].chips[id];
const sourceOf = (id, key) => details[id.split("/")[0]].sources[key];

function facts(chip) {
  const memory = chip.memory || {};
  const { boost_low: low, set_by: by, ...clocks } = chip.clock_mhz || {};
  const clock = Object.entries(clocks).map(([name, mhz]) => `${name} ${low && name === "boost" ? `${low} to ` : ""}${mhz} MHz`).join(", ");
  const units = chip.units_range ? chip.units_range.join("-") : chip.units;
  return {
    Vendor: chip.vendor, Kind: chip.kind, Architecture: chip.arch, Die: chip.codename, Year: chip.year,
    Units: units && `${units} ${chip.unit || "units"}`, Cores: chip.cores, Clock: by ? `${clock}, set by the ${by}` : clock,
    Memory: [memory.gib && `${memory.gib} GiB`, memory.type, memory.bus && `${memory.bus} bits`].filter(Boolean).join(", "),
    Bandwidth: memory.gbs && `${memory.gbs_low ? `${memory.gbs_low} to ` : ""}${memory.gbs} GB/s`, Power: chip.power_w && `${chip.power_low_w ? `${chip.power_low_w} to ` : ""}${chip.power_w} W`,
    "Devices per board": chip.devices_per_board > 1 ? chip.devices_per_board : null,
    "PCI ids": (chip.pci || []).join(", "), "Device tree": (chip.dt || []).join(", "),
    "Power limits": chip.power_limits_w && `${chip.power_limits_w.join(" to ")} W${chip.power_limits_at?.board ? ` (board ${chip.power_limits_at.board})` : ""}`,
    "Links to others": chip.interconnect && `${chip.interconnect.kind}, ${chip.interconnect.gbs} GB/s both ways`,
    "Memory on the chip": plain(chip.sram_mib, " MiB"),
    "ECC takes": chip.ecc_share && `${figure(chip.ecc_share * 100)} % of the memory`,
    Measured: (chip.sustained || []).map((row) => measured(chip, row)).join(" · "),
    "Other names": (chip.aliases || []).join(" · "), Confidence: chip.confidence, Note: chip.note,
  };
}

// What somebody measured, beside the peak of the same kind.
function measured(chip, row) {
  const [dtype, path, accumulate] = row.rate.split(".");
  const peak = (chip.peaks || []).find((each) => each.dtype === dtype && each.path === path
    && each.accumulate === accumulate && each.sparsity === "dense" && !each.variant);
  const share = peak ? ` (${Math.round((100 * row.tflops) / peak.tflops)} % of the peak)` : "";
  const how = [row.watts && `${row.watts} W`, row.runs && `${row.runs} ${row.runs > 1 ? "runs" : "run"}`, row.software, row.source];
  return `${dtype} ${row.low ? `${row.low} to ` : ""}${row.tflops} TFLOPS${share}, ${how.filter(Boolean).join(", ")}`;
}

function peakRow(peak) {
  const low = peak.low ? `${figure(peak.low)} to ` : "";
  return element("tr", [
    element("td", peak.variant ? `${peak.dtype} (${peak.variant})` : peak.dtype), element("td", peak.path),
    element("td", peak.accumulate), element("td", peak.sparsity),
    element("td", low + figure(peak.tflops), { class: "number" }), element("td", peak.clock),
    element("td", peak.basis), element("td", peak.confidence), element("td", peak.source, { class: "source" }),
  ]);
}

// Number formats of the architecture: what the hardware computes in, and which release can use it.
function formats(chip) {
  const rows = (details[chip.id.split("/")[0]].formats[chip.arch] || []).map((row) => element("tr", row.map((text) => element("td", text))));
  if (!rows.length) return [];
  const heads = ["Format", "By", "How", "Release", "Source"].map((text) => element("th", text));
  const table = element("table", [element("thead", element("tr", heads)), element("tbody", rows)], { id: "formats" });
  return [element("h3", "Number formats"), element("div", table, { class: "scroll" })];
}

function chipView(id) {
  const chip = detail(id);
  const known = Object.entries(facts(chip)).filter(([, value]) => value);
  const heads = ["Data type", "Path", "Accumulate", "Sparsity", "TFLOPS", "Clock", "Basis", "Confidence", "How it was derived"];
  const peaks = chip.peaks
    ? element("div", element("table", [
        element("thead", element("tr", heads.map((text) => element("th", text)))),
        element("tbody", chip.peaks.map(peakRow)),
      ], { id: "peaks" }), { class: "scroll" })
    : element("p", `No theoretical peaks: ${chip.no_peaks}`, { id: "no-peaks" });
  const cited = chip.sources_used.map((key) => [key, sourceOf(id, key)]).filter(([, source]) => source);
  return [
    element("p", element("a", "All chips", { href: "#/" })),
    element("h2", chip.name), element("p", element("code", id), { class: "id" }), compareButton(id),
    element("dl", known.flatMap(([name, value]) => [element("dt", name), element("dd", String(value))])),
    element("h3", "Theoretical peaks of one device"), peaks, ...formats(chip), element("h3", "Sources"),
    element("dl", cited.flatMap(([key, source]) => [
      element("dt", key), element("dd", `${source.title}. ${source.publisher}; ${source.ref} (${source.status})`),
    ]), { id: "sources" }),
  ];
}

function comparison(ids) {
  const entries = ids.map(detail);
  const rows = [];
  const row = (name, values, number) => {
    if (values.some((value) => value)) rows.push(element("tr", [
      element("th", name), ...values.map((value) => element("td", plain(value || ""), number ? { class: "number" } : {})),
    ]));
  };
  const sheets = entries.map(facts);
  for (const name of ["Vendor", "Architecture", "Year", "Units", "Clock", "Memory", "Bandwidth", "Power"]) row(name, sheets.map((sheet) => sheet[name]));
  const label = (peak) => [peak.dtype, peak.path, peak.accumulate, peak.variant, peak.sparsity].filter(Boolean).join(" ");
  const labels = [...new Set(entries.flatMap((entry) => (entry.peaks || []).map(label)))];
  for (const name of labels) row(name, entries.map((entry) => {
    const peak = (entry.peaks || []).find((candidate) => label(candidate) === name);
    return peak && (peak.low ? `${figure(peak.low)} to ` : "") + figure(peak.tflops);
  }), true);
  const heads = ids.map((id, index) => element("th", chipLink(id, entries[index].name)));
  return [
    element("p", element("a", "All chips", { href: `#/?with=${ids.join(",")}` })), element("h2", "Comparison"),
    element("div", element("table", [element("thead", element("tr", [element("th", ""), ...heads])), element("tbody", rows)],
      { id: "compared" }), { class: "scroll" }),
  ];
}

function show(id) {
  for (const name of ["list", "chip", "comparison"]) $(name).hidden = name !== id;
  $("filters").hidden = $("status").hidden = id !== "list";
}

function failure(target, text) {
  $(target).replaceChildren(element("p", text, { class: "error" }), element("a", "All chips", { href: "#/" }));
  show(target);
}

async function draw() {
  const { path, query } = place();
  drawTray();
  document.title = "chipdb: what AI chips can do";
  if (path.startsWith("/chip/") || path.startsWith("/compare/")) {
    const target = path.startsWith("/chip/") ? "chip" : "comparison";
    const ids = target === "chip" ? [path.slice(6)] : tray();
    const missing = ids.find((id) => !chips.some((chip) => chip[at.id] === id));
    if (missing || !ids.length) return failure(target, `No chip has the id ${missing || "given"}.`);
    try {
      await detailsOf(ids);
    } catch (error) {
      return failure(target, error.message);
    }
    if (target === "chip") document.title = `${detail(ids[0]).name} · chipdb`;
    $(target).replaceChildren(...(target === "chip" ? chipView(ids[0]) : comparison(ids)));
    show(target);
    return;
  }
  for (const name of ["q", "vendor", "kind", "dtype", "memory", "sort"]) {
    const value = query.get(name) || "";
    if (name === "q" || [...$(name).options].some((option) => option.value === value)) $(name).value = value;
  }
  if (!$("dtype").value) $("dtype").value = dtypes[0];
  list();
  show("list");
}

function options(select, values, label = (value) => value) {
  for (const value of values) select.append(element("option", label(value), { value }));
}

const distinct = (column) => [...new Set(chips.map((chip) => chip[at[column]]))].sort();
$("about").textContent = about;
options($("vendor"), distinct("vendor"));
options($("kind"), distinct("kind"));
options($("dtype"), dtypes);
options($("memory"), [4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 141, 192, 256], (gib) => `${gib} GiB`);
picked = tray();
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("filters").addEventListener("input", () => { shown = SHOWN; remember(); list(); });
addEventListener("hashchange", () => {
  const compared = tray();
  if (compared.length) picked = compared;
  shown = SHOWN;
  draw();
  scrollTo(0, 0);
});
draw();
