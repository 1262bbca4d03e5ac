// The timeline on the page: what is in view, how pointer and keyboard move it, and the address that says so.
// In: the figure of the page. Out: pixels, words beside them, `#it=27&rank=2&t=37.6-48` in the address bar.

const LEAST_SPAN = 4;
const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

class Walk {
  constructor(figure, model) {
    this.figure = figure;
    this.model = model;
    this.part = (name) => figure.querySelector(`[data-walk="${name}"]`);
    this.canvas = this.part("lanes");
    this.painter = new Painter(this.canvas, model);
    this.strip = new Strip(this.part("strip"), this.part("strip-text"), model);
    this.groups = hostGroups(model);
    this.view = {
      from: 0, to: model.end, iteration: 0, rank: -1, link: -1, moment: -1, selected: null, search: "", found: new Set(),
      off: new Array(model.phases.length).fill(false), openRanks: new Set(), isFlat: this.groups[0].host < 0,
    };
    this.openHosts = new Set();
    this.listen();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(figure.querySelector(".walk-stage"));
    this.addressed(true);
  }

  // ---- places ----

  /** The iteration, by its place, at an instant. */
  placeAt(time) {
    return Math.max(0, lastNotAbove(this.model.offsets, time));
  }

  iterationSpan(place) {
    const { offsets, extents } = this.model;
    return [offsets[place], offsets[place] + extents[place]];
  }

  /** The place of an iteration by its number; of the nearest where it is not drawn. */
  nearest(number) {
    const { iterations, iterationAt } = this.model;
    if (iterationAt.has(number)) return iterationAt.get(number);
    return iterations.reduce((best, one, place) => (Math.abs(one - number) < Math.abs(iterations[best] - number) ? place : best), 0);
  }

  /** What is shown where the address says nothing. */
  start() {
    const sure = this.model.moments.filter((one) => one.sure);
    const moment = sure.find((one) => one.span) ?? sure[0];
    this.show({ number: moment ? moment.iteration : this.model.normal ?? this.model.iterations[0], rank: moment?.rank ?? null, isWhole: true });
  }

  /** Show an iteration, a rank in it, a span of it in ms, or its moment where there is one. */
  show({ number, rank = null, ms = null, isWhole = false, isMoved = false }) {
    const { model, view } = this;
    const place = this.nearest(number);
    const [first, last] = this.iterationSpan(place);
    view.moment = model.moments.findIndex((one) => one.iteration === model.iterations[place] && (one.rank ?? null) === rank);
    const moment = model.moments[view.moment];
    view.iteration = place;
    view.rank = model.rankAt.get(rank) ?? -1;
    if (!ms) view.selected = null;
    view.link = moment ? moment.link : -1;
    this.open(view.rank >= 0 ? [view.rank] : (moment?.ranks ?? []).slice(0, 1).map((one) => model.rankAt.get(one)));
    if (ms) this.to(first + (ms[0] * 1000) / model.step, first + (ms[1] * 1000) / model.step, isMoved);
    else if (moment?.span && !isWhole) {
      const margin = Math.max(0.6 * (moment.span[1] - moment.span[0]), 0.02 * (last - first));
      this.to(moment.span[0] - margin, moment.span[1] + margin, isMoved);
    } else this.to(first - 0.02 * (last - first), last + 0.02 * (last - first), isMoved);
    this.tellMoment(moment, place);
    this.laid();
  }

  tellMoment(moment, place) {
    const number = this.model.iterations[place];
    const reason = this.model.reasons[number];
    this.part("readout").textContent = moment
      ? `${moment.title}${moment.label ? ` Outlined: ${moment.label}.` : ""}`
      : `Iteration ${number}${reason ? ` (${reason})` : ""}. Click a block for its details.`;
  }

  open(ranks) {
    ranks.filter((rank) => rank !== undefined).forEach((rank) => {
      this.openHosts.add(this.model.host_of[rank]);
      if (this.model.streams.has(rank)) this.view.openRanks.add(rank);
    });
  }

