// Stands behind the SDK, in one file with it: the boundary, which is not called, and what crawler.d.ts declares beside
// what the SDK has.

import { readFileSync } from "node:fs";
import * as sdk from "./types.mjs";

const [config, lines, output, host] = [{}, {}, { follow() {} }, {}];
const FILE = "crawler.d.ts";
const faults = [];

/** Declarations of the file: exported names, and members of each type, each with its place and kind. */
function declarations(text) {
    const [values, members] = [new Map(), new Map()];
    let within = null;
    const all = text.split("\n");
    all.forEach((line, n) => {
        const at = { place: `${FILE}:${n + 1}`, hasDoc: all[n - 1]?.trim().endsWith("*/") };
        const exported = /^export (?:declare )?(function|class|const|interface|type) (\w+)/.exec(line);
        if (exported) {
            const [, kind, name] = exported;
            if (["function", "class", "const"].includes(kind)) values.set(name, at);
            if (!at.hasDoc) faults.push(`${at.place}: ${name} has no doc comment`);
            if (line.endsWith("{")) members.set(name, (within = new Map()));
        }
        if (/^[}>]/.test(line)) within = null;
        const member = /^    (?:readonly )?(\w+)\??([(<:])/.exec(line);
        if (within && member) {
            const [, name, sign] = member;
            within.set(name, { ...at, kind: sign === ":" ? "property" : "method" });
            if (!at.hasDoc) faults.push(`${at.place}: ${name} has no doc comment`);
        }
    });
    return { values, members };
}

const { values, members } = declarations(readFileSync(FILE, "utf8"));

/** Notes each name that only one side has. */
function check(what, declared, actual) {
    for (const name of actual.filter((name) => !declared.has(name))) {
        faults.push(`${FILE}: ${what}: ${name} of crawler.js is not declared`);
    }
    for (const [name, { place }] of declared) {
        if (!actual.includes(name)) faults.push(`${place}: ${what}: crawler.js has no ${name}`);
    }
}

/** Checks the members that objects of a class have, each with its kind. `kept` names what each object keeps. */
function checkClass(name, made, kept = []) {
    const all = Object.entries(Object.getOwnPropertyDescriptors(made.prototype));
    // Rules do not call these.
    const own = all.filter(([member]) => !["constructor", "toJSON"].includes(member));
    const kinds = new Map(kept.map((member) => [member, "property"]));
    own.forEach(([member, { get }]) => kinds.set(member, get ? "property" : "method"));
    check(name, members.get(name), [...kinds.keys()]);
    for (const [member, actual] of kinds) {
        const { place, kind } = members.get(name).get(member) ?? {};
        if (place && kind !== actual) faults.push(`${place}: ${name}: ${member} is a ${actual}`);
    }
}

/** An object that keeps the names that are asked for. */
function asked(object) {
    const names = new Set();
    const proxy = new Proxy(object, {
        get(of, name) {
            names.add(name);
            return of[name];
        },
    });
    return [proxy, names];
}

check("exports", values, Object.keys(sdk));
checkClass("Value", Value);
checkClass("Page", Page);
checkClass("Crawl", Crawl);
check("log", members.get("Log"), Object.keys(log));
check("a param", members.get("Param"), PARAM_KEYS);
checkClass("LinksField", Links, Object.keys(links("a")));
check("rows", members.get("RowsField"), Object.keys(rows("a", {})));
check("an error", members.get("RuleError"), Object.keys(skip("")));

const [declared, parts] = asked({
    name: "shop",
    version: "0.1.0",
    reads: { list: { next: links("a") } },
    root(crawl) {
        const [options, names] = asked({});
        crawl.follow("/", "list", options);
        const all = new Map([...members.get("LinkOptions"), ...members.get("FollowOptions")]);
        check("options", all, [...names]);
    },
    rules: { list() {} },
});
const rules = plugin(declared);
rules.describe();
rules.root();
check("a plugin", members.get("Declared"), [...parts]);
check("exported rules", members.get("Rules"), Object.keys(rules));

host.extract = () => ({ text: "", groups: [], columns: [{ rows: [], spans: [] }] });
const page = new Page({ plan: () => 0, plans: [new Plan("list", declared.reads.list)] });
const read = Object.keys(page.extract("list").next).filter((name) => !members.get("LinksField").has(name));
check("links that were read", members.get("Links"), read);
process.stdout.write(`${faults.join("\n") || "as expected"}\n`);
