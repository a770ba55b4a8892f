// Compiles the standard library of Pyodide: node precompiled.mjs ADDRESS-OF-PYODIDE.MJS ZIP. Run by precompiled.py.
import { writeFileSync } from "node:fs";

const [address, target] = process.argv.slice(2);
const { loadPyodide } = await import(address);
const python = await loadPyodide({ env: { HOME: "/home/reader", PYTHONHASHSEED: "0" } });
python.runPython(`
import csv, datetime, fractions, importlib, importlib.util, marshal, statistics, sys, zipfile

origin = next(path for path in sys.path if path.endswith(".zip"))
loaded = {module.__spec__.origin for module in sys.modules.values() if getattr(module, "__spec__", None)}
with zipfile.ZipFile(origin) as source, zipfile.ZipFile("/compiled.zip", "w", zipfile.ZIP_DEFLATED) as target:
    for name in source.namelist():
        content = source.read(name)
        if f"{origin}/{name}" in loaded:
            code = compile(content, f"{origin}/{name}", "exec", dont_inherit=True)
            # No flags, time or size of a source: there is none beside it to compare with.
            content = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
            name += "c"
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        target.writestr(entry, content)
`);
writeFileSync(target, python.FS.readFile("/compiled.zip"));
