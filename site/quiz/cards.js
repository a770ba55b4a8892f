// Flash cards over the questions of the page: space turns, arrows move, 1 to 3 rate. The questions stay below as a list.
import { button, choice, copy, element, kept, keptSentence, readBank, shuffled, topicsOf } from "./bank.js";

const RATINGS = { 1: "Not yet", 2: "Nearly", 3: "Known" };

function start(app) {
  const bank = readBank();
  const store = kept("cards");
  const ids = new Set(bank.map(({ id }) => id));
  // Read again before each change: the cards may be open in another tab as well.
  const keptRatings = () =>
    Object.fromEntries(
      Object.entries(store.read().ratings ?? {}).filter(([id, rating]) => ids.has(id) && [1, 2, 3].includes(rating)),
    );
  let ratings = keptRatings();
  let deck = [];
  let at = 0;
  let turned = false;

  const topic = choice("Topic", [["", "All"], ...topicsOf(bank).map((name) => [name, name])], deal);
  const seed = element("input", { type: "number", min: "0", max: "9999", step: "1", value: "1", inputmode: "numeric" });
  const unknown = element("input", { type: "checkbox" });
  for (const control of [seed, unknown]) control.addEventListener("change", deal);
  const settings = element(
    "form",
    { class: "question-settings" },
    topic.label,
    element("label", {}, "Order (0: as in the book) ", seed),
    element("label", { class: "tick" }, unknown, " Only what I do not know yet"),
  );
  settings.addEventListener("submit", (event) => event.preventDefault());

  const where = element("p", { class: "card-where" });
  const text = element("div", { class: "card-text", "aria-live": "polite", "aria-atomic": "true" });
  const card = element(
    "div",
    { class: "card-face", tabindex: "0", role: "group", "aria-label": "Card: space turns it, arrows move, 1 to 3 rate it" },
    where,
    text,
  );
  card.addEventListener("click", (event) => {
    // Not while a link is followed or text is marked to be copied.
    if (!event.target.closest("a") && getSelection().isCollapsed) turn();
  });
  const moves = element(
    "div",
    { class: "question-buttons" },
    button("← Back", () => move(-1)),
    button("Turn", turn, { class: "main" }),
    button("Next →", () => move(1)),
  );
  const rates = element(
    "div",
    { class: "question-buttons", role: "group", "aria-label": "Rate yourself" },
    ...Object.entries(RATINGS).map(([rating, words]) => button(`${rating} ${words}`, () => rate(rating))),
  );
  const count = element("p", { class: "question-count", role: "status" });
  const forget = button("Forget my ratings", () => {
    store.forget();
    ratings = {};
    deal();
  });
  app.append(settings, card, moves, rates, element("div", { class: "question-foot" }, count, forget));

  function deal() {
    const wanted = bank.filter(
      ({ id, topic: name }) => (!topic.select.value || name === topic.select.value) && !(unknown.checked && ratings[id] === 3),
    );
    const order = Math.min(9999, Math.max(0, Math.trunc(Number(seed.value) || 0)));
    deck = shuffled(wanted, order);
    at = 0;
    turned = false;
    show();
  }

  function show() {
    const asked = deck[at];
    for (const control of [...moves.children]) control.disabled = !asked;
    rates.hidden = !turned;
    card.classList.toggle("turned", turned);
    card.dataset.question = asked?.id ?? "";
    if (asked) {
      const rated = ratings[asked.id] ? ` · ${RATINGS[ratings[asked.id]].toLowerCase()}` : "";
      where.textContent = `${turned ? "Answer" : "Question"} ${at + 1} of ${deck.length} · ${asked.topic}${rated}`;
      text.replaceChildren(...copy(turned ? [asked.ask, ...asked.answer] : [asked.ask]));
    } else {
      where.textContent = "No card left";
      text.textContent = "You know all of these. Untick the box, or choose another topic.";
    }
    const tally = [3, 2, 1].map((rating) => [
      RATINGS[rating].toLowerCase(),
      Object.values(ratings).filter((each) => each === rating).length,
    ]);
    const rest = bank.length - Object.keys(ratings).length;
    count.textContent = `${tally.map(([name, n]) => `${n} ${name}`).join(", ")}, ${rest} not rated. ${keptSentence(store)}`;
  }

  function turn() {
    if (!deck.length) return;
    turned = !turned;
    show();
  }

  function move(by) {
    if (!deck.length) return;
    if (at + by >= deck.length) return deal();
    at = Math.max(0, at + by);
    turned = false;
    show();
  }

  function rate(rating) {
    if (!turned || !deck.length) return;
    ratings = { ...keptRatings(), [deck[at].id]: Number(rating) };
    store.write({ ratings });
    // The button that was pressed is about to go.
    if (rates.contains(document.activeElement)) card.focus();
    move(1);
  }

  // Single keys count only while the focus is on the cards, and never where they already mean something.
  app.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    const isCard = event.target === card;
    if (event.key === " " && isCard) turn();
    else if (event.key === "Enter" && isCard) turn();
    else if (event.key === "ArrowRight") move(1);
    else if (event.key === "ArrowLeft") move(-1);
    else if (event.key in RATINGS && turned) rate(event.key);
    else return;
    event.preventDefault();
  });

  deal();
  app.setAttribute("role", "region");
  app.setAttribute("aria-label", "Flash cards");
  app.hidden = false;
}

for (const app of document.querySelectorAll('[data-app="cards"]')) start(app);
