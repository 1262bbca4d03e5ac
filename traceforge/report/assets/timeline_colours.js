// Colours of the timeline, and what each column of pixels shows. In: CSS variables, lanes. Out: packed colours, phases.

const HATCHED = new Set(["wait", "communication"]);
const FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, system-ui, sans-serif';

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

const sums = new Float64Array(8);

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
    for (let phase = 0; phase < 8; phase += 1) {
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

/** The same for the whole line cut into 2 ** level pieces, kept for the next time. */
const coarseOf = (lane, level, end) => {
  lane.coarse ??= [];
  if (!lane.coarse[level]) {
    const size = 2 ** level;
    lane.coarse[level] = new Uint8Array(size);
    columnsOf(lane, 0, size / end, size, lane.coarse[level]);
  }
  return lane.coarse[level];
};

const FINEST_LEVEL = 15;

/** `columnsOf`, from pieces of at most a pixel where a lane is so dense that to add up its runs would take long. */
const shownColumns = (lane, from, perStep, width, out, end) => {
  const level = Math.ceil(Math.log2(end * perStep));
  const runs = lastNotAbove(lane.start, from + width / perStep) - lastNotAbove(lane.start, from);
  if (runs < 2 * width || level > FINEST_LEVEL) {
    columnsOf(lane, from, perStep, width, out);
    return;
  }
  const coarse = coarseOf(lane, level, end);
  const perPixel = coarse.length / (end * perStep);
  for (let x = 0; x < width; x += 1) {
    const at = Math.floor((from / end) * coarse.length + (x + 0.5) * perPixel);
    out[x] = at < 0 || at >= coarse.length ? 255 : coarse[at];
  }
};
