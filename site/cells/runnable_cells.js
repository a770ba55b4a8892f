// The controls below a code cell that a browser can run: change it, run it, put it back.
//
// The page holds the texts of its cells. Which earlier lines a cell needs, running it and putting its end into words is
// `enginelab.rerun`, in the page's one Python worker, which starts when the first editor is opened. Without this script
// nothing is missing from the page.

import { ask, start, supported, watch } from "../_live/python.js";

const { cells, before } = JSON.parse(document.getElementById("page-cells").textContent);
// What the reader has made of which cell. It counts for the cells below, as in a notebook.
const changed = new Map();
let starting = true;
watch((state) => { starting = state !== "ready"; });

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function textOf(number) {
  return changed.get(number) ?? cells[number];
}

function question(number) {
  return { kind: "run", earlier: cells.slice(0, number).map((_, each) => textOf(each)), cell: textOf(number) };
}

function whereItFailed(ending) {
  if (ending.earlier !== null) {
    return changed.has(ending.earlier) ? "In a cell above that you changed: " : "In a cell above: ";
  }
  return ending.line ? `Line ${ending.line}: ` : "";
}

// What the reader hears and sees: a sentence, and what was printed.
function inWords(ending, printed) {
  if (ending.error) return [whereItFailed(ending) + ending.error, printed];
  const shown = printed + ending.value;
  if (shown) return ["Your version gives:", shown];
  if (!ending.names.length) return ["It ran to its end and shows nothing.", ""];
  return ["It ran to its end. It sets:", ending.names.map(([name, value]) => `${name} = ${value}`).join("\n")];
}

class Editor {
  constructor(place) {
    this.number = Number(place.dataset.cell);
    this.place = place;
    this.source = place.parentElement.querySelector(":scope > .cell_input");
    this.opener = element("button", { type: "button", class: "cell-button" }, "Edit and run");
    this.opener.addEventListener("click", () => this.open());
    place.append(this.opener);
  }

  open() {
    if (!this.text) this.build();
    this.source.hidden = this.opener.hidden = true;
    this.form.hidden = false;
    this.text.focus();
    start();
  }

  build() {
    const button = (words) => element("button", { type: "button", class: "cell-button" }, words);
    const id = `cell-${this.number}`;
    this.text = element("textarea", {
      id, spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", "aria-describedby": `${id}-keys`,
    });
    this.text.value = cells[this.number];
    // Otherwise a browser shows the end of the last line first, which on a phone hides the beginning.
    this.text.setSelectionRange(0, 0);
    this.runner = button("Run");
    this.reset = button("Reset");
    this.lines = element("pre", { tabindex: "0" });
    this.details = element("details", {}, element("summary", {}, "Runs after these lines"), this.lines);
    this.status = element("p", { role: "status" });
    this.printed = element("pre", { tabindex: "0", role: "region", "aria-label": "Output of your version" });
    this.output = element("div", { class: "cell-result", "aria-live": "polite" }, this.status, this.printed);
    this.form = element(
      "form",
      { class: "cell-editor", "aria-label": "Change and run this cell" },
      this.details,
      element("label", { for: id }, "Your version of this cell"),
      this.text,
      element("div", { class: "cell-buttons" }, this.runner, this.reset,
        element("span", { id: `${id}-keys` }, "Ctrl+Enter runs it, Escape puts it back.")),
      this.output,
    );
    this.place.append(this.form);
    this.showBefore(before[this.number]);
    this.show("", "");
    this.fit();
    this.text.addEventListener("input", () => this.note());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.runner.addEventListener("click", () => this.run());
    this.reset.addEventListener("click", () => this.close());
  }

  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run();
    } else if (event.key === "Escape" && !event.isComposing) {
      event.preventDefault();
      this.close();
    }
  }

  note() {
    if (this.text.value === cells[this.number]) changed.delete(this.number);
    else changed.set(this.number, this.text.value);
    this.fit();
  }

  fit() {
    this.text.rows = this.text.value.split("\n").length;
  }

  // Puts the cell back as the page has it.
  close() {
    this.text.value = cells[this.number];
    this.note();
    this.show("", "");
    this.showBefore(before[this.number]);
    this.form.hidden = true;
    this.source.hidden = this.opener.hidden = false;
    this.opener.focus();
  }

  showBefore(lines) {
    this.details.hidden = !lines;
    this.lines.textContent = lines;
  }

  show(sentence, printed, failed = false) {
    this.status.textContent = sentence;
    this.status.classList.toggle("cell-failed", failed);
    this.printed.textContent = printed.replace(/\n+$/, "");
    this.printed.hidden = !this.printed.textContent;
  }

  async run() {
    if (this.running) return;
    this.running = true;
    this.runner.setAttribute("aria-disabled", "true");
    this.show(starting ? "Python is starting in your browser: once for this page." : "Running …", "");
    let said = "";
    try {
      const result = await ask(question(this.number), { onOutput: (text) => { said += text; } });
      if (this.form.hidden) return; // put back in the meantime
      const [sentence, shown] = inWords(result, said);
      this.show(sentence, shown, Boolean(result.error));
      this.showBefore(result.before);
    } catch (error) {
      const hint = error.message.includes("cut off") ? " Make its work smaller, or download the notebook." : "";
      this.show(error.message + hint, said, true);
    } finally {
      this.running = false;
      this.runner.removeAttribute("aria-disabled");
    }
  }
}

if (supported()) for (const place of document.querySelectorAll(".runnable-cell")) new Editor(place);
