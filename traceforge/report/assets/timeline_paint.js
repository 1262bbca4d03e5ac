// Paints rows onto the canvas. In: model, rows, view. Out: pixels. Phases go through a buffer of pixels, in which each
// column shows the phase that fills most of it; blocks, lines and words go on top.

const HATCHED = new Set(["wait", "communication"]);
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif';

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const luminance = (hex) => {
  const [red, green, blue] = channels(hex).map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

/** Colours as the style sheet has them now. */
const coloursOf = (element, phases) => {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const page = {};
  ["surface", "sunken", "text", "muted", "line", "grid", "accent", "bad"].forEach((name) => (page[name] = value(name)));
  const phase = phases.map(value);
  return {
    page,
    value,
    phase,
    solid: phase.map((colour) => packed(channels(colour))),
    surface: packed(channels(page.surface)),
    sunken: packed(channels(page.sunken)),
    // The one of black and white that stands out more.
    word: phase.map((colour) => (luminance(colour) > 0.18 ? "#101316" : "#ffffff")),
    hatched: phases.map((name) => HATCHED.has(name)),
  };
};

const sums = new Float64Array(16);

/** The phase that fills most of each column of pixels; 255 where nothing was recorded. */
const columnsOf = (lane, from, perStep, width, out) => {
  out.fill(255, 0, width);
  const { start, end, kind } = lane;
  const to = from + width / perStep;
  let column = -1;
  const settle = () => {
    if (column < 0 || column >= width) return;
    let best = 255;
    let most = 0;
    for (let phase = 0; phase < 16; phase += 1) {
      if (sums[phase] > most) [most, best] = [sums[phase], phase];
    }
    out[column] = best;
  };
  for (let at = Math.max(0, lastNotAbove(start, from)); at < start.length && start[at] < to; at += 1) {
    const left = Math.max(0, (start[at] - from) * perStep);
    const right = Math.min(width, (end[at] - from) * perStep);
    if (right <= left) continue;
    const first = left | 0;
    const last = right | 0;
    if (first !== column) {
      settle();
      sums.fill(0);
      column = first;
    }
    if (first === last) {
      sums[kind[at]] += right - left;
      continue;
    }
    sums[kind[at]] += first + 1 - left;
    settle();
    out.fill(kind[at], first + 1, Math.min(last, width));
    sums.fill(0);
    column = last;
    sums[kind[at]] += right - last;
  }
  settle();
};

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
  }

  x(time) {
    return this.gutter + ((time - this.view.from) / (this.view.to - this.view.from)) * this.plot;
  }

  time(x) {
    return this.view.from + ((x - this.gutter) / this.plot) * (this.view.to - this.view.from);
  }

  paint(view, rows) {
    this.view = view;
    const { context, colours } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.page.surface;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.lanes(rows);
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.plot, this.height);
    context.clip();
    this.axis();
    rows.forEach((row) => this.words(row));
    this.selection();
    this.arrivals(rows);
    this.moments(rows);
    context.restore();
    rows.forEach((row) => this.name(row));
    this.font(12, 650);
    context.fillStyle = this.colours.page.text;
    context.fillText(this.caption, 4, 11);
  }

  /** Phases of ranks and of closed hosts, pixel by pixel. */
  lanes(rows) {
    this.pixels.fill(this.colours.surface);
    const perStep = this.columns / (this.view.to - this.view.from);
    for (const row of rows) {
      if (row.type !== "rank" && row.type !== "host") continue;
      const ranks = row.type === "rank" ? [row.rank] : row.ranks;
      const top = Math.round(row.y * this.scale);
      const height = Math.round(row.height * this.scale);
      // With more ranks than lines of pixels, lines show some of them; a host can be opened.
      const lines = Math.min(ranks.length, height);
      for (let line = 0; line < lines; line += 1) {
        columnsOf(this.model.lanes[ranks[Math.floor((line * ranks.length) / lines)]], this.view.from, perStep, this.columns, this.column);
        const first = top + Math.floor((line * height) / lines);
        const below = top + Math.floor(((line + 1) * height) / lines);
        this.fill(first, lines > 1 && below - first > 2 ? below - 1 : below);
      }
    }
    this.context.putImageData(this.picture, this.left, 0);
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

  axis() {
    const { context, colours, model, view } = this;
    const at = view.iteration;
    const isOne = view.from >= model.offsets[at] - 0.2 * model.extents[at] && view.to <= model.offsets[at] + 1.2 * model.extents[at];
    this.font(12);
    context.textAlign = "center";
    let reached = -Infinity;
    const mark = (time, text, isBoundary) => {
      const x = Math.round(this.x(time)) + 0.5;
      if (x < this.gutter || x > this.width) return;
      context.strokeStyle = isBoundary ? colours.page.muted : colours.page.grid;
      context.setLineDash(isBoundary ? [2, 3] : []);
      context.globalAlpha = isBoundary ? 0.8 : 0.55;
      context.beginPath();
      context.moveTo(x, 20);
      context.lineTo(x, this.height);
      context.stroke();
      context.globalAlpha = 1;
      context.setLineDash([]);
      const half = context.measureText(text).width / 2;
      if (!text || x - half < reached || x + half > this.width) return;
      context.fillStyle = colours.page.muted;
      context.fillText(text, x, 11);
      reached = x + half + 8;
    };
    if (isOne) {
      const step = niceStep(((view.to - view.from) * 80) / this.plot, model.step);
      const first = Math.ceil((view.from - model.offsets[at]) / step);
      for (let tick = first; tick * step + model.offsets[at] <= view.to; tick += 1) {
        const ms = (tick * step * model.step) / 1000;
        mark(model.offsets[at] + tick * step, String(Number(ms.toFixed(4))).replace("-", "−"), false);
      }
    }
    const low = Math.max(0, lastNotAbove(model.offsets, view.from));
    for (let number = low; number < model.offsets.length && model.offsets[number] <= view.to; number += 1) {
      mark(model.offsets[number], isOne ? "" : String(model.iterations[number]), true);
    }
    this.caption = isOne ? `ms in ${model.iterations[at]}` : "iteration";
    if (isOne && this.gutter > 100) this.caption = `ms in iteration ${model.iterations[at]}`;
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
      const x = this.x(left) + 3;
      const text = this.fitted(model.phases[phase], (lasting * this.plot) / (view.to - view.from) - 6);
      if (!text) continue;
      if (colours.hatched[phase]) {
        context.fillStyle = colours.page.surface;
        context.fillRect(x - 2, row.y + 3, context.measureText(text).width + 4, row.height - 6);
      }
      context.fillStyle = colours.hatched[phase] ? colours.page.text : colours.word[phase];
      context.fillText(text, x, row.y + row.height / 2 + 0.5);
    }
  }

  blocks(row) {
    const { context, colours, model, view } = this;
    const { start, end, name, until, link } = row.blocks;
    const perStep = this.plot / (view.to - view.from);
    context.fillStyle = colours.page.sunken;
    context.fillRect(this.gutter, row.y, this.plot, row.height);
    this.font(12);
    context.textAlign = "left";
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
      context.globalAlpha = isFaint ? 0.15 : 1;
      context.fillStyle = colours.phase[phase];
      context.fillRect(left, row.y, width, row.height);
      if (until[at] > start[at]) this.waiting(left, (Math.min(until[at], view.to) - Math.max(start[at], view.from)) * perStep, row);
      if (view.link >= 0 && link[at] === view.link) this.frame(left, row.y, width, row.height, colours.page.text);
      painted = left + 0.6;
      const text = right - left > 24 && !isFaint ? this.fitted(label, right - left - 6) : "";
      if (text) {
        const isWaiting = until[at] > start[at];
        const x = Math.max(left, this.gutter) + 3;
        if (isWaiting) {
          context.fillStyle = colours.page.surface;
          context.fillRect(x - 2, row.y + 2, context.measureText(text).width + 4, row.height - 4);
        }
        context.fillStyle = isWaiting ? colours.page.text : colours.word[phase];
        context.fillText(text, x, row.y + row.height / 2 + 0.5);
      }
    }
    context.globalAlpha = 1;
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

  selection() {
    const { view, context, colours } = this;
    if (!view.selected) return;
    const [left, right] = [...view.selected].sort((a, b) => a - b).map((time) => this.x(time));
    context.fillStyle = colours.page.accent;
    context.globalAlpha = 0.16;
    context.fillRect(left, 20, right - left, this.height - 20);
    context.globalAlpha = 1;
    context.strokeStyle = colours.page.accent;
    context.strokeRect(left + 0.5, 20.5, right - left, this.height - 21);
  }

  /** The arrivals of one collective as a line over all ranks; the notch is whoever comes last. */
  arrivals(rows) {
    const { view, model, context, colours } = this;
    if (view.link < 0) return;
    const [label, group, end, last, ranks, at] = model.collectives[view.link];
    const points = ranks.flatMap((rank, place) => {
      const own = model.rankAt.has(rank) && rankPlace(rows, model.rankAt.get(rank));
      return own ? [{ ...own, x: this.x(at[place]), middle: own.y + own.height / 2 }] : [];
    }).sort((a, b) => a.middle - b.middle);
    [[4, colours.page.surface], [1.5, colours.page.text]].forEach(([thickness, colour]) => {
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      context.beginPath();
      points.forEach(({ x, y, height }, place) => {
        if (place) context.lineTo(x, y);
        else context.moveTo(x, y);
        context.lineTo(x, y + height);
      });
      context.stroke();
    });
    context.lineWidth = 1;
    context.fillStyle = colours.page.text;
    points.filter((point) => !point.isThin).forEach(({ x, middle }) => {
      context.beginPath();
      context.arc(x, middle, 3, 0, 2 * Math.PI);
      context.fill();
    });
    const latest = at[ranks.indexOf(last)] ?? Math.max(...at);
    this.font(12, 650);
    const words = last === null ? `${label}, ${group}` : `${label}, ${group}: rank ${last} arrives last`;
    const text = this.fitted(context.measureText(words).width < this.plot ? words : `rank ${last} arrives last`, this.plot - 8);
    const width = context.measureText(text).width;
    const x = this.x(latest);
    if (x < this.gutter - 10 || x > this.width + 10) return;
    context.strokeStyle = colours.page.text;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 34);
    context.lineTo(Math.round(x) + 0.5, this.height);
    context.stroke();
    context.setLineDash([]);
    context.textAlign = "left";
    const place = Math.max(this.gutter + 2, Math.min(x - width - 6, this.width - width - 4));
    context.fillStyle = colours.page.surface;
    context.fillRect(place - 2, 22, width + 4, 16);
    context.fillStyle = colours.page.text;
    context.fillText(text, place, 30);
  }

  /** The excess of the findings that fall into the iteration, outlined on the lanes of their ranks. */
  moments(rows) {
    const { view, model, context, colours } = this;
    model.moments.forEach((moment, number) => {
      const isChosen = number === view.moment;
      // What is no more than a hint is outlined only when asked for.
      if (!moment.span || !(moment.sure || isChosen)) return;
      for (const rank of moment.ranks) {
        const own = model.rankAt.has(rank) && rankPlace(rows, model.rankAt.get(rank));
        if (!own) continue;
        const [left, right] = moment.span.map((time) => this.x(time));
        if (right < this.gutter || left > this.width) continue;
        this.frame(left, own.y - 1, right - left, own.height + 2, colours.page.bad, isChosen ? 3 : 2);
        if (own.isThin || moment.rank === null) continue;
        this.font(12, 650);
        const text = this.fitted(moment.label, Math.min(right, this.width) - Math.max(left, this.gutter) - 12);
        if (!text) continue;
        const width = context.measureText(text).width;
        const x = Math.min(right, this.width) - width - 7;
        context.fillStyle = colours.page.surface;
        context.fillRect(x - 3, own.y + 2, width + 6, own.height - 4);
        context.fillStyle = colours.page.bad;
        context.textAlign = "left";
        context.fillText(text, x, own.y + own.height / 2 + 0.5);
      }
    });
  }

  /** The name of a row, on its left. */
  name(row) {
    const { context, colours, model, view } = this;
    const middle = row.y + row.height / 2 + 0.5;
    const isNarrow = this.gutter < 100;
    const text = (words, x, weight, colour) => {
      this.font(12, weight);
      context.fillStyle = colour;
      const full = context.measureText(words).width;
      const room = this.gutter - x - 4;
      const letters = Math.floor((words.length * room) / full);
      context.fillText(full <= room ? words : `${words.slice(0, Math.max(1, letters - 1))}…`, x, middle);
    };
    context.textAlign = "left";
    if (row.type === "host" || row.type === "openHost") {
      this.triangle(6, middle, row.type === "openHost");
      text(isNarrow ? row.name : `${row.name}  ${span(row.ranks.map((rank) => model.ranks[rank]))}`, 14, 400, colours.page.text);
    } else if (row.type === "rank") {
      const isCulprit = model.culprits.includes(model.ranks[row.rank]) && model.moments.length > 0;
      const isChosen = view.rank === row.rank;
      const host = view.isFlat && model.hosts.length > 1 && !isNarrow ? `  ${model.hosts[model.host_of[row.rank]]}` : "";
      this.triangle(6, middle, view.openRanks.has(row.rank));
      text(`rank ${model.ranks[row.rank]}${host}`, 14, isChosen || isCulprit ? 650 : 400, isCulprit ? colours.page.bad : colours.page.text);
      if (isChosen) this.frame(1, row.y - 1, this.gutter - 3, row.height + 2, colours.page.accent);
    } else if (row.type === "stream") {
      text(isNarrow ? row.title.slice(0, 9) : row.title, isNarrow ? 14 : 24, 400, colours.page.muted);
    }
  }

  triangle(x, y, isDown) {
    const { context, colours } = this;
    context.fillStyle = colours.page.muted;
    context.beginPath();
    if (isDown) [[-4, -2], [4, -2], [0, 4]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
    else [[-2, -4], [4, 0], [-2, 4]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
    context.fill();
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
