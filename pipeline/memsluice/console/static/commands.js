// The bytes that a reviewer signs, and their envelope: the same as the gate's own programs make. No page is touched
// here, so that node runs it as a browser does. docs/command-vectors.json has what must come out.

export const COMMAND_TYPE = "application/vnd.memory.command.v1+json";
export const VALID_S = 15 * 60;
export const PROPOSED_VALID_S = 3 * 24 * 3600;
export const HELD_CHARS_MAX = 180 * 1024;
export const REASON_CHARS_MAX = 512;
export const NAME_CHARS_MAX = 128;
const FIELDS = [
  "id", "tenant", "time", "action", "target", "digest", "expires_at", "reason", "parameters", "held", "policy",
];
const CARRYING = new Set(["release", "replay"]);

/** What cannot be signed, in words for the person at the screen. */
export class Unsignable extends Error {}

export const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** Bytes of base64 text. Throws where it is none. */
export const unbase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export const utf8 = (text) => new TextEncoder().encode(text);

/** The SHA-256 of some bytes, in hex. */
export async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A time (Unix ms) as commands say it: UTC, whole seconds. */
export const moment = (ms) => new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");

/** What is different for a half of a surrogate pair: it has no bytes, and what shows it shows something else. */
const whole = (text) => !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);

/** The text of a command: every field, in the order of its schema, without blanks. */
export function commandText(command) {
  const unknown = Object.keys(command).filter((name) => !FIELDS.includes(name));
  if (unknown.length) throw new Unsignable(`a command has no field ${unknown[0]}`);
  const defaults = { digest: null, reason: "", parameters: {}, held: null, policy: null };
  const ordered = {};
  for (const name of FIELDS) {
    const value = command[name] === undefined ? defaults[name] : command[name];
    if (value === undefined) throw new Unsignable(`a command needs the field ${name}`);
    ordered[name] = value;
  }
  const text = JSON.stringify(ordered);
  if (!whole(Object.values(ordered).concat(...Object.entries(ordered.parameters)).join("\n"))) {
    throw new Unsignable("it has half a character, which no bytes can say");
  }
  return text;
}

/**
 * The command by which a person who was shown an entry whole decides about it, or notes something.
 *
 * entry: {tenant, target, offset, repeated, digest, decidedOn, sealed, shown}; shown is the SHA-256 of the text that
 * stood on the screen. The command says what was shown and how the entry stood, so that the gate refuses it where
 * either is not so; a note says neither.
 */
export function decision(entry, action, { id, nowMs, reason = "", despiteClaim = false, parameters = {} }) {
  const said = { ...parameters };
  if (action !== "note") said.decided_on = entry.decidedOn;
  const small = entry.sealed !== null && entry.sealed.length <= HELD_CHARS_MAX;
  const carries = CARRYING.has(action) || (action === "reject" && small);
  if (carries) {
    if (!entry.sealed) throw new Unsignable("the sealed write is not here, and the command carries it");
    if (!small) throw new Unsignable("the write is too large to be carried: it can only be rejected");
    said.shown = entry.shown;
  }
  if (despiteClaim) said.despite_claim = "yes";
  if (entry.repeated) said.offset = String(entry.offset);
  return {
    id, tenant: entry.tenant, time: moment(nowMs), action, target: entry.target, digest: entry.digest,
    expires_at: moment(nowMs + VALID_S * 1000), reason, parameters: said, held: carries ? entry.sealed : null,
    policy: null,
  };
}

/** DSSE's pre-authentication encoding: the bytes that are signed. Lengths are counted in bytes. */
export function signedBytes(payloadType, payload) {
  const before = utf8(`DSSEv1 ${utf8(payloadType).length} ${payloadType} ${payload.length} `);
  const all = new Uint8Array(before.length + payload.length);
  all.set(before);
  all.set(payload, before.length);
  return all;
}

/** The envelope of a command, signed by {kid, sign(bytes)}. */
export async function envelope(command, signer) {
  const payload = utf8(commandText(command));
  const sig = base64(await signer.sign(signedBytes(COMMAND_TYPE, payload)));
  return { payload: base64(payload), payloadType: COMMAND_TYPE, signatures: [{ keyid: signer.kid, sig }] };
}

/**
 * What the bytes of an envelope say: {bytes, text, command}. Throws where they could be read in two ways: the text of
 * what was read must be the very bytes, so that what a page shows of it is all that is signed.
 */
export function opened(proposed) {
  if (proposed.payloadType !== COMMAND_TYPE) throw new Unsignable("this is no command");
  const bytes = unbase64(proposed.payload);
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const command = JSON.parse(text);
  if (command === null || typeof command !== "object" || commandText(command) !== text) {
    throw new Unsignable("its bytes could be read in two ways: have it proposed again");
  }
  return { bytes, text, command };
}

/** An envelope with one more signature, over the very bytes that the others signed. */
export async function cosigned(proposed, signer) {
  const { bytes } = opened(proposed);
  if (proposed.signatures.some((one) => one.keyid === signer.kid)) {
    throw new Unsignable("this key has signed it already: an approval comes from another person");
  }
  const sig = base64(await signer.sign(signedBytes(COMMAND_TYPE, bytes)));
  return { ...proposed, signatures: [...proposed.signatures, { keyid: signer.kid, sig }] };
}
