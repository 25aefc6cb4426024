/**
 * Types of the SDK for crawl rules in JavaScript, `crawler.js`.
 *
 * A call is one run of a rule on one page. Its items, and the requests that it hands over, are kept only if it ends
 * well. A rule ends a call early by throwing what `skip`, `retry`, `blocked` or `fatal` returns. Any other error that
 * leaves a rule gives the page up: it becomes a dead letter with the message of the error as its reason, and is not
 * tried again. A mistake of the rules themselves is shown with its file, line and function by `crawler plugin test`, in
 * the log of the crawl and by `crawler frontier why`. Lines of the log are kept in each case.
 *
 * The crawler checks what a call hands over. What it refuses, such as an item that does not fit its schema or more items
 * than the limits of a call allow, is an `Error` whose `payload.val` names the reason or the limit.
 *
 * A rule keeps nothing between pages; state for the next page travels with its request. The guide for authors,
 * `GUIDE.md` in the folder of a new plugin, tells how rules are built and tested and what they cost. The documentation
 * of the SDK for Rust tells what a selector may say.
 */

/**
 * Makes a plugin. The module of the rules exports it as `rules`. Throws a `TypeError` if a field of `reads` or a param
 * is not declared as its type says.
 *
 * @example
 * export const rules = plugin({
 *     name: "shop",
 *     version: "0.1.0",
 *     params: { start: { about: "Address of the first list page", default: "https://shop.example/" } },
 *     items: { book: { type: "object" } },
 *     reads: {
 *         list: { books: links("h3 a"), next: links("li.next a") },
 *         book: { title: text("h1"), stars: attr(".rating", "data-stars").map(Number).optional() },
 *     },
 *     root(crawl) {
 *         crawl.follow(crawl.param("start"), "list");
 *     },
 *     rules: {
 *         list(page, crawl) {
 *             const { books, next } = page.extract("list");
 *             crawl.follow(books, "detail");
 *             crawl.follow(next, "list");
 *         },
 *         detail(page, crawl) {
 *             crawl.emit("book", { url: page.url, ...page.extract("book") });
 *         },
 *     },
 * });
 */
export function plugin<
    const Rule extends string,
    const Kind extends string = never,
    Reads extends { readonly [name: string]: Fields } = {},
    const Name extends string = string,
>(declared: Declared<Rule, Kind, Reads, Name>): Rules;

/** A plugin as it is declared. */
export interface Declared<Rule extends string, Kind extends string, Reads, Name extends string> {
    /** Name of the plugin, which `crawler resource add --plugin` takes. */
    readonly name: string;
    /** Semantic version, such as `1.2.0`. Once pushed, a name and version never change their bytes. */
    readonly version: string;
    /**
     * Params that a resource of this plugin takes, by name. A resource with other params is refused; without `params`
     * it may have any.
     */
    readonly params?: { readonly [N in Name]: Param };
    /**
     * Kinds of items with the JSON Schema of each, or `true` for any object. An item that does not fit its schema is
     * refused. The keyword `x-key` of a schema names the field by which the next run knows an item again.
     */
    readonly items?: { readonly [K in Kind]: Schema };
    /** Fields that pages are read for, by the names that `page.extract` takes. */
    readonly reads?: Reads;
    /**
     * Hosts wanted beyond those of the root requests, such as `img.shop.example` or `*.shop.example`.
     * `crawler plugin check` shows them; setting `scope` of a resource grants them.
     */
    readonly hosts?: readonly string[];
    /**
     * Limits of a call to ask for, by the names of `--limit`, in bytes, milliseconds or pieces. The crawler grants
     * `memory` only. Unless this says otherwise, a plugin in JavaScript asks for 256 MiB.
     */
    readonly limits?: { readonly [limit: string]: number };
    /**
     * Hands over the first requests. It is called at least once for a run, and again by other machines and after a
     * restart. Each time it has to hand over the same requests.
     */
    root(crawl: Crawl<Rule, Kind, Name>): Nothing;
    /** Rules by name. Each parses one page. A rule returns nothing and cannot be `async`; otherwise the call fails. */
    readonly rules: { readonly [R in Rule]: (page: Page<Reads>, crawl: Crawl<Rule, Kind, Name>) => Nothing };
}

/** Result of a rule: nothing, and no promise. */
export type Nothing = void | undefined;

/** A JSON Schema, or `true` for any object. */
export type Schema = true | { readonly [keyword: string]: unknown };

