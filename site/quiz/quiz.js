// A quiz over the questions of the page: one at a time, the reasons at once, the score by topic at the end.
import { button, choice, copy, element, kept, keptSentence, readBank, shuffled, topicsOf } from "./bank.js";

const LETTERS = "ABCDEFGHIJ";
const SLACK = 1e-9;

// "60,000", "60 000", "83 %" and "0.8" as people type them; NaN for anything else.
function typedNumber(text) {
  const plain = text.trim().replace(/\s*%$/, "").replace(/[,\s](?=\d{3}(?!\d))/g, "").replace(",", ".");
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain) : NaN;
}

function rightOnes(asked) {
  return asked.reasons.flatMap((reason, index) => (reason.classList.contains("right") ? [index] : []));
}

// `given` is a list of option numbers, or of one number that was typed.
function isRight(asked, given) {
  if (asked.kind === "number") return Math.abs(given[0] - asked.numbers[0]) <= asked.within + SLACK;
  return String(given) === String(rightOnes(asked));
}

function inWords(asked, given) {
  return asked.kind === "number" ? String(given[0]) : given.map((index) => LETTERS[index]).join(", ");
}

function verdict(asked, given) {
  if (isRight(asked, given)) return "Right.";
  if (asked.kind === "number") return `${given[0]} is wrong: it is ${asked.numbers[0].toLocaleString("en-GB")}.`;
  const right = rightOnes(asked).map((index) => LETTERS[index]);
  return `Not right. You said ${inWords(asked, given)}; right ${right.length > 1 ? "are" : "is"} ${right.join(", ")}.`;
}

