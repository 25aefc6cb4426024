// Lists of a frontier, which come in pages: a filter by state, the page, and the way to others.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { get } from "../api.js";
import { Choice, emptyPage, Pager, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";

const PAGE_SIZE = 50;

// Shows the list `field` at `path`, each entry as `row(entry)`. It is loaded when its reader asks, and not again and again:
// a frontier is read for it.
export function PagedList({ path, field, caption, states, heads, row }) {
  const [place, setPlace] = useState({ path, state: "", tokens: [""] });
  const { state, tokens } = place.path === path ? place : { state: "", tokens: [""] };
  const page_token = tokens.at(-1);
  const load = usePoll(
    signal => get(path, { state, page_size: PAGE_SIZE, page_token }, signal),
    [path, state, page_token],
  );
  const entries = load.value?.[field] ?? [];
  const next = load.value?.next_page_token;
  return html`<p class="filters">
      <${Choice} label="State" value=${state} options=${[["", "all"], ...states.map(one => [one, one])]}
        onChange=${chosen => setPlace({ path, state: chosen, tokens: [""] })} />
      <button type="button" onClick=${load.again}>Load again</button>
    </p>
    <${Status} load=${load} isEmpty=${!entries.length} empty=${emptyPage(tokens, next, "None.")} />
    ${entries.length ? html`<${Table} caption=${caption} heads=${heads}>${entries.map(row)}<//>` : null}
    <${Pager} tokens=${tokens} next=${next} onTurn=${turned => setPlace({ path, state, tokens: turned })} />`;
}
