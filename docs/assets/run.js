// "Run here": makes the cells of a page editable and runs them in the browser, in run-worker.js. Cells are
// div.cell (tools/lessons.py) and code blocks inside of <div class="run-this" markdown>.
"use strict";

(() => {
  const ASSETS = new URL(".", document.currentScript.src).href;
  const LEARN = new URL("../learn/", ASSETS).href;

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function setUp() {
    const blocks = document.querySelectorAll("div.cell, .run-this div.highlight");
    for (const block of blocks) block.classList.add("cell");
    const cells = [...blocks].map((box, i) => new Cell(box, i + 1));
    if (!cells.length || document.querySelector(".run-bar")) return;
    const page = new Page(cells);
    const place = document.querySelector(".lesson-bar");
    if (place) place.prepend(page.bar);
    else cells[0].box.after(page.bar);
  }

  class Cell {
    constructor(box, number) {
      this.box = box;
      this.code = box.querySelector("code");
      this.label = "cell " + number; // its name in error messages
      this.isExtra = Boolean(box.closest("details, .scratch")); // runs only when its button is pressed
      this.hasRun = false;
      this.outputs = box.nextElementSibling?.classList.contains("outputs") ? box.nextElementSibling : null;
    }

    makeEditable(run) {
      this.code.contentEditable = "plaintext-only";
      if (this.code.contentEditable !== "plaintext-only") this.code.contentEditable = "true";
      this.code.spellcheck = false;
      this.code.setAttribute("role", "textbox");
      this.code.setAttribute("aria-multiline", "true");
      this.code.setAttribute("aria-label", "program, " + this.label);
      this.code.addEventListener("input", () => { this.hasRun = false; });
      this.code.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.shiftKey || event.ctrlKey)) {
          event.preventDefault();
          run(this);
        }
      });
      this.button = element("button", { className: "md-button run-cell", textContent: "Run" });
      this.button.addEventListener("click", () => run(this));
      this.box.append(this.button);
    }

    /** Empties the cell's outputs. */
    clear() {
      if (!this.outputs) {
        this.outputs = element("div", { className: "outputs" });
        this.box.after(this.outputs);
      }
      this.outputs.replaceChildren();
      this.text = null;
    }

    show(kind, content) {
      if (kind === "text" || kind === "error") {
        if (!this.text || this.text.dataset.kind !== kind) {
          this.text = element("code", {});
          this.text.dataset.kind = kind;
          this.outputs.append(element("div", { className: "output " + kind }, element("pre", {}, this.text)));
        }
        this.text.textContent += content;
        return;
      }
      this.text = null;
      const box = element("div", { className: "picture" });
      box.innerHTML = kind === "svg" ? content.slice(content.indexOf("<svg")) : content;
      this.outputs.append(box);
    }
  }

  class Page {
    constructor(cells) {
      this.cells = cells;
      this.start = element("button", { className: "md-button run-here", textContent: "Run here" });
      this.start.addEventListener("click", () => this.load());
      this.status = element("span", { className: "run-status" });
      this.status.setAttribute("role", "status");
      this.bar = element("div", { className: "run-bar" }, this.start, this.status);
    }

    say(text) {
      this.status.textContent = text;
    }

    load() {
      if (location.protocol === "file:") {
        this.say("A page from a file cannot load Python. Serve the site: python -m http.server -d site");
        return;
      }
      this.start.disabled = true;
      const text = this.cells.map((cell) => cell.code.textContent).join("\n");
      const packages = ["numpy", "threadpoolctl"];
      if (text.includes("matplotlib")) packages.push("matplotlib");
      const data = [...text.matchAll(/Path\("(\w+\.txt)"\)/g)].map((found) => LEARN + found[1]);
      this.worker = new Worker(ASSETS + "run-worker.js");
      this.worker.onmessage = ({ data: message }) => this.receive(message);
      this.worker.onerror = (event) => this.fail(event.message);
      this.worker.postMessage({ kind: "start", assets: ASSETS, packages, data });
    }

    receive({ kind, content, ok }) {
      if (kind === "status") this.say(content);
      else if (kind === "ready") this.ready();
      else if (kind === "failed") this.fail(content);
      else if (kind === "done") this.resolve(ok);
      else this.running.show(kind, content);
    }

    fail(text) {
      this.say("This did not work: " + text);
      this.start.disabled = false;
      this.worker.terminate();
    }

    ready() {
      this.start.remove();
      const all = element("button", { className: "md-button run-all", textContent: "Run all" });
      all.addEventListener("click", () => this.run(this.cells.filter((cell) => !cell.isExtra).at(-1)));
      this.bar.prepend(all);
      this.addScratchCells();
      for (const cell of this.cells) cell.makeEditable((chosen) => this.run(chosen));
      document.body.classList.add("can-run");
      this.say("Ready. You can change the programs. Run: the button, or Shift+Enter.");
    }

    /** An empty cell before each solution, for the reader's own program. */
    addScratchCells() {
      document.querySelectorAll("details").forEach((solution, i) => {
        const code = element("code", { textContent: "# your program\n" });
        const box = element("div", { className: "cell highlight scratch" }, element("pre", {}, code));
        solution.before(box);
        const scratch = new Cell(box, "of exercise " + (i + 1));
        const follows = Node.DOCUMENT_POSITION_FOLLOWING;
        const next = this.cells.findIndex((cell) => box.compareDocumentPosition(cell.box) & follows);
        this.cells.splice(next < 0 ? this.cells.length : next, 0, scratch);
      });
    }

    /** Runs a cell, and before it all earlier cells that have not run. */
    async run(last) {
      if (this.bar.dataset.state === "running") return;
      this.bar.dataset.state = "running";
      let ok = true;
      for (const cell of this.cells) {
        if (cell === last || (!cell.hasRun && !cell.isExtra)) ok = await this.runOne(cell);
        if (cell === last || !ok) break;
      }
      this.bar.dataset.state = ok ? "done" : "failed";
      if (ok) this.say("Done.");
    }

    async runOne(cell) {
      this.running = cell;
      cell.clear();
      cell.box.classList.add("running");
      this.say("Running " + cell.label + " ...");
      const dark = document.body.dataset.mdColorScheme === "slate";
      const ok = await new Promise((resolve) => {
        this.resolve = resolve;
        this.worker.postMessage({ kind: "run", source: cell.code.textContent, label: cell.label, dark });
      });
      cell.box.classList.remove("running");
      cell.hasRun = ok;
      this.running = null;
      if (!ok) this.say("An error in " + cell.label + ".");
      return ok;
    }
  }

  if (window.document$) window.document$.subscribe(setUp); // Material, also with instant loading
  else document.addEventListener("DOMContentLoaded", setUp);
})();
