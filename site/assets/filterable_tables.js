// Controls above each table of a cell tagged `filterable`: a box for words, and a switch for each value of the column
// "Engine". The table itself is in the page, so without this script all of it is there to read.
"use strict";

const SWITCHED = "Engine";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// On a phone the style sheet turns rows into cards, and some browsers then forget that this is a table.
function keepMeaning(table) {
  const roles = { table: "table", "thead, tbody": "rowgroup", tr: "row", th: "columnheader", td: "cell" };
  table.setAttribute("role", roles.table);
  for (const [selector, role] of Object.entries(roles).slice(1)) {
    for (const part of table.querySelectorAll(selector)) part.setAttribute("role", role);
  }
}

// So that kv_cache finds kv-cache, and the other way round.
function plain(text) {
  return text.toLowerCase().replaceAll("_", "-");
}

function makeFilterable(table) {
  const headings = [...table.querySelectorAll("thead th")].map((heading) => heading.textContent.trim());
  const column = headings.indexOf(SWITCHED);
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    words: plain(row.textContent),
    value: row.cells[column]?.textContent.trim(),
  }));

  const box = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  const status = element("p", { role: "status" });
  const switches = [...new Set(rows.map(({ value }) => value))].map((value) => {
    const input = element("input", { type: "checkbox", value, checked: "" });
    return { input, label: element("label", {}, input, ` ${value}`) };
  });

  function show() {
    const wanted = plain(box.value).split(/\s+/).filter(Boolean);
    const on = new Set(switches.filter(({ input }) => input.checked).map(({ input }) => input.value));
    let shown = 0;
    for (const { row, words, value } of rows) {
      row.hidden = !(on.has(value) && wanted.every((word) => words.includes(word)));
      shown += !row.hidden;
    }
    status.textContent = `${shown} of ${rows.length} rows`;
  }

  const controls = element(
    "form",
    { class: "table-filter", role: "search", "aria-label": "Filter the table" },
    element("label", {}, "Words, such as “prefix” or “since 0.4” ", box),
    element("fieldset", {}, element("legend", {}, "Engines"), ...switches.map(({ label }) => label)),
    status,
  );
  controls.addEventListener("input", show);
  controls.addEventListener("submit", (event) => event.preventDefault());
  table.closest(".tag_filterable").before(controls);
  keepMeaning(table);
  // A browser that comes back to a page fills in what was typed before.
  window.addEventListener("pageshow", show);
  show();
}

for (const table of document.querySelectorAll(".tag_filterable table")) makeFilterable(table);
