"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  // Elements are made from text alone: nothing of the data is ever read as markup.
  function make(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === "text") element.textContent = value;
      else if (key === "class") element.className = value;
      else if (key === "on") for (const [name, listener] of Object.entries(value)) element.addEventListener(name, listener);
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  function choice(label, values, listener, grow) {
    const select = make("select", { on: { change: listener } });
    fill(select, values);
    const field = make("label", grow ? { class: "grow" } : {}, make("span", { text: label }), select);
    return { field, select };
  }

  // `values`: words, or pairs of a value and the words for it. What was chosen stays chosen if it is still there.
  function fill(select, values) {
    const before = select.value;
    const pairs = values.map((value) => (Array.isArray(value) ? value : [value, value]));
    select.replaceChildren(...pairs.map(([value, text]) => make("option", { value, text })));
    if (pairs.some(([value]) => value === before)) select.value = before;
  }

  const fixed = (value, decimals = 2) => {
    if (value === null) return "–";
    const text = Math.abs(value).toFixed(decimals);
    return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
  };

  // A score to the three digits that the page holds.
  const exact = (value) => {
    if (value === null) return "–";
    const small = value !== 0 && Math.abs(value) < 0.001;
    return (small ? value.toExponential(2) : String(value)).replaceAll("-", "−");
  };

  // Sorting, for every table: a button in each header.

  function compare(one, other) {
    const missing = (value) => value === null || value === "" || value === "–";
    if (missing(one) || missing(other)) return missing(one) - missing(other);
    const numbers = [Number(one), Number(other)];
    return numbers.some(Number.isNaN) ? String(one).localeCompare(String(other), "en", { numeric: true }) : numbers[0] - numbers[1];
  }

  function sortButtons(headers, sort) {
    headers.forEach((header, column) => {
      const button = make("button", { type: "button", text: header.textContent });
      header.replaceChildren(button);
      header.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const up = header.getAttribute("aria-sort") !== "ascending";
        headers.forEach((each) => each.setAttribute("aria-sort", each === header ? (up ? "ascending" : "descending") : "none"));
        sort(column, up ? 1 : -1);
      });
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const key = (cell) => (cell.dataset.value === undefined ? cell.textContent : cell.dataset.value);
    sortButtons([...table.tHead.rows[0].cells], (column, direction) => {
      const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
      const known = rows.filter(([value]) => value !== "" && value !== "–");
      const unknown = rows.filter(([value]) => value === "" || value === "–");
      known.sort((a, b) => direction * compare(a[0], b[0]));
      body.append(...[...known, ...unknown].map(([, row]) => row));
    });
  }

  // A small axis from −1 to 1, as the page draws it under numbers.
  function strip(value, half) {
    const [whisker, dot] = [make("u"), make("i")];
    whisker.style.left = `${50 * (value - half + 1)}%`;
    whisker.style.width = `${100 * half}%`;
    dot.style.left = `${50 * (value + 1)}%`;
    return make("span", { class: "strip", "aria-hidden": "true" }, whisker, dot);
  }

  // The table of all agreements.

  function agreement(place, { titles, words, rows }) {
    const STEP = 100;
    const columns = Object.keys(titles);
    const numbers = ["mean", "± seeds", "± texts", "p ≤ .05", "texts", "left out"];
    const pair = (row) => `${words.measure_a[row[2]]} – ${words.measure_b[row[3]]}`;
    const pairs = [...new Set(rows.map(pair))];
    const everything = ["", "any"];
    let shown = STEP;
    let order = null;
    const filter = (label, values) => choice(label, [everything, ...values], () => { shown = STEP; draw(); });
    const filters = {
      dataset: filter("Dataset", words.dataset),
      model: filter("Model", words.model),
      pair: filter("Pair", pairs),
      statistic: filter("Statistic", words.statistic),
      predicted_class: filter("Predicted class", words.predicted_class.map((word) => [word, word === "all" ? "all together" : word])),
      ...(words.tokens ? { tokens: filter("Ranked", words.tokens) } : {}),
    };
    // The fewest tokens come first.
    if (words.tokens) filters.tokens.select.value = words.tokens[0];
    if (words.statistic.includes("kendall")) filters.statistic.select.value = "kendall";
    if (words.predicted_class.includes("all")) filters.predicted_class.select.value = "all";

    const headers = [...columns.map((column) => make("th", { scope: "col", text: titles[column] })),
      ...numbers.map((title) => make("th", { scope: "col", class: "number", text: title }))];
    sortButtons(headers, (column, direction) => { order = { column, direction }; draw(); });
    const body = make("tbody");
    const count = make("p", { class: "count", role: "status" });
    const more = make("button", { type: "button", class: "plain", on: { click: () => { shown = Infinity; draw(); } } });
    const caption = "Means over seeds. “± seeds” is the spread of the mean over seeds, “± texts” that of single texts; “p ≤ .05” the share of texts whose rank correlation is significant. “texts” counts those that could be ranked, over all seeds.";
    place.replaceChildren(
      make("div", { class: "controls" }, ...Object.values(filters).map(({ field }) => field)),
      make("p", { class: "caption", id: "agreement-caption", text: caption }),
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": "agreement-caption" },
        make("table", { class: "beside", "aria-labelledby": "agreement-caption" }, make("thead", {}, make("tr", {}, ...headers)), body)),
      count, more);

    const word = (row, i) => words[columns[i]][row[i]];
    function matches(row) {
      return Object.entries(filters).every(([name, { select }]) =>
        select.value === "" || (name === "pair" ? pair(row) : word(row, columns.indexOf(name))) === select.value);
    }
    function draw() {
      const found = rows.filter(matches);
      if (order) {
        const { column, direction } = order;
        const key = column < columns.length ? (row) => word(row, column) : (row) => row[column];
        found.sort((a, b) => (key(a) === null || key(b) === null ? (key(a) === null) - (key(b) === null) : direction * compare(key(a), key(b))));
      }
      // A column whose filter is set holds one word only.
      const needless = columns.map((column) => Boolean(filters[column]?.select.value));
      headers.forEach((header, i) => { header.hidden = Boolean(needless[i]); });
      body.replaceChildren(...found.slice(0, shown).map((row) => line(row, needless)));
      count.textContent = `${Math.min(shown, found.length)} of ${found.length} rows that match, ${rows.length} in all.`;
      more.hidden = found.length <= shown;
      more.textContent = `Show all ${found.length} rows`;
    }
    function line(row, needless) {
      const first = columns.length;
      const distance = ["top-k-fagin", "top-k-jain-wallace"].includes(word(row, columns.indexOf("statistic")));
      const cells = columns.map((_, i) => make(i ? "td" : "th", i ? { text: word(row, i) } : { scope: "row", text: word(row, i) }));
      cells.forEach((cell, i) => { cell.hidden = needless[i]; });
      const mean = make("td", { class: "number" });
      if (row[first] !== null && !distance) mean.append(strip(row[first], row[first + 1]));
      mean.append(fixed(row[first]));
      const rest = row.slice(first + 1).map((value, i) => make("td", { class: "number", text: i < 3 ? fixed(value) : String(value) }));
      return make("tr", {}, ...cells, mean, ...rest);
    }
    draw();
  }

  // What stands after the hash in a link such as #figures/movie/bilstm, if it is one of this kind.

  function linked(kind) {
    const [found, ...parts] = location.hash.slice(1).split("/");
    if (found !== kind || !parts.length) return null;
    return parts.map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  }

  function link(kind, choices) {
    const parts = choices.map(({ select }) => encodeURIComponent(select.value));
    try { history.replaceState(null, "", `#${kind}/${parts.join("/")}`); } catch { /* Some browsers forbid it for files. */ }
  }

  const offers = (select, value) => [...select.options].some((option) => option.value === value);

  // The figures of a dataset, encoder, attention and experiment, or of any. Each choice offers what those before it leave.

  function figures(place) {
    // No name holds this sign.
    const ANY = "*";
    const keys = ["dataset", "encoder", "attention", "experiment"];
    const all = [...place.querySelectorAll("figure[data-dataset]")];
    const choices = keys.map((key) => choice(key[0].toUpperCase() + key.slice(1), [], change));
    const count = make("p", { class: "count", role: "status" });
    place.prepend(make("div", { class: "controls" }, ...choices.map(({ field }) => field)), count);

    // `wanted` sets what it offers of each choice, one after the other.
    function offer(wanted = []) {
      let found = all;
      choices.forEach(({ select }, i) => {
        const words = [...new Set(found.map((figure) => figure.dataset[keys[i]]))];
        fill(select, [[ANY, "any"], ...words]);
        const value = typeof wanted[i] === "function" ? wanted[i](words) : wanted[i];
        if (offers(select, value)) select.value = value;
        if (select.value !== ANY) found = found.filter((figure) => figure.dataset[keys[i]] === select.value);
      });
      return found;
    }
    function draw(found) {
      const shown = new Set(found);
      for (const figure of all) figure.hidden = !shown.has(figure);
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
    const first = (words) => words[0];
    draw(offer([first, first, first]));
    open();
    addEventListener("hashchange", open);
  }

  // Token heatmaps.

  const channels = (colour) => (colour.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
    : colour.match(/[\d.]+/g).slice(0, 3).map(Number));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  // A word's ground is the measure's colour over the page's, and its letters are black or white, whichever reads better.
  function shade(element, share, colour, paper) {
    const strength = 0.92 * share;
    const mixed = channels(colour).map((c, i) => Math.round(c * strength + paper[i] * (1 - strength)));
    element.style.backgroundColor = `rgb(${mixed.join(",")})`;
    element.style.color = luminance(mixed) > 0.179 ? "#000" : "#fff";
  }

  function shares(scores, by) {
    const sizes = scores.map((score) => (score === null ? 0 : Math.abs(score)));
    if (by === "rank") {
      const sorted = [...sizes].sort((a, b) => a - b);
      // Equal scores share the mean of their ranks, as in Kendall's tau-b.
      return sizes.map((size) => {
        const rank = (sorted.indexOf(size) + sorted.lastIndexOf(size)) / 2;
        // Squared, so that the first few stand out from the middle.
        return sorted.length > 1 ? (rank / (sorted.length - 1)) ** 2 : 0;
      });
    }
    const largest = Math.max(...sizes);
    return sizes.map((size) => (largest > 0 ? size / largest : 0));
  }

  // The word under the pointer is marked in every row.
  function marking(stage) {
    function mark(event) {
      const position = event.type === "mouseleave" ? undefined : event.target.dataset.position;
      for (const word of stage.querySelectorAll(".word.same")) word.classList.remove("same");
      if (position !== undefined) for (const word of stage.querySelectorAll(`[data-position="${position}"]`)) word.classList.add("same");
    }
    stage.addEventListener("mouseover", mark);
    stage.addEventListener("mouseleave", mark);
  }

  const wordsOf = ({ tokens, scored }) => tokens.filter((_, i) => scored[i]);

  // The question or hypothesis of a text, if it has one.
  const secondText = (shown, name) => (shown.second ? [make("p", { class: "second" }, make("span", { text: `${name}: ` }),
    make("bdi", { text: wordsOf(shown.second).join(" ") }))] : []);

  function examples(place, datasets) {
    const byName = new Map(datasets.map((dataset) => [dataset.dataset, dataset]));
    const dataset = choice("Dataset", datasets.map((each) => each.dataset), change);
    const model = choice("Model", [], change);
    const seed = choice("Seed", [], change);
    const text = choice("Text", [], change, true);
    const by = choice("Shade by", [["value", "value"], ["rank", "rank"]], draw);
    const step = (label, by) => make("button", { type: "button", text: label, on: { click: () => move(by) } });
    const back = step("← Previous", -1);
    const next = step("Next →", 1);
    const stage = make("div", { id: "example" });
    place.replaceChildren(
      make("div", { class: "controls" }, dataset.field, model.field, seed.field, by.field),
      make("div", { class: "controls" }, text.field, back, next), stage);

    const here = () => byName.get(dataset.select.value);
    // The most probable class comes first.
    const predicted = (told) => told.probable[0][0];
    // A seed has not explained a text that is not in its sample.
    const unexplained = (told) => here().models[model.select.value].measures.length > 0 && !Object.keys(told.scores).length;

    // A model that cuts words into pieces of its own has its own form of the texts.
    const texts = () => here().models[model.select.value].texts ?? here().texts;

    function options() {
      const chosen = here();
      fill(model.select, Object.keys(chosen.models));
      const seeds = chosen.models[model.select.value].seeds;
      fill(seed.select, Object.keys(seeds));
      fill(text.select, texts().map((each, i) => {
        const told = seeds[seed.select.value][i];
        const guess = predicted(told) === each.label ? "right" : "wrong";
        const words = wordsOf(each).slice(0, 9).join(" ");
        return [String(each.number), `${chosen.split} ${each.number}, ${guess}${unexplained(told) ? ", not explained" : ""}: ${words} …`];
      }));
    }
    function move(by) {
      text.select.selectedIndex += by;
      change();
    }
    function change() {
      options();
      draw();
      link("example", [dataset, model, seed, text]);
    }

    function draw() {
      const chosen = here();
      const position = text.select.selectedIndex;
      const shown = texts()[position];
      const explained = chosen.models[model.select.value];
      const told = explained.seeds[seed.select.value][position];
      back.disabled = position <= 0;
      next.disabled = position >= texts().length - 1;
      const guess = predicted(told);
      const right = guess === shown.label;
      const name = (label) => chosen.classes[label] ?? `class ${label}`;
      const paper = channels(getComputedStyle(document.body).backgroundColor);
      const summary = make("p", { class: "told" }, "Predicted ", make("b", { text: name(guess) }),
        ` with probability ${fixed(told.probable[0][1])}`,
        chosen.classes.length > 2 ? `, then ${told.probable.slice(1).map(([label, p]) => `${name(label)} ${fixed(p)}`).join(" and ")}` : "",
        "; labelled ", make("b", { text: name(shown.label) }), ". ",
        make("span", { class: right ? "right" : "wrong", text: right ? "✓ right" : "✗ wrong" }));
      const lines = [...(unexplained(told) ? [] : explained.measures.map((measure) => measured(measure, explained, told))),
        ...(told.adversaries ?? []).map((attack) => ({
          name: `adversarial attention, ε = ${attack.epsilon}`,
          colour: data.adversary,
          notes: [attack.scores ? `JSD ${fixed(attack.jsd)}, output changed by ${fixed(attack.change, 3)}` : "none found"],
          scores: attack.scores,
          nothing: "No attention that differs keeps the output within ε, as far as was searched.",
        })), ...(told.rivals ? against(told, name(guess)) : [])];
      const filled = lines.filter(({ scores }) => scores);
      const before = [summary];
      if (told.mean !== undefined) before.push(make("p", { class: "told" }, "Mean τ of all pairs of measures: ",
        make("b", { text: fixed(told.mean) }), `. Ranked: ${told.ranked}.`));
      if (unexplained(told)) before.push(make("p", { class: "told", text: `Seed ${seed.select.value} has not explained this text: each seed draws its own.` }));
      // Where every line has the second text under the text, it need not stand above them.
      if (!filled.length || !filled.every(({ pair }) => pair)) before.push(...secondText(shown, chosen.second));
      if (filled.length) before.push(legend(filled, shown));
      stage.replaceChildren(...before, ...lines.map((line) => row(line, shown, chosen.second, paper)),
        ...(filled.length ? [values(filled, shown, chosen.second)] : []));
    }

    // What a measure tells of the text, and how it agrees with others; it has no scores of what is not explained.
    function measured(measure, { measures, reference }, { scores, pair, specials, tau }) {
      const notes = [];
      if (measures.length > 1 && measure === reference) notes.push("reference");
      if (tau?.[measure] && measure !== reference) notes.push(`τ with ${reference}: ${fixed(tau[measure][0])}`);
      if (tau?.[measure] && Object.keys(tau).length > 2) notes.push(`mean τ: ${fixed(tau[measure][1])}`);
      return {
        name: measure,
        colour: data.measures[measure],
        notes,
        scores: scores[measure],
        pair: pair?.[measure],
        specials: specials?.[measure],
        nothing: "It has no importances of this text.",
      };
    }

    function legend(lines, shown) {
      const texts = lines.some(({ pair }) => pair) ? "both texts" : "the text";
      const [least, most] = by.select.value === "rank" ? ["lowest rank", `highest rank in ${texts}`] : ["0", `highest of the measure in ${texts}`];
      const scale = make("p", { class: "scale" }, least, make("i", { "aria-hidden": "true" }), most);
      const negative = lines.some(({ scores, pair = [], specials = [] }) => [...scores, ...pair, ...specials].some((score) => score < 0));
      if (negative) scale.append("; a wavy line marks negative scores");
      if (shown.evidence) scale.append("; a straight line marks the words that hold the answer");
      if (shown.groups) scale.append("; a straight line marks the words that the label follows");
      if (Object.values(shown.groups ?? {}).some((group) => group > 1)) scale.append(", a dotted one others of their kind");
      return scale;
    }

    // The attention of the base model, and of adversarial models that say much the same.
    function against({ probable, rivals: { heads, scores, models } }, guess) {
      const probability = (p) => `probability of ${guess} ${fixed(p, 3)}`;
      return [{
        name: heads > 1 ? `base model, mean of ${heads} heads` : "base model",
        colour: data.attention,
        notes: [probability(probable[0][1])],
        scores,
      }, ...models.map((rival) => ({
        name: `adversarial model (${rival.title})`,
        colour: data.rival,
        notes: [`seed ${rival.seed}, JSD ${fixed(rival.jsd)}, ${probability(rival.probability)}`],
        scores: rival.scores,
      }))];
    }

    // A line's scores token by token, those of the text and those of the second one; undefined where it tells none.
    function placed({ scores, pair = [], specials = [] }, shown) {
      const others = specials.values();
      return [[shown, scores], [shown.second ?? { scored: [] }, pair]].map(([text, given]) => {
        const words = given.values();
        return text.scored.map((free) => (free ? words : others).next().value);
      });
    }

    function row(line, shown, second, paper) {
      const swatch = make("i", { "aria-hidden": "true" });
      swatch.style.background = line.colour;
      const head = make("h3", {}, make("span", { class: "chip" }, swatch, line.name), ...line.notes.map((note) => make("small", { text: note })));
      if (!line.scores) return make("div", { class: "measure" }, head, make("p", { class: "words count", text: line.nothing }));
      const [first, beside] = placed(line, shown);
      // One scale for all tokens of the line.
      const share = shares([...first, ...beside].filter((score) => score !== undefined), by.select.value).values();
      const texts = make("div", {}, heat(shown, first, share, line.colour, paper));
      if (beside.some((score) => score !== undefined)) {
        const words = heat(shown.second, beside, share, line.colour, paper, "second-");
        words.prepend(make("span", { class: "kind", text: `${second}: ` }));
        texts.append(words);
      }
      return make("div", { class: "measure" }, head, texts);
    }

    // A text with the ground of each token by its share of the highest score; `share` is moved on by those that are told.
    function heat({ tokens, scored, evidence, groups }, scores, share, colour, paper, mark = "") {
      const words = make("p", { class: "words" });
      tokens.forEach((token, position) => {
        const score = scores[position];
        const word = make("span", { class: scored[position] ? "word" : "word special", dir: "auto", text: token });
        if (score !== undefined) {
          const part = share.next().value;
          if (part > 0) shade(word, part, colour, paper);
          if (score < 0) word.classList.add("negative");
          word.title = score === null ? "no score" : exact(score);
          word.dataset.position = mark + position;
        }
        if (evidence?.includes(position)) word.classList.add("evidence");
        if (groups?.[position]) word.classList.add(groups[position] === 1 ? "evidence" : "decoy");
        words.append(word, " ");
      });
      return words;
    }

    marking(stage);

    // The same numbers as a table, for those who cannot use colours; made when it is opened.
    function values(lines, shown, second) {
      const details = make("details", {}, make("summary", { text: "The same as a table of numbers" }));
      details.addEventListener("toggle", () => {
        if (!details.open || details.querySelector("table")) return;
        const scores = lines.map((line) => placed(line, shown));
        const head = ["word", ...lines.map(({ name }) => name)].map((title, i) => make("th", { scope: "col", text: title, class: i ? "number" : "" }));
        const bodies = [shown, shown.second ?? { tokens: [] }].map(({ tokens }, part) => make("tbody", {}, ...tokens.flatMap((token, i) => {
          const told = scores.map((line) => line[part][i]);
          if (told.every((score) => score === undefined)) return [];
          return [make("tr", {}, make("th", { scope: "row", dir: "auto", text: token }),
            ...told.map((score) => make("td", { class: "number", text: exact(score ?? null) })))];
        })));
        if (bodies[1].rows.length) bodies[1].prepend(make("tr", {}, make("th", { scope: "rowgroup", class: "kind", colspan: head.length, text: second })));
        details.append(make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Importances of every word" },
          make("table", {}, make("thead", {}, make("tr", {}, ...head)), ...bodies)));
      });
      return details;
    }

    // A link such as #example/movie/bilstm-tanh/0/12 opens that example; what is unknown in it is passed over.
    function open() {
      const wanted = linked("example");
      if (!wanted) return;
      [dataset, model, seed, text].forEach(({ select }, i) => {
        if (offers(select, wanted[i])) select.value = wanted[i];
        options();
      });
      draw();
      document.getElementById("examples").scrollIntoView();
    }
    options();
    draw();
    open();
    addEventListener("hashchange", open);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  // Texts with words masked, a row for each level. Boxes are as wide as their words, so that all rows break alike.

  function maskedTexts(place, cells) {
    const dataset = choice("Dataset", [...new Set(cells.map((cell) => cell.dataset))], change);
    const model = choice("Model", [], change);
    const way = choice("Strategy", [], change);
    const measure = choice("Measure", [], change);
    const text = choice("Text", [], change, true);
    const choices = [dataset, model, way, measure, text];
    const stage = make("div", { id: "masked" });
    place.replaceChildren(
      make("div", { class: "controls" }, dataset.field, model.field, way.field, measure.field),
      make("div", { class: "controls" }, text.field), stage);
    marking(stage);

    const named = (curve) => `${curve.strategy}, ${curve.unit === "relative" ? "percent" : "number"} of words`;
    const here = () => cells.find((cell) => cell.dataset === dataset.select.value && cell.model === model.select.value);

    function options() {
      fill(model.select, cells.filter((cell) => cell.dataset === dataset.select.value).map((cell) => cell.model));
      const cell = here();
      fill(way.select, [...new Set(cell.curves.map(named))]);
      fill(measure.select, cell.curves.filter((curve) => named(curve) === way.select.value).map((curve) => curve.measure));
      fill(text.select, cell.texts.map((each) => [String(each.number), `${cell.split} ${each.number}: ${wordsOf(each).slice(0, 9).join(" ")} …`]));
    }
    function change() {
      options();
      draw();
      link("masked", choices);
    }
    function draw() {
      const cell = here();
      const curve = cell.curves.find((each) => named(each) === way.select.value && each.measure === measure.select.value);
      const position = text.select.selectedIndex;
      const shown = cell.texts[position];
      const colour = data.measures[curve.measure];
      const paper = channels(getComputedStyle(document.body).backgroundColor);
      const fresh = make("del", { class: "word", text: "words" });
      shade(fresh, 1, colour, paper);
      const key = make("p", { class: "scale" }, fresh, "masked at this level",
        make("del", { class: "word gone", title: "words", text: "words" }), `masked before; seed ${cell.seed}`);
      const count = wordsOf(shown).length;
      if (count < shown.words) key.append(`; the first ${count} of ${shown.words} words`);
      let before = "0".repeat(count);
      const rows = [[0, null], ...curve.levels].map(([level, variant]) => {
        const [masked, flags] = variant === null ? [0, before] : cell.masks[variant][position];
        const title = curve.unit === "relative" ? `${level} %` : `${level} ${level === 1 ? "word" : "words"}`;
        const head = make("h4", {}, title, make("small", { text: `${masked} of ${shown.words} masked` }));
        const line = make("div", { class: "measure" }, head, row(shown, flags, before, colour, paper));
        before = flags;
        return line;
      });
      stage.replaceChildren(...secondText(shown, cell.second), key, ...rows);
    }
    function row(shown, flags, before, colour, paper) {
      const line = make("p", { class: "words" });
      let number = 0;
      shown.tokens.forEach((token, position) => {
        const free = shown.scored[position];
        const masked = free && flags[number] === "1";
        const word = make(masked ? "del" : "span", { class: free ? "word" : "word special", dir: "auto", text: token });
        if (free) word.dataset.position = position;
        if (masked) word.title = token;
        if (masked && before[number] === "1") word.classList.add("gone");
        else if (masked) shade(word, 1, colour, paper);
        number += free;
        line.append(word, " ");
      });
      return line;
    }

    // A link such as #masked/sst/bilstm opens these; what is unknown in it is passed over.
    function open() {
      const wanted = linked("masked");
      if (!wanted) return;
      choices.forEach(({ select }, i) => {
        if (offers(select, wanted[i])) select.value = wanted[i];
        options();
      });
      draw();
      place.scrollIntoView();
    }
    options();
    draw();
    open();
    addEventListener("hashchange", open);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  const apps = [["agreement-app", (place) => agreement(place, data.agreement)], ["figures-app", figures],
    ["examples-app", (place) => examples(place, data.examples)], ["masked-app", (place) => maskedTexts(place, data.masked)]];
  for (const [id, start] of apps) {
    const place = document.getElementById(id);
    if (place) start(place);
  }
})();
