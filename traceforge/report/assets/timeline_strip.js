// The strip above the timeline: one bar an iteration, lost time stacked by owner. In: the model. Out: pixels, and what
// lies under the pointer. Where nobody's lost time is known, the bar is the iteration's own duration.

const STRIP_HEIGHT = 64;
const LEAST_TOLD_SHARE = 0.01;

/** `Rank 1: slow compute` as it stands inside a sentence: rank 1 (slow compute). */
const inSentence = (name) => name.charAt(0).toLowerCase() + name.slice(1).replace(/: (.*)$/, " ($1)");

class Strip {
  constructor(canvas, legend, told, model) {
    this.canvas = canvas;
    this.legend = legend;
    this.said = told;
    this.model = model;
    this.context = canvas.getContext("2d");
    this.place = new Map(model.all.map((number, place) => [number, place]));
    this.bars = model.all.map(() => []);
    model.owners.cells.forEach(([number, owner, us]) => {
      if (this.place.has(number)) this.bars[this.place.get(number)].push([owner, us]);
    });
    this.isLost = model.owners.cells.length > 0;
    this.bars.forEach((bar) => bar.sort((a, b) => a[0] - b[0]));
    // Owners of one failure mode share its colour, the later ones paler.
    const seen = new Map();
    this.strength = model.owners.names.map(([, mode]) => {
      seen.set(mode, (seen.get(mode) ?? 0) + 1);
      return [1, 0.65, 0.42, 0.25][Math.min(3, seen.get(mode) - 1)];
    });
    const sums = this.bars.map((bar, place) => (this.isLost ? bar.reduce((sum, [, us]) => sum + us, 0) : model.durations[place]));
    this.sums = sums;
    // What is left out of the judgement, such as warm-up, may reach beyond the top.
    const unused = new Set(model.unused);
    this.most = Math.max(1, ...sums.filter((_, place) => !unused.has(model.all[place])));
  }

  recolour() {
    const style = getComputedStyle(this.canvas);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colour = value;
    this.owner = this.model.owners.names.map(([, mode]) => value(mode));
  }

  resize(width) {
    // One iteration needs no strip.
    this.canvas.parentElement.hidden = this.bars.length < 2;
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(STRIP_HEIGHT * scale);
    this.canvas.style.height = `${STRIP_HEIGHT}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.painted = "";
    this.recolour();
  }

  x(place) {
    return (place / this.bars.length) * this.width;
  }

  /** Number of the iteration at a place of the canvas. */
  at(x) {
    const place = Math.floor((x / this.width) * this.bars.length);
    return this.model.all[Math.min(this.bars.length - 1, Math.max(0, place))];
  }

  /** `shown` are the first and the last iteration in view. */
  paint(shown, chosen) {
    const { context, colour } = this;
    const painted = [...shown, chosen].join();
    if (painted === this.painted) return;
    this.painted = painted;
    context.clearRect(0, 0, this.width, STRIP_HEIGHT);
    context.fillStyle = colour("sunken");
    context.fillRect(0, 0, this.width, STRIP_HEIGHT);
    const [first, last] = shown.map((number) => this.place.get(number) ?? 0);
    const wide = this.width / this.bars.length;
    this.bars.forEach((bar, place) => {
      let y = STRIP_HEIGHT;
      const [x, width] = [this.x(place), Math.max(1, wide - (wide > 4 ? 1 : 0))];
      const isShown = place >= first && place <= last;
      const parts = this.isLost ? bar : [[-1, this.sums[place]]];
      parts.forEach(([owner, us]) => {
        const height = ((STRIP_HEIGHT - 4) * us) / this.most;
        y -= height;
        context.globalAlpha = (isShown ? 1 : 0.6) * (owner < 0 ? 1 : this.strength[owner]);
        context.fillStyle = owner < 0 ? colour("muted") : this.owner[owner];
        context.fillRect(x, y, width, height);
        if (owner >= 0 && this.model.owners.names[owner][1] === "unexplained") this.hatch(x, y, width, height);
      });
    });
    context.globalAlpha = 1;
    context.strokeStyle = colour("text");
    context.lineWidth = 2;
    context.strokeRect(this.x(first) + 1, 1, Math.max(3, this.x(last + 1) - this.x(first) - 2), STRIP_HEIGHT - 2);
    const place = this.place.get(chosen) ?? 0;
    this.canvas.setAttribute("aria-valuemin", this.model.all[0]);
    this.canvas.setAttribute("aria-valuemax", this.model.all[this.model.all.length - 1]);
    this.canvas.setAttribute("aria-valuenow", chosen);
    this.canvas.setAttribute("aria-valuetext", this.told(this.model.all[place]));
  }

  hatch(x, y, width, height) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = this.colour("sunken");
    context.beginPath();
    for (let at = x - height; at < x + width; at += 4) {
      context.moveTo(at, y);
      context.lineTo(at + height, y + height);
    }
    context.stroke();
    context.restore();
  }

  /** What the colours mean, with means over the iterations. */
  explain() {
    this.legend.textContent = this.isLost ? "Time lost in each iteration: " : "Duration of each iteration";
    if (!this.isLost) return;
    this.model.owners.names.forEach(([label, mode], owner) => {
      const item = this.legend.appendChild(document.createElement("span"));
      const swatch = item.appendChild(document.createElement("i"));
      const hatch = `repeating-linear-gradient(-45deg, var(--${mode}) 0 2px, transparent 2px 4px)`;
      swatch.style.background = mode === "unexplained" ? hatch : `var(--${mode})`;
      swatch.style.opacity = this.strength[owner];
      item.append(label);
    });
  }

  tell(number) {
    this.said.textContent = this.told(number);
  }

  /** An iteration in words, with the owners of what is not too little to see. */
  told(number) {
    const place = this.place.get(number);
    const ms = (us) => readable(us, 1);
    if (!this.isLost) return `Iteration ${number}: ${ms(this.model.durations[place])}`;
    const sum = this.sums[place];
    if (!sum) return `Iteration ${number} lost no time`;
    const isRest = (owner) => ["muted", "unexplained"].includes(this.model.owners.names[owner][1]);
    const parts = this.bars[place].filter(([, us]) => us >= LEAST_TOLD_SHARE * sum).sort((a, b) => isRest(a[0]) - isRest(b[0]) || b[1] - a[1]);
    const owners = parts.map(([owner, us]) => `${inSentence(this.model.owners.names[owner][0])} ${ms(us)}`);
    return `Iteration ${number} lost ${ms(sum)}: ${owners.join(", ")}`;
  }

  /** How long an iteration takes, and how much of that is lost. */
  titled(number) {
    const place = this.place.get(number);
    const takes = `Iteration ${number} takes ${readable(this.model.durations[place], 1)}`;
    if (!this.isLost) return `${takes}.`;
    return `${takes}; ${this.sums[place] ? `${readable(this.sums[place], 1)} of it is lost` : "no time is lost"}.`;
  }
}