  /** Move to a span, at once or in steps the eye can follow. */
  to(from, to, isMoved = false) {
    const { view } = this;
    const goal = this.bounded(from, to);
    cancelAnimationFrame(this.motion);
    if (!isMoved || calm()) {
      [view.from, view.to] = goal;
      this.changed();
      return;
    }
    const origin = [view.from, view.to];
    const began = performance.now();
    const step = (now) => {
      const share = Math.min(1, (now - began) / 220);
      const eased = 1 - (1 - share) ** 3;
      view.from = origin[0] + (goal[0] - origin[0]) * eased;
      view.to = origin[1] + (goal[1] - origin[1]) * eased;
      this.changed(false);
      if (share < 1) this.motion = requestAnimationFrame(step);
    };
    this.motion = requestAnimationFrame(step);
  }

  bounded(from, to) {
    const whole = this.model.end;
    const room = 0.02 * whole;
    const span = Math.min(whole + 2 * room, Math.max(LEAST_SPAN, to - from));
    const middle = (from + to) / 2;
    const low = Math.min(whole + room - span, Math.max(-room, middle - span / 2));
    return [low, low + span];
  }

  zoom(factor, x = this.painter.gutter + this.painter.plot / 2) {
    const { view } = this;
    const at = this.painter.time(x);
    this.to(at - (at - view.from) * factor, at + (view.to - at) * factor);
    this.said();
  }

  pan(share) {
    const shift = share * (this.view.to - this.view.from);
    this.to(this.view.from + shift, this.view.to + shift);
    this.said();
  }

  // ---- drawing ----

  resize() {
    const width = this.figure.querySelector(".walk-stage").clientWidth;
    if (!width) return;
    this.laid(width);
  }

  laid(width = this.painter.width) {
    const { rows, height } = layout(this.model, this.groups, this.openHosts, this.view.openRanks);
    this.rows = rows;
    this.painter.resize(width, height);
    this.strip.resize(width);
    this.paint();
    this.wanted();
  }

  wanted() {
    if (this.isWanted) return;
    this.isWanted = true;
    requestAnimationFrame(() => {
      this.isWanted = false;
      this.paint();
    });
  }

  paint() {
    this.painter.paint(this.view, this.rows);
    this.strip.paint(this.inView().map((place) => this.model.iterations[place]), this.model.iterations[this.view.iteration]);
    this.figure.dataset.from = this.view.from;
    this.figure.dataset.to = this.view.to;
    this.figure.dataset.moment = this.view.moment;
    this.figure.dataset.state = "drawn";
  }

  changed() {
    const { view, model } = this;
    const [first, last] = this.iterationSpan(view.iteration);
    const middle = (view.from + view.to) / 2;
    if (middle < first || middle > last) view.iteration = this.placeAt(middle);
    this.wanted();
    clearTimeout(this.totalling);
    this.totalling = setTimeout(() => this.total(), 90);
    const number = model.iterations[view.iteration];
    if (number === this.number) return;
    this.number = number;
    document.dispatchEvent(new CustomEvent("iterationshown", { detail: number }));
  }

  /** The first and the last iteration of which a good part is in view. */
  inView() {
    const { offsets, extents } = this.model;
    const { from, to, iteration } = this.view;
    const isIn = (place) => {
      const end = offsets[place + 1] ?? offsets[place] + extents[place];
      return place === iteration || Math.min(to, end) - Math.max(from, offsets[place]) > 0.25 * (end - offsets[place]);
    };
    const [first, last] = [this.placeAt(from), this.placeAt(to)];
    return [isIn(first) || first === last ? first : first + 1, isIn(last) || first === last ? last : last - 1];
  }

  // ---- words ----

  ms(steps) {
    return readable(steps, this.model.step);
  }

  clock(time) {
    return ((time - this.model.offsets[this.view.iteration]) * this.model.step / 1000).toFixed(2).replace("-", "−");
  }

