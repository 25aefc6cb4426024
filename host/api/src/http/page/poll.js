// Looks at the master again and again while a view is shown: one call at a time, and none while nobody sees the page.

import { useEffect, useRef, useState } from "./vendor/hooks.mjs";

// Shortest time in milliseconds between two looks, however many events ask for them.
const PAUSE = 1_000;

// Returns `{value, fault, again}` of `load(signal)`, which is called anew when an input differs, every `period`
// milliseconds (never, if it is 0), and after `again()`. A fault keeps the value of before.
export function usePoll(load, inputs, period = 0) {
  const [state, setState] = useState({});
  const again = useRef(() => {});
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer;
    let isLoading = false;
    let isWanted = false;
    let began = -PAUSE;
    const look = async () => {
      clearTimeout(timer);
      if (isLoading) return;
      [isLoading, isWanted, began] = [true, false, performance.now()];
      try {
        const value = await load(signal);
        if (!signal.aborted) setState({ value });
      } catch (fault) {
        if (!signal.aborted) setState(before => ({ value: before.value, fault }));
      }
      isLoading = false;
      if (signal.aborted || document.hidden) return;
      if (isWanted) soon();
      else if (period) timer = setTimeout(look, period);
    };
    const soon = () => {
      if (isLoading) return void (isWanted = true);
      clearTimeout(timer);
      timer = setTimeout(look, Math.max(0, began + PAUSE - performance.now()));
    };
    const onShown = () => document.hidden || look();
    setState({});
    again.current = soon;
    document.addEventListener("visibilitychange", onShown);
    look();
    return () => {
      leaving.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onShown);
    };
  }, inputs);
  return { ...state, again: () => again.current() };
}
