// The desk: reading held writes, and deciding about them by keyboard or button. What was not on the screen is decided
// by nobody. What differs from page to page is in the markup alone: articles of held writes, and a box for the desk.
import { NAME_CHARS_MAX, REASON_CHARS_MAX, Unsignable } from "./commands.js";
import { askOn, CLAIM_S, DECIDES, decide, described, signer } from "./deciding.js";
import { ask, help } from "./dialogs.js";
import { Reader } from "./reading.js";
import { element, Failed, get, post, spelled } from "./sending.js";

const SKIPPED_MAX = 100;
const DONE = { release: "released", reject: "rejected", reopen: "waiting again", note: "noted" };

const box = document.getElementById("desk");
const articles = [...document.querySelectorAll("article.held-entry")];
const acts = new Map();
let current = -1;
let busy = false;

const kept = {
  read: (name, fallback) => JSON.parse(sessionStorage.getItem(`desk-${name}`) ?? "null") ?? fallback,
  write: (name, value) => sessionStorage.setItem(`desk-${name}`, JSON.stringify(value)),
};

const bar = element("div", { class: "desk-bar", role: "status", "aria-live": "polite" });
const counted = element("span", { class: "desk-count" });
const said = element("span", { class: "desk-said" });

const button = (text, act, kind = "quiet") => element("button", { type: "button", class: kind, onclick: act }, text);

/** Says something in the bar; text alone. */
function tell(text, kind = "") {
  said.className = `desk-said ${kind}`;
  said.textContent = text;
}

const reader = new Reader(articles, () => count());
const fits = (article, action) => DECIDES[action].of.includes(article.dataset.state);
const waiting = () => articles.filter((one) => fits(one, "reject"));

function count() {
  const read = waiting().filter((one) => reader.wasRead(one)).length;
  for (const one of articles) one.classList.toggle("read", reader.wasRead(one));
  counted.textContent = `${read} of ${waiting().length} read`;
}

function focus(number) {
  if (!articles.length) return;
  current = Math.max(0, Math.min(number, articles.length - 1));
  const one = articles[current];
  one.focus({ preventScroll: true });
  const tall = one.getBoundingClientRect().height > innerHeight * 0.8;
  one.scrollIntoView({ block: tall ? "start" : "center", behavior: "instant" });
}

const here = () => articles[current] ?? null;

/** Runs one thing at a time, and says why it failed. */
async function alone(what) {
  if (busy) return;
  busy = true;
  box.setAttribute("aria-busy", "true");
  try {
    await what();
  } catch (error) {
    if (!(error instanceof Failed || error instanceof Unsignable || error instanceof DOMException)) throw error;
    tell(error.message, "bad");
  } finally {
    busy = false;
    box.removeAttribute("aria-busy");
  }
}

function result(article, one, action) {
  const made = acts.get(article);
  const done = one.came === "done";
  made.told.className = done ? "good" : "bad";
  made.told.textContent = done ? DONE[action] : `${one.came}: ${one.told}`;
  if (!done && one.reasons.includes("review.claimed")) {
    const despite = () => alone(() => settle([article], action, { despiteClaim: true }));
    made.told.append(" ", button("Decide all the same", despite));
  }
  const { becomes } = DECIDES[action];
  if (done && becomes) {
    article.dataset.state = becomes;
    article.dataset.decidedOn = one.command.id;
    const chip = article.querySelector(".entry-head .chip[class*=state-]");
    if (chip) [chip.className, chip.textContent] = [`chip state-${becomes}`, becomes];
    offer(article);
  }
}

/** What is kept of a rejection, so that it can be taken back. */
const undoing = ({ entry, command }) => ({ ...entry, decidedOn: command.id });

/** Decides about articles that were read, shows what became of each, and goes on. */
async function settle(those, action, options = {}) {
  tell(`${those.length === 1 ? "One write" : `${those.length} writes`}: signing …`);
  const shows = action === "release" || action === "reject";
  const asked = those.map((one) => ({ entry: described(one), text: shows ? reader.text(one) : null }));
  const results = await decide(asked, action, options);
  results.forEach((one, number) => result(those[number], one, action));
  const done = results.filter((one) => one.came === "done");
  if (action === "reject" && done.length) kept.write("undo", done.map(undoing));
  askOn(results, (one) => {
    result(those[results.indexOf(one)], one, action);
    if (action === "reject" && one.came === "done") kept.write("undo", [...kept.read("undo", []), undoing(one)]);
    count();
  });
  const rest = results.length - done.length;
  const back = action === "reject" && done.length ? "; u takes it back" : "";
  tell(`${done.length} ${DONE[action]}${rest ? `, ${rest} not: see beside each` : ""}${back}.`, rest ? "bad" : "good");
  count();
  if (!rest && action !== "reopen") await advance();
}

