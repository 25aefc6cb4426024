// The page of a master: finds out who reads it, and shows the view that the address names.
//
// All data comes by calls of the API, with the token of the reader. The page itself has none.

import { html } from "./html.js";
import { render } from "./vendor/preact.mjs";
import { useEffect, useState } from "./vendor/hooks.mjs";
import { dropToken, get, hasToken, keepToken, onRefused } from "./api.js";
import { Dialog, Notes } from "./dialog.js";
import * as events from "./events.js";
import { Fault } from "./parts.js";
import { parse, to } from "./route.js";
import { Add } from "./views/add.js";
import { Hosts } from "./views/hosts.js";
import { Login } from "./views/login.js";
import { Nodes } from "./views/nodes.js";
import { Overview } from "./views/overview.js";
import { Plugins } from "./views/plugins.js";
import { Resource } from "./views/resource.js";
import { Resources } from "./views/resources.js";
import { Schedules } from "./views/schedules.js";

const PLACES = [
  ["", "Overview"],
  ["resources", "Resources"],
  ["schedules", "Schedules"],
  ["hosts", "Hosts"],
  ["plugins", "Plugins"],
  ["nodes", "Nodes"],
];

const STREAM = { connecting: "connecting…", live: "live", lost: "no connection" };

function App() {
  const [route, setRoute] = useState(parse(location.hash));
  const [caller, setCaller] = useState(null);
  const [fault, setFault] = useState(null);
  // A token was asked for, perhaps with the reason why the one before did not do.
  const [asked, setAsked] = useState(null);

  const enter = async () => {
    setFault(null);
    try {
      setCaller(await get("crawler/access/caller"));
      setAsked(null);
      return true;
    } catch (problem) {
      if (problem.status !== 401) setFault(problem);
      return false;
    }
  };
  // A token that nobody could check is not kept.
  const logIn = async token => {
    keepToken(token);
    if (!(await enter())) dropToken();
  };
  const leave = () => {
    dropToken();
    setCaller(null);
    setAsked({ problem: null });
  };

  useEffect(() => {
    onRefused(problem => {
      setAsked({ problem: hasToken() ? problem : null });
      setCaller(null);
      dropToken();
    });
    const onHash = () => setRoute(parse(location.hash));
    addEventListener("hashchange", onHash);
    enter();
    return () => removeEventListener("hashchange", onHash);
  }, []);
  useEffect(() => {
    if (!caller) return undefined;
    events.start();
    return events.stop;
  }, [caller]);
  const path = route.parts.join("/");
  useEffect(() => {
    document.title = path ? `${path} · Crawler` : "Crawler";
    document.querySelector("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path]);

  if (asked) return html`<${Login} problem=${fault ?? asked.problem} onToken=${logIn} />`;
  if (!caller) return html`<main><${Fault} fault=${fault} />
    ${fault ? html`<button type="button" onClick=${enter}>Try again</button>` : html`<p class="blank">Loading…</p>`}
  </main>`;
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <${Head} place=${route.parts[0] ?? ""} caller=${caller} onLeave=${leave} />
    <main id="content" tabindex="-1"><${View} key=${route.parts.slice(0, 2).join("/")} ...${route} /></main>
    <${Dialog} /><${Notes} />`;
}

// The address stays as it is: its hash names the view.
function skip(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

function Head({ place, caller, onLeave }) {
  const { state } = events.useSummary();
  return html`<header>
    <nav aria-label="Views">${PLACES.map(
      ([part, name]) => html`<a href=${to(part ? [part] : [])} aria-current=${part === place ? "page" : undefined}>${name}</a>`,
    )}<a href="docs">API</a></nav>
    <p class="who"><span class=${`stream ${state}`} role="status">${STREAM[state]}</span>
      ${hasToken()
        ? html`<span title=${(caller.roles ?? []).join(", ")}>${caller.subject}</span>
          <button type="button" onClick=${onLeave}>Log out</button>`
        : null}</p>
  </header>`;
}

function View({ parts: [place, name, tab], query }) {
  switch (place) {
    case undefined: return html`<${Overview} />`;
    case "resources":
      return name ? html`<${Resource} name=${name} tab=${tab} query=${query} />` : html`<${Resources} query=${query} />`;
    case "add": return html`<${Add} query=${query} />`;
    case "schedules": return html`<${Schedules} query=${query} />`;
    case "hosts": return html`<${Hosts} query=${query} />`;
    case "plugins": return html`<${Plugins} name=${name} />`;
    case "nodes": return html`<${Nodes} />`;
    default: return html`<h1>Nothing is here</h1><p><a href=${to([])}>Overview</a></p>`;
  }
}

// "/" leads to the filter of a list, as it does elsewhere.
addEventListener("keydown", event => {
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  const filter = document.querySelector("[data-filter]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping || !filter) return;
  event.preventDefault();
  filter.focus();
});

const root = document.getElementById("page");
root.replaceChildren();
render(html`<${App} />`, root);
