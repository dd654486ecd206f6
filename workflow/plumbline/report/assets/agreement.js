"use strict";
// The table of all agreement scores.
(() => {
  const { make, choice, compare, fixed, missing, offers, link, linked, sortButtons, strip } = plumbline;

  function agreement(app, { titles, words, rows }) {
    const STEP = 100;
    const columns = Object.keys(titles);
    const numbers = ["mean", "± seeds", "± texts", "p ≤ .05", "texts", "left out"];
    const pair = (row) => `${words.measure_a[row[2]]} – ${words.measure_b[row[3]]}`;
    const pairs = [...new Set(rows.map(pair))];
    const everything = ["", "all"];
    let shown = STEP;
    let order = null;
    const filter = (label, values) => choice(label, [everything, ...values], change);
    const filters = {
      dataset: filter("dataset", words.dataset),
      model: filter("model", words.model),
      pair: filter("pair", pairs),
      statistic: filter("statistic", words.statistic),
      predicted_class: filter("predicted class", words.predicted_class.map((word) => [word, word === "all" ? "all together" : word])),
      ...(words.tokens ? { tokens: filter("ranked", words.tokens) } : {}),
    };
    // The smallest set of tokens is the first.
    if (words.tokens) filters.tokens.select.value = words.tokens[0];
    if (words.statistic.includes("kendall")) filters.statistic.select.value = "kendall";
    if (words.predicted_class.includes("all")) filters.predicted_class.select.value = "all";

    const headers = [...columns.map((column) => make("th", { scope: "col", text: titles[column] })),
      ...numbers.map((title) => make("th", { scope: "col", class: "number", text: title }))];
    sortButtons(headers, (column, direction) => { order = { column, direction }; draw(); });
    const body = make("tbody");
    const count = make("p", { class: "count", role: "status" });
    const more = make("button", { type: "button", class: "plain", on: { click: () => { shown = Infinity; draw(); } } });
    const caption = "“mean” is the mean over texts and seeds; correlations are drawn on an axis from −1 to 1, with the deviation over seeds. “± seeds” is the standard deviation of the mean over seeds, “± texts” the standard deviation over texts, and “p ≤ .05” the share of texts with a significant correlation. “texts” counts the texts that were ranked and “left out” those that could not be, over all seeds.";
    app.replaceChildren(
      make("div", { class: "controls", role: "group", "aria-label": "Rows to show" }, ...Object.values(filters).map(({ field }) => field)),
      make("p", { class: "caption", id: "agreement-caption", text: caption }),
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": "agreement-caption" },
        make("table", { class: "inline", "aria-labelledby": "agreement-caption" }, make("thead", {}, make("tr", {}, ...headers)), body)),
      count, more);

    const word = (row, i) => words[columns[i]][row[i]];
    function matches(row) {
      return Object.entries(filters).every(([name, { select }]) =>
        select.value === "" || (name === "pair" ? pair(row) : word(row, columns.indexOf(name))) === select.value);
    }
    function draw() {
      const kept = rows.filter(matches);
      if (order) {
        const { column, direction } = order;
        const key = column < columns.length ? (row) => word(row, column) : (row) => row[column];
        kept.sort((a, b) => (missing(key(a)) || missing(key(b)) ? missing(key(a)) - missing(key(b)) : direction * compare(key(a), key(b))));
      }
      // A column whose filter is set has a single value.
      const needless = columns.map((column) => Boolean(filters[column]?.select.value));
      headers.forEach((header, i) => { header.hidden = Boolean(needless[i]); });
      body.replaceChildren(...kept.slice(0, shown).map((row) => line(row, needless)));
      count.textContent = `${Math.min(shown, kept.length)} of ${kept.length} rows that match, ${rows.length} in total.`;
      more.hidden = kept.length <= shown;
      more.textContent = `Show all ${kept.length} rows`;
    }
    function line(row, needless) {
      const first = columns.length;
      const distance = ["top-k-fagin", "top-k-jain-wallace"].includes(word(row, columns.indexOf("statistic")));
      const cells = columns.map((_, i) => make(i ? "td" : "th", i ? { text: word(row, i) } : { scope: "row", text: word(row, i) }));
      cells.forEach((cell, i) => { cell.hidden = needless[i]; });
      const mean = make("td", { class: "number" });
      if (row[first] !== null && !distance) mean.append(strip(row[first], row[first + 1]));
      mean.append(make("span", { class: "value", text: fixed(row[first]) }));
      const rest = row.slice(first + 1).map((value, i) => make("td", { class: "number", text: i < 3 ? fixed(value) : String(value) }));
      return make("tr", {}, ...cells, mean, ...rest);
    }
    function change() {
      shown = STEP;
      draw();
      link("pairs", Object.values(filters));
    }
    // A link such as #pairs/movie/bilstm selects these rows; unknown parts are ignored.
    function open() {
      const values = linked("pairs");
      if (!values) return;
      Object.values(filters).forEach(({ select }, i) => { if (offers(select, values[i])) select.value = values[i]; });
      shown = STEP;
      draw();
      app.scrollIntoView();
    }
    draw();
    open();
    addEventListener("hashchange", open);
  }

  agreement(document.getElementById("agreement-app"), JSON.parse(document.getElementById("agreement-data").textContent));
})();
