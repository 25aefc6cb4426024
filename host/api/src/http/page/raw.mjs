// JSON as the text that it is. A script reads numbers as binary fractions with 53 bits, and so would show others than those that
// were written: long ids, prices such as 1.10, and names in another order. It needs no browser, so that Node.js can test it.

const BLANKS = " \n\r\t";
const SIGNS = "{}[],:";
const ENDS = `${BLANKS}${SIGNS}"`;

// Characters of a text that is shown. Indentation makes a text that is deeply nested more than a hundred times as long.
const SHOWN_MAX = 256 * 1024;

const isOpening = token => token === "{" || token === "[";
const isClosing = token => token === "}" || token === "]";

// Returns the text of a member of an object, or `null` if there is none. The text has to be JSON.
export const member = (text, name) => members(text).get(name) ?? null;

// Returns the texts of the members of an object by their names. The last one of a repeated name counts, as it does elsewhere. The text has
// to be JSON.
export function members(text) {
  const found = new Map();
  let [depth, before, name, start] = [0, "", "", -1];
  for (const [token, index] of tokens(text)) {
    const isEnd = depth === 1 && (token === "," || token === "}");
    if (isEnd && start >= 0) found.set(name, text.slice(start, index).trim());
    if (isEnd) start = -1;
    else if (depth === 1 && start < 0 && token === ":") [name, start] = [JSON.parse(before), index + 1];
    if (isOpening(token)) depth += 1;
    if (isClosing(token)) depth -= 1;
    before = token;
  }
  return found;
}

// Returns the texts of the elements of a list. The text has to be JSON.
export function elements(text) {
  const found = [];
  let [depth, start] = [0, -1];
  for (const [token, index] of tokens(text)) {
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
  for (const [token] of tokens(text)) {
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

// Yields the strings, signs and other values of a JSON text, each with its place. A regular expression would need a stack as deep as a string
// has escapes.
function* tokens(text) {
  let at = 0;
  while (at < text.length) {
    const start = at;
    at += 1;
    if (BLANKS.includes(text[start])) continue;
    if (text[start] === '"') at = afterString(text, at);
    else if (!SIGNS.includes(text[start])) while (at < text.length && !ENDS.includes(text[at])) at += 1;
    yield [text.slice(start, at), start];
  }
}

// Returns the place after the quote that ends a string, whose first character is at `start`. A quote after an odd number of backslashes
// belongs to the string.
function afterString(text, start) {
  for (let quote = text.indexOf('"', start); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text[first - 1] === "\\") first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}
