// Settings in the page's address, as `?slots.lengths=2,8,3&slots.slots=4`, so that a figure can be shared as it is set.

const LONGEST = 1000; // characters of a setting; what is longer is no setting

/** The settings that the address holds for the figure `key`: texts by control, for those of `names`. */
export function read(key, names) {
  const given = new URLSearchParams(location.search);
  return Object.fromEntries(
    names.filter((name) => given.has(`${key}.${name}`)).map((name) => [name, [...given.get(`${key}.${name}`)].slice(0, LONGEST).join("")]),
  );
}

/** The address with the `settings` of figure `key`, at the figure; other parameters stay. */
export function withSettings(key, settings, anchor = location.hash) {
  const address = new URL(location.href);
  const others = location.search
    .slice(1)
    .split("&")
    .filter((part) => part && !decode(part.split("=")[0]).startsWith(`${key}.`));
  const own = Object.entries(settings).map(([name, text]) => `${key}.${name}=${encode(text)}`);
  address.search = [...others, ...own].join("&");
  address.hash = anchor;
  return address.href;
}

/** Puts them into the page's address without a new step in its history. */
export function write(key, settings) {
  try {
    history.replaceState(history.state, "", withSettings(key, settings));
  } catch {
    // A browser allows only so many changes in a while (a slider makes many): the next one will do.
  }
}

function encode(text) {
  return encodeURIComponent(text.trim().replace(/\s*,\s*/g, ",")).replaceAll("%2C", ",");
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
