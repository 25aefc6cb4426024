// Questions before something is done that is not easily undone, and notes on what came of it.

import { html } from "./html.js";
import { useEffect, useRef, useState } from "./vendor/hooks.mjs";
import { present } from "./api.js";

// Notes that are shown at once; the oldest goes for the next.
const NOTES_MAX = 4;

// Questions that wait for an answer; the first one is shown.
const questions = [];

let redraw = () => {};
let note = () => {};
let number = 0;

// Asks the reader. Returns `null` if they leave it or have logged out, or `{isChosen}`: whether the option was ticked.
export const confirm = (question, reader = present()) => new Promise(answer => {
  if (reader.aborted) {
    answer(null);
    return;
  }
  number += 1;
  questions.push({ ...question, answer, key: number });
  redraw({});
});

// Does something and tells how it went, or only that it failed. Returns true if it was done. A reader who has logged out
// meanwhile is told nothing, and nor is the next one: it returns false.
export async function attempt(what, work, isQuiet = false, reader = present()) {
  let told = isQuiet ? null : { text: `${what}: done`, kind: "good" };
  let isDone = true;
  try {
    await work();
  } catch (fault) {
    const hint = fault.hint ? ` (${fault.hint})` : "";
    told = { text: `${what}: ${fault.message}${hint}`, kind: "bad" };
    isDone = false;
  }
  if (reader.aborted) return false;
  if (told) note(told);
  return isDone;
}

// Shows the questions, one at a time. All are left when the reader logs out.
export function Dialog() {
  const [, draw] = useState(null);
  redraw = draw;
  useEffect(() => () => {
    for (const question of questions.splice(0)) question.answer(null);
  }, []);
  const [question] = questions;
  return question ? html`<${Question} key=${question.key} question=${question} />` : null;
}

// Escape leaves a question, and the focus goes back to where it was.
function Question({ question }) {
  const dialog = useRef(null);
  const option = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  const end = answer => {
    if (questions[0] !== question) return;
    dialog.current.close();
    questions.shift();
    question.answer(answer);
    redraw({});
  };
  const submit = event => {
    event.preventDefault();
    end({ isChosen: option.current?.checked ?? false });
  };
  const cancel = event => {
    event.preventDefault();
    end(null);
  };
  return html`<dialog ref=${dialog} onCancel=${cancel} onClose=${() => end(null)} aria-labelledby="question">
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
