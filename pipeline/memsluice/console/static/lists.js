// Lists by keyboard: j and k go from row to row, Enter opens (the row's first link has the focus), / filters.
import { listHelp } from "./dialogs.js";

const rows = [...document.querySelectorAll("table.rows tbody tr")];
const links = rows.map((row) => row.querySelector("a[href]")).filter((link) => link !== null);

function go(by) {
  const here = links.indexOf(document.activeElement);
  const to = here < 0 && by < 0 ? links.length - 1 : Math.max(0, Math.min(here + by, links.length - 1));
  links[to]?.focus();
  links[to]?.scrollIntoView({ block: "nearest", behavior: "instant" });
}

const KEYS = {
  j: () => go(1), k: () => go(-1), "/": () => document.querySelector("form.row input:not([type=hidden])")?.focus(), "?": listHelp,
  o: () => document.querySelector("a[rel=next]")?.click(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || document.querySelector("dialog[open]")) return;
  if (event.target instanceof Element && event.target.closest("input, textarea, select")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
