// The plugin SDK for JavaScript: rules as plain objects, pages read by the crawler in one pass.
//
//   import { plugin, text, attr, links } from "./crawler.js";
//
//   export const rules = plugin({
//       name: "shop",
//       version: "0.1.0",
//       params: { start: { about: "Address of the first list page", default: "https://shop.example/" } },
//       items: { book: { type: "object" } },
//       reads: {
//           list: { books: links("h3 a"), next: links("li.next a") },
//           book: { title: text("h1"), stars: attr(".rating", "data-stars").map(Number).optional() },
//       },
//       root(crawl) {
//           crawl.follow(crawl.param("start"), "list");
//       },
//       rules: {
//           list(page, crawl) {
//               const { books, next } = page.extract("list");
//               crawl.follow(books, "detail");
//               crawl.follow(next, "list");
//           },
//           detail(page, crawl) {
//               crawl.emit("book", { url: page.url, ...page.extract("book") });
//           },
//       },
//   });
//
// All that a plugin uses is described in crawler.d.ts, which editors show. The boundary, rules.wit, is the same for all
// languages.

import config from "crawler:rules/config@0.1.1";
import host from "crawler:rules/page@0.1.1";
import lines from "crawler:rules/log@0.1.1";
import output from "crawler:rules/output@0.1.1";

/** Row of what lies in none, at the boundary. */
const NO_ROW = 0xffffffff;

class Value {
    constructor(css, take, parts = {}) {
        const usual = { every: false, presence: false, missing: undefined, change: (text) => text };
        Object.assign(this, { css, take }, usual, parts);
    }

    #with(parts) {
        return new Value(this.css, this.take, { ...this, ...parts });
    }

    all() {
        return this.#with({ every: true });
    }

    optional() {
        return this.otherwise(null);
    }

    otherwise(value) {
        return this.#with({ missing: () => value });
    }

    map(change) {
        const before = this.change;
        return this.#with({ change: (text) => change(before(text)) });
    }
}

export const text = (css) => new Value(css, { tag: "text" });
export const raw = (css) => new Value(css, { tag: "text-raw" });
export const inner = (css) => new Value(css, { tag: "inner" });
export const attr = (css, name) => new Value(css, { tag: "attr", val: name });
export const tag = (css) => new Value(css, { tag: "tag" });
export const present = (css) => new Value(css, { tag: "present" }, { presence: true });

/** Links as they are declared, and as they are read. */
class Links {
    constructor(css, name, parts = {}) {
        Object.assign(this, { css, name, filter: null }, parts);
    }

    withinHost() {
        return this.#filtered({ withinHost: true });
    }

    matching(pattern) {
        return this.#filtered({ matching: [...(this.filter?.matching ?? []), patternOf(pattern)] });
    }

    notMatching(pattern) {
        return this.#filtered({ notMatching: [...(this.filter?.notMatching ?? []), patternOf(pattern)] });
    }

    #filtered(parts) {
        const usual = { withinHost: false, matching: [], notMatching: [], distinct: true, hints: [] };
        return new Links(this.css, this.name, { ...this, filter: { ...usual, ...this.filter, ...parts } });
    }

    toJSON() {
        throw new TypeError(`the links of ${this.css} can only be followed; to read addresses use attr`);
    }
}

/** Regular expression as the crawler takes it: a text, since its syntax is not that of JavaScript. */
function patternOf(pattern) {
    if (typeof pattern !== "string") throw new TypeError(`a regular expression for links is a text, not ${pattern}; write it by String.raw`);
    return wellFormed(pattern);
}

/** Positions of the links that fit. The crawler judges each address once. */
function chosen({ plan, field, filter }) {
    try {
        return host.chooseLinks(plan, field, filter);
    } catch (error) {
        const { tag, val } = error?.payload ?? {};
        if (tag === "refused") throw fatal(val);
        if (tag === "unread") throw { payload: val };
        throw error;
    }
}

class Rows {
    constructor(css, fields) {
        Object.assign(this, { css, fields });
    }
}

export const links = (css, name = "href") => new Links(css, name);
export const rows = (css, fields) => new Rows(css, fields);

export class RuleError extends Error {
    constructor(tag, val) {
        super(`${tag}: ${JSON.stringify(val)}`);
        this.reason = { tag, val };
    }
}

export const skip = (why) => new RuleError("skip", wellFormed(why));
export const retry = (why, afterMs = null) => {
    if (afterMs !== null && !(afterMs >= 0 && Number.isFinite(afterMs))) {
        throw new TypeError(`a page is tried again in 0 ms or more, not ${afterMs}`);
    }
    const whole = afterMs === null ? null : Math.ceil(afterMs);
    return new RuleError("retry", { afterMs: whole, why: wellFormed(why), hints: [] });
};
export const blocked = (why) => new RuleError("blocked", wellFormed(why));
export const fatal = (why) => new RuleError("fatal", wellFormed(why));

