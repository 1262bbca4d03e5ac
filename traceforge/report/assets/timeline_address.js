// The address that says what is in view, `#it=27&rank=2&t=37.6-48`, and follows it: shareable, and back works.

Object.assign(Walk.prototype, {
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
    if (found.has("cmp") && !this.view.isCompared) this.compare(this.part("compare"));
    this.show({ number, rank: Number.isNaN(rank) ? null : rank, ms, isMoved: !isFirst });
    this.choices();
    this.scrollTo(isFirst);
  },

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
  },

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
  },

  /** Go somewhere, with an entry in the history. */
  go(number, rank = this.view.rank >= 0 ? this.model.ranks[this.view.rank] : null) {
    const address = `#it=${number}${rank === null ? "" : `&rank=${rank}`}`;
    if (location.hash === address) this.show({ number, rank, isMoved: true });
    else {
      history.pushState(null, "", address);
      this.show({ number, rank, isMoved: true });
    }
    this.choices();
  },

  choices() {
    this.part("iteration").value = String(this.model.iterations[this.view.iteration]);
    this.part("rank").value = this.view.rank < 0 ? "" : String(this.model.ranks[this.view.rank]);
  },

  step(by) {
    const place = Math.min(this.model.iterations.length - 1, Math.max(0, this.view.iteration + by));
    this.go(this.model.iterations[place]);
  },

  whole() {
    this.to(0, this.model.end, true);
    this.said();
  },
});
