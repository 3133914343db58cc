"use strict";
(() => {
  const family = getComputedStyle(document.body).fontFamily; // Plotly measures text with it
  const coarse = matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: false, // dragging zooms, a double click zooms out
    scrollZoom: false,
  };
  const axis = {
    automargin: true,
    zeroline: false,
    showline: false,
    ticks: "",
    fixedrange: coarse, // a finger on a chart scrolls the page
    gridcolor: "#8885",
    tickfont: { size: 12 },
    title: { font: { size: 12 } },
  };

  function layoutOf(place, chart) {
    const layout = {
      height: chart.height,
      margin: { l: 8, r: 14, t: 26, b: 8 },
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      showlegend: false,
      dragmode: coarse ? false : "zoom",
      font: { size: 12, color: "#888", family },
      hoverlabel: { font: { size: 12 }, align: "left" },
      ...chart.layout,
    };
    for (const name of Object.keys(layout)) {
      if (!/^[xy]axis/.test(name)) continue;
      layout[name] = { ...axis, ...layout[name], title: { ...axis.title, ...layout[name].title } };
      if (place.clientWidth < 480 && layout[name].nticks > 5) layout[name].nticks = 5;
    }
    return layout;
  }

  function draw(place) {
    if (place.dataset.drawn || place.closest("details:not([open])")) return; // folded: when it is opened
    place.dataset.drawn = "yes";
    const chart = JSON.parse(document.getElementById(place.dataset.from).textContent);
    Plotly.newPlot(place, chart.data, layoutOf(place, chart), config);
  }

  const places = [...document.querySelectorAll(".plot")];
  const waiting = places.slice();
  function next() {
    const place = waiting.shift();
    if (!place) {
      document.documentElement.dataset.ready = "yes";
      return;
    }
    draw(place);
    setTimeout(next);
  }
  next();

  document.addEventListener("toggle", (event) => event.target.querySelectorAll(".plot").forEach(draw), true);

  // On paper a chart is as wide as the paper.
  const fit = () => places.filter((p) => p.dataset.drawn).forEach((p) => Plotly.Plots.resize(p));
  addEventListener("beforeprint", () => { places.forEach(draw); fit(); });
  addEventListener("afterprint", fit);
})();
