// Draws the charts of the page when they come into view, and all of them before printing.
// In: JSON islands written by the report. Out: SVG. Reads nothing else, loads nothing, keeps no state between visits.
(() => {
  "use strict";

  const read = (id) => JSON.parse(document.getElementById(id).textContent);

  /** A column as written: a list of values, or a dictionary of values with a code for each row. */
  const unpackColumn = (column) =>
    Array.isArray(column) ? column : column.codes.map((code) => column.values[code]);

  /** A table by column as a list of rows. */
  const unpack = (table) => {
    const names = Object.keys(table);
    const columns = names.map((name) => unpackColumn(table[name]));
    const size = columns.length ? columns[0].length : 0;
    return Array.from({ length: size }, (_, row) =>
      Object.fromEntries(names.map((name, place) => [name, columns[place][row]])),
    );
  };

  const unpackAll = (tables) =>
    Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, unpack(table)]));

  const theme = read("theme");
  const options = {
    actions: false,
    ast: true,
    config: theme,
    defaultStyle: false,
    mode: "vega-lite",
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  };

  const islands = new Map();
  const islandOf = (figure) => {
    const name = figure.dataset.figure;
    if (!islands.has(name)) islands.set(name, read(`data-${name}`));
    return islands.get(name);
  };

  const chosenData = (figure, island) => {
    const select = figure.querySelector("select");
    return select ? island.choices[Number(select.value)].data : {};
  };

  const views = new WeakMap();

  const draw = (chart) => {
    if (chart.dataset.state) return;
    chart.dataset.state = "drawing";
    const figure = chart.closest("figure");
    const island = islandOf(figure);
    const panel = island.panels[Number(chart.dataset.panel)];
    const chosen = chart.dataset.panel === "0" ? chosenData(figure, island) : {};
    const spec = { ...panel.spec, datasets: unpackAll({ ...panel.data, ...chosen }) };
    vegaEmbed(chart, spec, options).then(
      (result) => {
        views.set(chart, result.view);
        chart.dataset.state = "drawn";
        chart.style.minHeight = "";
      },
      (error) => {
        chart.dataset.state = "failed";
        chart.textContent = "This chart could not be drawn; its numbers are in the table below.";
        console.error(error);
      },
    );
  };

  const choose = (figure) => {
    const island = islandOf(figure);
    const choice = island.choices[Number(figure.querySelector("select").value)];
    figure.querySelector("figcaption").textContent = choice.caption;
    const chart = figure.querySelector('[data-panel="0"]');
    const view = views.get(chart);
    if (!view) return;
    Object.entries(choice.data).forEach(([name, table]) => view.data(name, unpack(table)));
    view.runAsync();
  };

  const charts = [...document.querySelectorAll(".chart")];
  charts.forEach((chart) => {
    const { spec } = islandOf(chart.closest("figure")).panels[Number(chart.dataset.panel)];
    chart.style.minHeight = `${Number(spec.height) + 50}px`;
  });

  document.querySelectorAll("figure select").forEach((select) => {
    select.addEventListener("change", () => choose(select.closest("figure")));
  });

  // A link to a query or a term opens the fold it lies in.
  const openTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();

  const drawAll = () => charts.forEach(draw);
  window.addEventListener("beforeprint", drawAll);
  if ("IntersectionObserver" in window) {
    const observer = new IntersectionObserver(
      (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
      { rootMargin: "400px 0px" },
    );
    charts.forEach((chart) => observer.observe(chart));
  } else {
    drawAll();
  }
})();
