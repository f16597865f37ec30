// The lists of held writes by keyboard: j and k go from row to row, Enter opens the row's link, / filters.
const links = [...document.querySelectorAll("table.rows td.first > a")];

function move(step) {
  const here = links.indexOf(document.activeElement);
  const next = here < 0 ? 0 : Math.max(0, Math.min(here + step, links.length - 1));
  links[next]?.focus();
}

const KEYS = { j: () => move(1), k: () => move(-1), "/": () => document.getElementById("q")?.focus() };

addEventListener("keydown", (event) => {
  const typing = event.target instanceof Element && event.target.matches("input, textarea, select");
  const act = KEYS[event.key];
  if (typing || !act || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  act();
});
document.documentElement.dataset.keys = "ready";
