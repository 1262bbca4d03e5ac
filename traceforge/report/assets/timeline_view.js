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
    this.strip = new Strip(this.part("strip"), this.part("strip-text"), this.part("strip-told"), model);
    this.groups = hostGroups(model);
    this.view = {
      from: 0, to: model.end, iteration: 0, rank: -1, link: -1, moment: -1, selected: null, search: "", found: new Set(), isCompared: false, cursor: null,
      off: new Array(model.phases.length).fill(false), openRanks: new Set(), isFlat: this.groups[0].host < 0,
    };
    this.openHosts = new Set();
    this.listen();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(figure.querySelector(".walk-stage"));
    this.addressed(true);
  }

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
    if (!moment && this.model.peer !== null) this.open([this.model.rankAt.get(this.model.peer)]);
    this.show({ number: moment ? moment.iteration : this.model.normal ?? this.model.iterations[0], rank: moment?.rank ?? null, isWhole: true });
  }

  /** Show an iteration, a rank in it, a span of it in ms, or its moment where there is one. */
  show({ number, rank = null, ms = null, isWhole = false, isMoved = false }) {
    const { model, view } = this;
    clearTimeout(this.saying);
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
    const hosts = new Set((moment?.ranks ?? []).map((one) => model.host_of[model.rankAt.get(one)]));
    if (hosts.size < 3) hosts.forEach((host) => this.openHost(host));
    this.tellMoment(moment, place);
    this.laid();
  }

  tellMoment(moment, place) {
    const number = this.model.iterations[place];
    const reason = this.model.reasons[number];
    this.part("readout").textContent = moment
      ? `${moment.sure ? "" : "Only a hint: "}${moment.title}${moment.label ? ` Outlined: ${moment.label}.` : ""}`
      : `${capital(this.model.called(number))}${reason ? ` (${reason})` : ""}. Click the name of a rank to open it, a block for its details.`;
  }

  /** The title says what the iteration in view shows: the page's own words for its first, the time of others. */
  entitle(number) {
    this.titles ??= new Map([[Number(this.figure.dataset.iteration), this.part("title").textContent]]);
    this.part("title").textContent = this.titles.get(number) ?? this.strip.titled(number);
  }

  /** Open a host, and the block of hosts that it lies in. */
  openHost(host) {
    const block = this.groups.find((group) => group.groups?.some((one) => one.host === host));
    [host, ...(block ? [block.host] : [])].forEach((one) => this.openHosts.add(one));
  }

  open(ranks) {
    ranks.filter((rank) => rank !== undefined).forEach((rank) => {
      this.openHost(this.model.host_of[rank]);
      if (this.model.streams.has(rank)) this.view.openRanks.add(rank);
    });
  }

  /** Lay the lanes out by an axis of the parallel layout, or by host where it has no such axis. */
  regroup(axis) {
    const { model, view } = this;
    this.byHost ??= [model.hosts, model.host_of, model.racks];
    const own = model.axes.find(([name]) => name === axis)?.slice(1);
    [model.hosts, model.host_of, model.racks] = own ? [...own, []] : this.byHost;
    this.groups = hostGroups(model);
    view.isFlat = this.groups[0].host < 0;
    view.cursor = null;
    this.openHosts = new Set();
    [...view.openRanks, view.rank].filter((rank) => rank >= 0).forEach((rank) => this.openHost(model.host_of[rank]));
    this.laid();
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
      this.changed(share < 1);
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

  resize() {
    const width = this.figure.querySelector(".walk-stage").clientWidth;
    if (!width) return;
    this.laid(width);
  }

  laid(width = this.painter.width) {
    const { rows, height } = layout(this.model, this.groups, this.openHosts, this.view.openRanks, this.ghost());
    this.rows = rows;
    this.painter.resize(width, height);
    this.strip.resize(width);
    this.paint([0, height]);
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

  /** Whether there is another iteration to compare the one in view with. */
  isComparable() {
    const { model, view } = this;
    return model.iterations.length > 1 && model.normal !== null && model.iterations[view.iteration] !== model.normal;
  }

  /** The normal iteration, moved to where the one in view begins; null where there is nothing to compare. */
  ghost() {
    const { model, view } = this;
    const place = model.iterationAt.get(model.normal);
    if (!view.isCompared || place === undefined || place === view.iteration) return null;
    const shift = model.offsets[view.iteration] - model.offsets[place];
    const [from, to] = this.iterationSpan(place).map((time) => time + shift);
    return { number: model.normal, shift, from, to };
  }

  /** What of the canvas the window shows, with a margin. */
  shownPart() {
    const { top } = this.canvas.getBoundingClientRect();
    return [Math.max(0, -top), Math.min(this.painter.height, window.innerHeight - top + 200)];
  }

  paint(part = this.shownPart()) {
    if (part[1] > part[0]) this.painter.paint(this.view, this.rows, part, this.shownPart()[0]);
    this.strip.paint(this.inView().map((place) => this.model.iterations[place]), this.model.iterations[this.view.iteration]);
    this.figure.dataset.from = this.view.from;
    this.figure.dataset.to = this.view.to;
    this.figure.dataset.moment = this.view.moment;
    this.figure.dataset.state = "drawn";
  }

  changed(isOnTheWay = false) {
    const { view, model } = this;
    const [first, last] = this.iterationSpan(view.iteration);
    const middle = (view.from + view.to) / 2;
    if (!isOnTheWay && (middle < first || middle > last)) view.iteration = this.placeAt(middle);
    this.wanted();
    clearTimeout(this.totalling);
    // What lies outside of the window follows once nothing moves any more.
    this.totalling = setTimeout(() => {
      this.total();
      this.paint([0, this.painter.height]);
    }, 90);
    const number = model.iterations[view.iteration];
    if (number === this.number) return;
    this.number = number;
    this.strip.tell(number);
    this.entitle(number);
    this.part("compare").hidden = !this.isComparable();
    if (view.isCompared) this.laid();
    document.dispatchEvent(new CustomEvent("iterationshown", { detail: number }));
  }

  /** The first and the last iteration of which most is in view. */
  inView() {
    const { offsets, extents } = this.model;
    const { from, to, iteration } = this.view;
    const isIn = (place) => {
      const end = offsets[place + 1] ?? offsets[place] + extents[place];
      return place === iteration || Math.min(to, end) - Math.max(from, offsets[place]) > 0.5 * (end - offsets[place]);
    };
    const [first, last] = [this.placeAt(from), this.placeAt(to)];
    return [isIn(first) || first === last ? first : first + 1, isIn(last) || first === last ? last : last - 1];
  }
}
