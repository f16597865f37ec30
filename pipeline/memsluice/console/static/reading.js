// What was on the screen: of each content the parts that stood in view, and the text that they show.
import { Unsignable } from "./commands.js";
import { hides } from "./sending.js";

const GAP_PX = 1;
const STEP_PX = 6;
const EDGE_PX = 2; // of a border and its padding; pages are drawn on whole pixels
const INSET_PX = 12; // beside its border, whose corners are round
const SPELT = "x"; // what stands for a spelled-out character, which is seen

/** Which part of something of a height (px) was seen. Where its height changes, it is read anew. */
export class Coverage {
  constructor() {
    this.height = 0;
    this.spans = [];
  }

  /** Takes in that the part from one height to another was seen. */
  see(height, from, to) {
    if (Math.abs(height - this.height) > GAP_PX) this.spans = [];
    this.height = height;
    if (!(to > from)) return;
    const merged = [];
    let [low, high] = [from, to];
    for (const [start, end] of this.spans) {
      if (end < low - GAP_PX || start > high + GAP_PX) merged.push([start, end]);
      else [low, high] = [Math.min(low, start), Math.max(high, end)];
    }
    merged.push([low, high]);
    this.spans = merged.sort((one, other) => one[0] - other[0]);
  }

  /** Whether all of it was seen. */
  get whole() {
    return this.height > 0 && this.spans.length === 1
      && this.spans[0][0] <= GAP_PX && this.spans[0][1] >= this.height - GAP_PX;
  }
}

/** The text that an element shows, as its writer wrote it: spelled-out characters are read back. */
export function displayed(node) {
  const pieces = [...piecesOf(node)];
  const seen = pieces.map(([text, spelt]) => (spelt ? SPELT : text)).join("");
  if (hides(seen)) {
    throw new Unsignable("the page shows something that cannot be seen: load it again, or in a newer browser");
  }
  return pieces.map(([text]) => text).join("");
}

/** {text, problem}: the text that an element shows; null where it cannot be signed, which keeps no other from it. */
function shownBy(node) {
  try {
    return { text: displayed(node), problem: "" };
  } catch (error) {
    if (!(error instanceof Unsignable)) throw error;
    return { text: null, problem: error.message };
  }
}

/** The text of an element in pieces, each with whether it is one character that is spelled out. */
function* piecesOf(node) {
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) {
      yield [child.data, false];
    } else if (child.nodeType === Node.ELEMENT_NODE && child.matches("span.ctl")) {
      const code = /^U\+([0-9A-F]{4,6})$/.exec(child.textContent);
      if (code === null || child.childElementCount) {
        throw new Unsignable("the page spells a character wrongly: load it again");
      }
      yield [String.fromCodePoint(parseInt(code[1], 16)), true];
    } else if (child.nodeType === Node.ELEMENT_NODE && child.matches("bdi, mark")) {
      yield* piecesOf(child);
    } else {
      throw new Unsignable("the page shows something else than text in a content: load it again");
    }
  }
}

/** The part of an element that is in view, from its top (px): spans in which nothing lies over it. */
export function inView(element) {
  const box = element.getBoundingClientRect();
  const view = globalThis.visualViewport;
  const [top, left] = [view?.offsetTop ?? 0, view?.offsetLeft ?? 0];
  const [bottom, right] = [top + (view?.height ?? innerHeight), left + (view?.width ?? innerWidth)];
  const from = Math.max(box.top, top);
  const to = Math.min(box.bottom, bottom);
  const seen = { height: box.height, spans: [] };
  const sideways = box.left < left - GAP_PX || box.right > right + GAP_PX;
  const drawn = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  if (to - from < 2 * EDGE_PX || sideways || !drawn) return seen;
  const columns = [box.left + INSET_PX, (box.left + box.right) / 2, box.right - INSET_PX];
  const free = (y) => columns.every((x) => element.contains(document.elementFromPoint(x, y)));
  const rows = [];
  for (let y = from + EDGE_PX; y < to - EDGE_PX; y += STEP_PX) rows.push(y);
  rows.push(to - EDGE_PX);
  let start = null;
  rows.forEach((y, number) => {
    const open = free(y);
    if (open && start === null) start = number === 0 ? from : y;
    const last = number === rows.length - 1;
    if (start !== null && (!open || last)) {
      const end = open ? to : rows[number - 1];
      if (end > start) seen.spans.push([start - box.top, end - box.top]);
      start = null;
    }
  });
  return seen;
}

/** Watches which entries of a page were on the screen from their first line to their last: those have `data-read`. */
export class Reader {
  constructor(entries, changed = () => {}) {
    this.entries = new Map();
    for (const entry of entries) {
      const content = entry.querySelector("pre.content");
      if (!content) continue;
      this.entries.set(entry, { content, coverage: new Coverage(), text: shownBy(content).text, done: false });
    }
    this.changed = changed;
    const soon = () => { this.waiting ??= requestAnimationFrame(() => { this.waiting = undefined; this.look(); }); };
    document.addEventListener("scroll", soon, { capture: true, passive: true });
    document.addEventListener("visibilitychange", soon);
    addEventListener("resize", soon);
    globalThis.visualViewport?.addEventListener("scroll", soon);
    soon();
  }

  /** Looks at the screen now. */
  look() {
    if (document.visibilityState !== "visible" || document.querySelector("dialog[open]")) return;
    let news = false;
    for (const [entry, one] of this.entries) {
      const { height, spans } = inView(one.content);
      for (const [from, to] of spans) one.coverage.see(height, from, to);
      if (spans.length === 0) continue;
      news ||= one.done !== one.coverage.whole;
      one.done = one.coverage.whole;
      entry.toggleAttribute("data-read", one.done);
    }
    if (news) this.changed();
  }

  /** Whether an entry was on the screen whole, and stands there as it did. */
  wasRead(entry) {
    const one = this.entries.get(entry);
    if (one === undefined || one.text === null || !one.coverage.whole || !one.content.isConnected) return false;
    return shownBy(one.content).text === one.text;
  }

  /** Why an entry is not signed here however it is read; "" where nothing speaks against it. */
  problem(entry) {
    const one = this.entries.get(entry);
    return one === undefined ? "" : shownBy(one.content).problem;
  }

  /** The text of an entry that was read. Throws where it was not. */
  text(entry) {
    if (this.problem(entry)) throw new Unsignable(this.problem(entry));
    if (!this.wasRead(entry)) throw new Unsignable("it was not on the screen whole: read it to its end first");
    return this.entries.get(entry).text;
  }
}
