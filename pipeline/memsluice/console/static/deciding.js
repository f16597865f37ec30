// From entries that were read to signed commands, and what the gate made of each.
import { decision, envelope, sha256, utf8, Unsignable } from "./commands.js";
import { held } from "./keys.js";
import { confirmed } from "./stepup.js";
import { Failed, get, post } from "./sending.js";

export const ENTRIES_MAX = 100;
export const CLAIM_S = 3600;

/** Of which states each action is, and in which one it leaves a write. docs/command-vectors.json says the same. */
export const DECIDES = {
  release: { of: ["pending"], becomes: "released" },
  reject: { of: ["pending", "refused"], becomes: "rejected" },
  reopen: { of: ["rejected"], becomes: "pending" },
  note: { of: ["pending", "refused", "rejected"], becomes: null },
};
const BYTES_MAX = 3_000_000;
const SIZES_PER_COMMAND = 400;
const NO_ANSWER = "no answer";
const ASK_S = 20;
const PAUSE_MS = 5_000;
const ASKED_MAX = 60;
const LOST = new Set([401, 404]); // logged out, or it was sent before this console began

/** Actions that say what was shown, and so carry the sealed record. Without it nothing is signed. */
const SHOWING = new Set(["release", "reject", "replay"]);
let known = null;

/** The signer of this browser's key. Throws where there is no key, or the console does not know it. */
export async function signer() {
  if (known === null) {
    const key = await held();
    if (key === null) throw new Unsignable("This browser has no key. Make one at /keys, and have it enrolled.");
    const { kid } = await post("/login/key", { public: key.public });
    known = key.signer(kid);
  }
  return known;
}

/** What an entry's element says of it; the server's word, which the gate verifies. */
export function described(entry) {
  const { tenant, event, offset, digest, decidedOn, repeated } = entry.dataset;
  const name = { tenant, target: event, offset: Number(offset), repeated: repeated === "yes" };
  return { ...name, digest, decidedOn, sealed: null };
}

const nameOf = ({ tenant, target, offset }) => JSON.stringify([tenant, target, offset]);

async function sealed(entries) {
  const found = new Map();
  let wanted = entries.map(({ tenant, target, offset }) => ({ tenant, target, offset }));
  while (wanted.length) {
    const answer = await post("/held/sealed", { entries: wanted });
    for (const one of answer.entries) found.set(nameOf(one), one);
    if (!answer.left || !answer.entries.length) break;
    wanted = wanted.filter((one) => !found.has(nameOf(one)));
  }
  return found;
}

/**
 * Signs and sends one command for each entry: [{entry, text}], where text is what the screen showed of it, null where
 * the action says nothing of that. Returns [{entry, command, came, told, reasons}], in order.
 */
export async function decide(those, action, { reason = "", despiteClaim = false, parameters = {} } = {}) {
  if (those.length > ENTRIES_MAX) throw new Unsignable(`at most ${ENTRIES_MAX} at once: narrow the filter`);
  const key = await signer();
  const shows = SHOWING.has(action);
  const carried = shows ? await sealed(those.map((one) => one.entry)) : new Map();
  const results = [];
  const made = [];
  for (const { entry, text } of those) {
    const one = { entry, command: null, came: "not sent", told: "", reasons: [] };
    results.push(one);
    try {
      const there = carried.get(nameOf(entry));
      if (shows && there?.digest !== entry.digest) throw new Unsignable("it is not there any more as it was shown");
      const whole = { ...entry, sealed: there?.sealed ?? null, shown: text === null ? "" : await sha256(utf8(text)) };
      const said = { reason, despiteClaim, parameters };
      one.command = decision(whole, action, { id: crypto.randomUUID(), nowMs: Date.now(), ...said });
      made.push({ one, envelope: await envelope(one.command, key) });
    } catch (error) {
      if (!(error instanceof Unsignable)) throw error;
      one.told = error.message;
    }
  }
  for (const part of portions(made)) {
    const items = await sent(part.map(({ envelope: one }) => one));
    part.forEach(({ one }, number) => Object.assign(one, items[number]));
  }
  return results;
}

/** Sends envelopes; where the console asks for the security key, that comes first. Where the console goes away
 * meanwhile, nobody knows what it published. */
async function sent(envelopes) {
  const step_up = await confirmed(envelopes);
  try {
    return (await post("/commands", { envelopes, step_up })).items;
  } catch (error) {
    if (!(error instanceof Failed) || error.status !== 0) throw error;
    return envelopes.map(() => ({ came: NO_ANSWER, told: error.message }));
  }
}

/** Asks on what became of commands that had no answer in time, and calls `heard` with each once that is known. */
export async function askOn(results, heard) {
  const open = results.filter((one) => one.came === NO_ANSWER);
  for (let asked = 0; open.length && asked < ASKED_MAX; asked += 1) {
    if (await answered(open[0])) heard(open.shift());
  }
}

/** Whether it is known now what became of a command, or that this console will never know it. */
async function answered(one) {
  try {
    Object.assign(one, await get(`/commands/${encodeURIComponent(one.command.id)}?wait=${ASK_S}`));
    return one.came !== NO_ANSWER;
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    one.told = error.message;
    if (LOST.has(error.status)) return true;
    await new Promise((done) => { setTimeout(done, PAUSE_MS); });
    return false;
  }
}

function* portions(made) {
  let part = [];
  let size = 0;
  for (const one of made) {
    const length = one.envelope.payload.length + SIZES_PER_COMMAND;
    if (part.length && size + length > BYTES_MAX) {
      yield part;
      [part, size] = [[], 0];
    }
    part.push(one);
    size += length;
  }
  if (part.length) yield part;
}
