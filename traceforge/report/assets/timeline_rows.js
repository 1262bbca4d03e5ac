// Which rows the timeline has and where. In: the model and what is open. Out: rows from top to bottom, in CSS pixels.

const AXIS_HEIGHT = 40;
const RANK_HEIGHT = 18;
const STREAM_HEIGHT = 17;
const HOST_GAP = 6;
const MOST_HOSTS = 24;
const MOST_BLOCKS = 16;

/** Ranks by host; one group without a name where hosts would only repeat the ranks. */
const hostGroups = (model) => {
  const groups = model.hosts.map((name, host) => ({ name, host, ranks: [] }));
  model.host_of.forEach((host, rank) => groups[host].ranks.push(rank));
  const isFlat = groups.length < 2 && model.ranks.length <= 64;
  const isSingle = groups.every((group) => group.ranks.length === 1) && model.ranks.length <= 64;
  if (isFlat || isSingle) return [{ name: "", host: -1, ranks: model.ranks.map((_, rank) => rank) }];
  if (model.racks.length === groups.length) return rackBlocks(model, groups);
  return groups.length > MOST_HOSTS ? hostBlocks(model, groups) : groups;
};

/** Hosts in racks as they are stated, which open into hosts; those of culprits stand below theirs by themselves. */
const rackBlocks = (model, groups) => {
  const own = new Set(model.culprits.map((rank) => model.host_of[model.rankAt.get(rank)]));
  const racks = new Map();
  groups.forEach((group, at) => {
    const name = model.racks[at] === null ? "no rack" : `rack ${model.racks[at]}`;
    if (!racks.has(name)) racks.set(name, { name, host: groups.length + racks.size, groups: [], ranks: [], alone: [] });
    const rack = racks.get(name);
    if (own.has(group.host)) {
      rack.alone.push(group);
      return;
    }
    rack.groups.push(group);
    rack.ranks.push(...group.ranks);
  });
  return [...racks.values()].flatMap(({ alone, ...rack }) => (rack.groups.length ? [rack, ...alone] : alone));
};

/** Hosts in blocks, which open into hosts; those of culprits stand between them by themselves. */
const hostBlocks = (model, groups) => {
  const own = new Set(model.culprits.map((rank) => model.host_of[model.rankAt.get(rank)]));
  const size = Math.ceil(groups.length / MOST_BLOCKS);
  const blocks = [];
  let reached = null;
  groups.forEach((group, at) => {
    if (own.has(group.host)) {
      blocks.push(group);
      reached = null;
      return;
    }
    if (!reached || reached.groups.length === size || at % size === 0) {
      reached = { host: groups.length + blocks.length, groups: [], ranks: [] };
      blocks.push(reached);
    }
    reached.groups.push(group);
    reached.ranks.push(...group.ranks);
  });
  return blocks.map((block) => {
    if (!block.groups) return block;
    const { groups: hosts } = block;
    if (hosts.length === 1) return hosts[0];
    return { ...block, name: `${hosts[0].name} … ${hosts[hosts.length - 1].name}` };
  });
};

const thinHeight = (ranks) => Math.min(24, Math.max(12, 3 * ranks));

/** The blocks of one iteration, moved to where another lies. */
const movedBlocks = (blocks, number, shift) => {
  const own = blocks.iteration.flatMap((one, at) => (one === number ? [at] : []));
  const times = (name) => own.map((at) => blocks[name][at] + shift);
  return { start: times("start"), end: times("end"), until: times("until"), name: own.map((at) => blocks.name[at]), link: own.map(() => -1), spans: [] };
};

/** The same rank in a normal iteration, begun at the same instant. */
const ghostRows = (rank, streams, ghost, y) => {
  const title = `iteration ${ghost.number}`;
  const rows = [{ type: "ghost", rank, title, ghost, y, height: STREAM_HEIGHT }];
  streams?.forEach((blocks, name) => {
    const moved = movedBlocks(blocks, ghost.number, ghost.shift);
    if (name === "host" || !moved.start.length) return;
    rows.push({ type: "stream", rank, title: name, blocks: moved, isGhost: true, y: y + rows.length * (STREAM_HEIGHT + 2), height: STREAM_HEIGHT });
  });
  return rows;
};

/** Rows of one rank: its phases, and what it did where it is open. */
const rankRows = (model, rank, isOpen, y, ghost) => {
  const rows = [{ type: "rank", rank, y, height: RANK_HEIGHT }];
  if (!isOpen) return rows;
  let below = y + RANK_HEIGHT + 1;
  const streams = model.streams.get(rank);
  if (!streams) rows.push({ type: "nothing", rank, y: below, height: STREAM_HEIGHT });
  streams?.forEach((blocks, title) => {
    rows.push({ type: "stream", rank, title, blocks, y: below, height: STREAM_HEIGHT });
    below += STREAM_HEIGHT + 2;
  });
  if (ghost) rows.push(...ghostRows(rank, streams, ghost, streams ? below + 2 : below + STREAM_HEIGHT + 2));
  return rows;
};

/** All rows, and the height of the picture. */
const layout = (model, groups, openHosts, openRanks, ghost) => {
  const rows = [];
  let y = AXIS_HEIGHT;
  const place = (group) => {
    const isOpen = group.host < 0 || openHosts.has(group.host);
    if (group.host >= 0) {
      const height = isOpen ? RANK_HEIGHT : thinHeight(group.ranks.length);
      rows.push({ type: isOpen ? "openHost" : "host", host: group.host, name: group.name, ranks: group.ranks, isBlock: Boolean(group.groups), y, height });
      y += height + (isOpen ? 0 : HOST_GAP);
    }
    if (!isOpen) return;
    if (group.groups) {
      group.groups.forEach(place);
      return;
    }
    for (const rank of group.ranks) {
      const own = rankRows(model, rank, openRanks.has(rank), y, ghost);
      rows.push(...own);
      const bottom = own[own.length - 1];
      y = bottom.y + bottom.height + (own.length > 1 ? 5 : 2);
    }
    y += group.host >= 0 ? HOST_GAP : 0;
  };
  groups.forEach(place);
  return { rows, height: y + 4 };
};

const rowAt = (rows, y) => rows.find((row) => y >= row.y && y < row.y + row.height + 1);

/** Where a rank's lane lies: in its own row, or as a thin line of its host's. */
const rankPlace = (rows, rank) => {
  const own = rows.find((row) => row.type === "rank" && row.rank === rank);
  if (own) return { y: own.y, height: own.height, isThin: false };
  const host = rows.find((row) => row.type === "host" && row.ranks.includes(rank));
  if (!host) return null;
  const each = host.height / host.ranks.length;
  return { y: host.y + host.ranks.indexOf(rank) * each, height: each, isThin: true };
};
