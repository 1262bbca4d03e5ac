// What the reader does: pointer, wheel, fingers, keys, buttons. In: events. Out: another view.

Object.assign(Walk.prototype, {
  listen() {
    this.part("iteration").addEventListener("change", (event) => this.go(Number(event.target.value)));
    this.part("rank").addEventListener("change", (event) => {
      const number = this.model.iterations[this.view.iteration];
      this.go(number, event.target.value === "" ? null : Number(event.target.value));
    });
    const act = { before: () => this.step(-1), after: () => this.step(1), in: () => this.zoom(0.6), out: () => this.zoom(1.7), fit: () => this.whole() };
    Object.entries(act).forEach(([name, run]) => this.part(name).addEventListener("click", run));
    const compare = this.part("compare");
    this.part("lanes-by")?.addEventListener("change", (event) => this.regroup(event.target.value));
    const { normal, reasons } = this.model;
    compare.textContent = `Compare with iteration ${normal}`;
    compare.title = `Shows the same rank in iteration ${normal} (${reasons[normal]}) below its own rows`;
    compare.addEventListener("click", () => this.compare(compare));
    window.addEventListener("scroll", () => this.wanted(), { passive: true });
    window.addEventListener("resize", () => this.wanted());
    window.addEventListener("beforeprint", () => this.resize());
    this.part("search").addEventListener("input", (event) => this.search(event.target.value));
    this.figure.querySelectorAll("[data-phase]").forEach((button) => button.addEventListener("click", () => this.toggle(button)));
    window.addEventListener("hashchange", () => this.addressed(false));
    ["(prefers-color-scheme: dark)", "print"].forEach((query) =>
      window.matchMedia(query).addEventListener("change", () => {
        this.painter.recolour();
        this.laid();
      }));
    this.listenToStrip(this.part("strip"));
    this.listenToLanes();
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  },

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
    canvas.addEventListener("pointerleave", () => this.strip.tell(this.model.iterations[this.view.iteration]));
    this.strip.explain();
  },

  brush(one, other) {
    const [first, last] = [this.nearest(Math.min(one, other)), this.nearest(Math.max(one, other))];
    this.to(this.iterationSpan(first)[0], this.iterationSpan(last)[1]);
  },

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
  },

  /** The wheel zooms only where the reader asked for it; else the page scrolls. */
  wheel(event) {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && document.activeElement !== this.canvas && !isSideways) return;
    event.preventDefault();
    const scale = event.deltaMode === 1 ? 30 : 1;
    if (isSideways || event.shiftKey) this.pan(((event.deltaX || event.deltaY) * scale) / this.painter.plot);
    else this.zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY * scale)) * 0.002), Math.max(this.painter.gutter, event.offsetX));
  },

  pinch(fingers, event) {
    const before = [...fingers.values()];
    const [from, to] = before.map((x) => this.painter.time(x));
    const after = [...fingers].map(([id, x]) => (id === event.pointerId ? event.offsetX : x));
    if (Math.abs(after[1] - after[0]) < 8) return;
    const perPixel = (to - from) / (after[1] - after[0]);
    if (perPixel <= 0) return;
    const low = from - (after[0] - this.painter.gutter) * perPixel;
    this.to(low, low + perPixel * this.painter.plot);
  },

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
  },

  hideTip() {
    this.part("tip").hidden = true;
  },

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
  },

  /** Open or close a host or a rank. */
  unfold(row) {
    const [set, key] = row.type === "host" || row.type === "openHost" ? [this.openHosts, row.host] : [this.view.openRanks, row.rank];
    if (!set.delete(key)) set.add(key);
    if (set === this.view.openRanks) this.view.rank = row.rank;
    this.laid();
  },

  /** Show the same rank in a normal iteration below its own rows, or no longer. */
  compare(button) {
    const { model, view } = this;
    view.isCompared = !view.isCompared;
    button.setAttribute("aria-pressed", String(view.isCompared));
    if (view.isCompared) this.open([view.rank >= 0 ? view.rank : model.rankAt.get(model.culprits[0] ?? model.peer ?? model.ranks[0])]);
    this.laid();
    this.total();
  },

  toggle(button) {
    const phase = this.model.phaseAt.get(button.dataset.phase);
    this.view.off[phase] = !this.view.off[phase];
    button.setAttribute("aria-pressed", String(!this.view.off[phase]));
    this.wanted();
  },

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
    this.part("readout").textContent = `“${text.trim()}”: ${plural(count, "block")} in view, ${this.ms(sum)} together.`;
  },

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
  },

  clear() {
    Object.assign(this.view, { selected: null, link: -1, moment: -1, search: "", cursor: null });
    this.part("search").value = "";
    this.changed();
  },

  /** The row that the arrow keys have reached; else that of the chosen rank. */
  cursorRow() {
    const { rank, cursor } = this.view;
    const own = (row) => row.type !== "ghost" && !row.isGhost;
    const isReached = (row) => cursor && own(row) && row.type === cursor.type && row.rank === cursor.rank && row.title === cursor.title && row.host === cursor.host;
    const isChosen = (row) => (row.type === "rank" && row.rank === rank) || (row.type === "host" && row.ranks.includes(rank));
    return this.rows.find(isReached) ?? this.rows.find(isChosen);
  },

  unfoldChosen() {
    const row = this.cursorRow();
    if (!row) return;
    this.unfold(row.type === "stream" ? this.rows.find((one) => one.type === "rank" && one.rank === row.rank) : row);
  },

  chooseRow(by) {
    const { view } = this;
    const rows = this.rows.filter((row) => ["rank", "stream", "host", "openHost"].includes(row.type) && !row.isGhost);
    const row = rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(this.cursorRow()) + by))];
    view.cursor = { type: row.type, rank: row.rank, title: row.title, host: row.host };
    if (row.rank !== undefined) view.rank = row.rank;
    this.block = undefined;
    this.chooseBlock(0);
  },

  /** Go on by some blocks of the row, and say which. */
  chooseBlock(by) {
    const { model, view } = this;
    const row = this.cursorRow();
    if (!row) return;
    if (row.ranks) {
      const which = `${row.name}, ${plural(row.ranks.length, "rank")}`;
      this.part("readout").textContent = `${which}. ${row.type === "host" ? "O opens it." : "O closes it."}`;
      this.changed();
      return;
    }
    const { start, end } = row.blocks ?? model.lanes[row.rank];
    if (!start.length) return;
    this.block = Math.min(start.length - 1, Math.max(0, (this.block ?? lastNotAbove(start, (view.from + view.to) / 2)) + by));
    const [from, to] = [start[this.block], end[this.block]];
    view.cursor = { type: row.type, rank: row.rank, title: row.title, host: row.host, span: [from, to] };
    if (row.blocks) view.link = row.blocks.link[this.block];
    this.part("readout").textContent = `${row.blocks ? this.toldBlock(row, this.block) : this.toldPhase(row.rank, this.block)}.`;
    if (from < view.from || to > view.to) {
      const span = Math.max(view.to - view.from, 1.2 * (to - from));
      this.to((from + to - span) / 2, (from + to + span) / 2);
    }
    this.choices();
    this.changed();
  },
});

const begin = () => {
  const figure = document.getElementById("figure-timeline");
  if (!figure) return;
  try {
    const { deflate } = JSON.parse(document.getElementById("data-timeline").textContent);
    const walk = new Walk(figure, modelOf(JSON.parse(inflated(deflate))));
    figure.dataset.ready = String(Math.round(performance.now()));
    window.addEventListener("beforeprint", () => walk.paint([0, walk.painter.height]));
  } catch (error) {
    figure.dataset.state = "failed";
    figure.querySelector('[data-walk="readout"]').textContent =
      "The timeline could not be drawn (it needs a browser of 2023 or later); its numbers are in the table below.";
    console.error(error);
  }
};
begin();
