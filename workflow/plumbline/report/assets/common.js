"use strict";
// Functions shared by all pages, under one name. Classic scripts, since browsers load no modules from files.
globalThis.plumbline = (() => {
  // Elements are built from text only: data is never parsed as markup.
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

  // `values`: texts, or pairs of a value and its text. The selected value is kept if it is still an option.
  function fill(select, values) {
    const before = select.value;
    const pairs = values.map((value) => (Array.isArray(value) ? value : [value, value]));
    select.replaceChildren(...pairs.map(([value, text]) => make("option", { value, text })));
    if (pairs.some(([value]) => value === before)) select.value = before;
  }

  const offers = (select, value) => [...select.options].some((option) => option.value === value);

  const fixed = (value, decimals = 2) => {
    if (value === null) return "–";
    const text = Math.abs(value).toFixed(decimals);
    return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
  };

  // A score to the three digits of the data.
  const exact = (value) => {
    if (value === null) return "–";
    const small = value !== 0 && Math.abs(value) < 0.001;
    return (small ? value.toExponential(2) : String(value)).replaceAll("-", "−");
  };

  // The parts of a link such as #figures/movie/bilstm after its kind, or null for another kind.
  const hashParts = () => location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  function linked(kind) {
    const [first, ...parts] = hashParts();
    return first === kind && parts.length ? parts : null;
  }

  // `choices`: results of choice(), or objects whose `select` has a value.
  function link(kind, choices) {
    const parts = choices.map(({ select }) => encodeURIComponent(select.value));
    try { history.replaceState(null, "", `#${kind}/${parts.join("/")}`); } catch { /* Some browsers forbid it for files. */ }
  }

  const missing = (value) => value === null || value === "" || value === "–";

  function compare(a, b) {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN) ? String(a).localeCompare(String(b), "en", { numeric: true }) : numbers[0] - numbers[1];
  }

  // A button in each header, which calls `sort` with the column and 1 or −1.
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

  // The sort key of a cell.
  const key = (cell) => (cell.dataset.value === undefined ? cell.textContent : cell.dataset.value);

  // Makes the headers of a table sort its rows; missing values stay last.
  function sortable(table) {
    const body = table.tBodies[0];
    sortButtons([...table.tHead.rows[0].cells], (column, direction) => {
      const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
      const known = rows.filter(([value]) => !missing(value));
      const unknown = rows.filter(([value]) => missing(value));
      known.sort((a, b) => direction * compare(a[0], b[0]));
      body.append(...[...known, ...unknown].map(([, row]) => row));
    });
  }

  // A small axis from −1 to 1, drawn under numbers.
  function strip(value, half) {
    const [whisker, dot] = [make("u"), make("i")];
    whisker.style.left = `${50 * (value - half + 1)}%`;
    whisker.style.width = `${100 * half}%`;
    dot.style.left = `${50 * (value + 1)}%`;
    return make("span", { class: "strip", "aria-hidden": "true" }, whisker, dot);
  }

  const channels = (colour) => (colour.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
    : colour.match(/[\d.]+/g).slice(0, 3).map(Number));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  // A word's background is the measure's colour over the page's; its text is black or white, whichever has more contrast.
  function shade(element, share, colour, paper) {
    const strength = 0.92 * share;
    const mixed = channels(colour).map((c, i) => Math.round(c * strength + paper[i] * (1 - strength)));
    element.style.backgroundColor = `rgb(${mixed.join(",")})`;
    element.style.color = luminance(mixed) > 0.179 ? "#000" : "#fff";
  }

  // The strength of each score, from 0 to 1, by its value or its rank.
  function shares(scores, by) {
    const sizes = scores.map((score) => (score === null ? 0 : Math.abs(score)));
    if (by === "rank") {
      const sorted = [...sizes].sort((a, b) => a - b);
      // Equal scores share the mean of their ranks, as in Kendall's tau-b.
      return sizes.map((size) => {
        const rank = (sorted.indexOf(size) + sorted.lastIndexOf(size)) / 2;
        // Squared, so that the highest ranks stand out.
        return sorted.length > 1 ? (rank / (sorted.length - 1)) ** 2 : 0;
      });
    }
    const largest = Math.max(...sizes);
    return sizes.map((size) => (largest > 0 ? size / largest : 0));
  }

  // Marks the word under the pointer in every row.
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
  const secondText = (text, name) => (text.second ? [make("p", { class: "second" }, make("span", { text: `${name}: ` }),
    make("bdi", { text: wordsOf(text.second).join(" ") }))] : []);

  // Data files are scripts that call loaded() with their name: pages opened from files cannot read any others.
  const data = new Map();
  const loaded = (name, value) => { data.set(name, value); };

  return {
    data, loaded, make, choice, fill, offers, fixed, exact, hashParts, linked, link, missing, compare, sortButtons, sortable, strip, key,
    channels, luminance, shade, shares, marking, wordsOf, secondText,
  };
})();
