"use strict";
// The live page: asks for what it lacks every three seconds and draws it. Text from servers is only ever set
// as text; Plotly reads some markup in its labels, so there it is escaped.
(() => {
  const settings = JSON.parse(document.getElementById("colours").textContent);
  const POLL_MS = settings.poll_s * 1000;
  const LONGEST_WAIT_MS = 15000;
  const MOST_POINTS = 3000; // of a track; then all is fetched anew, with what is old merged
  const $ = (id) => document.getElementById(id);
  const coarse = matchMedia("(pointer: coarse)").matches;
  const family = getComputedStyle(document.body).fontFamily;

  const COLUMNS = [
    ["engine", "Engine"], ["scenario", "Scenario"], ["in_flight", "In flight"], ["requests", "Requests"],
    ["ttft_p50_ms", "TTFT p50"], ["ttft_p95_ms", "TTFT p95"], ["ttft_p99_ms", "TTFT p99"],
    ["tpot_p50_ms", "TPOT p50"], ["tokens_per_s", "Tokens/s"], ["goodput", "Goodput"],
    ["failed", "Failures"], ["lag_p99_ms", "Read lag p99"], ["validity", "Validity"],
  ];
  const CHARTS = [
    { id: "tokens", kind: "engine", title: "Tokens/s", about: "all streams of an engine together", lines: [["tokens_per_s", "solid", ""]] },
    { id: "ttft", kind: "engine", title: "TTFT", about: "ms, of the half minute before; p50, p95 dashed, p99 dotted",
      lines: [["ttft_p50_ms", "solid", "p50"], ["ttft_p95_ms", "6px,2px", "p95"], ["ttft_p99_ms", "2px,3px", "p99"]] },
    { id: "flight", kind: "engine", title: "In flight", about: "requests; users dotted",
      lines: [["in_flight", "solid", ""], ["users", "2px,3px", "users"]] },
    { id: "queue", kind: "engine", title: "In the engine", about: "by its own metrics: running; waiting dashed",
      lines: [["running", "solid", "running"], ["waiting", "6px,2px", "waiting"]] },
    { id: "clock", kind: "gpu", title: "GPU clock", about: "MHz", lines: [["sm_clock_mhz", "solid", ""]] },
    { id: "temperature", kind: "gpu", title: "GPU temperature", about: "°C", lines: [["temperature_c", "solid", ""]] },
    { id: "power", kind: "gpu", title: "GPU power", about: "W", lines: [["power_w", "solid", ""]] },
    { id: "memory", kind: "gpu", title: "GPU memory", about: "GiB used", lines: [["memory_gb", "solid", ""]] },
  ];
  const RANGES = [["run", "This run"], ["300", "5 min"], ["1800", "30 min"], ["all", "All"]];

  let epoch = "", cursor = 0, seen = "", range = "run", wait = POLL_MS, run = {}, rowsShown = [], now = 0, timer = 0;
  const tracks = new Map(); // "kind name" -> {kind, name, rows: Map of second -> {step, figures}}
  const marks = new Map();

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function amount(value, unit = "") {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const digits = size >= 1000 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    const text = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return unit ? `${text} ${unit}` : text;
  }
  const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);

  // --- data ---------------------------------------------------------------------------------------------

  function take(found) {
    if (found.reset) { tracks.clear(); marks.clear(); }
    epoch = found.epoch; cursor = found.cursor; run = found.run; rowsShown = found.rows; now = found.now;
    for (const part of found.tracks) {
      const key = `${part.kind} ${part.name}`;
      if (!tracks.has(key)) tracks.set(key, { kind: part.kind, name: part.name, rows: new Map() });
      const rows = tracks.get(key).rows;
      const names = Object.keys(part.figures);
      part.t.forEach((t, n) => {
        const row = rows.get(t) || { step: part.step[n] };
        for (const name of names) if (part.figures[name][n] !== null) row[name] = part.figures[name][n];
        rows.set(t, row);
        if (seen === "" || t > seen) seen = t;
      });
      if (rows.size > MOST_POINTS) cursor = 0;
    }
    for (const mark of found.marks) marks.set(mark.id, mark);
  }

  function fail(text) {
    $("lost").hidden = false;
    $("lost").textContent = text;
    document.documentElement.dataset.connection = "lost";
    wait = Math.min(LONGEST_WAIT_MS, wait * 1.5);
  }

  async function ask() {
    clearTimeout(timer);
    try {
      const answer = await fetch(`llm/data?epoch=${epoch}&cursor=${cursor}&seen=${seen}`,
        { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (answer.redirected || !(answer.headers.get("content-type") || "").includes("json")) {
        fail("You are not logged in any more: load this page again.");
      } else {
        take(await answer.json());
        $("lost").hidden = true;
        document.documentElement.dataset.connection = "there";
        wait = POLL_MS;
        show();
      }
    } catch (error) {
      fail("The connection is lost. What is shown is as of then; it is tried again.");
    }
    timer = setTimeout(ask, document.hidden ? 4 * wait : wait);
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });

  // --- words and table ------------------------------------------------------------------------------------

  function show() {
    $("title").textContent = run.name || "No run yet";
    const state = run.state || "waiting";
    $("state").textContent = state;
    $("state").className = `pill ${state}`;
    $("stage").textContent = run.stage || (run.name ? "" : "Start one on Locust's page; this one will show it.");
    document.title = run.name ? `${state}: ${run.scenario} · loadgen live` : "loadgen live";
    $("report").hidden = !run.report;
    if (run.name) $("report").href = `llm/report?run=${encodeURIComponent(run.name)}`;
    $("good").textContent = run.name ? `Goodput: the share of requests with ${run.good_means}.${
      state === "running" ? " Figures are provisional until the run is over." : ""}` : "";
    $("ranges").hidden = !tracks.size;
    const doubts = new Map(rowsShown.flatMap((row) => row.reasons.map((why) => [why, row.validity])));
    $("notes").replaceChildren(
      ...(run.problem ? [element("li", run.problem, { class: "void" })] : []),
      ...[...doubts].map(([why, level]) => element("li", why, { class: level })),
      ...(run.notes || []).map((note) => element("li", note)));
    drawAll();
    document.documentElement.dataset.ready = "yes";
  }

  function cell(row, [name, title]) {
    const value = row[name];
    let text;
    if (name.endsWith("_ms")) text = amount(value, "ms");
    else if (name === "goodput") text = share(value);
    else if (name === "tokens_per_s") text = amount(value);
    else if (name === "failed") text = value && row.requests ? `${value} (${share(value / row.requests)})` : `${value}`;
    else if (name === "scenario") text = row.class ? `${value}: ${row.class}` : value;
    else if (name === "engine") text = row.simulated ? `${value} (simulated)` : value;
    else if (name === "validity") text = row.final ? value : `${value} so far`;
    else text = value === null ? "–" : Number(value).toLocaleString("en");
    const made = element("td", text, { "data-title": title });
    if (name === "engine") {
      made.className = "name";
      made.prepend(swatch(colour("engine", row.engine)));
    }
    if (name === "validity") made.className = value;
    return made;
  }

  function table(rows) {
    const head = element("thead", null);
    const titles = element("tr", null);
    titles.append(...COLUMNS.map(([, title]) => element("th", title, { scope: "col" })));
    head.append(titles);
    const body = element("tbody", null);
    for (const row of rows) {
      const line = element("tr", null);
      line.append(...COLUMNS.map((column) => cell(row, column)));
      body.append(line);
    }
    $("figures").replaceChildren(head, body);
    $("figures").parentElement.hidden = !rows.length;
  }

  // --- charts ---------------------------------------------------------------------------------------------

  function names(kind) {
    const known = [...tracks.values()].filter((t) => t.kind === kind).map((t) => t.name);
    if (kind !== "engine") return known.sort();
    return [...new Set([...(run.engines || []), ...known])];
  }
  function colour(kind, name) {
    const all = settings[kind];
    return all[Math.max(0, names(kind).indexOf(name)) % all.length];
  }
  function swatch(value) {
    const made = element("i", "", { class: "mark" });
    made.style.background = value;
    return made;
  }
  // Plotly draws dates as if they were of Greenwich: shown is the reader's own time.
  const moment = (t) => new Date((t - new Date(t * 1000).getTimezoneOffset() * 60) * 1000).toISOString().slice(0, -1);

  function span() {
    const end = run.state === "running" || !run.end ? now : run.end;
    if (range === "run" && run.start) return [run.start - 1, Math.max(end, run.start + 30)];
    if (range === "all" || range === "run") {
      let first = now - 30;
      for (const track of tracks.values()) for (const t of track.rows.keys()) if (t < first) first = t;
      return [first, now];
    }
    return [now - Number(range), now];
  }

  function traces(chart, [from, to]) {
    const out = [];
    for (const name of names(chart.kind)) {
      const track = tracks.get(`${chart.kind} ${name}`);
      if (!track) continue;
      const seconds = [...track.rows.keys()].filter((t) => t >= from - 60 && t <= to).sort((a, b) => a - b);
      for (const [figure, dash, word] of chart.lines) {
        const x = [], y = [];
        let before = null, step = 1;
        for (const t of seconds) {
          const row = track.rows.get(t);
          if (row[figure] === undefined) continue;
          step = Math.max(step, row.step); // between two steps the longer one counts
          if (before !== null && t - before > 3 * step + 2) { x.push(moment(before + 1)); y.push(null); }
          x.push(moment(t + row.step / 2)); y.push(row[figure]);
          before = t;
          step = row.step;
        }
        if (!x.length) continue;
        out.push({
          type: "scatter", mode: x.length < 3 ? "lines+markers" : "lines", x, y, connectgaps: false,
          name: escaped(word ? `${name} ${word}` : name),
          line: { color: colour(chart.kind, name), width: dash === "solid" ? 2 : 1.3, dash },
          hovertemplate: `<b>${escaped(name)}</b> ${word} %{y:,.4~g}<extra></extra>`,
        });
      }
    }
    return out;
  }

  function shapes([from, to]) {
    const out = [];
    for (const mark of marks.values()) {
      const end = mark.open ? now : mark.end === undefined ? mark.t : mark.end;
      if (end < from || mark.t > to) continue;
      if (mark.kind === "run") {
        out.push(upright(mark.t, "#888", "dot"));
      } else if (mark.kind === "moment") {
        out.push(upright(mark.t, "#b8860b", "dash"));
      } else {
        out.push({
          type: "rect", xref: "x", yref: "paper", layer: "below", line: { width: 0 },
          x0: moment(Math.max(from, mark.t)), x1: moment(Math.min(to, end)), y0: 0, y1: 1,
          fillcolor: mark.kind === "turn" ? colour("engine", mark.engine) : "#888888",
          opacity: mark.kind === "turn" ? 0.12 : 0.18,
        });
      }
    }
    return out.slice(-300);
  }
  function upright(t, stroke, dash) {
    return { type: "line", xref: "x", yref: "paper", x0: moment(t), x1: moment(t), y0: 0, y1: 1, line: { color: stroke, width: 1, dash } };
  }
  function annotations([from, to]) {
    const found = [...marks.values()].filter((m) => m.text && m.t >= from && m.t <= to && m.kind !== "run").slice(-12);
    return found.map((m) => ({
      x: moment(m.t), y: 1, xref: "x", yref: "paper", xanchor: "left", yanchor: "top", showarrow: false,
      text: escaped(m.text), font: { size: 10 }, textangle: 90,
    }));
  }

  function drawAll() {
    table(rowsShown);
    const shownSpan = span();
    const isThere = [...marks.values()].some((m) => m.kind === "warmup");
    const key = names("engine").map((name) => { const p = element("span", name); p.prepend(swatch(colour("engine", name))); return p; });
    for (const name of names("gpu")) { const p = element("span", name); p.prepend(swatch(colour("gpu", name))); key.push(p); }
    if (key.length) {
      const turns = element("span", isThere ? "shaded: turns in the engine's colour, warm-up grey" : "shaded: turns");
      key.push(turns);
    }
    $("legend").replaceChildren(...key);
    let gpus = false;
    const regions = shapes(shownSpan), words = annotations(shownSpan);
    for (const chart of CHARTS) {
      const lines = traces(chart, shownSpan);
      if (chart.kind === "gpu" && lines.length) gpus = true;
      const figure = $(`chart-${chart.id}`);
      figure.hidden = !lines.length;
      if (!lines.length || !window.Plotly) continue;
      const axis = { zeroline: false, ticks: "", fixedrange: coarse, gridcolor: "#8885", tickfont: { size: 11 } };
      Plotly.react(figure.querySelector(".plot"), lines, {
        height: 220, margin: { l: 44, r: 12, t: 8, b: 28 }, showlegend: false,
        paper_bgcolor: "transparent", plot_bgcolor: "transparent", hovermode: "x unified",
        dragmode: coarse ? false : "zoom", font: { size: 11, color: "#888", family }, uirevision: `${range} ${run.name}`,
        shapes: regions, annotations: chart.id === "tokens" ? words : [],
        xaxis: { ...axis, type: "date", range: shownSpan.map(moment), nticks: 6, tickformat: "%H:%M:%S" },
        yaxis: { ...axis, rangemode: "tozero", nticks: 5 },
      }, { responsive: true, displaylogo: false, displayModeBar: false });
    }
    $("no-gpu").hidden = gpus || !run.name;
  }

  for (const chart of CHARTS) {
    const figure = element("figure", null, { id: `chart-${chart.id}`, hidden: "" });
    const caption = element("figcaption", null);
    caption.append(element("h2", chart.title), element("small", chart.about));
    figure.append(caption, element("div", null, { class: "plot" }));
    $("charts").append(figure);
  }
  for (const [value, title] of RANGES) {
    const button = element("button", title, { type: "button", "aria-pressed": String(value === range) });
    button.addEventListener("click", () => {
      range = value;
      for (const b of $("ranges").children) b.setAttribute("aria-pressed", String(b === button));
      drawAll();
    });
    $("ranges").append(button);
  }
  ask();
})();
