// Paints rows onto the canvas. In: model, rows, view. Out: pixels. Phases go through a buffer of pixels, in which each
// column shows the phase that fills most of it; blocks and words go on top.

class Painter {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.model = model;
    this.context = canvas.getContext("2d", { alpha: false });
    this.widths = new Map();
    this.recolour();
  }

  recolour() {
    this.colours = coloursOf(this.canvas, this.model.phases);
  }

  /** Fit the canvas to its place on the page; `gutter` is the width of the names on its left. */
  resize(width, height) {
    this.scale = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.gutter = width < 560 ? 74 : 150;
    this.plot = width - this.gutter;
    this.canvas.width = Math.round(width * this.scale);
    this.canvas.height = Math.round(height * this.scale);
    this.canvas.style.height = `${height}px`;
    this.left = Math.round(this.gutter * this.scale);
    this.columns = this.canvas.width - this.left;
    this.picture = this.context.createImageData(Math.max(1, this.columns), this.canvas.height);
    this.pixels = new Uint32Array(this.picture.data.buffer);
    this.column = new Uint8Array(Math.max(1, this.columns));
    this.context.fillStyle = this.colours.page.surface;
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  x(time) {
    return this.gutter + ((time - this.view.from) / (this.view.to - this.view.from)) * this.plot;
  }

  time(x) {
    return this.view.from + ((x - this.gutter) / this.plot) * (this.view.to - this.view.from);
  }

  /** Paint what lies between two heights, with the axis at the top of what the window shows. */
  paint(view, allRows, [top, bottom], axisTop) {
    this.view = view;
    const rows = allRows.filter((row) => row.y < bottom && row.y + row.height > top);
    const { context } = this;
    this.top = Math.max(0, Math.min(axisTop, this.height - 60));
    context.save();
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.textBaseline = "middle";
    context.fillStyle = this.colours.page.surface;
    context.fillRect(0, top, this.width, bottom - top);
    this.lanes(rows, top, bottom);
    context.save();
    context.beginPath();
    context.rect(this.gutter, top, this.plot, bottom - top);
    context.clip();
    const marks = this.ticks();
    this.outlined = this.outlines();
    marks.forEach((mark) => this.line(mark));
    rows.forEach((row) => this.words(row));
    this.selection();
    this.arrivals(allRows);
    this.moments(rows);
    rows.forEach((row) => this.cursor(row));
    this.axis(marks);
    context.restore();
    rows.forEach((row) => this.name(row));
    this.corner();
    context.restore();
  }

  /** Phases of ranks and of closed hosts, pixel by pixel. */
  lanes(rows, from, to) {
    const [high, low] = [from, to].map((y) => Math.round(Math.max(0, Math.min(this.height, y)) * this.scale));
    this.pixels.fill(this.colours.surface, high * this.columns, low * this.columns);
    const perStep = this.columns / (this.view.to - this.view.from);
    for (const row of rows) {
      if (row.type !== "rank" && row.type !== "host" && row.type !== "ghost") continue;
      const ranks = row.type === "host" ? row.ranks : [row.rank];
      const shift = row.type === "ghost" ? row.ghost.shift : 0;
      const top = Math.round(row.y * this.scale);
      const height = Math.round(row.height * this.scale);
      // With more ranks than lines of pixels, lines show some of them; a host can be opened.
      const lines = Math.min(ranks.length, height);
      for (let line = 0; line < lines; line += 1) {
        const lane = this.model.lanes[ranks[Math.floor((line * ranks.length) / lines)]];
        shownColumns(lane, this.view.from - shift, perStep, this.columns, this.column, this.model.end);
        if (shift) this.cut(row.ghost);
        const first = top + Math.floor((line * height) / lines);
        const below = top + Math.floor(((line + 1) * height) / lines);
        this.fill(first, lines > 1 && below - first > 2 ? below - 1 : below);
      }
    }
    this.context.putImageData(this.picture, this.left, 0, 0, high, this.columns, low - high);
  }

  /** Of a normal iteration's lane, no more than that iteration. */
  cut({ from, to }) {
    const [left, right] = [from, to].map((time) => Math.round(((time - this.view.from) / (this.view.to - this.view.from)) * this.columns));
    this.column.fill(255, 0, Math.max(0, Math.min(this.columns, left)));
    this.column.fill(255, Math.max(0, Math.min(this.columns, right)), this.columns);
  }

  /** Lines of pixels from `first` to before `below`, as `column` says. */
  fill(first, below) {
    const { solid, hatched, surface, sunken } = this.colours;
    const { column, columns, pixels } = this;
    const off = this.view.off;
    const wide = Math.max(4, Math.round(5 * this.scale));
    for (let y = first; y < below; y += 1) {
      const line = y * columns;
      for (let x = 0; x < columns; x += 1) {
        const phase = column[x];
        if (phase === 255) continue;
        if (off[phase]) pixels[line + x] = sunken;
        else pixels[line + x] = hatched[phase] && (x + y) % wide >= 0.68 * wide ? surface : solid[phase];
      }
    }
  }

  font(size, weight = 400) {
    this.context.font = `${weight} ${size}px ${FONT}`;
  }

  /** A text cut to a width; empty where not even a few letters fit. */
  fitted(text, width) {
    let full = this.widths.get(text);
    if (full === undefined) {
      full = this.context.measureText(text).width;
      this.widths.set(text, full);
    }
    if (full <= width) return text;
    if (text.startsWith("aten::")) return this.fitted(text.slice(6), width);
    const letters = Math.floor((text.length * (width - 8)) / full);
    return letters < 5 ? "" : `${text.slice(0, letters)}…`;
  }

  /** Marks of the axis: ms within one iteration, or the beginnings of several. */
  ticks() {
    const { model, view } = this;
    const at = view.iteration;
    const isOne = view.from >= model.offsets[at] - 0.2 * model.extents[at] && view.to <= model.offsets[at] + 1.2 * model.extents[at];
    const marks = [];
    if (isOne) {
      const step = niceStep(((view.to - view.from) * 80) / this.plot, model.step);
      const first = Math.ceil((view.from - model.offsets[at]) / step);
      for (let tick = first; tick * step + model.offsets[at] <= view.to; tick += 1) {
        const ms = (tick * step * model.step) / 1000;
        marks.push({ time: model.offsets[at] + tick * step, text: grouped(String(Number(ms.toFixed(4)))), isBoundary: false });
      }
    }
    const low = Math.max(0, lastNotAbove(model.offsets, view.from));
    for (let number = low; number < model.offsets.length && model.offsets[number] <= view.to; number += 1) {
      marks.push({ time: model.offsets[number], text: isOne ? "" : String(model.iterations[number]), isBoundary: true });
    }
    const short = model.whole ? "ms" : `ms in ${model.iterations[at]}`;
    const long = `ms in ${model.called(model.iterations[at])}`;
    this.caption = !isOne ? "iteration" : this.gutter > 100 ? long : short;
    return marks;
  }

  line({ time, isBoundary }) {
    const { context, colours } = this;
    const x = Math.round(this.x(time)) + 0.5;
    context.strokeStyle = isBoundary ? colours.page.muted : colours.page.grid;
    context.setLineDash(isBoundary ? [2, 3] : []);
    context.globalAlpha = isBoundary ? 0.8 : 0.55;
    context.beginPath();
    context.moveTo(x, this.top + 20);
    context.lineTo(x, this.height);
    context.stroke();
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  axis(marks) {
    const { context, colours } = this;
    context.fillStyle = colours.page.surface;
    if (this.top > 0) context.fillRect(this.gutter, this.top, this.plot, 22);
    this.font(12);
    context.textAlign = "center";
    context.fillStyle = colours.page.muted;
    let reached = this.gutter;
    for (const { time, text } of marks) {
      const x = this.x(time);
      const half = context.measureText(text).width / 2;
      if (!text || x - half < reached || x + half > this.width) continue;
      context.fillText(text, x, this.top + 11);
      reached = x + half + 8;
    }
  }

  /** What the axis counts, on its left. */
  corner() {
    const { context, colours } = this;
    context.fillStyle = colours.page.surface;
    context.fillRect(0, this.top, this.gutter, 22);
    this.font(12, 650);
    context.textAlign = "left";
    context.fillStyle = colours.page.text;
    context.fillText(this.caption, 4, this.top + 11);
  }

  /** What stands on a row: blocks of a stream, names of long phases. */
  words(row) {
    if (row.type === "stream") this.blocks(row);
    if (row.type === "rank") this.phaseNames(row);
    if (row.type === "nothing") {
      this.font(12);
      this.context.textAlign = "left";
      this.context.fillStyle = this.colours.page.muted;
      this.context.fillText("No operations of this rank are kept here; Perfetto shows them.", this.gutter + 4, row.y + row.height / 2);
    }
  }

  phaseNames(row) {
    const { context, colours, model, view } = this;
    const lane = model.lanes[row.rank];
    const shortest = (34 * (view.to - view.from)) / this.plot;
    this.font(12);
    context.textAlign = "left";
    for (let at = Math.max(0, lastNotAbove(lane.start, view.from)); at < lane.start.length && lane.start[at] < view.to; at += 1) {
      const left = Math.max(lane.start[at], view.from);
      const lasting = Math.min(lane.end[at], view.to) - left;
      if (lasting < shortest || view.off[lane.kind[at]]) continue;
      const phase = lane.kind[at];
      const [from, to] = [this.x(left), this.x(left + lasting)];
      const x = this.clear(row.rank, from, model.phases[phase]) + 3;
      const text = this.fitted(model.phases[phase], to - x - 3);
      if (!text || this.isOutlined(row.rank, x, x + context.measureText(text).width)) continue;
      if (colours.hatched[phase]) {
        context.fillStyle = colours.page.surface;
        context.fillRect(x - 2, row.y + 3, context.measureText(text).width + 4, row.height - 6);
      }
      context.fillStyle = colours.hatched[phase] ? colours.page.text : colours.word[phase];
      context.fillText(text, x, row.y + row.height / 2 + 0.5);
    }
  }

  /** Where a name may begin that the arrival of a linked collective would cross: behind its dot. */
  clear(rank, from, text) {
    const { view, model, context } = this;
    if (view.link < 0) return from;
    const [, , , , ranks, at] = model.collectives[view.link];
    const place = ranks.indexOf(model.ranks[rank]);
    const x = place < 0 ? -Infinity : this.x(at[place]);
    const width = this.widths.get(text) ?? context.measureText(text).width;
    return x > from - 4 && x < from + width + 8 ? x + 4 : from;
  }

  /** Whether a finding's outline, which has words of its own, lies there. */
  isOutlined(rank, left, right) {
    return this.outlined.some(([at, from, to]) => at === rank && from < right && to > left);
  }

  blocks(row) {
    const { context, colours, model, view } = this;
    const { start, end, name, until, link } = row.blocks;
    const perStep = this.plot / (view.to - view.from);
    this.font(12);
    context.textAlign = "left";
    this.kept(row);
    let painted = -1;
    for (let at = 0; at < start.length; at += 1) {
      if (end[at] < view.from || start[at] > view.to) continue;
      const left = Math.max(this.gutter - 4, this.x(start[at]));
      const right = Math.min(this.width + 4, this.x(end[at]));
      if (right - left < 0.6 && left < painted) continue;
      const [label, , phaseName] = model.names[name[at]];
      const phase = model.phaseAt.get(phaseName);
      const isFaint = view.off[phase] || (view.search && !view.found.has(name[at]));
      const width = Math.max(0.7, right - left - (right - left > 3 ? 0.7 : 0));
      context.globalAlpha = isFaint ? 0.15 : row.isGhost ? 0.6 : 1;
      context.fillStyle = colours.phase[phase];
      context.fillRect(left, row.y, width, row.height);
      if (until[at] > start[at]) this.waiting(left, (Math.min(until[at], view.to) - Math.max(start[at], view.from)) * perStep, row);
      if (view.link >= 0 && link[at] === view.link) this.frame(left, row.y, width, row.height, colours.page.text);
      painted = left + 0.6;
      if (right - left > 24 && !isFaint) this.blockName(label, row, left, right, until[at] > start[at] ? this.x(until[at]) : -Infinity, colours.word[phase]);
    }
    context.globalAlpha = 1;
  }

  /** A block's name: where it waits first, behind the waiting if there is room, else on a ground of its own. */
  blockName(label, row, left, right, transfer, colour) {
    const { context, colours } = this;
    const isBehind = right - transfer > 34;
    const begin = Math.max(isBehind ? Math.max(left, transfer) : left, this.gutter);
    const text = this.fitted(label, right - begin - 6);
    if (!text) return;
    if (!isBehind) {
      context.fillStyle = colours.page.surface;
      context.fillRect(begin + 1, row.y + 2, context.measureText(text).width + 4, row.height - 4);
    }
    context.fillStyle = isBehind ? colour : colours.page.text;
    context.fillText(text, begin + 3, row.y + row.height / 2 + 0.5);
  }

  /** The spans of which operations are kept are shaded; beside them it is said that there are none. */
  kept(row) {
    const { context, colours } = this;
    const spans = row.blocks.spans.map((span) => span.map((time) => Math.max(this.gutter, Math.min(this.width, this.x(time)))));
    context.fillStyle = colours.page.sunken;
    spans.forEach(([left, right]) => context.fillRect(left, row.y, right - left, row.height));
    // A stream without work in an iteration that is kept on other streams is idle there.
    const isKept = [...(this.model.streams.get(row.rank)?.values() ?? [])].some((blocks) =>
      blocks.spans.some(([from, to]) => from < this.view.to && to > this.view.from));
    if (row.isGhost || isKept) return;
    context.fillStyle = colours.page.muted;
    context.fillText("operations of this iteration are not kept", this.gutter + 4, row.y + row.height / 2 + 0.5);
  }

  /** The part of a collective in which this rank waits for others. */
  waiting(left, width, row) {
    if (width <= 0.5) return;
    const { context, colours, model } = this;
    context.fillStyle = colours.page.surface;
    context.fillRect(left, row.y, width, row.height);
    context.save();
    context.beginPath();
    context.rect(left, row.y, width, row.height);
    context.clip();
    context.strokeStyle = colours.phase[model.phaseAt.get("wait")];
    context.lineWidth = 2;
    context.beginPath();
    for (let x = Math.max(left, this.gutter) - row.height; x < Math.min(left + width, this.width); x += 5) {
      context.moveTo(x, row.y + row.height);
      context.lineTo(x + row.height, row.y);
    }
    context.stroke();
    context.restore();
  }

  frame(x, y, width, height, colour, thickness = 2) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = thickness;
    this.context.strokeRect(x + 1, y + 1, Math.max(1, width - 2), height - 2);
    this.context.lineWidth = 1;
  }
}

/** 1, 2 or 5 times a power of ten ms, in steps, not below a least distance. */
const niceStep = (least, step) => {
  const ms = (least * step) / 1000;
  const power = 10 ** Math.floor(Math.log10(ms));
  return ([1, 2, 5, 10].find((factor) => factor * power >= ms) * power * 1000) / step;
};

const span = (ranks) =>
  ranks.length > 1 && ranks[ranks.length - 1] - ranks[0] === ranks.length - 1
    ? `${ranks[0]}–${ranks[ranks.length - 1]}`
    : ranks.length === 1 ? String(ranks[0]) : `${ranks.length} ranks`;
