// What a reader sets: one labelled control for each of an exploration's, made from its description.

const WIDE = 1000; // a slider over more than this ratio moves in ratios, not in steps

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** The number that somebody typed, as `enginelab.exploring.number_of` reads it; NaN for anything else. */
export function numberOf(text) {
  const plain = text.trim().replace(/,(?=\d{3}(?!\d))/g, "");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) + 0 : NaN; // "-0" is 0
}

/**
 * A control: `{root, name, get, set, complain}`. `get` and `set` deal in texts; `complain("")` takes a complaint back.
 * `changed(now)` hears of each change; `now` is false while somebody is still typing.
 */
export function makeControl(description, id, changed) {
  const { name, label, unit, kind } = description;
  const complaint = element("p", { class: "live-complaint", id: `${id}-complaint`, "aria-live": "polite" });
  const field = kind === "Choice" ? choices(description, id) : typed(description, id);
  field.setAttribute("aria-describedby", complaint.id);
  const row = element("div", { class: "live-fields" });
  const slider = kind === "Number" ? makeSlider(description, field, changed) : null;
  row.append(...(slider ? [slider.root, field] : [field]));

  field.addEventListener("input", () => {
    slider?.follow();
    changed(kind === "Choice");
  });
  field.addEventListener("change", () => changed(true));

  const words = element("label", { for: id }, label, ...(unit ? [element("span", { class: "live-unit" }, ` ${unit}`)] : []));
  return {
    name,
    root: element("div", { class: `live-control live-${kind.toLowerCase()}` }, words, row, complaint),
    get: () => field.value,
    set(text) {
      field.value = text;
      slider?.follow();
    },
    complain(sentence) {
      if (complaint.textContent !== sentence) complaint.textContent = sentence;
      field.toggleAttribute("aria-invalid", Boolean(sentence));
      if (sentence) field.setAttribute("aria-invalid", "true");
    },
  };
}

function typed({ kind, value }, id) {
  // No number field: it would hide from Python what was typed, and Python says what is wrong with it.
  return element("input", { id, type: "text", value, inputmode: kind === "Number" ? "decimal" : "text",
    maxlength: "1000", autocomplete: "off", spellcheck: "false" }); // prettier-ignore
}

function choices({ options, value }, id) {
  return element("select", { id }, ...options.map(([each, words]) => element("option", { value: each, selected: each === value }, words)));
}

function makeSlider({ label, minimum, maximum, step, unit }, field, changed) {
  const ratios = minimum > 0 && maximum / minimum > WIDE;
  const root = element("input", { type: "range", "aria-label": `${label}, slider`,
    min: ratios ? 0 : minimum, max: ratios ? 200 : maximum, step: ratios ? 1 : step }); // prettier-ignore
  const at = () => {
    if (!ratios) return root.value;
    const exact = minimum * (maximum / minimum) ** (root.value / 200);
    const round = Number(exact.toPrecision(2));
    const stepped = Number((Math.round(round / step) * step).toPrecision(12));
    return String(Math.min(maximum, Math.max(minimum, stepped)));
  };
  const say = () => root.setAttribute("aria-valuetext", `${field.value} ${unit}`.trim());
  root.addEventListener("input", () => {
    field.value = at();
    say();
    changed(true);
  });
  return {
    root,
    follow() {
      const value = numberOf(field.value);
      if (Number.isNaN(value)) return;
      const inside = Math.min(maximum, Math.max(minimum, value));
      root.value = ratios ? (200 * Math.log(inside / minimum)) / Math.log(maximum / minimum) : inside;
      say();
    },
  };
}