function start(app) {
  const bank = readBank();
  const byId = new Map(bank.map((asked) => [asked.id, asked]));
  const store = kept("quiz");
  let state = sane(store.read());

  const screen = element("div", { class: "quiz-screen" });
  const said = element("div", { class: "quiz-said", "aria-live": "polite" });
  // Below what is said, so that whoever goes on has the reasons before their eyes.
  const onward = element("div", { class: "question-buttons" });
  app.append(screen, said, onward);

  // What an older version of the page kept, or somebody edited, may not fit any more.
  function sane(held) {
    const right = Object.entries(held.right ?? {}).filter(([id, value]) => byId.has(id) && typeof value === "boolean");
    const ids = held.round?.ids;
    const given = held.round?.given;
    const fits = Array.isArray(ids) && ids.length && ids.every((id) => byId.has(id)) && Array.isArray(given);
    const answers = fits && given.every((each) => Array.isArray(each) && each.length && each.every(Number.isFinite));
    return { right: Object.fromEntries(right), round: answers ? { ids, given: given.slice(0, ids.length) } : null };
  }

  function save() {
    store.write(state);
  }

  // A new screen: nothing of the old one is left.
  function put(...nodes) {
    said.replaceChildren();
    onward.replaceChildren();
    screen.replaceChildren(...nodes);
  }

  function begin(ids) {
    state.round = { ids, given: [] };
    save();
    ask();
  }

  function home() {
    const topic = choice("Topic", [["", "All"], ...topicsOf(bank).map((name) => [name, name])]);
    const many = choice("Questions", [["10", "10"], ["20", "20"], ["", "All"]]);
    const known = Object.values(state.right);
    const foot = known.length
      ? `So far you have answered ${known.length} of ${bank.length} questions, ${known.filter(Boolean).length} of them right the last time. `
      : "";
    const count = element("p", { class: "question-count" }, foot + keptSentence(store));
    const buttons = element("div", { class: "question-buttons" });
    const round = state.round;
    if (round && round.given.length < round.ids.length) {
      buttons.append(button(`Go on with question ${round.given.length + 1} of ${round.ids.length}`, ask, { class: "main" }));
    }
    buttons.append(
      button(
        "Start",
        () => {
          const wanted = bank.filter((asked) => !topic.select.value || asked.topic === topic.select.value);
          const drawn = shuffled(wanted, 1 + Math.floor(Math.random() * 1e9)).slice(0, Number(many.select.value) || undefined);
          begin(drawn.map(({ id }) => id));
        },
        { class: buttons.children.length ? "" : "main" },
      ),
    );
    const forget = button("Forget my progress", () => {
      store.forget();
      state = sane({});
      home();
      said.textContent = "Your progress is forgotten.";
      screen.querySelector("button").focus();
    });
    put(
      element("div", { class: "question-settings" }, topic.label, many.label),
      buttons,
      element("div", { class: "question-foot" }, count, forget),
    );
  }

  function ask() {
    const { ids, given } = state.round;
    if (given.length === ids.length) return score();
    const asked = byId.get(ids[given.length]);
    const fields = asked.kind === "number" ? numberField(asked) : optionFields(asked);
    const legend = element("legend", {}, ...copy(asked.ask.childNodes));
    const form = element(
      "form",
      { novalidate: true, "data-question": asked.id },
      element("p", { class: "card-where" }, `Question ${given.length + 1} of ${ids.length} · ${asked.topic}`),
      element("fieldset", {}, legend, ...fields),
      element("div", { class: "question-buttons" }, element("button", { type: "submit", class: "main" }, "Check"), button("Stop here", home)),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answer = read(asked, form);
      if (typeof answer === "string") {
        said.textContent = answer;
        form.querySelector("input").focus();
      } else {
        settle(asked, answer, form);
      }
    });
    put(form);
    form.querySelector("input").focus();
  }

  function optionFields(asked) {
    const several = asked.kind === "several";
    const rows = asked.options.map((option, index) => {
      const input = element("input", { type: several ? "checkbox" : "radio", name: "answer", value: String(index) });
      const words = option.querySelector("p") ?? option;
      return element("label", { class: "quiz-option" }, input, element("span", {}, `${LETTERS[index]}. `, ...copy(words.childNodes)));
    });
    return several ? [element("p", { class: "hint" }, "Several are right."), ...rows] : rows;
  }

  function numberField(asked) {
    const unit = document.getElementById(asked.id).querySelector(".hint").textContent;
    const input = element("input", { type: "text", name: "answer", inputmode: "decimal", autocomplete: "off" });
    return [element("label", { class: "quiz-number" }, `${unit} `, input)];
  }

  // What the reader answered, or a sentence that asks for an answer.
  function read(asked, form) {
    if (asked.kind === "number") {
      const value = typedNumber(form.elements.answer.value);
      return Number.isNaN(value) ? "Type a number in digits, such as 12." : [value];
    }
    const chosen = [...form.querySelectorAll("input:checked")].map((input) => Number(input.value));
    return chosen.length ? chosen : "Choose an answer first.";
  }

  function settle(asked, answer, form) {
    state.round.given.push(answer);
    // Read again: the quiz may be open in another tab as well.
    state.right = { ...sane(store.read()).right, [asked.id]: isRight(asked, answer) };
    save();
    form.querySelector("fieldset").disabled = true;
    form.classList.add("settled");
    const last = state.round.given.length === state.round.ids.length;
    const next = button(last ? "See the score" : "Next", ask, { class: "main" });
    form.querySelector(".question-buttons").remove();
    onward.replaceChildren(next, ...(last ? [] : [button("Stop here", home)]));
    said.replaceChildren(element("p", {}, element("strong", {}, verdict(asked, answer))), ...copy(asked.answer));
    next.focus({ preventScroll: true });
    // Where the screen is too small for all of it, the verdict matters most.
    for (const part of [onward, said]) part.scrollIntoView({ block: "nearest" });
  }

  function score() {
    const { ids, given } = state.round;
    const rows = ids.map((id, index) => ({ asked: byId.get(id), given: given[index] }));
    const missed = rows.filter(({ asked, given: answer }) => !isRight(asked, answer));
    const table = element(
      "table",
      { class: "table" },
      element("caption", {}, "Score by topic"),
      element("thead", {}, element("tr", {}, ...["Topic", "Right", "Asked"].map((name) => element("th", { scope: "col" }, name)))),
      element(
        "tbody",
        {},
        ...topicsOf(rows.map(({ asked }) => asked)).map((topic) => {
          const of = rows.filter(({ asked }) => asked.topic === topic);
          const right = of.filter((row) => !missed.includes(row)).length;
          return element("tr", {}, ...[topic, right, of.length].map((cell) => element("td", {}, String(cell))));
        }),
      ),
    );
    const headline = element("p", { tabindex: "-1", class: "quiz-headline" }, `${rows.length - missed.length} of ${rows.length} right.`);
    const review = missed.map(({ asked, given: answer }) =>
      element(
        "details",
        { class: "quiz-missed" },
        element("summary", {}, ...copy(asked.ask.childNodes)),
        ...(asked.options.length ? [element("ol", { class: "options upperalpha" }, ...copy(asked.options))] : []),
        element("p", {}, element("strong", {}, verdict(asked, answer))),
        ...copy(asked.answer),
      ),
    );
    const buttons = element("div", { class: "question-buttons" }, button("New round", home, { class: missed.length ? "" : "main" }));
    if (missed.length) {
      buttons.prepend(button("Ask the missed ones again", () => begin(missed.map(({ asked }) => asked.id)), { class: "main" }));
    }
    put(
      headline,
      table,
      ...(review.length ? [element("p", {}, element("strong", {}, "What you missed, to look at again:")), ...review] : []),
      buttons,
    );
    headline.focus();
  }

  home();
  app.setAttribute("role", "region");
  app.setAttribute("aria-label", "Quiz");
  app.hidden = false;
}

for (const app of document.querySelectorAll('[data-app="quiz"]')) start(app);