/** Goes to the next write that waits: on this page, the next one, or in the next group. `on`: not back to one before. */
async function advance({ on = false } = {}) {
  const left = articles.findIndex((one, number) => number > current && fits(one, "release"));
  const before = on ? -1 : articles.findIndex((one) => fits(one, "release"));
  if (left >= 0 || before >= 0) return focus(left >= 0 ? left : before);
  kept.write("said", said.textContent);
  const older = document.querySelector("a[rel=next]");
  if (older) return location.assign(older.href);
  const group = document.getElementById("group")?.dataset.group ?? "";
  const others = kept.read("skipped", []).filter((one) => one !== group);
  const skipped = [...others, ...(group ? [group] : [])].slice(-SKIPPED_MAX);
  const q = document.getElementById("q")?.value ?? box.dataset.q ?? "";
  const { path } = await get(`/held/next?q=${encodeURIComponent(q)}&not=${skipped.join(",")}`);
  kept.write("skipped", path ? skipped : []);
  kept.write("said", path ? said.textContent : `${said.textContent} Nothing else waits.`);
  location.assign(path ?? "/held");
}

function one(action) {
  const article = here();
  if (!article) return tell("Choose a write first: j");
  if (!fits(article, action)) return tell(`It is ${article.dataset.state}: there is nothing to ${action}.`, "bad");
  const unread = "Read it to its end first: it was not on the screen whole.";
  if (!reader.wasRead(article)) return tell(reader.problem(article) || unread, "bad");
  return alone(() => settle([article], action));
}

/** What differs within writes, as the server words it; null while something else is in work. */
async function differing(those) {
  let lines = null;
  await alone(async () => {
    tell(`${those.length} writes: looking up what differs in them …`);
    const asked = post("/held/differences", { entries: those.map(described) });
    lines = await asked.then((answer) => answer.lines, (error) => [error.message]);
    tell("");
  });
  if (lines === null) return null;
  const list = element("ul", { id: "differs" }, ...lines.map((line) => element("li", {}, spelled(line))));
  return [element("p", {}, "What differs in them:"), list];
}

async function all(action) {
  const fit = articles.filter((article) => fits(article, action));
  const read = fit.filter((article) => reader.wasRead(article));
  const unread = fit.length - read.length;
  const none = fit.length ? "None of them was on the screen whole yet: read on." : "Nothing waits here.";
  if (!read.length) return tell(none, "bad");
  const texts = new Set(read.map((article) => reader.text(article))).size;
  const verb = action === "release" ? "Release" : "Reject";
  const differs = read.length > 1 ? await differing(read) : []; // read before anybody can say yes
  if (differs === null) return null;
  const reason = await ask({
    title: `${verb} ${read.length} held ${read.length === 1 ? "write" : "writes"}?`,
    lines: [
      texts === 1 ? "All have the same text." : `They have ${texts} different texts, which stood on the screen.`,
      unread
        ? `${unread} more are left out: they were not on the screen whole.`
        : "All that wait on this page were read.",
      ...differs,
    ],
    label: "Why (kept in the audit)", chars: REASON_CHARS_MAX, act: verb, optional: true,
  });
  if (reason !== null) await alone(() => settle(read, action, { reason }));
}

async function undo() {
  const back = kept.read("undo", []);
  if (!back.length) return tell("There is no rejection of this tab to take back.");
  const results = await decide(back.map((entry) => ({ entry, text: null })), "reopen");
  const rest = results.filter((found) => found.came !== "done");
  kept.write("undo", rest.map((found) => found.entry));
  for (const found of results) {
    const { tenant, target, offset } = found.entry;
    const article = articles.find(({ dataset }) =>
      dataset.tenant === tenant && dataset.event === target && Number(dataset.offset) === offset);
    if (article) result(article, found, "reopen");
  }
  kept.write("skipped", []);
  const not = rest.length ? `, ${rest.length} not: ${rest[0].told}` : "";
  tell(`${results.length - rest.length} taken back${not}.`, not ? "bad" : "good");
  count();
}

