// Questions before something is done that is not easily undone, and notes on what came of it.

import { html } from "./html.js";
import { useEffect, useRef, useState } from "./vendor/hooks.mjs";

// Notes that are shown at once; the oldest goes for the next.
const NOTES_MAX = 4;

let show = () => {};
let note = () => {};
let number = 0;

// Asks the reader. Returns `null` if they leave it, or `{isChosen}`: whether the option was ticked.
export const confirm = question => new Promise(answer => show({ ...question, answer }));

// Does something and tells how it went, or only that it failed. Returns true if it was done.
export async function attempt(what, work, isQuiet = false) {
  try {
    await work();
    if (!isQuiet) note({ text: `${what}: done`, kind: "good" });
    return true;
  } catch (fault) {
    const hint = fault.hint ? ` (${fault.hint})` : "";
    note({ text: `${what}: ${fault.message}${hint}`, kind: "bad" });
    return false;
  }
}

// Shows the present question. Escape leaves it, and the focus goes back to where it was.
export function Dialog() {
  const [question, setQuestion] = useState(null);
  const dialog = useRef(null);
  const option = useRef(null);
  show = setQuestion;
  useEffect(() => {
    if (question) dialog.current.showModal();
  }, [question]);
  if (!question) return null;
  const end = answer => {
    dialog.current.close();
    question.answer(answer);
    setQuestion(null);
  };
  const submit = event => {
    event.preventDefault();
    end({ isChosen: option.current?.checked ?? false });
  };
  const cancel = event => {
    event.preventDefault();
    end(null);
  };
  return html`<dialog ref=${dialog} onCancel=${cancel} aria-labelledby="question">
    <form onSubmit=${submit}>
      <h2 id="question">${question.title}</h2>
      <p>${question.text}</p>
      ${question.option ? html`<label class="tick"><input type="checkbox" ref=${option} /> ${question.option}</label>` : null}
      <p class="buttons">
        <button type="button" onClick=${() => end(null)} autofocus>Cancel</button>
        <button class=${question.isGrave ? "grave" : "main"}>${question.verb}</button>
      </p>
    </form>
  </dialog>`;
}

export function Notes() {
  const [notes, setNotes] = useState([]);
  note = added => {
    number += 1;
    const keyed = { ...added, key: number };
    setNotes(before => [...before, keyed].slice(-NOTES_MAX));
  };
  const drop = key => setNotes(before => before.filter(one => one.key !== key));
  return html`<div class="notes" role="status" aria-live="polite">${notes.map(
    ({ key, text, kind }) => html`<p key=${key} class=${kind}>
      <span>${text}</span><button type="button" aria-label="Close this note" onClick=${() => drop(key)}>×</button>
    </p>`,
  )}</div>`;
}
