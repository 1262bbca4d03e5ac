// What lies on top of the rows: the selected span, arrivals linked across ranks, the findings' excess, names on the left.

Object.assign(Painter.prototype, {
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
  },

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
    const told = last === null ? "" : `rank ${last} arrives last`;
    const words = [`${label}, ${group}`, told].filter(Boolean).join(": ");
    const text = this.fitted(context.measureText(words).width < this.plot ? words : told || label, this.plot - 8);
    const width = context.measureText(text).width;
    const x = this.x(latest);
    if (x < this.gutter - 10 || x > this.width + 10) return;
    context.strokeStyle = colours.page.text;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, this.top + 34);
    context.lineTo(Math.round(x) + 0.5, this.height);
    context.stroke();
    context.setLineDash([]);
    context.textAlign = "left";
    const place = Math.max(this.gutter + 2, Math.min(x - width - 6, this.width - width - 4));
    context.fillStyle = colours.page.surface;
    context.fillRect(place - 2, this.top + 22, width + 4, 16);
    context.fillStyle = colours.page.text;
    context.fillText(text, place, this.top + 30);
  },

  /** The block that the arrow keys have reached. */
  cursor(row) {
    const { cursor } = this.view;
    if (!cursor?.span || row.isGhost || row.type !== cursor.type || row.rank !== cursor.rank || row.title !== cursor.title) return;
    const [left, right] = cursor.span.map((time) => this.x(time));
    this.frame(left - 1, row.y - 1, Math.max(4, right - left + 2), row.height + 2, this.colours.page.accent, 3);
  },

  /** Rank and ends of each outline that words stand in. */
  outlines() {
    const { model, view } = this;
    return model.moments.flatMap((one, number) =>
      one.span && one.rank !== null && (one.sure || number === view.moment)
        ? one.ranks.map((rank) => [model.rankAt.get(rank), ...one.span.map((time) => this.x(time))]) : []);
  },

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
        if (own.isThin) this.frame(left, own.y - 1, right - left, own.height + 2, colours.page.bad, 1);
        else this.frame(left, own.y - 1, right - left, own.height + 2, colours.page.bad, isChosen ? 3 : 2);
        if (own.isThin || moment.rank === null) continue;
        this.font(12, 650);
        const room = Math.min(right, this.width) - Math.max(left, this.gutter) - 12;
        // A size that is cut says less than none.
        const text = [moment.label, moment.label.split(" ")[0]].find((words) => context.measureText(words).width <= room);
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
  },

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
      text(isNarrow || row.isBlock ? row.name : `${row.name}  ${span(row.ranks.map((rank) => model.ranks[rank]))}`, 14, 400, colours.page.text);
    } else if (row.type === "rank") {
      const isCulprit = model.culprits.includes(model.ranks[row.rank]) && model.moments.length > 0;
      const isChosen = view.rank === row.rank;
      const host = view.isFlat && model.hosts.length > 1 && !isNarrow ? `  ${model.hosts[model.host_of[row.rank]]}` : "";
      this.triangle(6, middle, view.openRanks.has(row.rank));
      text(`rank ${model.ranks[row.rank]}${host}`, 14, isChosen || isCulprit ? 650 : 400, isCulprit ? colours.page.bad : colours.page.text);
      if (isChosen) this.frame(1, row.y - 1, this.gutter - 3, row.height + 2, colours.page.accent);
    } else if (row.type === "ghost") {
      text(row.title, isNarrow ? 4 : 14, 400, colours.page.text);
    } else if (row.type === "stream") {
      text(isNarrow ? shortTitle(row.title) : row.title, isNarrow ? 14 : 24, 400, colours.page.muted);
    }
  },

  triangle(x, y, isDown) {
    const { context, colours } = this;
    context.fillStyle = colours.page.muted;
    context.beginPath();
    if (isDown) [[-4, -2], [4, -2], [0, 4]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
    else [[-2, -4], [4, 0], [-2, 4]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
    context.fill();
  },
});