/** Notes something about a write; returns whether it is noted. */
async function note({ done, chip, kind = "", ...words }) {
  const article = here();
  if (!article || !fits(article, "note")) return tell("Choose a write that waits first: j");
  const [{ came, told }] = await decide([{ entry: described(article), text: null }], "note", words);
  tell(came === "done" ? done : `${came}: ${told}`, came === "done" ? "good" : "bad");
  if (came !== "done") return false;
  article.querySelector(`.entry-head .chip.${kind || "none"}`)?.remove();
  if (chip) article.querySelector(".entry-head")?.append(" ", element("span", { class: `chip ${kind}` }, chip));
  return true;
}

async function noted() {
  const lines = ["It stands in the audit, signed by you."];
  const reason = await ask({ title: "Note", lines, label: "Text", chars: REASON_CHARS_MAX, act: "Note" });
  if (reason) await alone(() => note({ reason, done: "noted", chip: "noted" }));
}

async function assigned() {
  const lines = ["A name or a key id; - takes it back."];
  const assignee = await ask({ title: "Assign", lines, label: "To", chars: NAME_CHARS_MAX, act: "Assign" });
  const done = `for ${assignee}`;
  if (assignee) await alone(() => note({ parameters: { assignee }, done, chip: done }));
}

/** Claims a write, or gives it back where this key has it. */
async function claimed() {
  const article = here();
  const { kid } = await signer();
  const mine = article?.dataset.claimed === kid;
  const parameters = { claim_s: String(mine ? 0 : CLAIM_S) };
  const done = mine ? "given back" : `claimed for ${CLAIM_S / 60} minutes`;
  if (await note({ parameters, done, chip: mine ? "" : "claimed by you", kind: "claim" })) {
    article.dataset.claimed = mine ? "" : kid;
  }
}

const claim = () => alone(claimed);

const KEYS = {
  j: () => focus(current + 1), k: () => focus(current - 1), r: () => one("release"), x: () => one("reject"),
  R: () => all("release"), X: () => all("reject"), u: () => alone(undo), c: claim, n: noted, a: assigned,
  s: () => alone(() => advance({ on: true })), "/": () => document.getElementById("q")?.focus(), "?": help,
  Enter: () => here()?.querySelector(".entry-head a")?.click(),
};

addEventListener("keydown", (event) => {
  const target = event.target instanceof Element ? event.target : document.body;
  const typing = target.closest("input, textarea, select, dialog, a, button, summary");
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || document.querySelector("dialog[open]")) return;
  if (typing && (event.key === "Enter" || typing.matches("input, textarea, select"))) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

/** Offers what may be decided about a write in its state. */
function offer(article) {
  for (const [action, one] of Object.entries(acts.get(article).offers)) one.hidden = !fits(article, action);
}

function dressed(article, number) {
  const told = element("span", { role: "status", class: "bad" }, reader.problem(article));
  const acting = (text, act, kind) => button(text, () => { current = number; act(); }, kind);
  const place = article.querySelector(".entry-acts");
  const offers = {
    release: acting("Release", () => one("release"), ""), reject: acting("Reject", () => one("reject")),
    reopen: acting("Reopen", () => alone(() => settle([article], "reopen"))),
  };
  place.append(...Object.values(offers), acting("Claim", claim), acting("Note", noted), told);
  place.hidden = !article.querySelector("pre.content");
  acts.set(article, { told, offers });
  offer(article);
  article.addEventListener("focusin", () => { current = number; });
}

if (box && articles.some((one) => one.querySelector("pre.content"))) {
  articles.forEach(dressed);
  bar.append(
    counted, button("Release all read", () => all("release"), ""), button("Reject all read", () => all("reject")),
    button("Undo", () => alone(undo)), button("Keys", help), said,
  );
  box.append(bar);
  tell(kept.read("said", ""));
  kept.write("said", "");
  count();
  const first = articles.findIndex((one) => fits(one, "release"));
  if (first >= 0) {
    current = first;
    articles[first].focus({ preventScroll: true });
    if (document.getElementById("group")) articles[first].scrollIntoView({ block: "start", behavior: "instant" });
  }
  document.documentElement.dataset.desk = "ready";
}
