// A browser that is used as by a reader: it clicks at places, types into fields, and looks at what is shown.
//
// It notes every request, every fault of a script and every dialog, for the walk to judge at its end.

import { spawn } from "node:child_process";
import assert from "node:assert/strict";

// Milliseconds: for one wait, for the whole walk, which has to end before those who wait for it give up after 120 s, and for the
// end of the browser.
const PATIENCE = 60_000;
const WALK = 100_000;
const CLOSE = 5_000;
const PAUSE = 50;

// Width, height and whether it has fingers: of a wide window, and of a phone.
export const WIDE = [1280, 900, false];
export const PHONE = [390, 844, true];

const FLAGS = [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
  // Nothing but this machine has a name.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

// Functions that the page gets, for finding what a reader sees.
const EYES = `
  globalThis.seen = element => element.checkVisibility({ visibilityProperty: true });
  globalThis.find = (css, text = "") => [...document.querySelectorAll(css)].find(
    one => seen(one) && one.textContent.includes(text) && !one.disabled);
`;

export class Browser {
  requests = [];
  faults = [];
  #waiting = new Map();
  #number = 0;
  #end = Date.now() + WALK;
  #width;
  #child;
  #session;

  static async open(program, profile) {
    const browser = new Browser();
    const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`, "about:blank"], {
      stdio: ["ignore", "ignore", "inherit", "pipe", "pipe"],
    });
    browser.#child = child;
    child.on("error", error => browser.#fail(error));
    child.on("exit", code => browser.#fail(new Error(`the browser ended with ${code}`)));
    let rest = "";
    child.stdio[4].setEncoding("utf8").on("data", text => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      for (const message of messages) browser.#take(JSON.parse(message));
    });
    // The page that the browser opens by itself may come later.
    const { targetId } = await browser.#send("Target.createTarget", { url: "about:blank" });
    const attached = await browser.#send("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = attached.sessionId;
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await browser.#send(`${domain}.enable`);
    await browser.#send("Page.addScriptToEvaluateOnNewDocument", { source: EYES });
    await browser.#send("Page.bringToFront");
    return browser;
  }

  async close() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise(done => this.#child.on("exit", done));
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), CLOSE);
    this.#send("Browser.close", {}, null).catch(() => {});
    await ended;
    clearTimeout(timer);
  }

  // Ends every wait.
  giveUp(why) {
    this.#end = 0;
    this.#fail(new Error(why));
  }

  async size(width, height, mobile) {
    this.#width = width;
    await this.#send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile });
  }

  // Waits until nothing is wider than the window. A phone shows a page that is too wide smaller, and its `innerWidth` grows with it.
  async fits(what) {
    const [width, root] = [this.#width, "document.documentElement"];
    const fits = `${root}.scrollWidth <= Math.min(${width}, ${root}.clientWidth)`;
    await this.until(`${what} within ${width}`, `matchMedia("(width: ${width}px)").matches && ${fits}`);
  }

  // Checks that no text has become a script, an element that loads something, or a link that leads to no place on the web, and that
  // everything fits into both windows.
  async checkHarmless(what) {
    assert.equal(await this.look("window.ran"), undefined, what);
    const made = "document.querySelectorAll('main :is(img, svg, script, iframe, object, embed)').length";
    assert.equal(await this.look(made), 0, what);
    const led = "[...document.querySelectorAll('main a')].map(one => one.protocol)";
    for (const protocol of await this.look(led)) assert.match(protocol, /^https?:$/, what);
    for (const form of [PHONE, WIDE]) {
      await this.size(...form);
      await this.fits(what);
    }
  }

  // Has the page see a wish for light or dark colours.
  async colours(value) {
    await this.#send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
  }

  // Takes away the bounds that pages set themselves, from the next page on.
  async liftPolicy() {
    await this.#send("Page.setBypassCSP", { enabled: true });
  }

  // Returns what is seen, as the bytes of a PNG.
  async picture() {
    const { data } = await this.#send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }

  async go(url) {
    await this.#send("Page.navigate", { url });
  }

  // Loads the page anew, and waits until nothing of the former one is left.
  async reload() {
    await this.look("window.isOld = true");
    await this.#send("Page.reload");
    await this.until("the page anew", "window.isOld === undefined");
  }

  // Returns the value of an expression in the page.
  async look(expression) {
    const told = await this.#send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (told.exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(told.exceptionDetails)}`);
    return told.result.value;
  }

  // Waits until an expression is true, and returns its value.
  async until(what, expression) {
    const end = Math.min(Date.now() + PATIENCE, this.#end);
    for (;;) {
      // While a page is loaded there may be nothing to look at.
      const value = await this.look(expression).catch(() => undefined);
      if (value) return value;
      if (Date.now() > Math.min(end, this.#end)) {
        const text = await this.look("document.body.innerText").catch(String);
        throw new Error(`no ${what}: ${expression}\n${text}\n${JSON.stringify(this.faults)}`);
      }
      await new Promise(done => setTimeout(done, PAUSE));
    }
  }

  async text(wanted) {
    await this.until(`text ${wanted}`, `document.body.innerText.includes(${JSON.stringify(wanted)})`);
  }

  // Presses the first thing of a kind that has a text, where it can be pressed.
  async press(css, text = "") {
    const found = `find(${JSON.stringify(css)}, ${JSON.stringify(text)})`;
    const place = `(() => {
      const element = ${found};
      element?.scrollIntoView({ block: "center", inline: "center" });
      const frame = element?.getClientRects()[0];
      if (!frame) return null;
      const [x, y] = [frame.x + frame.width / 2, frame.y + frame.height / 2];
      return element.contains(document.elementFromPoint(x, y)) ? { x, y } : null;
    })()`;
    // What is pressed has to stay where it is from one look to the next.
    let [before, at] = [null, null];
    do {
      before = at;
      await new Promise(done => setTimeout(done, before ? PAUSE : 0));
      at = await this.until(`${css} with ${text} to press`, place);
    } while (at.x !== before?.x || at.y !== before?.y);
    const { x, y } = at;
    for (const type of ["mousePressed", "mouseReleased"]) {
      await this.#send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    }
  }

  // Types into a field, in place of what it has.
  async type(css, text) {
    await this.press(css);
    await this.until(`the focus at ${css}`, `document.activeElement === find(${JSON.stringify(css)})`);
    await this.look("document.activeElement.select()");
    await this.#send("Input.insertText", { text });
  }

  // Presses a key. The number is the one that Windows has for it.
  async key(key, windowsVirtualKeyCode) {
    const text = key.length === 1 ? key : undefined;
    await this.#send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode });
    await this.#send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode });
  }

  // Checks that no request has left the master, that no script has failed, and that the policy has stopped nothing.
  judge(master) {
    assert.ok(this.requests.length > 10, "requests are not seen");
    for (const url of this.requests) assert.ok(url.startsWith(`${master}/`), `a request for ${url}`);
    assert.deepEqual(this.faults, []);
  }

  // Calls the browser about its page, or about itself if the session is `null`.
  #send(method, params = {}, session = this.#session) {
    const id = (this.#number += 1);
    const message = { id, method, params, ...(session && { sessionId: session }) };
    this.#child.stdio[3].write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #take({ id, method, params, result, error }) {
    if (id) {
      // Nobody waits any more once the walk has been given up.
      if (!this.#waiting.has(id)) return;
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) reject(new Error(error.message));
      else resolve(result);
    } else if (method === "Network.requestWillBeSent") {
      this.requests.push(params.request.url);
    } else if (method === "Runtime.exceptionThrown") {
      this.faults.push(params.exceptionDetails);
    } else if (method === "Page.javascriptDialogOpening") {
      this.faults.push(params.message);
    } else if (method === "Log.entryAdded" && params.entry.source === "security") {
      this.faults.push(params.entry.text);
    }
  }

  #fail(error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

// Takes a walk in a browser that the arguments of the script name, and closes it whatever comes.
export async function walk(steps) {
  const [program, profile, ...rest] = process.argv.slice(2);
  const browser = await Browser.open(program, profile);
  const timer = setTimeout(() => browser.giveUp("the walk has taken too long"), WALK);
  try {
    await steps(browser, ...rest);
  } finally {
    clearTimeout(timer);
    await browser.close();
  }
}
