// Pictures of the page for the book, written into a folder. The resource `books` runs meanwhile.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PHONE, walk } from "./browser.mjs";

// A window that is readable in a page of the book.
const WINDOW = [1280, 800, false];
// Milliseconds for which a chart is watched.
const WATCHED = 30_000;

// True once the row of the resource tells a rate.
const HAS_RATES = "find('tbody tr', 'books')?.cells[1].textContent.match(/[0-9]/)";

await walk(async (browser, master, folder, shop) => {
  await mkdir(folder, { recursive: true });
  const why = `resources/books/frontier?url=${encodeURIComponent(`${shop}book/7.html`)}`;
  const take = async (name, form, colours, view, isThere) => {
    await browser.size(...form);
    await browser.colours(colours);
    await browser.go(`${master}/#/${view}`);
    // Colours of a chart are those of the time at which it was made.
    await browser.reload();
    await browser.until("a live stream", "find('.stream.live')");
    await browser.until(name, `${isThere} && !find('.blank', 'Loading')`);
    await writeFile(join(folder, `${name}.png`), await browser.picture());
  };
  await browser.go(`${master}/`);
  await browser.until("a live stream", "find('.stream.live')");
  await take("resource", WINDOW, "dark", "resources/books", `document.querySelector('.chart canvas') && performance.now() > ${WATCHED}`);
  await take("overview", WINDOW, "light", "", HAS_RATES);
  await take("schedules", WINDOW, "light", "schedules", "find('tbody th', 'stock')");
  await take("changes", WINDOW, "light", "resources/books/items?show=changes&run=2", "find('.mark.changed')");
  await take("why", WINDOW, "dark", why, "find('.answer')");
  await take("phone", PHONE, "light", "resources", "find('tbody th', 'stock')");
  browser.judge(master);
});
