// Looks at the master again and again while a view is shown: one call at a time, and none while nobody sees the page.

import { useEffect, useRef, useState } from "./vendor/hooks.mjs";

// Shortest time in milliseconds from the end of a look to the next one, however many events ask for it.
const PAUSE = 1_000;
// Milliseconds from the end of a look whose fault may pass to the next one, where there is no period.
const AFTER_FAULT = 10_000;

// Returns `{value, fault, again, againAfter}` of `load(signal)`, which is called anew when an input differs, `period`
// milliseconds after the end of a look (if it is 0, only after a fault that may pass), after `again()`, and after
// `againAfter(ms)`, though not sooner than `ms` after the end of a look. A pause is at least as long as the look before it took,
// so that the page takes half of the time of a slow master at most. A fault keeps the value of before.
export function usePoll(load, inputs, period = 0) {
  const [state, setState] = useState({});
  const plan = useRef(() => {});
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer;
    let isLoading = false;
    // A look was due while nobody saw the page.
    let isMissed = false;
    // Time of the next look that is planned, the shortest pause that was asked for during a look, and the end of the last
    // look with the time that it took.
    let [due, asked, ended, took] = [Infinity, Infinity, -Infinity, 0];
    const look = async () => {
      clearTimeout(timer);
      due = Infinity;
      if (isLoading || signal.aborted) return;
      isMissed = document.hidden;
      if (isMissed) return;
      [isLoading, asked] = [true, Infinity];
      const began = performance.now();
      let pause = period;
      try {
        const value = await load(signal);
        if (!signal.aborted) setState({ value });
      } catch (fault) {
        const told = fault.mayPass ? fault.triedAgain() : fault;
        if (fault.mayPass) pause ||= AFTER_FAULT;
        if (!signal.aborted) setState(before => ({ value: before.value, fault: told }));
      }
      isLoading = false;
      ended = performance.now();
      took = ended - began;
      if (signal.aborted) return;
      if (pause) after(pause);
      after(asked);
    };
    const after = pause => {
      if (isLoading) asked = Math.min(asked, pause);
      const at = ended + Math.max(pause, took);
      if (isLoading || at >= due) return;
      due = at;
      clearTimeout(timer);
      timer = setTimeout(look, Math.max(0, at - performance.now()));
    };
    const onShown = () => isMissed && look();
    setState({});
    plan.current = after;
    document.addEventListener("visibilitychange", onShown);
    look();
    return () => {
      leaving.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onShown);
    };
  }, inputs);
  return { ...state, again: () => plan.current(PAUSE), againAfter: ms => plan.current(Math.max(ms, PAUSE)) };
}
