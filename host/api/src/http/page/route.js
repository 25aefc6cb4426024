// Addresses within the page: `#/PATH/PARTS?QUERY`. They can be kept, sent, and gone back to.

// Returns the address of parts and a query, both of any text.
export function to(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const tail = given.length ? "?" + new URLSearchParams(given) : "";
  return "#/" + parts.map(encodeURIComponent).join("/") + tail;
}

export function go(parts, query) {
  location.hash = to(parts, query);
}

// Returns the parts and the query of an address. One that cannot be meant has no known part.
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  try {
    const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
    return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
  } catch {
    return { parts: ["?"], query: {} };
  }
}
