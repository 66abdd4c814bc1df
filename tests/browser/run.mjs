// pytest in Pyodide under node: node run.mjs FOLDER ARGUMENTS OF PYTEST
// FOLDER holds pyodide/ (the distribution with NumPy), wheels/ (pytest and what it needs) and house.zip (rushlight, tests).
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...args] = process.argv.slice(2);
const distribution = path.resolve(folder, "pyodide") + "/";
const { loadPyodide } = await import(pathToFileURL(path.resolve(folder, "node_modules/pyodide/pyodide.mjs")));
const bytes = (file) => new Uint8Array(fs.readFileSync(file));
const python = await loadPyodide({
  packageCacheDir: distribution, lockFileURL: distribution + "pyodide-lock.json", env: { HOME: "/home/pyodide" },
});
const packages = (process.env.PACKAGES || "numpy").split(",");
await python.loadPackage(packages, { messageCallback: () => {} });
python.unpackArchive(bytes(path.join(folder, "house.zip")), "zip", { extractDir: "/house" });
for (const wheel of fs.readdirSync(path.join(folder, "wheels")))
  if (wheel.endsWith(".whl")) python.unpackArchive(bytes(path.join(folder, "wheels", wheel)), "zip", { extractDir: "/wheels" });
// --capture=sys: pytest cannot duplicate file descriptors here
process.exitCode = python.runPython(`
import os, sys
os.makedirs(os.environ.setdefault("HOME", "/home/pyodide"), exist_ok=True)
os.chdir("/house")
sys.path[:0] = ["/house", "/wheels"]
import pytest
int(pytest.main(${JSON.stringify(args)} + ["--capture=sys", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "tests.browser.unavailable"]))
`);
