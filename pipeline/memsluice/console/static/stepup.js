// A security key as a second word of the same person, where the console asks for one. It replaces no signature.
import { base64, sha256, unbase64, utf8 } from "./commands.js";
import { post } from "./sending.js";

const url = (bytes) => base64(new Uint8Array(bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const padded = (text) => text.padEnd(Math.ceil(text.length / 4) * 4, "=");
const bytes = (text) => unbase64(padded(text.replaceAll("-", "+").replaceAll("_", "/")));

/** What a confirmation is about: the digest of the envelopes, signatures included. */
export const batch = (envelopes) =>
  sha256(utf8(envelopes.map((one) => [one.payload, ...one.signatures.map(({ sig }) => sig)].join(".")).join("\n")));

let never = false;

/** A confirmation of these very envelopes by the security key; null where the console asks for none. */
export async function confirmed(envelopes) {
  if (never) return null;
  const asked = await post("/step-up", { batch: await batch(envelopes), count: envelopes.length });
  never = asked.wanted === "never";
  if (!asked.options) return null;
  const { challenge, allowCredentials, ...rest } = asked.options;
  const publicKey = {
    ...rest, challenge: bytes(challenge),
    allowCredentials: allowCredentials.map((one) => ({ ...one, id: bytes(one.id) })),
  };
  const given = await navigator.credentials.get({ publicKey });
  const { clientDataJSON, authenticatorData, signature, userHandle } = given.response;
  return {
    id: given.id, rawId: url(given.rawId), type: given.type, clientExtensionResults: {},
    response: {
      clientDataJSON: url(clientDataJSON), authenticatorData: url(authenticatorData), signature: url(signature),
      userHandle: userHandle ? url(userHandle) : null,
    },
  };
}

/** Registers a security key of the person whose signing key this is: what it says is signed by that key. */
export async function register(signer) {
  const { options } = await post("/step-up/options", {});
  const { challenge, user, excludeCredentials, ...rest } = options;
  const publicKey = {
    ...rest, challenge: bytes(challenge), user: { ...user, id: bytes(user.id) },
    excludeCredentials: excludeCredentials.map((one) => ({ ...one, id: bytes(one.id) })),
  };
  const made = await navigator.credentials.create({ publicKey });
  const { clientDataJSON, attestationObject } = made.response;
  const credential = {
    id: made.id, rawId: url(made.rawId), type: made.type, clientExtensionResults: {},
    response: { clientDataJSON: url(clientDataJSON), attestationObject: url(attestationObject) },
  };
  const said = ["memsluice console step-up v1", location.origin, signer.kid, challenge, made.id].join("\n");
  return post("/step-up/register", { credential, kid: signer.kid, signature: base64(await signer.sign(utf8(said))) });
}
