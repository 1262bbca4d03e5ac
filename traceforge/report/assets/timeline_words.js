// The timeline in words: totals by phase, what lies under the pointer. In: model and view. Out: text beside the canvas.

Object.assign(Walk.prototype, {
  ms(steps) {
    return readable(steps, this.model.step);
  },

  clock(time, digits = 2) {
    return grouped(((time - this.model.offsets[this.view.iteration]) * this.model.step / 1000).toFixed(digits));
  },

  /** Totals by phase of what is selected, or else in view. */
  total() {
    const { model, view } = this;
    const [from, to] = view.selected ? [...view.selected].sort((a, b) => a - b) : [view.from, view.to];
    const size = model.phases.length;
    const ranks = [view.rank >= 0 ? view.rank : model.rankAt.get(model.culprits[0]), model.rankAt.get(model.peer)];
    const rows = [...new Set(ranks.filter((rank) => rank !== undefined))].map((rank) => {
      const isPeer = model.ranks[rank] === model.peer;
      return [`rank ${model.ranks[rank]}${isPeer && model.ranks.length > 1 ? " (typical)" : ""}`, phaseTotals(model.lanes[rank], from, to, size)];
    });
    const ghost = this.ghost();
    if (ghost && ranks[0] !== undefined) {
      rows.splice(1, 0, [`rank ${model.ranks[ranks[0]]} in iteration ${ghost.number}`, phaseTotals(model.lanes[ranks[0]], from - ghost.shift, to - ghost.shift, size)]);
    }
    const mean = new Float64Array(size);
    model.lanes.forEach((lane) => phaseTotals(lane, from, to, size).forEach((sum, at) => (mean[at] += sum / model.lanes.length)));
    if (model.ranks.length > 1) rows.push([`mean of ${grouped(String(model.ranks.length))} ranks`, mean]);
    else if (!rows.length) rows.push([`rank ${model.ranks[0]}`, mean]);
    const shown = model.phases.map((_, at) => at).filter((at) => rows.some(([, sums]) => sums[at] > 0));
    const line = (kind, texts) => {
      const row = document.createElement("tr");
      texts.forEach((text, at) => {
        const cell = row.appendChild(document.createElement(at && kind === "td" ? "td" : "th"));
        cell.textContent = text;
        if (cell.tagName === "TH") cell.scope = kind === "th" ? "col" : "row";
        if (at) cell.className = "number";
      });
      return row;
    };
    this.part("totals").replaceChildren(...rows.map(([name, sums]) => line("td", [name, ...shown.map((at) => this.ms(sums[at]))])));
    this.figure.querySelector(".walk-totals thead").replaceChildren(line("th", ["time in", ...shown.map((at) => model.phases[at])]));
    const [first, last] = this.iterationSpan(view.iteration);
    const isWithin = from >= first - 0.1 * (last - first) && to <= last + 0.1 * (last - first);
    // As exact as a span of this length needs.
    const digits = Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(((to - from) * model.step) / 1000))));
    const place = isWithin
      ? `${this.clock(from, digits)} to ${this.clock(to, digits)} ms in ${model.called(model.iterations[view.iteration])}`
      : `iterations ${model.iterations[this.placeAt(from)]} to ${model.iterations[this.placeAt(to)]}`;
    const about = model.slot ? `; iterations not shown in detail to within ${readable(model.slot, 0.001)} a block` : "";
    this.part("totals-title").textContent = `${view.selected ? "Selected" : "In view"}: ${this.ms(to - from)}, ${place}${about}`;
  },

  /** What lies under a place of the canvas: a block, a phase, or nothing. */
  under(x, y) {
    const row = rowAt(this.rows, y);
    const { model } = this;
    if (!row || x < this.painter.gutter) return { row };
    const time = this.painter.time(x);
    if (row.type === "stream") {
      const slack = (2 * (this.view.to - this.view.from)) / this.painter.plot;
      const { start, end } = row.blocks;
      let best = -1;
      for (let at = 0; at < start.length; at += 1) {
        if (start[at] - slack > time || end[at] + slack < time) continue;
        if (best < 0 || end[at] - start[at] < end[best] - start[best] || end[best] < time) best = at;
      }
      return best < 0 ? { row } : { row, at: best, told: this.toldBlock(row, best) };
    }
    if (row.type !== "rank" && row.type !== "host") return { row };
    const line = Math.floor(((y - row.y) / row.height) * (row.ranks ?? [0]).length);
    const rank = row.type === "rank" ? row.rank : row.ranks[Math.min(row.ranks.length - 1, Math.max(0, line))];
    const at = lastNotAbove(model.lanes[rank].start, time);
    if (at < 0 || model.lanes[rank].end[at] <= time) return { row, rank };
    return { row, rank, at, told: this.toldPhase(rank, at) };
  },

  toldPhase(rank, at) {
    const { start, end, kind } = this.model.lanes[rank];
    const lasting = this.ms(end[at] - start[at]);
    return `rank ${this.model.ranks[rank]}: ${this.model.phases[kind[at]]}, ${lasting}, from ${this.clock(start[at])} to ${this.clock(end[at])} ms`;
  },

  toldBlock(row, at) {
    const { start, end, name, until } = row.blocks;
    const [label, detail] = this.model.names[name[at]];
    const waits = until[at] > start[at] ? `, of which ${this.ms(until[at] - start[at])} waiting for other ranks` : "";
    const more = detail ? ` (${detail})` : "";
    return `rank ${this.model.ranks[row.rank]}, ${row.title}: ${label}${more}, ${this.ms(end[at] - start[at])}${waits}, from ${this.clock(start[at])} to ${this.clock(end[at])} ms`;
  },
});

/** The name of a stream's row where there is little room for names. */
function shortTitle(title) {
  return title.replace("communication", "comm.").replace("computation", "compute").replace(/ thread$/, "");
}
