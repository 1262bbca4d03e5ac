// The timeline's data. In: compressed JSON written by the report. Out: a model of typed arrays, times in whole steps.
// Names are kept as the text they are; nothing here touches the page.


/** Runs that follow one another, a code and a length each, as starts, ends and phases. */
const laneOf = ([codes, lengths]) => {
  let size = 0;
  for (const code of codes) size += code !== "-";
  const lane = { start: new Float64Array(size), end: new Float64Array(size), kind: new Uint8Array(size) };
  let [reached, place] = [0, 0];
  for (let run = 0; run < codes.length; run += 1) {
    const from = reached;
    reached += lengths[run];
    if (codes[run] === "-") continue;
    lane.start[place] = from;
    lane.end[place] = reached;
    lane.kind[place] = codes.charCodeAt(run) - 48;
    place += 1;
  }
  return lane;
};

/** Rows of the opened ranks: rank -> title -> blocks of all its iterations in order of time. */
const streamsOf = (data, rankAt, iterationAt) => {
  const streams = new Map();
  const entries = [...data.opened].sort((a, b) => iterationAt.get(a.iteration) - iterationAt.get(b.iteration));
  for (const { iteration, rank, span, rows } of entries) {
    const own = streams.get(rankAt.get(rank)) ?? new Map();
    streams.set(rankAt.get(rank), own);
    for (const row of rows) {
      const blocks = own.get(row.title) ?? { start: [], end: [], name: [], link: [], until: [], iteration: [], spans: [] };
      own.set(row.title, blocks);
      blocks.spans.push(span);
      let reached = 0;
      row.starts.forEach((step, place) => {
        reached += step;
        blocks.start.push(reached);
        blocks.end.push(reached + row.lengths[place]);
        blocks.name.push(row.names[place]);
        blocks.link.push(row.link ? row.link[place] : -1);
        blocks.until.push(row.waits ? reached + row.waits[place] : reached);
        blocks.iteration.push(iteration);
      });
    }
  }
  // The host on top, collectives below.
  const place = (title) => (title === "host" ? 0 : title.startsWith("communication") ? 2 : 1);
  streams.forEach((own, rank) => streams.set(rank, new Map([...own].sort(([a], [b]) => place(a) - place(b)))));
  return streams;
};

const modelOf = (data) => {
  const rankAt = new Map(data.ranks.map((rank, place) => [rank, place]));
  const iterationAt = new Map(data.iterations.map((number, place) => [number, place]));
  const last = data.offsets.length - 1;
  return {
    ...data,
    // What a reader calls it; a recording without steps is looked at as one.
    called: (number) => (data.whole ? "the recording" : `iteration ${number}`),
    rankAt,
    iterationAt,
    lanes: data.lanes.map(laneOf),
    streams: streamsOf(data, rankAt, iterationAt),
    phaseAt: new Map(data.phases.map((phase, place) => [phase, place])),
    end: data.offsets[last] + data.extents[last],
  };
};

/** Place of the last value that is not above `at`; -1 where all are. */
const lastNotAbove = (values, at) => {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

/** Time of each phase of a lane between two instants, in steps. */
const phaseTotals = (lane, from, to, size) => {
  const sums = new Float64Array(size);
  for (let at = Math.max(0, lastNotAbove(lane.start, from)); at < lane.start.length && lane.start[at] < to; at += 1) {
    const shared = Math.min(lane.end[at], to) - Math.max(lane.start[at], from);
    if (shared > 0) sums[lane.kind[at]] += shared;
  }
  return sums;
};

/** A number as text, with a true minus and its thousands set apart. */
const grouped = (text) => {
  const [whole, ...decimals] = text.replace("-", "−").split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, "\u202f"), ...decimals].join(".");
};

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const plural = (count, noun) => `${grouped(String(count))} ${noun}${count === 1 ? "" : "s"}`;

/** Steps as a person reads them, with unit: three digits, as the sentences of the page have them. */
const readable = (steps, step) => {
  const us = Math.abs(steps) * step;
  const sign = steps < 0 ? "−" : "";
  if (us < 0.5 * step) return "0\u00a0ms";
  const [size, unit] = us < 999.5 ? [us, "µs"] : us < 999500 ? [us / 1000, "ms"] : [us / 1e6, "s"];
  return `${sign}${grouped(size.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0))}\u00a0${unit}`;
};