/** A param of resources. One with neither `default` nor `optional` has to be given. */
export interface Param {
    /** One sentence that tells what the param is for. */
    readonly about: string;
    /** Value of the param where a resource does not give it. */
    readonly default?: string;
    /** True if the param may be missing. */
    readonly optional?: boolean;
}

/** A plugin as its module exports it, under the name `rules`. The crawler calls these functions. */
export interface Rules {
    /** Tells name, version, rules, schemas and readings. */
    describe(): unknown;
    /** Calls `root` of the plugin. */
    root(): void;
    /** Calls the rule of this number. */
    parse(rule: number): void;
}

/**
 * Reads the text of an element and of all that it contains: runs of white space are one space, and the ends are trimmed.
 *
 * @example
 * const fields = { title: text("h1") };
 */
export function text(css: string): Value<string>;

/**
 * Reads the text of an element like `text`, with all white space as written.
 *
 * @example
 * const fields = { poem: raw("pre") };
 */
export function raw(css: string): Value<string>;

/**
 * Reads what stands between the tags of an element, as written.
 *
 * @example
 * const fields = { body: inner("div.article") };
 */
export function inner(css: string): Value<string>;

/**
 * Reads an attribute of an element. Elements that lack it are passed over. An address is read as the page has it;
 * `crawl.follow` makes it absolute.
 *
 * @example
 * const fields = { image: attr("img.cover", "src") };
 */
export function attr(css: string, name: string): Value<string>;

/**
 * Reads the name of an element in lower case, such as `h2`.
 *
 * @example
 * const fields = { headings: tag("h1, h2, h3").all() };
 */
export function tag(css: string): Value<string>;

/**
 * Reads `true` if there is such an element, and `false` otherwise.
 *
 * @example
 * const fields = { onSale: present("p.sale") };
 */
export function present(css: string): Presence<boolean>;

/**
 * Reads addresses that can only be followed, by `crawl.follow`. They never enter the sandbox, which is fastest.
 *
 * `name` is the attribute that has the address, `href` unless it is given. Relative addresses are relative to the
 * `<base href>` of the page, or else to its URL. Links stand in no `rows`: there, `attr` reads an address.
 *
 * The field has methods that keep some of the links by their addresses.
 *
 * @example
 * const fields = { next: links("li.next a") };
 */
export function links(css: string, name?: string): LinksField;

/**
 * Reads every element that matches as an object with these fields, as an array in the order of the page.
 *
 * Fields are read within the element. Their selectors are matched against the whole page, so they may name elements
 * around it. An empty selector is the element itself, and one that begins with `>` matches its children. Fields may be
 * rows too.
 *
 * @example
 * const fields = { books: rows("article.book", { title: text("h3"), href: attr("h3 a", "href"), id: attr("", "id") }) };
 */
export function rows<const F extends RowFields>(css: string, fields: F): RowsField<F>;

/** Fields that a page is read for, by name. */
export type Fields = { readonly [field: string]: Value<any, any, any> | Presence<any> | LinksField | RowsField<any> };

/** Fields of a row. Links cannot be among them; `attr` reads an address. */
export type RowFields = { readonly [field: string]: Value<any, any, any> | Presence<any> | RowsField<any> };

/**
 * A value that is read of elements. `text`, `raw`, `inner`, `attr` and `tag` return one, and each method returns a new
 * one.
 *
 * Without `all`, the value is that of the first element that matches. If there is none, `page.extract` throws an error
 * that names field and selector, unless `optional` or `otherwise` was called. `T` is the type of the value of one
 * element, `Every` is true after `all`, and `Missing` is the type of the value where no element matches.
 */
export interface Value<T, Every extends boolean = false, Missing = never> {
    /**
     * Reads all elements that match, as an array in the order of the page. It is empty where none matches.
     *
     * @example
     * const fields = { tags: text("ul.tags li").all() };
     */
    all(): Value<T, true, Missing>;
    /**
     * Reads `null` where no element matches.
     *
     * @example
     * const fields = { description: text("#description").optional() };
     */
    optional(): Value<T, Every, null>;
    /**
     * Reads this value where no element matches. Functions of `map` do not see it.
     *
     * @example
     * const fields = { stock: text("p.stock").map(Number).otherwise(0) };
     */
    otherwise<D>(value: D): Value<T, Every, D>;
    /**
     * Makes the value of each element by a function. Several are called in turn.
     *
     * The error that the function throws ends the call, with the name of the field, its selector and the text in front
     * of its own message. A `RuleError` is thrown as it is.
     *
     * @example
     * const fields = { price: text("p.price").map((price) => Number(price.replace("£", ""))) };
     */
    map<U>(change: (value: T) => U): Value<U, Every, Missing>;
}

