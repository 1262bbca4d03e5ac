// Long tables fold; all tables sort by their headers, filter, and are copied as CSV. In: table.rows. Out: the same rows,
// in another order or hidden. Texts of rows are only ever read and set as text.
(() => {
  "use strict";

  const OPEN_ROWS = 12;
  const LEAST_TO_SORT = 3;

  const valueOf = (cell) => {
    const number = Number(cell.dataset.value ?? cell.textContent.replace(/[\s\u00a0\u202f,]/g, ""));
    return Number.isNaN(number) || cell.textContent.trim() === "" ? null : number;
  };

  const compare = (one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a !== null && b !== null) return a - b;
    if (a !== null || b !== null) return a === null ? 1 : -1;
    return one.textContent.localeCompare(other.textContent, "en", { numeric: true });
  };

  /** A field of CSV; what a spreadsheet would run as a formula begins with an apostrophe. */
  const field = (cell) => {
    const text = cell.dataset?.value ?? cell.textContent.trim();
    const safe = /^[=+@\t-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  class Rows {
    constructor(table) {
      this.table = table;
      this.body = table.tBodies[0];
      this.all = [...this.body.rows];
      this.isWhole = this.all.length <= OPEN_ROWS;
      this.sought = "";
      this.sorted = { place: -1, by: 1 };
      if (this.all.length >= LEAST_TO_SORT) this.headers();
      if (this.all.length >= LEAST_TO_SORT) this.tools();
      this.show();
    }

    headers() {
      this.heads = [...this.table.tHead.rows[0].cells];
      this.heads.forEach((head, place) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sort";
        button.append(...head.childNodes);
        if (!button.textContent.trim()) return;
        head.append(button);
        button.addEventListener("click", () => this.sort(place));
      });
    }

    sort(place) {
      this.sorted = { place, by: this.sorted.place === place ? -this.sorted.by : 1 };
      this.heads.forEach((head, at) => {
        if (at === place) head.setAttribute("aria-sort", this.sorted.by > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      const ordered = [...this.all].sort((a, b) => this.sorted.by * compare(a.cells[place], b.cells[place]));
      this.body.append(...ordered);
      this.show();
    }

    tools() {
      const tools = document.createElement("p");
      tools.className = "table-tools";
      if (!this.isWhole) this.filter(tools);
      const copy = this.button(tools, "Copy as CSV", () => window.copyText(this.csv(), copy));
      this.table.closest(".scroll").after(tools);
    }

    filter(tools) {
      const label = tools.appendChild(document.createElement("label"));
      label.append("Filter ");
      const input = label.appendChild(document.createElement("input"));
      Object.assign(input, { type: "search", autocomplete: "off", spellcheck: false });
      input.addEventListener("input", () => {
        this.sought = input.value.trim().toLowerCase();
        this.show();
      });
      this.more = this.button(tools, "", () => {
        this.isWhole = !this.isWhole;
        this.show();
      });
    }

    button(parent, text, act) {
      const button = parent.appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", act);
      return button;
    }

    show() {
      let left = this.isWhole || this.sought ? Infinity : OPEN_ROWS;
      [...this.body.rows].forEach((row) => {
        row.hidden = (this.sought && !row.textContent.toLowerCase().includes(this.sought)) || left <= 0;
        if (!row.hidden) left -= 1;
      });
      if (!this.more) return;
      this.more.hidden = this.sought !== "";
      this.more.textContent = this.isWhole ? `Show ${OPEN_ROWS} rows` : `Show all ${this.all.length} rows`;
    }

    csv() {
      const rows = [this.table.tHead.rows[0], ...this.body.rows];
      return rows.map((row) => [...row.cells].map(field).join(",")).join("\n");
    }
  }

  document.querySelectorAll("table.rows").forEach((table) => new Rows(table));
  // What overflows is scrolled by keys; what does not is no stop for them.
  const fit = () => document.querySelectorAll(".scroll").forEach((box) => {
    if (box.clientWidth) box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  });
  new ResizeObserver(fit).observe(document.body);
})();