export const log = Object.fromEntries(
    ["debug", "info", "warn", "error"].map((level) => [level, (...words) => lines.write(level, wellFormed(words.join(" ")))]),
);
globalThis.console ??= { ...log, log: log.info };

/** Text without half characters, which the boundary does not know. */
function wellFormed(text) {
    return String(text).toWellFormed();
}

/** Limits that the interpreter needs, unless the plugin asks for others. */
const ROOM = { memory: 256 * 2 ** 20 };

export function plugin(declared) {
    const names = Object.keys(declared.rules);
    const plans = Object.entries(declared.reads ?? {}).map(([name, fields]) => new Plan(name, fields));
    const hints = declared.params === undefined ? [] : [["params", paramsSchema(declared.params)]];
    const kinds = Object.keys(declared.items ?? {});
    const position = (list, name, what) => {
        const at = list.indexOf(name);
        if (at < 0) throw new TypeError(`there is no ${what} "${name}"; there are: ${list.join(", ")}`);
        return at;
    };
    const known = {
        rule: (name) => position(names, name, "rule"),
        kind: (name) => position(kinds, name, "kind of items"),
        plan: (name) => position(plans.map((plan) => plan.name), name, "reading"),
        plans,
    };
    return {
        describe: () => ({
            name: declared.name,
            version: declared.version,
            rules: names.map((name) => ({ name, hints: [] })),
            schemas: kinds.map((name) => ({ name, jsonSchema: schemaText(declared.items[name]), hints: [] })),
            plans: plans.map((plan) => plan.described()),
            hosts: declared.hosts ?? [],
            limits: Object.entries({ ...ROOM, ...declared.limits }),
            hints,
        }),
        root: () => called("root", () => declared.root(new Crawl(known))),
        parse: (rule) => called(names[rule], () => declared.rules[names[rule]](new Page(known), new Crawl(known))),
    };
}

/** Text of a schema at the boundary, where an empty one allows any object. */
function schemaText(schema) {
    return schema === true ? "" : JSON.stringify(schema);
}

/** Keys of a param as a plugin declares it. */
const PARAM_KEYS = ["about", "default", "optional"];

/** JSON Schema of the params of a resource. */
function paramsSchema(params) {
    const declared = Object.entries(params);
    declared.forEach(([name, param]) => checkParam(name, param));
    const property = ({ about, default: usual }) => ({ type: "string", description: about, default: usual });
    return JSON.stringify({
        type: "object",
        properties: Object.fromEntries(declared.map(([name, param]) => [name, property(param)])),
        required: declared.filter(([, param]) => param.default === undefined && !param.optional).map(([name]) => name),
        additionalProperties: false,
    });
}

function checkParam(name, param) {
    const wrong = (why) => new TypeError(`param ${JSON.stringify(name)}: ${why}`);
    if (!/^[A-Za-z0-9._-]{1,128}$/.test(name)) throw wrong("the name of a param has 1 to 128 letters, digits, -, _ and .");
    if (typeof param !== "object" || param === null) throw wrong('it is declared by an object: { about: "…" }');
    const unknown = Object.keys(param).find((key) => !PARAM_KEYS.includes(key));
    if (unknown !== undefined) throw wrong(`unknown key "${unknown}"; the keys are ${PARAM_KEYS.join(", ")}`);
    const { about, default: usual, optional = false } = param;
    if (typeof about !== "string" || about.trim() === "") throw wrong("about is missing: one sentence that tells what it is for");
    if (usual !== undefined && typeof usual !== "string") throw wrong(`default is a string, not ${JSON.stringify(usual)}`);
    if (typeof optional !== "boolean") throw wrong(`optional is true or false, not ${JSON.stringify(optional)}`);
    if (optional && usual !== undefined) throw wrong("one with a default is never missing; leave out optional or default");
}

function called(name, call) {
    try {
        const returned = call();
        if (returned !== undefined) {
            // A promise, or a generator that nobody runs: what it would do would be lost.
            throw new TypeError(`${name} returned something: rules return nothing, and cannot be async`);
        }
    } catch (error) {
        if (error instanceof RuleError) throw error.reason;
        const reason = reasonOf(error);
        const places = error instanceof Error ? placesOf(error) : [];
        if (places.length > 0) lines.panic(wellFormed(reason), wellFormed(places[0]));
        if (places.length > 1) lines.write("debug", wellFormed(`${reason}, at ${places.slice(0, PLACES).join(", at ")}`));
        throw { tag: "other", val: [0, wellFormed(reason)] };
    }
}

