// What cards and quiz share: the questions as the page's own markup has them, an order by seed, and what the browser
// keeps. Nothing of it leaves the browser.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function button(words, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, words);
  made.addEventListener("click", act);
  return made;
}

// A select with its label; options are pairs of a value and its words.
export function choice(words, options, act) {
  const select = element("select", {}, ...options.map(([value, text]) => element("option", { value }, text)));
  select.addEventListener("change", act);
  return { select, label: element("label", {}, `${words} `, select) };
}

// A copy of what stands in the page, without the ids, which must not occur twice.
export function copy(nodes) {
  return [...nodes].map((node) => {
    const made = node.cloneNode(true);
    if (made instanceof Element) {
      for (const each of [made, ...made.querySelectorAll("[id]")]) each.removeAttribute("id");
    }
    return made;
  });
}

export function readBank() {
  return [...document.querySelectorAll(".question")].map((asked) => ({
    id: asked.id,
    topic: asked.dataset.topic,
    kind: asked.dataset.kind,
    within: Number(asked.dataset.within),
    numbers: asked.dataset.numbers.split(" ").filter(Boolean).map(Number),
    ask: asked.querySelector(".ask"),
    options: [...asked.querySelectorAll("ol.options > li")],
    reasons: [...asked.querySelectorAll(".reasons > li")],
    answer: [...asked.querySelector(".answer").children].filter((child) => child.tagName !== "SUMMARY"),
  }));
}

export function topicsOf(bank) {
  return [...new Set(bank.map(({ topic }) => topic))];
}

// The same seed gives the same order everywhere (mulberry32, then Fisher and Yates); 0 is the order of the book.
export function shuffled(items, seed) {
  const made = [...items];
  if (!seed) return made;
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let last = made.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [made[last], made[other]] = [made[other], made[last]];
  }
  return made;
}

function asObject(text) {
  try {
    const held = JSON.parse(text);
    return held && typeof held === "object" && !Array.isArray(held) ? held : {};
  } catch {
    return {};
  }
}

// One object in this browser's storage. In a private window there may be none: then it lasts as long as the page.
export function kept(name) {
  const key = `enginelab.${name}`;
  let memory = {};
  return {
    lasts: true,
    read() {
      let text = null;
      try {
        text = localStorage.getItem(key);
      } catch {
        this.lasts = false;
      }
      if (this.lasts) memory = asObject(text);
      return memory;
    },
    write(value) {
      memory = value;
      try {
        localStorage.setItem(key, JSON.stringify(value));
      } catch {
        this.lasts = false;
      }
    },
    forget() {
      memory = {};
      try {
        localStorage.removeItem(key);
      } catch {
        this.lasts = false;
      }
    },
  };
}

export function keptSentence(store) {
  return store.lasts
    ? "Progress is kept in this browser only."
    : "This browser keeps nothing here, so progress lasts until you leave the page.";
}
