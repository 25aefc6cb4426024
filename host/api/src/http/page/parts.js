// Small parts that all views share.

import { html } from "./html.js";
import { NONE, webAddress } from "./format.js";
import { to } from "./route.js";

// Text of an address, which leads there only if it is a place on the web.
export function Address({ url }) {
  const place = webAddress(url);
  if (!place) return html`<span class="url">${String(url ?? "")}</span>`;
  return html`<a class="url" href=${place} target="_blank" rel="noopener noreferrer">${url}</a>`;
}

export const ResourceLink = ({ name, tab }) => html`<a href=${to(["resources", name, ...(tab ? [tab] : [])])}>${name}</a>`;

export const Phase = ({ phase }) => html`<span class="phase ${String(phase).toLowerCase()}">${phase}</span>`;

// A fault in the words of the master: what happened, and the way out.
export function Fault({ fault }) {
  if (!fault) return null;
  return html`<p class="fault" role="alert">${fault.message}${fault.hint ? html`<br /><small>${fault.hint}</small>` : null}</p>`;
}

// The state of something that is loaded: its fault, or that it is on its way, or that there is nothing.
export function Status({ load, isEmpty, empty }) {
  if (load.fault) return html`<${Fault} fault=${load.fault} />`;
  if (load.value === undefined) return html`<p class="blank" role="status">Loading…</p>`;
  return isEmpty ? html`<p class="blank">${empty}</p>` : null;
}

// Columns whose cells say by themselves what they are for. Their heads are there for those who hear a table.
const UNSEEN_HEADS = ["tick", "acts"];

// A table that scrolls sideways in its own frame. A head is a text, or `[text, class]`.
export function Table({ caption, heads, children }) {
  const cells = heads.map(head => (Array.isArray(head) ? head : [head, ""])).map(
    ([text, kind]) => [UNSEEN_HEADS.includes(kind) ? html`<span class="unseen">${text}</span>` : text, kind],
  );
  return html`<div class="frame" tabindex="0" role="region" aria-label=${caption}><table>
    <caption>${caption}</caption>
    <thead><tr>${cells.map(([text, kind]) => html`<th scope="col" class=${kind}>${text}</th>`)}</tr></thead>
    <tbody>${children}</tbody>
  </table></div>`;
}

// Numbers with their names.
export function Figures({ figures }) {
  return html`<dl class="figures">${figures.map(
    ([name, value]) => html`<div><dt>${name}</dt><dd>${value ?? NONE}</dd></div>`,
  )}</dl>`;
}

// The way through a list that comes in pages. `tokens` are those of the pages before; the last is of this page.
export function Pager({ tokens, next, onTurn }) {
  if (tokens.length === 1 && !next) return null;
  return html`<nav class="pager" aria-label="Pages">
    <button type="button" disabled=${tokens.length === 1} onClick=${() => onTurn(tokens.slice(0, -1))}>Back</button>
    <span>Page ${tokens.length}</span>
    <button type="button" disabled=${!next} onClick=${() => onTurn([...tokens, next])}>Next</button>
  </nav>`;
}

// Words for a page of a list that has nothing: `none`, unless there are other pages.
export function emptyPage(tokens, next, none) {
  if (next) return "None on this page; others may follow.";
  return tokens.length > 1 ? "None on this page." : none;
}

// Tells that a run has begun since the reader chose what is shown, and offers it. `chosen.newest` was the newest run then.
export function NextRun({ what, chosen, newest, onShow }) {
  if (!chosen.newest || newest <= chosen.newest) return null;
  return html`<p role="status">Run ${newest} has begun. These are the ${what} of run ${chosen.run}.
    <button type="button" onClick=${() => onShow(newest)}>Show run ${newest}</button></p>`;
}

export function Choice({ label, value, options, onChange }) {
  return html`<label>${label}
    <select value=${value} onChange=${event => onChange(event.currentTarget.value)}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select>
  </label>`;
}
