// JSON as the text that it is. A script reads numbers as binary fractions with 53 bits, and so would show others than those that
// were written: long ids, prices such as 1.10, and names in another order. It needs no browser, so that Node.js can test it.

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// Characters of a text that is shown. Indentation makes a text that is deeply nested more than a hundred times as long.
const SHOWN_MAX = 256 * 1024;

const isOpening = token => token === "{" || token === "[";
const isClosing = token => token === "}" || token === "]";

// Returns the text of a member of an object, or `null` if there is none. The text has to be JSON.
export function member(text, name) {
  let [depth, before, start] = [0, "", -1];
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (depth === 1 && start >= 0 && (token === "," || token === "}")) return text.slice(start, index).trim();
    if (depth === 1 && start < 0 && token === ":" && JSON.parse(before) === name) start = index + 1;
    if (isOpening(token)) depth += 1;
    if (isClosing(token)) depth -= 1;
    before = token;
  }
  return null;
}

// Returns the texts of the elements of a list. The text has to be JSON.
export function elements(text) {
  const found = [];
  let [depth, start] = [0, -1];
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const isEnd = depth === 1 && (token === "," || token === "]");
    if (isEnd && start >= 0) found.push(text.slice(start, index).trim());
    if (isEnd) start = -1;
    else if (depth === 1 && start < 0) start = index;
    if (isOpening(token)) depth += 1;
    if (isClosing(token)) depth -= 1;
  }
  return found;
}

// Returns a JSON text as it is shown, and a note for its reader, which may be empty: with a line for each member, or as it was written
// if that is longer than `most`. What is longer even so is cut.
export function readable(text, most = SHOWN_MAX) {
  const lines = indented(text, most);
  if (lines !== null) return { text: lines, note: "" };
  const note = "Too long to be shown with a line for each member";
  if (text.length <= most) return { text, note: `${note}.` };
  return { text: text.slice(0, most), note: `${note}. These are the first ${most} of ${text.length} characters.` };
}

// Returns the text with a line for each member, or `null` if it is longer than `most` then. The text has to be JSON.
export function indented(text, most = Infinity) {
  let [depth, before, lines] = [0, "", ""];
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(TOKEN)) {
    if (lines.length > most) return null;
    if (isClosing(token)) {
      depth -= 1;
      lines += isOpening(before) ? token : line() + token;
    } else {
      if (isOpening(before) || before === ",") lines += line();
      lines += token === ":" ? ": " : token;
      if (isOpening(token)) depth += 1;
    }
    before = token;
  }
  return lines.length > most ? null : lines;
}