/** Largest number of places that are told of a mistake. */
const PLACES = 16;

/** Places where a mistake was made, innermost first: the lines of the rules, without those of this file. */
function placesOf(error) {
    const first = error.cause instanceof Error ? error.cause : error;
    const own = first.stack.split("\n").filter((line) => !/\/crawler\.js:|\(native\)/.test(line));
    // `at detail (/src/rules.js:12:9)`; what is called at no place of its own has no name.
    const places = own.map((line) => /at (?:(\S+) \()?\/?(.+?:\d+)(?::\d+)?\)?$/.exec(line.trim()));
    return places.filter((place) => place !== null).map(([, name, at]) => (name && name !== "<anonymous>" ? `${at} in ${name}` : at));
}

/** Reason in words. What the host throws has a variant as payload; a mistake in a rule is any other Error. */
function reasonOf(error) {
    const said = error?.payload?.val;
    if (said !== undefined) return String(said.why ?? said);
    if (error instanceof RuleError) return error.message;
    if (error instanceof Error) return error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
    return String(error);
}

class Page {
    #known;

    constructor(known) {
        this.#known = known;
    }

    get url() {
        return host.url();
    }

    get requestedUrl() {
        return host.requestedUrl();
    }

    get status() {
        return host.status();
    }

    get headers() {
        return host.headers();
    }

    header(name) {
        return host.header(name);
    }

    get redirects() {
        return host.redirects();
    }

    get fetchedAt() {
        return host.fetchedAt();
    }

    get charset() {
        return host.charset();
    }

    get metadata() {
        return Object.fromEntries(host.metadata());
    }

    get kept() {
        const { "kept-digest": digest, "kept-bytes": size, "kept-type": mediaType = null } = this.metadata;
        return digest === undefined ? null : { digest, size: Number(size), mediaType };
    }

    get truncated() {
        return host.truncated();
    }

    get depth() {
        return host.depth();
    }

    get state() {
        return textOf(String.fromCharCode(...host.state()));
    }

    get referrer() {
        return host.referrer() ?? null;
    }

    get attempt() {
        return host.attempt();
    }

    get text() {
        return host.text();
    }

    get body() {
        return host.body();
    }

    json() {
        return JSON.parse(host.text());
    }

    extract(name) {
        const at = this.#known.plan(name);
        return this.#known.plans[at].read(at, host.extract(at));
    }
}

class Crawl {
    #known;

    constructor(known) {
        this.#known = known;
    }

    param(name, ...otherwise) {
        const value = config.get(name) ?? otherwise[0];
        if (value === undefined && otherwise.length === 0) throw fatal(`param ${name} is missing: add --param ${name}=VALUE`);
        return value;
    }

    get params() {
        return Object.fromEntries(config.all());
    }

    emit(kind, value) {
        const json = JSON.stringify(value);
        if (json === undefined) throw new TypeError(`an item of ${kind} is an object, not ${String(value)}`);
        output.emit(this.#known.kind(kind), json);
    }

    follow(what, rule, options = {}) {
        const number = this.#known.rule(rule);
        const { priority = 0, state = "", reload = false, acceptStatus = [], keepBody = false } = options;
        const { method, headers, body = null } = options;
        // The boundary would wrap a number of more bits.
        const fits = Number.isInteger(priority) && priority === (priority | 0);
        if (!fits) throw new TypeError(`priority is a whole number of 32 bits, not ${priority}`);
        if (typeof state !== "string") throw new TypeError(`state is a text, not ${typeof state}`);
        const hints = [...accepting(acceptStatus), ...keeping(keepBody)];
        const common = { priority, state: bytesOf(state), reload: Boolean(reload), hints };
        if (what instanceof Links) {
            if (method || headers || body) throw new TypeError("links have no method, headers or body; use attr");
            if (what.filter === null) {
                output.followField(what.plan, what.field, number, common);
                return;
            }
            const positions = chosen(what);
            if (positions.length > 0) output.followCaptures(what.plan, what.field, positions, number, common);
            return;
        }
        const isSent = body === null || typeof body === "string" || body instanceof Uint8Array;
        if (!isSent) throw new TypeError("body is a text or a Uint8Array");
        const urls = typeof what === "string" ? [what] : [...(what ?? [what])];
        const requests = urls.map((url) => {
            if (typeof url !== "string") throw new TypeError(`an address is a text, not ${url}`);
            return {
                url: wellFormed(url),
                method: method ?? "GET",
                headers: Object.entries(headers ?? {}).map(([name, value]) => [name, wellFormed(value)]),
                body: typeof body === "string" ? bytesOf(body) : body,
                rule: number,
                ...common,
            };
        });
        if (requests.length > 0) output.follow(requests);
    }
}

/** Hint that asks for these statuses. */
function accepting(statuses) {
    if (statuses === null) return [];
    const several = Array.isArray(statuses) ? statuses : [statuses];
    for (const status of several) {
        if (typeof status === "string" || Number.isInteger(status)) continue;
        throw new TypeError(`acceptStatus is a number, a text or an array of them, not ${status}`);
    }
    return several.length > 0 ? [["accept-status", several.join(",")]] : [];
}

/** The hint that asks to keep the body. */
function keeping(isKept) {
    if (typeof isKept !== "boolean") throw new TypeError(`keepBody is true or false, not ${isKept}`);
    return isKept ? [["keep-body", "true"]] : [];
}

/** One entry of `reads`: numbered for the boundary, and read back by those numbers. */
class Plan {
    constructor(name, fields) {
        this.name = name;
        this.groups = [];
        this.fields = [];
        this.shape = this.#number(fields, null, "");
    }

