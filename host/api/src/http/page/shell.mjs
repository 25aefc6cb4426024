// Commands for the shell of a reader. Sites and rules write some of their words, so a word is quoted, or there is no command. It needs no
// browser, so that Node.js can test it.

// Characters that a terminal may obey instead of taking them as text.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
// Words that no shell changes.
const PLAIN = /^[A-Za-z0-9_./:@%+,=-]+$/;
// Marks of a body that an entry of a frontier does not tell as it is: the end is cut off, or bytes are no text.
const NOT_WHOLE = /\ufffd|…$/;

// Returns a word as a shell of POSIX takes it, or `null` if it has characters that could end a paste.
export function quoted(word) {
  if (CONTROL.test(word)) return null;
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// Returns the command that fetches the page of an entry anew and saves it as a test of its plugin, or `null` if it cannot be told: its words are
// not all known, or would not be safe to paste.
export function fetchCommand({ params = {} }, { url, method, body, rule }) {
  if (NOT_WHOLE.test(body)) return null;
  const options = [["rule", rule]];
  if (method !== "GET") options.push(["method", method]);
  if (body) options.push(["body", body]);
  options.push(...Object.entries(params).map(([key, value]) => ["param", `${key}=${value}`]));
  const words = [quoted(url), ...options.map(([name, value]) => quoted(`--${name}=${value}`))];
  return words.includes(null) ? null : ["crawler plugin fetch", ...words].join(" ");
}
