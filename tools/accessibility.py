"""Check pages of the built site with axe-core, in light and dark: exit 1 if a page has a serious fault.

npm install --prefix /tmp/axe axe-core
python tools/accessibility.py site /tmp/axe/node_modules/axe-core/axe.min.js index.html viz.html"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

FAULTS = """axe.run().then(found => found.violations
  .filter(v => ["serious", "critical"].includes(v.impact))
  .map(v => `${v.id}: ${v.nodes.length} times, such as ${v.nodes[0].html.slice(0, 100)}`))"""


def main(site: str, axe: str, *pages: str) -> int:
    from playwright.sync_api import sync_playwright

    count = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for name in pages:
                page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
                page.goto((Path(site).resolve() / name).as_uri())
                page.evaluate(Path(axe).read_text())
                faults = page.evaluate(FAULTS)
                count += len(faults)
                print(f"{scheme:<6} {name:<32} {'; '.join(faults) or 'no serious fault'}")
                page.close()
        browser.close()
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
