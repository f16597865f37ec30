// This browser's signing key: an Ed25519 key that WebCrypto makes and keeps. Its private half cannot be read by any
// script, ours included; it can only be used, and only by pages of this console's origin.
import { base64, sha256 } from "./commands.js";

const DATABASE = "memsluice-keys";
const STORE = "keys";
const NAME = "signing";

function request(asked) {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function store(mode, use) {
  const asked = indexedDB.open(DATABASE, 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
  const database = await request(asked);
  try {
    return await request(use(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

async function described(pair) {
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  return {
    public: base64(raw),
    fingerprint: (await sha256(raw)).slice(0, 16),
    signer: (kid) => ({
      kid,
      sign: async (bytes) => new Uint8Array(await crypto.subtle.sign("Ed25519", pair.privateKey, bytes)),
    }),
  };
}

/** The key of this browser: {public, fingerprint, signer(kid)}; null where there is none. */
export async function held() {
  const pair = await store("readonly", (keys) => keys.get(NAME));
  return pair ? described(pair) : null;
}

/** Makes the key. Throws where there is one already: it would be lost. */
export async function make() {
  const pair = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  await store("readwrite", (keys) => keys.add(pair, NAME));
  return described(pair);
}

/** Forgets the key for good. What it signed stays as it was decided. */
export const forget = () => store("readwrite", (keys) => keys.delete(NAME));

/** What the operator runs on the gate's machine, to let this key in. */
export const enrolment = (key) =>
  `memsluice keys enrol reviewer --public ${key.public} --principal NAME --tenant TENANT`;

/** Whether this browser can sign at all; else why not, in words. */
export async function unable() {
  const safe = "This page was not loaded safely: open the console over https, or on this machine.";
  if (!globalThis.isSecureContext) return safe;
  try {
    await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    return "";
  } catch {
    return "This browser cannot sign with Ed25519: take Chrome or Edge 137, Firefox 129, Safari 17, or a later one.";
  }
}
