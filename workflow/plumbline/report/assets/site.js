"use strict";
(() => {
  const { make, choice, fill, offers, link, linked, sortable } = plumbline;
  // No name contains this character.
  const ANY = "*";

  // Tables: sorted by their headers; long ones can be searched and filtered, also by a link such as #performances/bilstm.

  function filterable(table) {
    const rows = [...table.tBodies[0].rows];
    const texts = new Map(rows.map((row) => [row, [...row.cells].map((cell) => cell.textContent)]));
    const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    const columns = table.dataset.filters.split(" ").filter(Boolean).map(Number);
    const search = make("input", { type: "search", placeholder: "any words", on: { input: change } });
    const choices = columns.map((column) => choice(titles[column], [[ANY, "all"], ...new Set([...texts.values()].map((text) => text[column]).filter(Boolean))], change));
    const fields = [{ select: search }, ...choices];
    const count = make("p", { class: "count", role: "status" });
    const region = table.parentElement;
    region.before(make("div", { class: "controls", role: "group", "aria-label": "Rows to show" },
      make("label", {}, make("span", { text: "filter" }), search), ...choices.map(({ field }) => field)));
    region.after(count);

    function draw() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = texts.get(row);
        const whole = text.join(" ").toLowerCase();
        const kept = words.every((word) => whole.includes(word))
          && choices.every(({ select }, i) => select.value === ANY || text[columns[i]] === select.value);
        row.hidden = !kept;
        shown += kept;
      }
      count.textContent = `${shown} of ${rows.length} rows.`;
    }
    function change() {
      draw();
      link(table.id, fields);
    }
    function open() {
      const values = linked(table.id);
      if (!values) return;
      search.value = values[0];
      choices.forEach(({ select }, i) => { if (offers(select, values[i + 1])) select.value = values[i + 1]; });
      draw();
      region.scrollIntoView();
    }
    draw();
    open();
    addEventListener("hashchange", open);
  }

  // Figures of all or of the selected datasets, models and experiments. Each filter has the values left by those before
  // it; one with a single value is hidden.

  function figures(app) {
    const keys = ["dataset", "model", "encoder", "attention", "experiment"];
    const all = [...app.querySelectorAll("figure")];
    const valuesOf = (some, key) => [...new Set(some.map((figure) => figure.dataset[key]).filter(Boolean))];
    const choices = keys.map((key) => choice(key, [], change));
    const count = make("p", { class: "count", role: "status" });
    const controls = make("div", { class: "controls", role: "group", "aria-label": "Figures to show" }, ...choices.map(({ field }) => field));
    app.prepend(controls, count);
    const models = valuesOf(all, "model").length;
    choices.forEach(({ field }, i) => {
      const distinct = valuesOf(all, keys[i]).length;
      // If each model has its own encoder, the filter by model is enough.
      field.hidden = distinct < 2 || (keys[i] === "encoder" && distinct === models);
    });
    controls.hidden = count.hidden = choices.every(({ field }) => field.hidden);

    // Fills the filters one after the other, selecting those of `linkedValues` that are options.
    function offer(linkedValues = []) {
      let kept = all;
      choices.forEach(({ select }, i) => {
        fill(select, [[ANY, "all"], ...valuesOf(kept, keys[i])]);
        if (offers(select, linkedValues[i])) select.value = linkedValues[i];
        // A figure of all datasets or models belongs to each.
        if (select.value !== ANY) kept = kept.filter((figure) => ["", select.value].includes(figure.dataset[keys[i]]));
      });
      return kept;
    }
    function draw(kept) {
      const shown = new Set(kept);
      for (const figure of all) figure.hidden = !shown.has(figure);
      for (const kind of app.querySelectorAll(".kind")) kind.hidden = !kind.querySelector("figure:not([hidden])");
      count.textContent = `${kept.length} of ${all.length} figures.`;
    }
    function change() {
      draw(offer());
      link("figures", choices);
    }
    function open() {
      const values = linked("figures");
      if (!values) return;
      draw(offer(values));
      document.getElementById("figures").scrollIntoView();
    }
    draw(offer());
    open();
    addEventListener("hashchange", open);
  }

  // The sections of this page, below its name in the menu.

  function contents() {
    const current = document.querySelector("nav [aria-current]");
    const sections = [...document.querySelectorAll("main section[id] > h2")];
    if (!current || sections.length < 2) return;
    current.after(make("ul", {}, ...sections.map((title) =>
      make("li", {}, make("a", { href: `#${title.parentElement.id}`, text: title.textContent })))));
  }

  contents();
  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.dataset.filters !== undefined) filterable(table);
    sortable(table);
  }
  const app = document.getElementById("figures-app");
  if (app) figures(app);
})();
