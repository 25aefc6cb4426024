// The page of a master that stays open: each line of the input is the address of a view, such as `#/nodes`, and the answer tells
// what the view shows at that moment.

import { createInterface } from "node:readline";
import { Browser } from "../../system/page/browser.mjs";

// Milliseconds from a question to the look. The page does its own work meanwhile, however often it is asked.
const PAUSE = 200;

// Turns to a view.
const turn = view => `
  if (location.hash !== ${JSON.stringify(view)}) location.hash = ${JSON.stringify(view)};
  null`;

// Head line, faults, numbers by their names, and the rows of all tables by their captions. A bar is told by the words that it has for
// those who do not see it.
const SHOWN = `(() => {
  const all = (place, css) => [...place.querySelectorAll(css)];
  const text = place => (place.querySelector("progress")?.getAttribute("aria-label") ?? place.textContent).trim();
  const main = document.querySelector("main");
  const figure = place => [text(place.querySelector("dt")), text(place.querySelector("dd"))];
  const table = place => {
    const heads = all(place, "thead th").map(text);
    const row = one => Object.fromEntries([...one.cells].map((cell, n) => [heads[n], text(cell)]));
    return [text(place.caption), all(place, "tbody tr").map(row)];
  };
  return {
    head: all(main, "h1").map(text).join(),
    faults: all(main, ".fault").map(text),
    figures: Object.fromEntries(all(main, "dl.figures div").map(figure)),
    tables: Object.fromEntries(all(main, "table").map(table)),
  };
})()`;

const [program, profile, master] = process.argv.slice(2);
const browser = await Browser.open(program, profile);
try {
  await browser.size(1280, 900, false);
  await browser.go(`${master}/`);
  await browser.until("a live stream", "find('.stream.live')");
  let n = 0;
  for await (const view of createInterface({ input: process.stdin })) {
    n += 1;
    await browser.look(turn(view));
    await new Promise(done => setTimeout(done, PAUSE));
    console.log(`${n} ${JSON.stringify(await browser.look(SHOWN))}`);
  }
  browser.judge(master);
} finally {
  await browser.close();
}
