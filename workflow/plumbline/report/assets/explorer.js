"use strict";
(() => {
  const { make, choice, fill, offers, fixed, exact, hashParts, channels, shade, shares, marking, wordsOf, secondText } = plumbline;
  const app = document.getElementById("explorer");
  const index = plumbline.data.get("index");
  if (!index?.sets.length) {
    app.replaceChildren(make("p", { text: "There are no instances to show: the config has `report: {examples: 0}`, or the folder explorer is not next to this page." }));
    return;
  }
  // Pixels of a row of the list; files kept in memory; milliseconds before files are requested; chunks searched at once.
  const ROW = 54;
  const KEPT = 120;
  const REST = 90;
  const BATCH = 12;

  // Data files, each a script that is added on demand. The most recently used are kept.

  const held = new Map();
  function load(name) {
    const file = held.get(name) ?? new Promise((resolve, reject) => {
      const script = make("script", { src: `explorer/${name}.js` });
      script.addEventListener("load", () => {
        script.remove();
        resolve(plumbline.data.get(name));
        plumbline.data.delete(name);
      });
      script.addEventListener("error", () => {
        held.delete(name);
        reject(new Error(`The file explorer/${name}.js cannot be loaded.`));
      });
      document.head.append(script);
    });
    held.delete(name);
    held.set(name, file);
    if (held.size > KEPT) held.delete(held.keys().next().value);
    return file;
  }

  // Columns of all instances, which are always kept.
  const columns = new Map();
  function list(set, folder = "") {
    const name = `${index.sets.indexOf(set)}/${folder}list`;
    if (!columns.has(name)) {
      const blocks = Array.from({ length: Math.ceil(set.count / index.block) }, (_, k) => load(`${name}/${k}`));
      columns.set(name, Promise.all(blocks).then((loaded) => Object.fromEntries(
        Object.keys(loaded[0]).map((key) => [key, loaded.flatMap((block) => block[key])]))));
      columns.get(name).catch(() => columns.delete(name));
    }
    return columns.get(name);
  }
  const folderOf = (set, model, seed) => `${set.models.indexOf(model)}/${model.seeds.indexOf(seed)}/`;
  const chunk = (set, folder, at) => load(`${index.sets.indexOf(set)}/${folder}/${Math.floor(at / set.chunk)}`);
  // The entry of one instance in its chunk.
  const entry = async (set, folder, at) => (await chunk(set, folder, at))[at % set.chunk];

  // A text with a flag for each token: 1 for a word, 0 for a special token.
  function flagged(text) {
    for (const part of [text, text.second]) {
      if (part?.tokens && !part.scored) {
        part.scored = part.tokens.map(() => 1);
        for (const at of part.specials) part.scored[at] = 0;
      }
    }
    return text;
  }
  const textAt = async (set, at, model) => flagged(await entry(set, model?.subwords ? `${set.models.indexOf(model)}/texts` : "texts", at));
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const bits = (text, count) => {
    const given = bytes(text);
    return Array.from({ length: count }, (_, i) => (given[i >> 3] >> (7 - (i & 7))) & 1);
  };

  // The state is in the link: #dataset/variant/model/seed/split/number, then the model and seed to compare with. Unknown
  // parts are ignored.

  const state = { set: null, model: null, seed: null, at: 0, other: null };
  const by = (items, key, value) => items.find((item) => String(item[key]) === value);
  const seedOf = (model, value) => model.seeds.find((seed) => String(seed) === value) ?? model.seeds[0];

  function address(changes) {
    const { set, model, seed, at, other, known } = { ...state, ...changes };
    const instance = known && at !== null ? [set.splits[known.split[at]], known.number[at]] : [];
    const compared = instance.length && other ? [other.model.model, other.seed] : [];
    return `#${[set.dataset, set.variant, model.model, seed, ...instance, ...compared].map(encodeURIComponent).join("/")}`;
  }
  const go = (changes) => { location.hash = address({ known, ...changes }); };

  // The columns of the instances and of the model's predictions.
  let known = null;
  let predicted = null;
  let turn = 0;
  async function open(first = false) {
    const mine = ++turn;
    const [dataset, variant, model, seed, split, number, otherModel, otherSeed] = hashParts();
    const sets = index.sets.filter((set) => set.dataset === dataset);
    const next = { set: by(sets, "variant", variant) ?? sets[0] ?? index.sets[0] };
    next.model = by(next.set.models, "model", model) ?? next.set.models.find(({ measures }) => measures.length) ?? next.set.models[0];
    next.seed = seedOf(next.model, seed);
    const compared = by(next.set.models, "model", otherModel);
    next.other = compared ? { model: compared, seed: seedOf(compared, otherSeed) } : null;
    try {
      const [instances, predictions] = await Promise.all([list(next.set), list(next.set, folderOf(next.set, next.model, next.seed))]);
      if (mine !== turn) return;
      const fresh = instances !== known || predictions !== predicted;
      if (instances !== known) clearFilters(next.set);
      [known, predicted] = [instances, predictions];
      const part = next.set.splits.indexOf(split);
      next.at = number === undefined ? -1 : known.number.findIndex((each, i) => each === Number(number) && (part < 0 || known.split[i] === part));
      Object.assign(state, next);
      if (fresh) arrange();
      if (state.at < 0) state.at = order[0] ?? 0;
      const canonical = address({ known });
      if (location.hash !== canonical) try { history.replaceState(null, "", canonical); } catch { /* Some browsers forbid it for files. */ }
      choose();
      reveal(first || fresh);
      await draw();
    } catch (error) { showError(error); }
  }
  const showError = (error) => stage.replaceChildren(make("p", { class: "warning", role: "alert", text: error.message }));

  // The selectors.

  const setName = (set) => `${set.dataset}/${set.variant}`;
  const dataset = choice("Dataset", [...new Set(index.sets.map((set) => set.dataset))],
    () => go({ set: by(index.sets, "dataset", dataset.select.value), at: null, other: null, ...firstOf(by(index.sets, "dataset", dataset.select.value)) }));
  const variant = choice("Variant", [], () => {
    const set = index.sets.find((each) => setName(each) === `${dataset.select.value}/${variant.select.value}`);
    go({ set, at: null, other: null, ...firstOf(set) });
  });
  // The same model and seed if the set has them.
  function firstOf(set) {
    const model = by(set.models, "model", state.model.model) ?? set.models[0];
    return { model, seed: seedOf(model, String(state.seed)) };
  }
  const model = choice("Model", [], () => {
    const chosen = by(state.set.models, "model", model.select.value);
    go({ model: chosen, seed: seedOf(chosen, String(state.seed)) });
  });
  const seed = choice("Seed", [], () => go({ seed: seedOf(state.model, seed.select.value) }));
  const compare = choice("Compare with", [], () => {
    const [i, j] = compare.select.value.split(" ");
    const chosen = state.set.models[i];
    go({ other: chosen ? { model: chosen, seed: chosen.seeds[j] } : null });
  });
  const shading = choice("Shade by", [["value", "value"], ["rank", "rank"]], () => draw());

  function choose() {
    const { set } = state;
    dataset.select.value = set.dataset;
    const variants = index.sets.filter((each) => each.dataset === set.dataset).map((each) => each.variant);
    fill(variant.select, variants);
    variant.select.value = set.variant;
    variant.field.hidden = variants.length === 1 && variants[0] === "plain";
    fill(model.select, set.models.map((each) => each.model));
    model.select.value = state.model.model;
    fill(seed.select, state.model.seeds.map(String));
    seed.select.value = String(state.seed);
    const pairs = set.models.flatMap((each, i) => each.seeds.map((value, j) => [`${i} ${j}`, `${each.model}, seed ${value}`]));
    fill(compare.select, [["", "nothing"], ...pairs.filter(([, name]) => name !== `${state.model.model}, seed ${state.seed}`)]);
    compare.select.value = state.other ? `${set.models.indexOf(state.other.model)} ${state.other.model.seeds.indexOf(state.other.seed)}` : "";
    shading.field.hidden = set.images;
  }

  // The list, filtered and sorted; only visible rows are elements.

  const ANY = "";
  const filter = (label) => choice(label, [], () => { arrange(); reveal(true); });
  const filters = { label: filter("Class"), predicted: filter("Predicted"), right: filter("Outcome"), explained: filter("Explained") };
  const sort = choice("Sort by", [], () => { arrange(); reveal(true); });
  const reverse = make("button", { type: "button", class: "reverse", "aria-pressed": "false", title: "Reverse the order", "aria-label": "Reverse the order", text: "↑",
    on: { click: () => {
      const down = reverse.getAttribute("aria-pressed") === "false";
      reverse.setAttribute("aria-pressed", String(down));
      reverse.textContent = down ? "↓" : "↑";
      arrange();
      reveal(true);
    } } });
  const search = make("input", { type: "search", placeholder: "words of the text", on: { input: () => rest(find, 250) } });
  const searching = make("label", { class: "grow" }, make("span", { text: "Search" }), search);
  const progress = make("progress", { max: "1", value: "0", "aria-label": "Texts searched" });
  const filtering = make("details", { class: "filtering" }, make("summary", { text: "Filter and sort" }),
    make("div", { class: "controls filters" }, ...Object.values(filters).map(({ field }) => field), make("div", { class: "sorting" }, sort.field, reverse)));
  const count = make("p", { class: "count", role: "status" });
  const inside = make("div", { class: "inside" });
  const view = make("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Instances", on: { scroll: () => { paint(); rest(fetchSeen, REST); }, keydown: inList } }, inside);

  let order = [];
  let hits = null;
  const waits = new Map();
  function rest(task, milliseconds) {
    clearTimeout(waits.get(task));
    waits.set(task, setTimeout(task, milliseconds));
  }

  function clearFilters(set) {
    const names = set.classes.map((name, i) => [String(i), name]);
    fill(filters.label.select, [[ANY, "any"], ...names]);
    fill(filters.predicted.select, [[ANY, "any"], ...names]);
    fill(filters.right.select, [[ANY, "any"], ["1", "right"], ["0", "wrong"]]);
    fill(filters.explained.select, [[ANY, "any"], ["1", "explained"], ["0", "not explained"]]);
    for (const { select } of Object.values(filters)) select.value = ANY;
    searching.hidden = set.images;
    search.value = "";
    hits = null;
    progress.hidden = true;
  }

  const right = (at) => known.label[at] === predicted.predicted[at];
  function arrange() {
    const value = Object.fromEntries(Object.entries(filters).map(([key, { select }]) => [key, select.value]));
    fill(sort.select, [["number", "number"], ...(state.set.images ? [] : [["length", "length"]]), ["probability", "probability"],
      ...(predicted.tau.some((tau) => tau !== null) ? [["tau", "agreement (mean τ)"]] : [])]);
    filters.explained.field.hidden = predicted.explained.every(Boolean) || !predicted.explained.some(Boolean);
    const kept = [];
    for (let at = 0; at < known.number.length; at++) {
      if ((value.label === ANY || known.label[at] === Number(value.label))
        && (value.predicted === ANY || predicted.predicted[at] === Number(value.predicted))
        && (value.right === ANY || right(at) === (value.right === "1"))
        && (value.explained === ANY || filters.explained.field.hidden || predicted.explained[at] === Number(value.explained))
        && (hits === null || hits[at])) kept.push(at);
    }
    const down = reverse.getAttribute("aria-pressed") === "true" ? -1 : 1;
    const keys = sort.select.value === "length" ? known.length : predicted[sort.select.value];
    if (keys) {
      // Missing values stay last, and equal ones keep their order.
      kept.sort((a, b) => (keys[a] === null || keys[b] === null ? (keys[a] === null) - (keys[b] === null) : down * (keys[a] - keys[b])) || a - b);
    } else if (down < 0) kept.reverse();
    order = kept;
    inside.style.height = `${order.length * ROW}px`;
    const { set } = state;
    const whole = set.total > set.count ? ` of ${number(set.total)}` : "";
    count.textContent = order.length === set.count ? `${number(set.count)}${whole} instances of ${set.splits.join(" and ")}`
      : `${number(order.length)} of ${number(set.count)} instances match`;
    paint();
    rest(fetchSeen, 0);
  }
  const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");

  const firstSeen = () => Math.max(0, Math.floor(view.scrollTop / ROW) - 2);
  const seen = () => order.slice(firstSeen(), firstSeen() + Math.ceil(view.clientHeight / ROW) + 4);
  // Loaded texts, by the index of their instance in the set.
  let snippets = new Map();
  let snippetsOf = null;

  function paint() {
    if (!known) return;
    if (snippetsOf !== state.set) [snippets, snippetsOf] = [new Map(), state.set];
    const start = firstSeen();
    inside.replaceChildren(...seen().map((at, i) => line(at, start + i)));
    const chosen = order.indexOf(state.at);
    if (chosen >= 0) view.setAttribute("aria-activedescendant", `instance-${state.at}`);
    else view.removeAttribute("aria-activedescendant");
  }
  // A row that is repainted between press and release gets no click event, so both are resolved by their position.
  const pointed = (event) => order[Math.floor((event.clientY - inside.getBoundingClientRect().top) / ROW)];
  let pressed;
  inside.addEventListener("mousedown", (event) => { pressed = event.button ? undefined : pointed(event); });
  inside.addEventListener("mouseup", (event) => { if (pressed !== undefined && pressed === pointed(event)) go({ at: pressed }); });
  // A click without a pointer, as from screen readers.
  inside.addEventListener("click", (event) => {
    const row = event.detail ? null : event.target.closest(".instance");
    if (row) go({ at: Number(row.id.replace("instance-", "")) });
  });
  const name = (label) => state.set.classes[label] ?? `class ${label}`;
  const titleOf = (at) => `${state.set.splits[known.split[at]]} ${known.number[at]}`;
  function line(at, rank) {
    const outcome = make("span", { class: right(at) ? "right" : "wrong", text: `${right(at) ? "✓" : "✗"} ${name(predicted.predicted[at])}` });
    const head = make("span", { class: "head" }, make("b", { text: titleOf(at) }), outcome, make("span", { class: "share", text: fixed(predicted.probability[at]) }));
    const row = make("div", { role: "option", id: `instance-${at}`, class: "instance", "aria-selected": String(at === state.at), "aria-setsize": order.length, "aria-posinset": rank + 1 }, head);
    row.style.top = `${rank * ROW}px`;
    const text = snippets.get(at);
    if (text?.pixels) {
      const thumb = make("canvas", { class: "thumb", "aria-hidden": "true" });
      paintImage(thumb, text);
      row.classList.add("with-thumb");
      row.prepend(thumb);
    }
    if (!state.set.images) row.append(make("span", { class: "snippet", dir: "auto", text: text ? wordsOf(text).slice(0, 24).join(" ") : "…" }));
    return row;
  }
  async function fetchSeen() {
    const { set } = state;
    const missing = seen().filter((at) => !snippets.has(at));
    if (!missing.length) return;
    try {
      const texts = await Promise.all(missing.map((at) => textAt(set, at)));
      if (state.set !== set) return;
      if (snippets.size > 2000) snippets.clear();
      missing.forEach((at, i) => snippets.set(at, texts[i]));
      paint();
    } catch (error) { showError(error); }
  }
  function reveal(centre) {
    paint();
    const rank = order.indexOf(state.at);
    if (rank < 0) return;
    const [top, height] = [rank * ROW, view.clientHeight];
    if (centre) view.scrollTop = top - height / 2 + ROW / 2;
    else if (top < view.scrollTop) view.scrollTop = top;
    else if (top + ROW > view.scrollTop + height) view.scrollTop = top + ROW - height;
    paint();
    rest(fetchSeen, REST);
  }

  // Texts are searched chunk by chunk; the list shows the hits so far.
  let searches = 0;
  async function find() {
    const mine = ++searches;
    const { set } = state;
    const words = search.value.toLowerCase().trim();
    progress.hidden = !words;
    hits = words ? new Uint8Array(set.count) : null;
    if (!words) { arrange(); reveal(true); return; }
    const chunks = Math.ceil(set.count / set.chunk);
    let shown = 0;
    for (let k = 0; k < chunks; k += BATCH) {
      const numbers = Array.from({ length: Math.min(BATCH, chunks - k) }, (_, i) => k + i);
      let batch;
      try { batch = await Promise.all(numbers.map((each) => chunk(set, "texts", each * set.chunk))); } catch (error) { showError(error); return; }
      if (mine !== searches || state.set !== set) return;
      batch.forEach((texts, i) => texts.forEach((text, j) => {
        const whole = [...text.tokens, ...(text.second?.tokens ?? [])].join(" ").toLowerCase();
        if (whole.includes(words)) hits[numbers[i] * set.chunk + j] = 1;
      }));
      const done = Math.min(set.count, (k + BATCH) * set.chunk);
      progress.value = done / set.count;
      if (performance.now() - shown > 200 || done === set.count) {
        arrange();
        if (done < set.count) count.textContent += `; ${number(done)} searched`;
        shown = performance.now();
      }
    }
    progress.hidden = true;
    if (!hits[state.at] && order.length) go({ at: order[0] });
  }

  function move(step) {
    const rank = order.indexOf(state.at);
    const next = order[Math.min(order.length - 1, Math.max(0, rank + step))];
    if (next !== undefined && next !== state.at) go({ at: next });
  }
  function inList(event) {
    const page = Math.max(1, Math.floor(view.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(steps[event.key]);
  }
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    // Arrow keys belong to the focused element if it uses them.
    if (event.target.closest?.(event.key.startsWith("Arrow") ? "input, select, .scroll, [role=listbox]" : "input, select")) return;
    const steps = { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1 };
    if (event.key in steps) move(steps[event.key]);
    else if (event.key === "/" && !searching.hidden) search.focus();
    else return;
    event.preventDefault();
  });

  // One instance.

  const title = make("h2", { text: "" });
  const where = make("span", { class: "count" });
  const announced = make("p", { class: "unseen", role: "status" });
  const step = (label, offset) => make("button", { type: "button", text: label, on: { click: () => move(offset) } });
  const back = step("← Previous", -1);
  const next = step("Next →", 1);
  const stage = make("div", { class: "stage", "aria-busy": "false" });
  marking(stage);

  let drawn = 0;
  async function draw() {
    const mine = ++drawn;
    const { set, at } = state;
    const shown = [{ model: state.model, seed: state.seed }, ...(state.other ? [state.other] : [])];
    stage.setAttribute("aria-busy", "true");
    try {
      const panels = await Promise.all(shown.map(async (one) => ({
        ...one,
        text: await textAt(set, at, one.model),
        explanation: await entry(set, `${folderOf(set, one.model, one.seed)}explanations`, at),
        masks: one.model.curves ? await chunk(set, `${set.models.indexOf(one.model)}/masks`, at) : null,
      })));
      if (mine !== drawn) return;
      const rank = order.indexOf(at);
      title.textContent = titleOf(at);
      where.textContent = rank < 0 ? "not among the matches" : `${number(rank + 1)} of ${number(order.length)}`;
      announced.textContent = `${titleOf(at)}, ${where.textContent}`;
      back.disabled = rank <= 0;
      next.disabled = rank < 0 || rank >= order.length - 1;
      stage.replaceChildren(...panels.map((one) => panel(one, shown.length > 1)));
      stage.classList.toggle("two", shown.length > 1);
    } catch (error) { if (mine === drawn) showError(error); }
    if (mine === drawn) stage.setAttribute("aria-busy", "false");
  }

  function panel({ model: own, seed: ownSeed, text, explanation, masks }, named) {
    const { set, at } = state;
    const before = named ? [make("h3", { class: "whose", text: `${own.model}, seed ${ownSeed}` })] : [];
    before.push(summary(explanation, known.label[at], text));
    const shown = set.images ? image(own, explanation, text) : words(own, ownSeed, explanation, text);
    return make("section", { class: "panel", "aria-label": `${own.model}, seed ${ownSeed}` }, ...before, ...shown,
      ...(masks ? [masked(own, masks, text)] : []));
  }

  function summary({ probable }, label, text) {
    const [guess, probability] = probable[0];
    const others = state.set.classes.length > 2 ? probable.slice(1) : [];
    const fits = guess === label;
    return make("p", { class: "summary" }, "Predicted ", make("b", { text: name(guess) }), ` with probability ${fixed(probability)}`,
      others.length ? `, then ${others.map(([one, p]) => `${name(one)} ${fixed(p)}`).join(" and ")}` : "",
      "; labelled ", make("b", { text: name(label) }), text.original_label === undefined ? "" : `, which was ${name(text.original_label)} before the dataset was changed`, ". ",
      make("span", { class: fits ? "right" : "wrong", text: fits ? "✓ right" : "✗ wrong" }));
  }

  const percent = (share) => (share === null ? "no importance" : `${Math.round(100 * share)} %`);
  const paper = () => channels(getComputedStyle(document.body).backgroundColor);

  // Token heatmaps: a row for each measure, then adversarial attention, then adversarial models.

  function words(own, ownSeed, explanation, text) {
    const unexplained = own.measures.length > 0 && !Object.keys(explanation.scores).length;
    const groups = [["Importance by each measure", unexplained ? [] : own.measures.map((measure) => measured(measure, own, explanation, text))],
      ["Attention and adversarial attention with nearly the same output", adversarialAttention(explanation)],
      ["Attention of adversarial models with nearly the same output", explanation.adversarial_models ? adversarialModels(explanation, name(explanation.probable[0][0])) : []]];
    const lines = groups.flatMap(([, some]) => some);
    const filled = lines.filter(({ scores }) => scores);
    const before = [];
    if (explanation.mean !== undefined) before.push(make("p", { class: "summary" }, "Mean τ of all pairs of measures: ", make("b", { text: fixed(explanation.mean) }), `. Ranked: ${explanation.ranked}.`));
    if (unexplained) before.push(make("p", { class: "summary", text: `Seed ${ownSeed} has not explained this text: each seed draws its own sample.` }));
    if (!own.measures.length) before.push(make("p", { class: "summary", text: "No measure explains this model." }));
    // The second text is shown once above the rows unless every row has it.
    if (!filled.length || !filled.every(({ pair }) => pair)) before.push(...secondText(text, state.set.second));
    if (filled.length) before.push(legend(filled, text));
    else before.push(heat(text, [], [].values(), "#000000", paper()));
    const ground = paper();
    const rows = groups.flatMap(([heading, some]) => (some.length
      ? [make("h3", { class: "part", text: heading }), ...some.map((one) => row(one, text, ground))] : []));
    return [...before, ...rows, ...(filled.length ? [values(filled, text)] : [])];
  }

  // The τ of a measure with itself when it draws again, if it draws.
  const retest = (measure, reliability) => (measure in reliability ? [`test-retest τ: ${fixed(reliability[measure])}`] : []);

  // The row of a measure: its scores, if it has explained the text, and its agreement with others.
  function measured(measure, { measures, reference, reliability }, { scores, pair, specials, tau, truth }, text) {
    const notes = [];
    if (measures.length > 1 && measure === reference) notes.push("reference");
    if (tau?.[measure] && measure !== reference) notes.push(`τ with ${reference}: ${fixed(tau[measure][0])}`);
    if (tau?.[measure] && Object.keys(tau).length > 2) notes.push(`mean τ: ${fixed(tau[measure][1])}`);
    if (truth && measure in truth) notes.push(`${percent(truth[measure])} on the ${text.groups ? "truth" : "evidence"}`);
    notes.push(...retest(measure, reliability));
    return {
      name: measure,
      colour: index.measures[measure],
      notes,
      scores: scores[measure],
      pair: pair?.[measure],
      specials: specials?.[measure],
      nothing: "No importances of this text.",
    };
  }

  function adversarialAttention({ adversaries = [], scores }) {
    const own = adversaries.length && scores.attention ? [{ name: "attention of the model", colour: index.attention, notes: [], scores: scores.attention }] : [];
    return [...own, ...adversaries.map((attack) => ({
      name: `adversarial attention, ε = ${attack.epsilon}`,
      colour: index.adversarial_attention,
      notes: [attack.scores ? `JSD ${fixed(attack.jsd)}, output changed by ${fixed(attack.change, 3)}` : "none found"],
      scores: attack.scores,
      nothing: "The search found no different attention that keeps the output within ε.",
    }))];
  }

  function adversarialModels({ probable, adversarial_models: { heads, scores, models } }, guess) {
    const probability = (p) => `probability of ${guess} ${fixed(p, 3)}`;
    return [{
      name: heads > 1 ? `base model, mean of ${heads} heads` : "base model",
      colour: index.attention,
      notes: [probability(probable[0][1])],
      scores,
    }, ...models.map((adversary) => ({
      name: `adversarial model (${adversary.title})`,
      colour: index.adversarial_model,
      notes: [`seed ${adversary.seed}, JSD ${fixed(adversary.jsd)}`, probability(adversary.probability)],
      scores: adversary.scores,
    }))];
  }

  function legend(lines, text) {
    const texts = lines.some(({ pair }) => pair) ? "both texts" : "the text";
    const [least, most] = shading.select.value === "rank" ? ["lowest rank", `highest rank in ${texts}`] : ["0", `highest score of the measure in ${texts}`];
    const scale = make("p", { class: "scale" }, least, make("i", { "aria-hidden": "true" }), most);
    const mark = (kind, meaning) => scale.append(make("span", { class: `word ${kind}`, text: "word" }), meaning);
    const scored = ({ scores, pair = [], specials = [] }) => [...scores, ...pair, ...specials];
    if (lines.some((line) => scored(line).some((score) => score < 0))) mark("negative", "negative score");
    if (text.evidence) mark("evidence", "marked as evidence");
    const groups = [text, text.second].flatMap((part) => Object.values(part?.groups ?? {}));
    if (groups.includes(1)) mark("evidence", "determines the label");
    if (groups.some((group) => group > 1)) mark("decoy", "part of the manipulation, but does not determine the label");
    return scale;
  }

  // A row's scores token by token, for the text and the second one; undefined for tokens without a score.
  function byToken({ scores, pair = [], specials = [] }, text) {
    const others = specials.values();
    return [[text, scores], [text.second ?? { scored: [] }, pair]].map(([part, given]) => {
      const own = given.values();
      return part.scored.map((free) => (free ? own : others).next().value);
    });
  }

  function row(one, text, ground) {
    const swatch = make("i", { "aria-hidden": "true" });
    swatch.style.background = one.colour;
    const head = make("h4", {}, make("span", { class: "chip" }, swatch, one.name), ...one.notes.map((note) => make("small", { text: note })));
    if (!one.scores) return make("div", { class: "measure" }, head, make("p", { class: "words count", text: one.nothing }));
    const [first, second] = byToken(one, text);
    // One scale for all tokens of the row.
    const share = shares([...first, ...second].filter((score) => score !== undefined), shading.select.value).values();
    const texts = make("div", {}, heat(text, first, share, one.colour, ground));
    if (second.some((score) => score !== undefined)) {
      const line = heat(text.second, second, share, one.colour, ground, "second-");
      line.prepend(make("span", { class: "kind", text: `${state.set.second}: ` }));
      texts.append(line);
    }
    return make("div", { class: "measure" }, head, texts);
  }

  // A text with the background of each token by its share of the highest score; `share` yields one for each score.
  function heat({ tokens, scored, evidence, groups }, scores, share, colour, ground, mark = "") {
    const line = make("p", { class: "words" });
    tokens.forEach((token, position) => {
      const score = scores[position];
      const word = make("span", { class: scored[position] ? "word" : "word special", dir: "auto", text: token });
      if (score !== undefined) {
        const part = share.next().value;
        if (part > 0) shade(word, part, colour, ground);
        if (score < 0) word.classList.add("negative");
        word.title = score === null ? "no score" : exact(score);
        word.dataset.position = mark + position;
      }
      if (evidence?.includes(position)) word.classList.add("evidence");
      if (groups?.[position]) word.classList.add(groups[position] === 1 ? "evidence" : "decoy");
      line.append(word, " ");
    });
    return line;
  }

  // The same numbers as a table, for readers who cannot use colours; built when it is opened.
  function table(label, fillIn) {
    const details = make("details", {}, make("summary", { text: "Scores as a table" }));
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const [head, ...bodies] = fillIn();
      const titles = head.map((each, i) => make("th", { scope: "col", text: each, class: i ? "number" : "" }));
      details.append(make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
        make("table", {}, make("thead", {}, make("tr", {}, ...titles)), ...bodies)));
    });
    return details;
  }
  const tableRow = (head, cells) => make("tr", {}, make("th", { scope: "row", dir: "auto", text: head }), ...cells.map((cell) => make("td", { class: "number", text: cell })));
  function values(lines, text) {
    return table("Importances of every word", () => {
      const scores = lines.map((one) => byToken(one, text));
      const head = ["word", ...lines.map((one) => one.name)];
      const bodies = [text, text.second ?? { tokens: [] }].map(({ tokens }, part) => make("tbody", {}, ...tokens.flatMap((token, i) => {
        const cells = scores.map((one) => one[part][i]);
        return cells.every((score) => score === undefined) ? [] : [tableRow(token, cells.map((score) => exact(score ?? null)))];
      })));
      if (bodies[1].rows.length) bodies[1].prepend(make("tr", {}, make("th", { scope: "rowgroup", class: "kind", colspan: head.length, text: state.set.second })));
      return [head, ...bodies];
    });
  }

  // Images, with the colours of the figures: pale grey under red for positive and blue for negative scores.

  const POSITIVE = [179, 28, 41];
  const NEGATIVE = [26, 92, 171];
  function paintImage(canvas, { side, pixels }, map) {
    canvas.width = canvas.height = side;
    const given = bytes(pixels);
    const steps = map && new Int8Array(bytes(map).buffer);
    const painted = new ImageData(side, side);
    for (let i = 0; i < side * side; i++) {
      const [r, g, b] = [given[3 * i], given[3 * i + 1], given[3 * i + 2]];
      const share = steps ? Math.abs(steps[i]) / index.steps : 0;
      const grey = 140.25 + 0.45 * (r + g + b) / 3;
      const colour = steps?.[i] < 0 ? NEGATIVE : POSITIVE;
      painted.data.set(steps ? [...colour.map((c) => grey * (1 - share) + c * share), 255] : [r, g, b, 255], 4 * i);
    }
    canvas.getContext("2d").putImageData(painted, 0, 0);
  }
  // The edge of the region as lines between pixels, of the same width at any size.
  function outline({ side, region }) {
    const inRegion = bits(region, side * side);
    const is = (x, y) => x >= 0 && y >= 0 && x < side && y < side && inRegion[y * side + x] === 1;
    let path = "";
    for (let y = 0; y <= side; y++) {
      for (let x = 0; x <= side; x++) {
        if (is(x, y) !== is(x, y - 1)) path += `M${x} ${y}h1`;
        if (is(x, y) !== is(x - 1, y)) path += `M${x} ${y}v1`;
      }
    }
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${side} ${side}`, "aria-hidden": "true" })) svg.setAttribute(key, value);
    for (const [key, value] of Object.entries({ d: path, fill: "none", "vector-effect": "non-scaling-stroke" })) line.setAttribute(key, value);
    svg.append(line);
    return svg;
  }
  function plate(text, title, notes, map, colour) {
    const canvas = make("canvas", { role: "img", "aria-label": [title, ...notes].join(", ") });
    paintImage(canvas, text, map);
    const swatch = make("i", { "aria-hidden": "true" });
    swatch.style.background = colour ?? "transparent";
    const frame = make("div", { class: "frame" }, canvas, ...(text.region ? [outline(text)] : []));
    return make("figure", { class: "map" }, frame, make("figcaption", {}, make("span", { class: "chip" }, ...(colour ? [swatch] : []), title), ...notes.map((note) => make("small", { text: note }))));
  }
  function image(own, { maps, truth }, text) {
    const explained = own.measures.filter((measure) => measure in maps);
    const share = text.region ? bits(text.region, text.side ** 2).reduce((a, b) => a + b, 0) / text.side ** 2 : null;
    const notes = (measure) => [...(truth && measure in truth ? [`${percent(truth[measure])} inside the outline`] : []), ...retest(measure, own.reliability)];
    const plates = explained.map((measure) => plate(text, measure, notes(measure), maps[measure][1], index.measures[measure]));
    const negative = explained.some((measure) => new Int8Array(bytes(maps[measure][1]).buffer).some((value) => value < 0));
    const scale = make("p", { class: "scale" }, "0", make("i", { class: "positive", "aria-hidden": "true" }), `strongest${negative ? " positive" : ""} score of the measure`);
    if (negative) scale.append(make("i", { class: "below", "aria-hidden": "true" }), "negative");
    if (text.region) scale.append(make("i", { class: "edge", "aria-hidden": "true" }), `effective region, ${percent(share)} of the image`);
    const shown = make("div", { class: "maps" }, plate(text, "image", share === null ? [] : [`region ${percent(share)}`]), ...plates);
    if (!explained.length) return [shown, make("p", { class: "summary", text: "No measure has explained this image." })];
    return [scale, shown, table("Importances of the image", () => [["measure", "score at full strength", "inside the outline"], make("tbody", {}, ...explained.map((measure) =>
      tableRow(measure, [exact(maps[measure][0]), truth && measure in truth ? percent(truth[measure]) : "–"])))])];
  }

  // Masked texts, a row for each level. Boxes are as wide as their words, so that all rows break at the same words.

  const strategyOf = (curve) => `${curve.strategy}, ${curve.unit === "relative" ? "percent" : "number"} of words`;
  const lastCurve = { strategy: "", measure: "" };
  function masked(own, masks, text) {
    const rows = make("div");
    const strategy = choice("Strategy", [...new Set(own.curves.map(strategyOf))], () => { measures(); levels(); });
    const measure = choice("Measure", [], levels);
    const at = state.at % state.set.chunk;
    if (offers(strategy.select, lastCurve.strategy)) strategy.select.value = lastCurve.strategy;
    function measures() {
      fill(measure.select, own.curves.filter((curve) => strategyOf(curve) === strategy.select.value).map((curve) => curve.measure));
      if (offers(measure.select, lastCurve.measure)) measure.select.value = lastCurve.measure;
    }
    function levels() {
      Object.assign(lastCurve, { strategy: strategy.select.value, measure: measure.select.value });
      const curve = own.curves.find((each) => strategyOf(each) === strategy.select.value && each.measure === measure.select.value);
      const colour = index.measures[curve.measure];
      const ground = paper();
      const total = wordsOf(text).length;
      let before = Array(total).fill(0);
      rows.replaceChildren(...[[0, null], ...curve.levels].map(([level, variantName]) => {
        const packed = variantName === null ? "" : masks[variantName][at];
        const title = curve.unit === "relative" ? `${level} %` : `${level} ${level === 1 ? "word" : "words"}`;
        if (packed === null) return make("div", { class: "measure" }, make("h4", { text: title }), make("p", { class: "count", text: "Not masked." }));
        const flags = variantName === null ? before : bits(packed, total);
        const hidden = flags.reduce((a, b) => a + b, 0);
        const one = make("div", { class: "measure" }, make("h4", {}, title, make("small", { text: `${hidden} of ${total} masked` })), maskedRow(text, flags, before, colour, ground));
        before = flags;
        return one;
      }));
      shade(fresh, 1, colour, ground);
    }
    const fresh = make("del", { class: "word", text: "words" });
    const key = make("p", { class: "scale" }, fresh, "masked at this level", make("del", { class: "word masked-before", title: "words", text: "words" }), `masked at an earlier level; seed ${own.masks_seed}`);
    measures();
    levels();
    return make("section", { class: "masked", "aria-label": "Masked by level" }, make("h3", { class: "part", text: "Masked words by level, for retrained models" }),
      make("div", { class: "controls" }, strategy.field, measure.field), key, rows);
  }
  function maskedRow(text, flags, before, colour, ground) {
    const line = make("p", { class: "words" });
    let count = 0;
    text.tokens.forEach((token, position) => {
      const free = text.scored[position];
      const hidden = free && flags[count];
      const word = make(hidden ? "del" : "span", { class: free ? "word" : "word special", dir: "auto", text: token });
      if (free) word.dataset.position = position;
      if (hidden) word.title = token;
      if (hidden && before[count]) word.classList.add("masked-before");
      else if (hidden) shade(word, 1, colour, ground);
      count += free;
      line.append(word, " ");
    });
    return line;
  }

  app.replaceChildren(
    make("div", { class: "controls" }, dataset.field, variant.field, model.field, seed.field, compare.field, shading.field),
    make("div", { class: "explorer" },
      make("section", { class: "finder", "aria-label": "List of instances" },
        make("div", { class: "controls search" }, searching), progress, filtering, count, view,
        make("p", { class: "keys" }, make("kbd", { text: "j" }), " ", make("kbd", { text: "k" }), " or ", make("kbd", { text: "←" }), " ", make("kbd", { text: "→" }),
          " previous and next, ", make("kbd", { text: "/" }), " search; in the list ", make("kbd", { text: "↑" }), " ", make("kbd", { text: "↓" }), " and ", make("kbd", { text: "Home" }), ", ", make("kbd", { text: "End" }))),
      make("section", { class: "detail", "aria-label": "Instance" }, make("div", { class: "controls bar" }, title, where, back, next), announced, stage)));
  progress.hidden = true;
  filtering.open = matchMedia("(min-width: 50rem)").matches;
  open(true);
  addEventListener("hashchange", () => open());
  addEventListener("resize", () => { paint(); rest(fetchSeen, REST); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
})();