/**
 * A value that tells if there is an element, as `present` declares it. It is one value, never missing, however many
 * elements match. `T` is its type.
 */
export interface Presence<T> {
    /**
     * Makes the value by a function. Several are called in turn.
     *
     * The error that the function throws ends the call, with the name of the field and its selector in front of its own
     * message. A `RuleError` is thrown as it is.
     *
     * @example
     * const fields = { soldOut: present("p.stock").map((isThere) => !isThere) };
     */
    map<U>(change: (value: T) => U): Presence<U>;
}

/**
 * A field of links, as `links` declares it.
 *
 * The methods keep some of the links by their addresses, and each returns new links. They are called on a field of
 * `reads`, or on the `Links` that were read. The crawler judges the addresses when the links are followed. It then takes
 * only addresses of `http` and `https`, each of them once, and limit `requests` of a call counts only these.
 */
export interface LinksField {
    /** Selector of the elements. */
    readonly css: string;
    /** Attribute that has the address. */
    readonly name: string;
    /** Conditions as the crawler gets them, or `null` without any. */
    readonly filter: object | null;
    /**
     * Keeps only links to the host that the page came from: same name, any scheme and port. Subdomains are other hosts.
     *
     * @example
     * const fields = { pages: links("a").withinHost() };
     */
    withinHost(): this;
    /**
     * Keeps only links in whose address this regular expression is found. If it is called several times, all expressions
     * have to be found.
     *
     * The address is absolute and has no fragment. The expression is a text in the syntax of the crate `regex-lite` for
     * Rust, and no `RegExp`. There are at most 32 expressions, each of at most 4 KiB. Throws a `TypeError` if it is not
     * a text. The crawl fails if the links are followed and the expression is malformed.
     *
     * @example
     * const fields = { books: links("a").matching(String.raw`/books/\d+$`) };
     */
    matching(pattern: string): this;
    /**
     * Keeps only links in whose address this regular expression is not found. If it is called several times, none of the
     * expressions may be found. They are written as for `matching`.
     *
     * @example
     * crawl.follow(page.extract("list").next.notMatching(String.raw`\.(zip|pdf)$`), "list");
     */
    notMatching(pattern: string): this;
}

/** A field of rows, as `rows` declares it. */
export interface RowsField<F> {
    /** Selector of the rows. */
    readonly css: string;
    /** Fields of each row. */
    readonly fields: F;
}

/**
 * Links that `page.extract` found for `links`, with the methods of their field. `crawl.follow` takes them, and an item
 * cannot hold them.
 *
 * @example
 * crawl.follow(page.extract("list").next.withinHost(), "list");
 */
export interface Links extends LinksField {
    /** Number of the reading that the links are of. */
    readonly plan: number;
    /** Number of the field within the reading. */
    readonly field: number;
}

/** Values that `page.extract` returns for fields. */
export type Reading<F> = 0 extends 1 & F ? any : { [K in keyof F]: ReadingOf<F[K]> };

/** Value that `page.extract` returns for one field. */
export type ReadingOf<V> =
    V extends RowsField<infer F> ? Reading<F>[]
    : V extends LinksField ? Links
    : V extends Value<infer T, infer Every, infer Missing> ? (Every extends true ? T[] : T | Missing)
    : V extends Presence<infer T> ? T
    : never;

/** A body that is kept as a file. */
export interface Kept {
    /** Name of the file: the sha256 of the body, in 64 hexadecimal digits. */
    readonly digest: string;
    /** Length of the body in bytes. */
    readonly size: number;
    /** Media type in lower case and without parameters, such as `image/png`; `null` if the answer names none. */
    readonly mediaType: string | null;
}

