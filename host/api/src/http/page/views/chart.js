// Pages and items a second of one resource, since its view was opened.

import { html } from "../html.js";
import { useEffect, useRef } from "../vendor/hooks.mjs";
import UPlot from "../vendor/uplot.mjs";
import { rate } from "../format.js";
import { addPoint } from "../rates.mjs";

// Points that are kept: half an hour, at a look every two seconds.
const POINTS_MAX = 900;
const HEIGHT = 220;

// Returns the times, pages and items of the points of one run, one for each look at its rates. They are kept for as long as
// the view that calls it is shown.
export function usePoints(run, at, rates) {
  const own = useRef({});
  if (own.current.run !== run) own.current = { run, at: null, points: [[], [], []] };
  const { points } = own.current;
  if (own.current.at !== at) {
    own.current.at = at;
    addPoint(points, Date.now() / 1000, rates, POINTS_MAX);
  }
  return points;
}

export function RateChart({ at, points, rates }) {
  const place = useRef(null);
  const chart = useRef(null);
  useEffect(() => {
    const color = name => getComputedStyle(place.current).getPropertyValue(name).trim();
    const axis = { stroke: color("--dim"), grid: { stroke: color("--edge"), width: 1 }, ticks: { stroke: color("--edge") } };
    const options = {
      width: Math.max(place.current.clientWidth, 200),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      axes: [axis, { ...axis, size: 60 }],
      scales: { y: { range: (_chart, _min, max) => [0, Math.max(max ?? 0, 1)] } },
      series: [{}, { stroke: color("--pages"), width: 2 }, { stroke: color("--items"), width: 2 }],
    };
    chart.current = new UPlot(options, points, place.current);
    const resized = new ResizeObserver(([entry]) =>
      chart.current.setSize({ width: Math.max(Math.floor(entry.contentRect.width), 200), height: HEIGHT }));
    resized.observe(place.current);
    return () => {
      resized.disconnect();
      chart.current.destroy();
    };
  }, []);
  useEffect(() => {
    if (points[0].length) chart.current.setData(points);
  }, [at]);
  const told = rates ? `${rate(rates.pages)} pages and ${rate(rates.items)} items a second` : "no rates yet";
  return html`<figure class="chart">
    <figcaption>Since you opened this page:
      <span class="key pages">pages a second</span> <span class="key items">items a second</span></figcaption>
    <div ref=${place} role="img" aria-label=${`Chart of rates: ${told}`}></div>
  </figure>`;
}
