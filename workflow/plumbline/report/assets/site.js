"use strict";
(() => {
  const { make, choice, fill, offers, link, linked, sortable } = plumbline;
  // No name holds this sign.
  const ANY = "*";

  // Tables: sorted by their headers; a long one is searched and filtered, and a link such as #performances/bilstm keeps that.

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
      const wanted = linked(table.id);
      if (!wanted) return;
      search.value = wanted[0];
      choices.forEach(({ select }, i) => { if (offers(select, wanted[i + 1])) select.value = wanted[i + 1]; });
      draw();
      region.scrollIntoView();
    }
    draw();
    open();
    addEventListener("hashchange", open);
  }

  // Figures, of all or of the chosen datasets, models and experiments. Each choice offers what those before it leave; one
  // that has nothing to choose is not shown.

  function figures(place) {
    const keys = ["dataset", "model", "encoder", "attention", "experiment"];
    const all = [...place.querySelectorAll("figure")];
    const wordsOf = (found, key) => [...new Set(found.map((figure) => figure.dataset[key]).filter(Boolean))];
    const choices = keys.map((key) => choice(key, [], change));
    const count = make("p", { class: "count", role: "status" });
    const controls = make("div", { class: "controls", role: "group", "aria-label": "Figures to show" }, ...choices.map(({ field }) => field));
    place.prepend(controls, count);
    const models = wordsOf(all, "model").length;
    choices.forEach(({ field }, i) => {
      const words = wordsOf(all, keys[i]).length;
      // Encoders that are told apart by the models' names need no choice of their own.
      field.hidden = words < 2 || (keys[i] === "encoder" && words === models);
    });
    controls.hidden = count.hidden = choices.every(({ field }) => field.hidden);

    // `wanted` sets what it offers of each choice, one after the other.
    function offer(wanted = []) {
      let found = all;
      choices.forEach(({ select }, i) => {
        fill(select, [[ANY, "all"], ...wordsOf(found, keys[i])]);
        if (offers(select, wanted[i])) select.value = wanted[i];
        // What is about all of them belongs to each.
        if (select.value !== ANY) found = found.filter((figure) => ["", select.value].includes(figure.dataset[keys[i]]));
      });
      return found;
    }
    function draw(found) {
      const shown = new Set(found);
      for (const figure of all) figure.hidden = !shown.has(figure);
      for (const kind of place.querySelectorAll(".kind")) kind.hidden = !kind.querySelector("figure:not([hidden])");
      count.textContent = `${found.length} of ${all.length} figures.`;
    }
    function change() {
      draw(offer());
      link("figures", choices);
    }
    function open() {
      const wanted = linked("figures");
      if (!wanted) return;
      draw(offer(wanted));
      document.getElementById("figures").scrollIntoView();
    }
    draw(offer());
    open();
    addEventListener("hashchange", open);
  }

  // The sections of this page, below its name among the pages.

  function contents() {
    const here = document.querySelector("nav [aria-current]");
    const sections = [...document.querySelectorAll("main section[id] > h2")];
    if (!here || sections.length < 2) return;
    here.after(make("ul", {}, ...sections.map((title) =>
      make("li", {}, make("a", { href: `#${title.parentElement.id}`, text: title.textContent })))));
  }

  contents();
  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.dataset.filters !== undefined) filterable(table);
    sortable(table);
  }
  const place = document.getElementById("figures-app");
  if (place) figures(place);
})();
