// The thread in which the cells of a page run: Pyodide with NumPy and rushlight's wheel. run.js starts it.
"use strict";

const PYODIDE = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/";
let runCell;

async function start({ assets, packages, data }) {
  const tell = (text) => postMessage({ kind: "status", content: text });
  tell("Loading Python ...");
  importScripts(PYODIDE + "pyodide.js");
  const python = await loadPyodide({ indexURL: PYODIDE });
  tell("Loading " + packages.join(", ") + " ...");
  await python.loadPackage(packages, { messageCallback: () => {} });
  tell("Loading rushlight ...");
  const wheel = (await read(assets + "wheel.txt", "text")).trim();
  python.unpackArchive(await read(assets + wheel, "arrayBuffer"), "wheel");
  for (const file of data) {
    python.FS.writeFile(file.split("/").pop(), await read(file, "text"));
  }
  python.FS.writeFile("lessons.mplstyle", await read(assets + "lessons.mplstyle", "text"));
  python.runPython("import os; os.environ.update(MPLBACKEND='agg', MATPLOTLIBRC='lessons.mplstyle')");
  python.runPython(await read(assets + "run_cell.py", "text"));
  runCell = python.globals.get("run_cell");
  postMessage({ kind: "ready" });
}

async function read(url, as) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(url + ": " + answer.status);
  return answer[as]();
}

onmessage = async ({ data: message }) => {
  try {
    if (message.kind === "start") return await start(message);
    const show = (kind, content) => postMessage({ kind, content });
    const done = runCell(message.source, message.label, message.dark, show);
    postMessage({ kind: "done", ok: done });
  } catch (error) {
    postMessage({ kind: "failed", content: String(error) });
  }
};