/** The page of a call, which each rule gets. What is not asked for does not enter the sandbox. */
export interface Page<Reads = any> {
    /** Address that the answer came from, after redirects. */
    readonly url: string;
    /** Address that was asked for. */
    readonly requestedUrl: string;
    /** Status of the answer: from 200 to 299, or one that `acceptStatus` of its request names. */
    readonly status: number;
    /** All headers as pairs of name and value, in the order received. Names are in lower case. */
    readonly headers: [name: string, value: string][];
    /**
     * Returns the value of the first header of this name, in any case, or `null`.
     *
     * @example
     * const modified = page.header("Last-Modified");
     */
    header(name: string): string | null;
    /** Every address on the way, without the last. */
    readonly redirects: string[];
    /** Time of the answer, in milliseconds since 1970. */
    readonly fetchedAt: number;
    /** Encoding that `text` was decoded from, by its WHATWG name, such as `UTF-8`. */
    readonly charset: string;
    /**
     * Entries about the fetch, as far as they are known: the source of the charset (`charset-source`), the server
     * (`address`, `http-version`, `proxy`), the milliseconds that each part took (`wait-ms`, `lookup-ms`, `connect-ms`,
     * `first-byte-ms`, `body-ms`) and the number of bytes received (`body-bytes`).
     *
     * @example
     * const address = page.metadata["address"] ?? "unknown";
     */
    readonly metadata: { [name: string]: string | undefined };
    /**
     * File that the body is kept as. It is `null` if the request did not ask for it with `keepBody`, for a status that
     * is not one of 200 to 299, for a part of a body (206), and for an answer to `HEAD`.
     *
     * @example
     * if (page.kept) crawl.emit("picture", { url: page.url, file: page.kept.digest });
     */
    readonly kept: Kept | null;
    /** True if the body was longer than limit `body` of a call, and is cut. */
    readonly truncated: boolean;
    /** Number of links between a root request (0) and this page. */
    readonly depth: number;
    /** Text that the request carried, see `crawl.follow`; empty without one. */
    readonly state: string;
    /**
     * Address of the page whose link was first to lead here, or `null` for a root request. It is `null` too for an
     * address of more than 2 KiB, and for a link that was stored by a crawler that knew no referrers.
     */
    readonly referrer: string | null;
    /**
     * Number of this attempt at the page, from 1.
     *
     * @example
     * if (page.status === 503 && page.attempt < 3) throw retry("the server is busy");
     */
    readonly attempt: number;
    /** Body, decoded to Unicode. */
    readonly text: string;
    /** Body as received, without its content-encoding. */
    readonly body: Uint8Array;
    /**
     * Returns the body as JSON. Throws a `SyntaxError` if it is none.
     *
     * @example
     * for (const book of page.json().books) crawl.emit("book", { title: book.title });
     */
    json(): any;
    /**
     * Returns what `reads` of the plugin declares under this name: an object with the value of each field.
     *
     * Throws a `TypeError` if the plugin declares no such name, and an `Error` if a field is missing or a function of
     * `map` throws. If the page has more than limits `captures` and `capture-bytes` of a call allow, the rest is left
     * out.
     *
     * @example
     * const { title } = page.extract("book");
     * crawl.emit("book", { url: page.url, title });
     */
    extract<N extends keyof Reads & string>(name: N): Reading<Reads[N]>;
}

/** The crawl of a call, which takes its items and requests. They are kept only if the call ends well. */
export interface Crawl<Rule extends string = any, Kind extends string = any, Name extends string = any> {
    /**
     * Returns a param of the resource, or else its declared default, or else `otherwise`. Without any of them it throws
     * a `RuleError` by which the crawl fails.
     *
     * @example
     * const nPages = Number(crawl.param("pages", "10"));
     */
    param(name: Name): string;
    /** Returns a param of the resource, or else its declared default, or else `otherwise`. */
    param<D>(name: Name, otherwise: D): string | D;
    /**
     * All params of the resource, with the defaults that the plugin declares.
     *
     * @example
     * log.debug(JSON.stringify(crawl.params));
     */
    readonly params: { [name: string]: string | undefined };
    /**
     * Emits one item of a kind that `items` of the plugin declares.
     *
     * The value is an object that `JSON.stringify` can write. Throws a `TypeError` if the plugin declares no such kind,
     * or the value holds links. The crawler refuses an item that does not fit its schema, and more items than limits
     * `items` and `item-bytes` of a call allow.
     *
     * @example
     * crawl.emit("book", { url: page.url, title: "The Waves" });
     */
    emit(kind: Kind, value: object): void;
    /**
     * Adds the pages of links that were read. The rule parses their answers. Links have no method, headers or body.
     *
     * @example
     * crawl.follow(page.extract("list").next, "list", { priority: 1 });
     */
    follow(links: Links, rule: Rule, options?: LinkOptions): void;
    /**
     * Adds pages to fetch next: one address or several. The rule parses their answers.
     *
     * Addresses are absolute, or relative to the page of this call. The crawler drops those that this run has already
     * seen, and those outside of the scope of the resource. It leaves out what is no address; in `root` it refuses that.
     *
     * Throws a `TypeError` if the plugin has no such rule, or an argument has another type. The crawler refuses a state
     * that is too long, a status that is none, and more requests than limit `requests` of a call allows.
     *
     * @example
     * crawl.follow("/books?page=2", "list", { priority: 1, state: "poetry" });
     * crawl.follow("/search", "list", { method: "POST", body: "q=waves", acceptStatus: [404, "500-599"] });
     */
    follow(urls: string | Iterable<string>, rule: Rule, options?: FollowOptions): void;
}