  /** Totals by phase of what is selected, or else in view. */
  total() {
    const { model, view } = this;
    const [from, to] = view.selected ? [...view.selected].sort((a, b) => a - b) : [view.from, view.to];
    const size = model.phases.length;
    const ranks = [view.rank >= 0 ? view.rank : model.rankAt.get(model.culprits[0]), model.rankAt.get(model.peer)];
    const rows = [...new Set(ranks.filter((rank) => rank !== undefined))].map((rank) => {
      const isPeer = model.ranks[rank] === model.peer;
      return [`rank ${model.ranks[rank]}${isPeer ? " (typical)" : ""}`, phaseTotals(model.lanes[rank], from, to, size)];
    });
    const mean = new Float64Array(size);
    model.lanes.forEach((lane) => phaseTotals(lane, from, to, size).forEach((sum, at) => (mean[at] += sum / model.lanes.length)));
    rows.push([`mean of all ${model.ranks.length} ranks`, mean]);
    const shown = model.phases.map((_, at) => at).filter((at) => rows.some(([, sums]) => sums[at] > 0));
    const line = (kind, texts) => {
      const row = document.createElement("tr");
      texts.forEach((text, at) => {
        const cell = row.appendChild(document.createElement(at && kind === "td" ? "td" : "th"));
        cell.textContent = text;
        cell.scope = kind === "th" ? "col" : "row";
        if (at) cell.className = "number";
      });
      return row;
    };
    this.part("totals").replaceChildren(...rows.map(([name, sums]) => line("td", [name, ...shown.map((at) => this.ms(sums[at]))])));
    this.figure.querySelector(".walk-totals thead").replaceChildren(line("th", ["time in", ...shown.map((at) => model.phases[at])]));
    const [first, last] = this.iterationSpan(view.iteration);
    const isWithin = from >= first - 0.1 * (last - first) && to <= last + 0.1 * (last - first);
    const place = isWithin
      ? `${this.clock(from)} to ${this.clock(to)} ms in iteration ${model.iterations[view.iteration]}`
      : `iterations ${model.iterations[this.placeAt(from)]} to ${model.iterations[this.placeAt(to)]}`;
    const about = model.slot ? `; iterations not shown in detail to within ${readable(model.slot, 0.001)} a block` : "";
    this.part("totals-title").textContent = `${view.selected ? "Selected" : "In view"}: ${this.ms(to - from)}, ${place}${about}`;
  }

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
  }

  toldPhase(rank, at) {
    const { start, end, kind } = this.model.lanes[rank];
    const lasting = this.ms(end[at] - start[at]);
    return `rank ${this.model.ranks[rank]}: ${this.model.phases[kind[at]]}, ${lasting}, from ${this.clock(start[at])} to ${this.clock(end[at])} ms`;
  }

  toldBlock(row, at) {
    const { start, end, name, until } = row.blocks;
    const [label, detail] = this.model.names[name[at]];
    const waits = until[at] > start[at] ? `, of which ${this.ms(until[at] - start[at])} waiting for other ranks` : "";
    const more = detail ? ` (${detail})` : "";
    return `rank ${this.model.ranks[row.rank]}, ${row.title}: ${label}${more}, ${this.ms(end[at] - start[at])}${waits}, from ${this.clock(start[at])} to ${this.clock(end[at])} ms`;
  }

  // ---- address ----

  /** Follow the address. */
  addressed(isFirst) {
    const found = new URLSearchParams(location.hash.slice(1));
    const number = Number.parseInt(found.get("it") ?? "", 10);
    if (Number.isNaN(number)) {
      if (isFirst || location.hash.length < 2) this.start();
      this.choices();
      return;
    }
    const rank = Number.parseInt(found.get("rank") ?? "", 10);
    const span = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/.exec(found.get("t") ?? "");
    const ms = span && Number(span[1]) < Number(span[2]) ? [Number(span[1]), Number(span[2])] : null;
    this.show({ number, rank: Number.isNaN(rank) ? null : rank, ms, isMoved: !isFirst });
    this.choices();
    this.scrollTo(isFirst);
  }

  scrollTo(isFirst) {
    const go = (behavior) => this.figure.scrollIntoView({ block: "start", behavior });
    go(isFirst || calm() ? "instant" : "smooth");
    if (!isFirst) return;
    // Charts above may still change their height while they are drawn.
    const stop = new AbortController();
    ["wheel", "touchstart", "keydown", "pointerdown"].forEach((kind) =>
      window.addEventListener(kind, () => stop.abort(), { signal: stop.signal, passive: true }));
    [150, 500].forEach((wait) => setTimeout(() => stop.signal.aborted || go("instant"), wait));
    setTimeout(() => stop.abort(), 600);
  }

  /** Let the address say what is in view, without a new entry in the history. */
  said() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      const { view, model } = this;
      const rank = view.rank >= 0 ? `&rank=${model.ranks[view.rank]}` : "";
      const t = [view.from, view.to].map((time) => ((time - model.offsets[view.iteration]) * model.step / 1000).toFixed(3)).join("-");
      history.replaceState(null, "", `#it=${model.iterations[view.iteration]}${rank}&t=${t}`);
      this.choices();
    }, 250);
  }

  /** Go somewhere, with an entry in the history. */
  go(number, rank = this.view.rank >= 0 ? this.model.ranks[this.view.rank] : null) {
    const address = `#it=${number}${rank === null ? "" : `&rank=${rank}`}`;
    if (location.hash === address) this.show({ number, rank, isMoved: true });
    else {
      history.pushState(null, "", address);
      this.show({ number, rank, isMoved: true });
    }
    this.choices();
  }

  choices() {
    this.part("iteration").value = String(this.model.iterations[this.view.iteration]);
    this.part("rank").value = this.view.rank < 0 ? "" : String(this.model.ranks[this.view.rank]);
  }

  step(by) {
    const place = Math.min(this.model.iterations.length - 1, Math.max(0, this.view.iteration + by));
    this.go(this.model.iterations[place]);
  }

  whole() {
    this.to(0, this.model.end, true);
    this.said();
  }

  // ---- what the reader does ----

  listen() {
    this.part("iteration").addEventListener("change", (event) => this.go(Number(event.target.value)));
    this.part("rank").addEventListener("change", (event) => {
      const number = this.model.iterations[this.view.iteration];
      this.go(number, event.target.value === "" ? null : Number(event.target.value));
    });
    const act = { before: () => this.step(-1), after: () => this.step(1), in: () => this.zoom(0.6), out: () => this.zoom(1.7), fit: () => this.whole() };
    Object.entries(act).forEach(([name, run]) => this.part(name).addEventListener("click", run));
    this.part("search").addEventListener("input", (event) => this.search(event.target.value));
    this.figure.querySelectorAll("[data-phase]").forEach((button) => button.addEventListener("click", () => this.toggle(button)));
    window.addEventListener("hashchange", () => this.addressed(false));
    // A link to where the address already is changes no address.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#it="]');
      if (link && link.getAttribute("href") === location.hash) this.addressed(false);
    });
    ["(prefers-color-scheme: dark)", "print"].forEach((query) =>
      window.matchMedia(query).addEventListener("change", () => {
        this.painter.recolour();
        this.laid();
      }));
    this.listenToStrip(this.part("strip"));
    this.listenToLanes();
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  listenToStrip(canvas) {
    let first = null;
    canvas.addEventListener("pointerdown", (event) => {
      first = this.strip.at(event.offsetX);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const number = this.strip.at(event.offsetX);
      this.strip.tell(number);
      if (first !== null && number !== first) this.brush(first, number);
    });
    canvas.addEventListener("pointerup", (event) => {
      const number = this.strip.at(event.offsetX);
      if (first === number) this.go(number);
      else if (first !== null) this.said();
      first = null;
    });
    canvas.addEventListener("pointercancel", () => (first = null));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10, Home: -1e9, End: 1e9 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.step(by);
      this.strip.tell(this.model.iterations[this.view.iteration]);
    });
    canvas.addEventListener("pointerleave", () => this.strip.explain());
    this.strip.explain();
  }

  brush(one, other) {
    const [first, last] = [this.nearest(Math.min(one, other)), this.nearest(Math.max(one, other))];
    this.to(this.iterationSpan(first)[0], this.iterationSpan(last)[1]);
  }

  listenToLanes() {
    const { canvas } = this;
    const fingers = new Map();
    let began = null;
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event.offsetX);
      canvas.setPointerCapture(event.pointerId);
      const [x, y] = [event.offsetX, event.offsetY];
      began = { x, y, from: this.view.from, to: this.view.to, isMoved: fingers.size > 1, isSelecting: event.shiftKey };
      cancelAnimationFrame(this.motion);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) {
        this.hover(event);
        return;
      }
      if (fingers.size === 2) this.pinch(fingers, event);
      fingers.set(event.pointerId, event.offsetX);
      if (fingers.size > 1 || !began || began.x < this.painter.gutter) return;
      const moved = event.offsetX - began.x;
      if (!began.isMoved && Math.hypot(moved, event.offsetY - began.y) < 4) return;
      began.isMoved = true;
      this.hideTip();
      if (began.isSelecting) {
        this.view.selected = [this.painter.time(began.x), this.painter.time(event.offsetX)];
        this.changed();
        return;
      }
      const shift = (-moved / this.painter.plot) * (began.to - began.from);
      this.to(began.from + shift, began.to + shift);
    });
    const ended = (event) => {
      fingers.delete(event.pointerId);
      if (!began || fingers.size) return;
      if (!began.isMoved && event.type === "pointerup") this.click(event.offsetX, event.offsetY);
      else if (!began.isSelecting) this.said();
      began = null;
    };
    canvas.addEventListener("pointerup", ended);
    canvas.addEventListener("pointercancel", ended);
    canvas.addEventListener("pointerleave", () => this.hideTip());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** The wheel zooms only where the reader asked for it; else the page scrolls. */
  wheel(event) {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && document.activeElement !== this.canvas && !isSideways) return;
    event.preventDefault();
    const scale = event.deltaMode === 1 ? 30 : 1;
    if (isSideways || event.shiftKey) this.pan(((event.deltaX || event.deltaY) * scale) / this.painter.plot);
    else this.zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY * scale)) * 0.002), Math.max(this.painter.gutter, event.offsetX));
  }

  pinch(fingers, event) {
    const before = [...fingers.values()];
    const [from, to] = before.map((x) => this.painter.time(x));
    const after = [...fingers].map(([id, x]) => (id === event.pointerId ? event.offsetX : x));
    if (Math.abs(after[1] - after[0]) < 8) return;
    const perPixel = (to - from) / (after[1] - after[0]);
    if (perPixel <= 0) return;
    const low = from - (after[0] - this.painter.gutter) * perPixel;
    this.to(low, low + perPixel * this.painter.plot);
  }

  hover(event) {
    const { told } = this.under(event.offsetX, event.offsetY);
    const tip = this.part("tip");
    tip.hidden = !told;
    this.canvas.style.cursor = event.offsetX < this.painter.gutter ? "pointer" : "grab";
    if (!told) return;
    tip.textContent = told;
    const left = Math.min(event.offsetX + 14, this.painter.width - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${event.offsetY + 18}px`;
  }

  hideTip() {
    this.part("tip").hidden = true;
  }

  click(x, y) {
    const { row, at, told, rank } = this.under(x, y);
    this.view.selected = null;
    if (row && x < this.painter.gutter) this.unfold(row);
    else if (row?.type === "stream" && at !== undefined) this.view.link = row.blocks.link[at];
    else if (row?.type === "host") this.unfold(row);
    else if (rank !== undefined) this.view.rank = rank;
    if (told) this.part("readout").textContent = `${told}.`;
    this.choices();
    this.changed();
  }

  /** Open or close a host or a rank. */
  unfold(row) {
    const [set, key] = row.type === "host" || row.type === "openHost" ? [this.openHosts, row.host] : [this.view.openRanks, row.rank];
    if (!set.delete(key)) set.add(key);
    if (set === this.view.openRanks) this.view.rank = row.rank;
    this.laid();
  }

  toggle(button) {
    const phase = this.model.phaseAt.get(button.dataset.phase);
    this.view.off[phase] = !this.view.off[phase];
    button.setAttribute("aria-pressed", String(!this.view.off[phase]));
    this.wanted();
  }

  /** Names that hold the letters stand out; the others fade. */
  search(text) {
    const { model, view } = this;
    view.search = text.trim().toLowerCase();
    view.found = new Set(model.names.flatMap((name, at) => (name.some((part) => part.toLowerCase().includes(view.search)) ? [at] : [])));
    this.wanted();
    if (!view.search) return;
    const { from, to } = view;
    let [count, sum] = [0, 0];
    model.streams.forEach((streams) => streams.forEach(({ start, end, name }) => name.forEach((one, at) => {
      if (!view.found.has(one) || end[at] < from || start[at] > to) return;
      count += 1;
      sum += Math.min(end[at], to) - Math.max(start[at], from);
    })));
    this.part("readout").textContent = `“${text.trim()}”: ${count} blocks in view, ${this.ms(sum)} together.`;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const rowBy = (by) => () => this.chooseRow(by);
    const blockBy = (by) => () => this.chooseBlock(by);
    const act = {
      a: () => this.pan(-0.2), d: () => this.pan(0.2), w: () => this.zoom(0.7), s: () => this.zoom(1.4), "+": () => this.zoom(0.7), "-": () => this.zoom(1.4),
      "[": () => this.step(-1), "]": () => this.step(1), f: () => this.whole(), o: () => this.unfoldChosen(), enter: () => this.unfoldChosen(),
      "/": () => this.part("search").focus(), escape: () => this.clear(),
      arrowup: rowBy(-1), arrowdown: rowBy(1), arrowleft: blockBy(-1), arrowright: blockBy(1),
    }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  clear() {
    Object.assign(this.view, { selected: null, link: -1, moment: -1, search: "" });
    this.part("search").value = "";
    this.changed();
  }

  unfoldChosen() {
    const row = this.rows.find((one) => one.type === "rank" && one.rank === this.view.rank);
    const host = this.rows.find((one) => one.type === "host" && one.ranks.includes(this.view.rank));
    if (row ?? host) this.unfold(row ?? host);
  }

  chooseRow(by) {
    const { model, view } = this;
    view.rank = Math.min(model.ranks.length - 1, Math.max(0, view.rank + by));
    const lane = model.lanes[view.rank];
    this.block = lastNotAbove(lane.start, (view.from + view.to) / 2);
    this.chooseBlock(0);
  }

  chooseBlock(by) {
    const { model, view } = this;
    if (view.rank < 0) return;
    const lane = model.lanes[view.rank];
    this.block = Math.min(lane.start.length - 1, Math.max(0, (this.block ?? lastNotAbove(lane.start, view.from)) + by));
    if (this.block >= 0 && lane.start.length) {
      const [from, to] = [lane.start[this.block], lane.end[this.block]];
      this.part("readout").textContent = `${this.toldPhase(view.rank, this.block)}.`;
      if (from < view.from || to > view.to) {
        const span = Math.max(view.to - view.from, 1.2 * (to - from));
        this.to((from + to - span) / 2, (from + to + span) / 2);
      }
    }
    this.choices();
    this.changed();
  }
}

const begin = async () => {
  const figure = document.getElementById("figure-timeline");
  if (!figure) return;
  try {
    const { deflate } = JSON.parse(document.getElementById("data-timeline").textContent);
    const walk = new Walk(figure, modelOf(await inflated(deflate)));
    figure.dataset.ready = String(Math.round(performance.now()));
    window.addEventListener("beforeprint", () => walk.paint());
  } catch (error) {
    figure.dataset.state = "failed";
    figure.querySelector('[data-walk="readout"]').textContent =
      "The timeline could not be drawn (it needs a browser of 2023 or later); its numbers are in the table below.";
    console.error(error);
  }
};
begin();
