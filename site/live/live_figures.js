// Live figures: controls, address, prediction and answer around the still picture that the page already shows.
// What a figure computes is asked of Python (python.js); how it looks is drawn by chart.js.
import * as address from "./address.js";
import { element, makeControl, numberOf } from "./controls.js";
import * as python from "./python.js";

const TYPING = 500; // milliseconds after the last key until what was typed is taken

function makeLive(figure) {
  const about = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { name, key, guess, megabytes } = about;
  const note = figure.querySelector(".live-note");
  const picture = figure.querySelector(".live-picture");
  const words = figure.querySelector(".live-words");
  const table = figure.querySelector(".live-table");
  const before = { words: words.textContent, table: [...table.childNodes].map((node) => node.cloneNode(true)) };
  const still = picture.firstElementChild;

  let wanted = null; // the settings last asked for, as JSON
  let busy = false;
  let timer = 0;
  let predictFirst = false;
  let held = null; // an answer that waits for the reader's prediction
  let newest = null; // the answer that is shown, or is about to be
  let board = null;

  // --- what the page gets besides the still picture ---

  const controls = about.controls.map((each) => makeControl(each, `live-${key}-${each.name}`, changed));
  const form = element("form", { class: "live-controls", "aria-labelledby": `live-${key}-title` }, ...controls.map(({ root }) => root));
  const status = element("p", { class: "live-status", role: "status" });
  const prediction = makePrediction();
  const boardRoot = element("div", { class: "live-board", hidden: true });
  const buttons = element(
    "div",
    { class: "live-buttons" },
    button("Reset", reset),
    button("Copy link", copyLink),
    ...(document.fullscreenEnabled ? [button("Full screen", fullScreen)] : []),
  );
  note.after(form, ...(guess ? [prediction.root] : []));
  picture.append(boardRoot);
  table.after(status, buttons);
  note.hidden = true;
  words.setAttribute("aria-live", "polite");

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed(true);
  });
  // A pointer on a control is a touch; the focus of a keyboard that only passes through is none.
  form.addEventListener("pointerdown", warm, { passive: true });
  python.watch((state, sentence) => {
    if (state === "starting" && (busy || warmed)) say(`Python is starting in your browser: once for this page, about ${megabytes} MB, which the browser keeps …`);
    else if (state === "ready" && !busy) say("");
    else if (state === "failed" && !busy && warmed) say(`${sentence} Change a setting to try again.`);
  });

  let warmed = false;
  function warm() {
    warmed = true;
    python.start();
    import("./chart.js").catch(() => {}); // asked again when it is needed
  }

  function button(label, act) {
    const made = element("button", { type: "button" }, label);
    made.addEventListener("click", act);
    return made;
  }

  function say(sentence) {
    if (status.textContent !== sentence) status.textContent = sentence;
  }

  // --- settings ---

  function settings() {
    return Object.fromEntries(controls.map(({ name: control, get }) => [control, get()]));
  }

  function unusual() {
    return Object.fromEntries(
      about.controls.filter(({ name: each, value }) => settings()[each] !== value).map(({ name: each }) => [each, settings()[each]]),
    );
  }

  function changed(now) {
    clearTimeout(timer);
    timer = setTimeout(() => request(Boolean(guess)), now ? 0 : TYPING);
  }

  function reset() {
    clearTimeout(timer);
    about.controls.forEach(({ value }, index) => {
      controls[index].set(value);
      controls[index].complain("");
    });
    address.write(key, {});
    wanted = held = newest = null;
    prediction.hide();
    still.toggleAttribute("hidden", false);
    boardRoot.hidden = true;
    words.textContent = before.words;
    table.replaceChildren(...before.table.map((node) => node.cloneNode(true)));
    fresh(true);
    say("");
  }

  // --- asking: only the newest settings, and one question at a time ---

  async function request(predict) {
    const now = JSON.stringify(settings());
    if (now === wanted) return;
    wanted = now;
    predictFirst = predict;
    address.write(key, unusual());
    if (busy) return;
    busy = true;
    warm();
    picture.setAttribute("aria-busy", "true");
    while (wanted !== null) {
      const asked = wanted;
      try {
        const answer = await python.ask({ kind: "explore", name, settings: JSON.parse(asked) });
        if (wanted !== null) await hear(answer);
      } catch (error) {
        if (wanted === asked) {
          say(`${error.message} Change a setting to try again.`);
          fresh(false);
          wanted = null;
        }
      }
      if (wanted === asked) break;
    }
    busy = false;
    picture.removeAttribute("aria-busy");
  }

  async function hear({ picture: answer, complaint, error }) {
    const general = error ?? "";
    let told = false;
    newest = null;
    controls.forEach((control) => {
      const mine = complaint?.control === control.name;
      control.complain(mine ? complaint.sentence : "");
      told ||= mine;
    });
    say(complaint && !told ? complaint.sentence : general);
    if (!answer) {
      held = null;
      prediction.hide();
      fresh(false);
    } else if (predictFirst) {
      held = answer;
      fresh(false);
      prediction.ask();
    } else {
      await show(answer);
    }
  }

  async function show(answer, verdict = "") {
    held = null;
    newest = answer;
    prediction.hide();
    let drawn = true;
    try {
      board ??= (await import("./chart.js")).makeBoard(boardRoot);
    } catch {
      drawn = false;
    }
    if (newest !== answer) return; // while the chart library was loading the reader has gone on
    words.textContent = verdict + answer.words;
    table.replaceChildren(...(answer.header.length ? [makeTable(answer)] : []));
    fresh(true);
    if (!drawn) {
      picture.classList.add("live-stale");
      return say("The picture could not be drawn and is still the one before; the words are the new answer.");
    }
    still.toggleAttribute("hidden", true); // an SVG has no property of that name
    boardRoot.hidden = false;
    board.show(answer.charts);
  }

  function fresh(yes) {
    picture.classList.toggle("live-stale", !yes);
    words.classList.toggle("live-stale", !yes);
    table.classList.toggle("live-stale", !yes);
  }

  // --- predict first ---

  function makePrediction() {
    const id = `live-${key}-guess`;
    const field = element("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", maxlength: "20", "aria-describedby": `${id}-complaint` });
    const complaint = element("span", { class: "live-complaint", id: `${id}-complaint`, "aria-live": "polite" });
    const root = element(
      "form",
      { class: "live-guess", hidden: true },
      element("label", { for: id }, guess ? `Predict first: ${guess.question}` : ""),
      element("span", { class: "live-guess-fields" }, field, guess ? ` ${guess.unit} ` : "",
        element("button", { type: "submit" }, "Show"), button("Show without guessing", () => held && show(held))),
      complaint,
    ); // prettier-ignore
    root.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!held) return;
      const guessed = numberOf(field.value.replace(/,(?!\d{3}(?!\d))/, "."));
      if (!Number.isFinite(guessed)) {
        complaint.textContent = "Type a number, or show the answer without guessing.";
        field.focus();
        return;
      }
      show(held, verdict(guessed, held.answer));
    });
    return {
      root,
      ask() {
        if (!root.hidden) return;
        field.value = "";
        root.hidden = false;
        say("The answer to these settings is ready. The picture is still the one before your change.");
      },
      hide() {
        if (root.hidden) return;
        const inside = root.contains(document.activeElement);
        root.hidden = true;
        complaint.textContent = "";
        say("");
        if (inside) form.querySelector("input, select")?.focus({ preventScroll: true });
      },
    };
  }

  function verdict(guessed, answer) {
    const text = (value) => value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });
    if (answer === null) return `You said ${text(guessed)}; there is no such number. `;
    if (text(guessed) === text(answer)) return `You said ${text(guessed)}, and so it is. `;
    return `You said ${text(guessed)}; it is ${text(answer)}. `;
  }

  // --- the other buttons ---

  async function copyLink() {
    const link = new URL(address.withSettings(key, unusual(), `#live-${key}`), location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      say("The link to this figure, as it is set, is copied.");
    } catch {
      const field = element("input", { type: "text", readonly: true, value: link, "aria-label": "Link to this figure as it is set" });
      status.replaceChildren("Copy this link: ", field);
      field.select();
    }
  }

  function fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else figure.requestFullscreen().catch(() => say("This browser shows no figure on the full screen."));
  }

  // --- settings that the page was opened with ---

  const given = address.read(key, about.controls.map((each) => each.name)); // prettier-ignore
  for (const control of controls) control.set(given[control.name] ?? about.controls.find((each) => each.name === control.name).value);
  if (Object.keys(unusual()).length) request(false);
}

function makeTable({ header, rows }) {
  const row = (cells, kind) => element("tr", {}, ...cells.map((text) => element(kind, kind === "th" ? { scope: "col" } : {}, text)));
  return element("table", { class: "table" }, element("thead", {}, row(header, "th")), element("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
}

if (python.supported()) for (const figure of document.querySelectorAll(".live-figure")) makeLive(figure);