/** Options of links that are followed. */
export interface LinkOptions {
    /**
     * Whole number of 32 bits, from -2147483648 to 2147483647; any other is a `TypeError`. Pages of a higher one come
     * first among the ready pages of a host. 0 unless given.
     */
    readonly priority?: number;
    /** Text of up to 4 KiB in UTF-8, handed back unchanged as `page.state`. */
    readonly state?: string;
    /** True if a page is fetched even if this run has already seen it. */
    readonly reload?: boolean;
    /**
     * Statuses that the rule gets in addition to 200 to 299: a number, a range like `"500-599"`, `"any"`, or an array of
     * them. A page with such a status is final: it is neither tried again nor given up.
     */
    readonly acceptStatus?: number | string | readonly (number | string)[] | null;
    /**
     * True keeps the bodies of answers with a status of 200 to 299 as files, see `page.kept`. A part of a body (206) and
     * an answer to `HEAD` are not kept.
     */
    readonly keepBody?: boolean;
}

/** Options of addresses that are followed. */
export interface FollowOptions extends LinkOptions {
    /** Method of the request: `GET` unless it is given, also if there is a body. */
    readonly method?: string;
    /** Further headers by name. The crawler refuses those that it sets itself, such as `host`. */
    readonly headers?: { readonly [name: string]: string | number };
    /** Text, sent in UTF-8, or bytes. A request with another body is another page. */
    readonly body?: string | Uint8Array | null;
}

/**
 * Returns an error to throw if there is nothing to take from this page. The page counts as done.
 *
 * @example
 * throw skip("the shelf is empty");
 */
export function skip(why: unknown): RuleError;

/**
 * Returns an error to throw if the page is to be tried again.
 *
 * `afterMs` is the shortest wait in milliseconds, rounded up to a whole one; without it the back-off of the crawler
 * decides. Setting `max-retry-wait` of the resource caps the wait, and `max-attempts` the number of attempts. Throws a
 * `TypeError` if `afterMs` is negative or not finite.
 *
 * @example
 * throw retry("the price is not there yet", 60_000);
 */
export function retry(why: unknown, afterMs?: number | null): RuleError;

/**
 * Returns an error to throw if the site refuses us, for example by a captcha with status 200. The page is tried again
 * after up to 30 seconds, then after up to twice as long. Other pages of the host do not wait for it.
 *
 * @example
 * throw blocked("a captcha");
 */
export function blocked(why: unknown): RuleError;

/**
 * Returns an error to throw if the crawl makes no sense any more. The whole crawl fails with this reason.
 *
 * @example
 * throw fatal("the login was refused");
 */
export function fatal(why: unknown): RuleError;

/** Reason why a rule gives up on its page; `skip`, `retry`, `blocked` and `fatal` return one. */
export class RuleError extends Error {
    private constructor();
    /** Kind and reason, as the crawler gets them. */
    readonly reason: { readonly tag: "skip" | "retry" | "blocked" | "fatal"; readonly val: unknown };
}

/**
 * Lines of the log of the crawl, which `crawler resource logs` and `crawler plugin test` show. They are kept even if the
 * call fails. The limits of a call bound their number. The words of a line are joined by spaces.
 *
 * @example
 * log.warn(page.url, "has no price");
 */
export const log: Log;

/** Functions that write a line of the log. */
export interface Log {
    /** Writes a detail. */
    debug(...words: unknown[]): void;
    /** Writes something that an operator may like to know. */
    info(...words: unknown[]): void;
    /** Writes something odd but harmless. */
    warn(...words: unknown[]): void;
    /** Writes something that somebody has to look at. */
    error(...words: unknown[]): void;
}

declare global {
    /** The functions of `log`, and `log`, which writes at level `info`. */
    interface Console extends Log {
        /** Writes something that an operator may like to know. */
        log(...words: unknown[]): void;
    }

    var console: Console;
}