    #number(fields, group, path) {
        return Object.entries(fields).map(([key, declared]) => {
            const name = path + key;
            if (declared instanceof Rows) {
                const at = this.groups.push({ name, parent: group, selector: declared.css, hints: [] }) - 1;
                return { key, declared, at, shape: this.#number(declared.fields, at, `${name}.`) };
            }
            if (declared instanceof Links) {
                if (group !== null) throw new TypeError(`${name}: links stand beside rows; within them use attr`);
                return { key, declared, at: this.#field(name, group, declared.css, attr("", declared.name), false) };
            }
            if (!(declared instanceof Value)) throw new TypeError(`${name} is none of text, attr, links, rows and so on`);
            return { key, declared, at: this.#field(name, group, declared.css, declared, true), name };
        });
    }

    #field(name, group, selector, { take, every }, keep) {
        const first = keep && !every;
        return this.fields.push({ name, group, selector, take, first, keep, hints: [] }) - 1;
    }

    described() {
        return { name: this.name, groups: this.groups, fields: this.fields, hints: [] };
    }

    read(plan, captures) {
        const slice = slicer(captures.text);
        // The captures of each field and the rows of each group, by the row around them.
        const found = captures.columns.map(({ rows }) => byRow(rows));
        const nested = captures.groups.map((parents) => byRow(parents));
        const textsOf = (field, row) => {
            const { spans } = captures.columns[field];
            return (found[field].get(row) ?? []).map((n) => slice(spans[2 * n], spans[2 * n + 1]));
        };
        const object = (shape, row) => Object.fromEntries(shape.map((part) => [part.key, read(part, row)]));
        const read = ({ declared, at, name, shape }, row) => {
            if (declared instanceof Links) return new Links(declared.css, declared.name, { filter: declared.filter, plan, field: at });
            if (declared instanceof Value) return value(name, declared, textsOf(at, row));
            return (nested[at].get(row) ?? []).map((n) => object(shape, n));
        };
        return object(this.shape, NO_ROW);
    }
}

/** Positions of each row. They are looked for once, since there may be tens of thousands. */
function byRow(rows) {
    const positions = new Map();
    rows.forEach((signed, n) => {
        const row = signed >>> 0;
        if (positions.has(row)) positions.get(row).push(n);
        else positions.set(row, [n]);
    });
    return positions;
}

function value(name, declared, texts) {
    const changed = (text) => {
        try {
            return declared.change(text);
        } catch (error) {
            if (error instanceof RuleError) throw error;
            const what = `\`${name}\` (${declared.css}) is ${JSON.stringify(text)}`;
            throw new Error(`${what}: ${reasonOf(error)}`, { cause: error });
        }
    };
    if (declared.presence) return changed(texts.length > 0);
    if (declared.every) return texts.map(changed);
    if (texts.length > 0) return changed(texts[0]);
    if (declared.missing) return declared.missing();
    throw new Error(`the page lacks \`${name}\`: nothing matches ${declared.css || "its row"}`);
}

/** Function that cuts a text by spans, which are in bytes of UTF-8. */
function slicer(text) {
    const bytes = binary(text);
    if (bytes.length === text.length) return (from, to) => text.slice(from, to);
    return (from, to) => textOf(bytes.slice(from, to));
}

// Each one call of the interpreter, however long the text: a character for each byte of UTF-8, and back.
const binary = (text) => unescape(encodeURIComponent(text));
const textOf = (bytes) => decodeURIComponent(escape(bytes));
const bytesOf = (text) => Uint8Array.from(binary(text.toWellFormed()), (byte) => byte.charCodeAt(0));
