// Templates of the page: markup as tagged text, made into elements by Preact.
//
// Values in a template become texts and attributes, never markup. Nothing in the page sets innerHTML.

import { h } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
