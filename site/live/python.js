// The one Python of a page, shared by its live figures and its cells that run. It starts at the first `start` or `ask`.

const WORK = 5_000; // milliseconds that one question may take
const START = 180_000; // that starting may take: the download may be slow

let worker = null;
let ready = false;
let alarm = 0;
let current = null;
let count = 0;
const waiting = [];
const listeners = new Set();

/** Whether this browser can run it at all. */
export function supported() {
  return typeof WebAssembly === "object" && typeof Worker === "function" && location.protocol !== "file:";
}

/** Calls `listener(state, sentence)` at each change: "starting", "ready", "stopped", or "failed" and why. */
export function watch(listener) {
  listeners.add(listener);
}

function tell(state, sentence = "") {
  for (const listener of listeners) listener(state, sentence);
}

/** Starts Python if it is not there. */
export function start() {
  if (worker) return;
  tell("starting");
  try {
    worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  } catch (error) {
    fail(String(error.message));
    return;
  }
  worker.onmessage = ({ data }) => hear(data);
  worker.onerror = (event) => {
    event.preventDefault();
    fail(event.message ?? "the worker could not be loaded");
  };
  alarm = setTimeout(() => fail("it took more than three minutes"), START);
}

/**
 * What Python answers to a message of worker.js, without its id. `onOutput(text)` hears what a program prints.
 *
 * Rejects with an Error whose message is a sentence for the reader.
 */
export function ask(message, { onOutput = () => {}, limit = WORK } = {}) {
  return new Promise((resolve, reject) => {
    waiting.push({ message: { ...message, id: ++count }, onOutput, limit, resolve, reject });
    start();
    next();
  });
}

/** Ends Python and what it does; the next `ask` starts it anew. */
export function stop(sentence) {
  const stopped = current;
  end();
  tell("stopped");
  stopped?.reject(new Error(sentence));
  if (waiting.length) start();
}

function end() {
  clearTimeout(alarm);
  worker?.terminate();
  worker = current = null;
  ready = false;
}

function fail(words) {
  const told = new Error(`Python could not be started in this browser (${words}).`);
  const lost = [current, ...waiting.splice(0)].filter(Boolean);
  end();
  tell("failed", told.message);
  for (const job of lost) job.reject(told);
}

// One question at a time is with the worker: its time runs from when it is sent, not from when it was asked.
function next() {
  if (!ready || current || !waiting.length) return;
  current = waiting.shift();
  const { limit, message } = current;
  alarm = setTimeout(() => stop(`This took more than ${limit / 1000} seconds and was cut off.`), limit);
  worker.postMessage(message);
}

function hear(data) {
  if (data.failed) return fail(data.failed);
  if (data.ready) {
    clearTimeout(alarm);
    ready = true;
    tell("ready");
    return next();
  }
  if (data.id !== current?.message.id) return;
  if ("output" in data) return current.onOutput(data.output);
  clearTimeout(alarm);
  if (data.dead) return stop(`Python had to stop: ${data.error}.`);
  const { resolve } = current;
  current = null;
  resolve(data.result);
  next();
}
