// One part of the report at a time, chosen by tabs; the address says which. Without a script all parts stand below
// one another, and the same links lead to them. In: nav.tabs, .tab-panel. Out: hidden panels, ARIA roles, scrolling.
(() => {
  "use strict";

  const nav = document.querySelector("nav.tabs");
  const panels = [...document.querySelectorAll(".tab-panel")];
  const tabs = nav ? [...nav.querySelectorAll("a")] : [];
  const nameOf = (tab) => tab.getAttribute("href").slice(1);
  let shown = null;

  const select = (panel) => {
    shown = panel;
    panels.forEach((one) => (one.hidden = one !== panel));
    tabs.forEach((tab) => {
      const isOwn = nameOf(tab) === panel.dataset.tab;
      tab.setAttribute("aria-selected", String(isOwn));
      tab.tabIndex = isOwn ? 0 : -1;
      if (isOwn) tab.parentElement.parentElement.scrollLeft = tab.parentElement.offsetLeft - 40;
    });
  };

  const scrollTo = (element) => element.scrollIntoView({ block: "start", behavior: "instant" });

  /** Show what the address names: a moment of the timeline, or an element, with the folds it lies in. */
  const follow = () => {
    const name = location.hash.slice(1);
    const isMoment = new URLSearchParams(name).has("it");
    const target = document.getElementById(isMoment ? "figure-timeline" : name);
    if (!target) return;
    const panel = target.closest(".tab-panel");
    if (panel && panel !== shown) select(panel);
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (!isMoment) scrollTo(target.id === panel?.dataset.tab ? nav : target);
  };

  if (tabs.length) {
    document.documentElement.classList.add("tabbed");
    const list = nav.querySelector("ul");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Parts of the report");
    tabs.forEach((tab) => {
      const panel = panels.find((one) => one.dataset.tab === nameOf(tab));
      tab.parentElement.setAttribute("role", "presentation");
      tab.setAttribute("role", "tab");
      tab.id = `tab-${nameOf(tab)}`;
      panel.id = `panel-${nameOf(tab)}`;
      tab.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        if (panel !== shown) history.pushState(null, "", tab.getAttribute("href"));
        select(panel);
        if (nav.getBoundingClientRect().top < 1) scrollTo(nav);
      });
    });
    list.addEventListener("keydown", (event) => {
      const place = tabs.indexOf(document.activeElement);
      const goal = {
        ArrowLeft: (place + tabs.length - 1) % tabs.length, ArrowRight: (place + 1) % tabs.length, Home: 0, End: tabs.length - 1,
      }[event.key];
      if (place < 0 || goal === undefined) return;
      event.preventDefault();
      tabs[goal].focus();
      tabs[goal].click();
    });
    select(panels[0]);
  }
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);
  // A link to where the address already is changes no address: whoever follows the address hears of it all the same.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    const isThere = link && !tabs.includes(link) && link.getAttribute("href") === location.hash;
    if (isThere) window.dispatchEvent(new Event("hashchange"));
  });
  follow();

  window.addEventListener("beforeprint", () => panels.forEach((panel) => (panel.hidden = false)));
  window.addEventListener("afterprint", () => shown && select(shown));
})();
