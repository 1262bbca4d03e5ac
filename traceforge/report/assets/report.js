// Draws the charts of the page when they come into view, and all of them before printing.
// In: JSON data written by the report. Out: SVG. Reads nothing else, loads nothing, keeps no state between visits.
(() => {
  "use strict";

  const read = (id) => JSON.parse(document.getElementById(id).textContent);

  /** A column as written: a list of values, or a dictionary of values with a code for each row. */
  const unpackColumn = (column) =>
    Array.isArray(column) ? column : column.codes.map((code) => column.values[code]);

  /** A table as a list of rows. */
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
    formatLocale: { decimal: ".", thousands: "\u202f", grouping: [3], currency: ["", ""] },
    mode: "vega-lite",
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  };

  const cache = new Map();
  const dataOf = (figure) => {
    const name = figure.dataset.figure;
    if (!cache.has(name)) cache.set(name, read(`data-${name}`));
    return cache.get(name);
  };

  const draw = (chart) => {
    if (chart.dataset.state) return;
    chart.dataset.state = "drawing";
    const figure = chart.closest("figure");
    const figureData = dataOf(figure);
    const panel = figureData.panels[Number(chart.dataset.panel)];
    const spec = { ...panel.spec, datasets: unpackAll(panel.data) };
    window.vegaEmbed(chart, spec, options).then(
      (result) => {
        chart.dataset.state = "drawn";
        chart.style.minHeight = "";
        const picture = chart.querySelector("svg");
        picture.querySelectorAll("[role]").forEach((mark) => {
          mark.removeAttribute("role");
          mark.removeAttribute("aria-roledescription");
        });
        picture.setAttribute("role", "img");
        picture.setAttribute("aria-label", panel.spec.description);
        if (figureData.drill_down && chart.dataset.panel === "0" && document.getElementById("data-timeline")) {
          drills.push(new Drill(chart, result.view));
        }
      },
      (error) => {
        chart.dataset.state = "failed";
        chart.textContent = "This chart could not be drawn; its numbers are in the table below.";
        console.error(error);
      },
    );
  };

  // From a cell to what it opens: a cursor over the cells, moved by mouse or arrow keys.
  const drills = [];

  // The timeline says which iteration it shows.
  let shownIteration;
  document.addEventListener("iterationshown", (event) => {
    shownIteration = event.detail;
    drills.forEach((drill) => drill.mark());
  });

  const box = (element, left, top, width, height) =>
    Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });

  class Drill {
    constructor(chart, view) {
      const figure = chart.closest("figure");
      this.chart = chart;
      this.opens = dataOf(figure).drill_down;
      this.readout = figure.querySelector(".readout");
      this.cells = new Map(
        unpack(dataOf(figure).panels[0].data[this.opens.table]).map((cell) => [
          `${cell.rank} ${cell.iteration}`, cell[this.opens.value],
        ]),
      );
      this.row = 0;
      this.column = 0;
      this.layer = chart.parentElement.appendChild(document.createElement("div"));
      this.layer.className = "cells";
      this.layer.tabIndex = 0;
      this.layer.setAttribute("role", "application");
      this.layer.setAttribute("aria-label", "Cells of rank and iteration: arrow keys move, Enter opens the iteration in the timeline");
      this.shown = this.layer.appendChild(document.createElement("div"));
      this.shown.className = "shown";
      this.cursor = this.layer.appendChild(document.createElement("div"));
      this.cursor.className = "cursor";
      this.layer.addEventListener("keydown", (event) => this.key(event));
      this.layer.addEventListener("focus", () => this.place());
      view.addEventListener("click", (_, item) => item && item.datum && this.click(item.datum));
      view.addResizeListener(() => requestAnimationFrame(() => this.mark()));
      this.mark();
    }

    /** Where the cells lie inside the chart: left, top, width and height of one. */
    grid() {
      const plot = this.chart.querySelector(".role-frame.root path.background").getBoundingClientRect();
      const outer = this.layer.getBoundingClientRect();
      const { rows, columns } = this.opens;
      return [plot.left - outer.left, plot.top - outer.top, plot.width / columns.length, plot.height / rows.length];
    }

    /** Frame the columns that are shown below. */
    mark() {
      const own = this.opens.iterations.flatMap((number, column) => (number === shownIteration ? [column] : []));
      const [left, top, width, height] = this.grid();
      this.shown.hidden = own.length === 0;
      if (!own.length) return;
      const columns = own[own.length - 1] - own[0] + 1;
      box(this.shown, left + own[0] * width, top, columns * width, height * this.opens.rows.length);
    }

    place() {
      const [left, top, width, height] = this.grid();
      box(this.cursor, left + this.column * width, top + this.row * height, width, height);
      const [rank, iteration] = [this.opens.rows[this.row], this.opens.columns[this.column]];
      const late = this.cells.get(`${rank} ${iteration}`);
      const side = late < 0 ? "before" : "after";
      const told = late === undefined ? "not recorded" : `${Math.abs(late).toFixed(3)} ms ${side} the median rank`;
      this.readout.textContent = `Rank ${rank}, iteration ${iteration}: ${told}. Enter shows it in the timeline.`;
    }

    key(event) {
      const [rows, columns] = [this.opens.rows.length, this.opens.columns.length];
      const steps = {
        ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
        PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -columns], End: [0, columns],
      };
      const within = (value, size) => Math.min(size - 1, Math.max(0, value));
      if (event.key === "Enter" || event.key === " ") {
        this.open();
      } else if (event.key in steps) {
        this.row = within(this.row + steps[event.key][0], rows);
        this.column = within(this.column + steps[event.key][1], columns);
        this.place();
      } else {
        return;
      }
      event.preventDefault();
    }

    click(datum) {
      const [row, column] = [this.opens.rows.indexOf(datum.rank), this.opens.columns.indexOf(datum.iteration)];
      if (row < 0 || column < 0) return;
      [this.row, this.column] = [row, column];
      this.place();
      this.open();
    }

    open() {
      location.hash = `it=${this.opens.iterations[this.column]}&rank=${this.opens.ranks[this.row]}`;
    }
  }

  const charts = [...document.querySelectorAll(".chart")];
  charts.forEach((chart) => {
    const { spec } = dataOf(chart.closest("figure")).panels[Number(chart.dataset.panel)];
    chart.style.minHeight = `${Number(spec.height) + 50}px`;
  });

  const drawAll = () => charts.forEach(draw);
  window.addEventListener("beforeprint", drawAll);
  const observer = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "400px 0px" },
  );
  charts.forEach((chart) => observer.observe(chart));
})();
