// Python in a thread of its own, so that the page stays responsive. One worker for a page; python.js talks to it.
//
// in   {id, kind: "explore", name, settings}: settings are texts by control
//      {id, kind: "run", earlier, cell}: the text of a cell, and those of all before it
// out  {ready: version} once, or {failed: words}; then for each id {id, output: text}… and {id, result} or {id, error};
//      with `dead: true` the worker is of no more use
import { loadPyodide } from "../_vendored/pyodide/pyodide.mjs";

const beside = (name) => new URL(name, import.meta.url).href;

async function bytes(name) {
  // Asked again at each start, which costs one small answer: the library must be the one that this page was built with.
  const answer = await fetch(beside(name), { cache: "no-cache" });
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

// Pyodide waits for ever where this fails, and asks for a type that some servers do not send.
const streaming = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = async (source, imports) => {
  try {
    const answer = await source;
    if (!answer.ok) throw new Error(`${answer.url.split("/").at(-1)}: ${answer.status}`);
    if (answer.headers.get("content-type") === "application/wasm") return await streaming(answer, imports);
    return await WebAssembly.instantiate(await answer.arrayBuffer(), imports);
  } catch (error) {
    postMessage({ failed: error.message });
    throw error;
  }
};

async function start() {
  const wheel = bytes("enginelab.whl");
  const program = bytes("reader.py");
  // Otherwise a failure is reported twice while Python is still starting.
  wheel.catch(() => {});
  program.catch(() => {});
  const python = await loadPyodide({
    stdLibURL: beside("python_stdlib.zip"), // compiled beforehand: site/precompiled.py
    stdin: () => null,
    env: { HOME: "/home/reader", PYTHONHASHSEED: "0" },
  });
  python.unpackArchive(await wheel, "zip", { extractDir: "/lib/course" });
  python.FS.writeFile("/lib/course/reader.py", await program);
  python.runPython("import sys; sys.path.insert(0, '/lib/course')");
  return python.pyimport("reader");
}

const started = start();
started.then((reader) => postMessage({ ready: reader.ready() })).catch((error) => postMessage({ failed: error.message ?? String(error) }));

addEventListener("message", async ({ data }) => {
  const { id, kind } = data;
  try {
    const reader = await started;
    const told =
      kind === "run"
        ? reader.run(JSON.stringify([data.earlier, data.cell]), (output) => postMessage({ id, output }))
        : reader.explore(data.name, JSON.stringify(data.settings));
    postMessage({ id, result: JSON.parse(told) });
  } catch (error) {
    // The Python above catches its own errors: what comes here has broken the machine, by too deep a recursion or
    // by asking for more memory than there is.
    postMessage({ id, error: String(error.message ?? error).trim().split("\n").at(-1), dead: true });
  }
});
