// Publishes a signed write to the ingest service and waits for what becomes of it. Nothing but node's own modules.
//
//   node memsluice.ts URL CREDENTIAL.json TENANT "What to remember"    (node 22.18 and later run TypeScript as it is)
//   node memsluice.ts --vectors signing-vectors.json                   checks this file against the test vectors
import { createHash, createHmac, createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";

type Credential = { kid: string; algorithm: string; secret: string };
type Envelope = { payload: string; payloadType: string; signatures: { keyid: string; sig: string }[] };
type Event = { id: string; tenant: string; time: string; [field: string]: unknown };
type Status = { id: string; status: string; words: string; reasons: { code: string; words: string }[] };
type Vector = { name: string; keyid: string; algorithm: string; secret: string; payload: string; payload_type: string;
  payload_sha256: string; signed_bytes: string; signature: string; envelope: Envelope };

const AUDIENCE = "memsluice-ingest";
const PKCS8_OF_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex"); // then come the 32 bytes of the seed

/** DSSE's pre-authentication encoding: the bytes that are signed. Lengths are counted in bytes. */
export function signedBytes(payloadType: string, payload: Buffer): Buffer {
  const before = `DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${payload.length} `;
  return Buffer.concat([Buffer.from(before), payload]);
}

/** Signs with a credential's key, Ed25519 or HMAC-SHA256. */
export function signature(credential: Credential, message: Buffer): Buffer {
  const secret = Buffer.from(credential.secret, "base64");
  if (credential.algorithm === "hmac-sha256") return createHmac("sha256", secret).update(message).digest();
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_OF_ED25519, secret]), format: "der", type: "pkcs8" });
  return sign(null, message, key);
}

/** The DSSE envelope of a payload's exact bytes. */
export function envelope(credential: Credential, payloadType: string, payload: Buffer): Envelope {
  const sig = signature(credential, signedBytes(payloadType, payload)).toString("base64");
  return { payload: payload.toString("base64"), payloadType, signatures: [{ keyid: credential.kid, sig }] };
}

/** A bearer token: a JWT by the same key, good for a minute. */
export function token(credential: Credential): string {
  const now = Math.floor(Date.now() / 1000);
  const alg = credential.algorithm === "hmac-sha256" ? "HS256" : "EdDSA";
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: credential.kid, aud: AUDIENCE, iat: now, exp: now + 60 };
  const text = `${part({ alg, kid: credential.kid, typ: "JWT" })}.${part(claims)}`;
  return `${text}.${signature(credential, Buffer.from(text)).toString("base64url")}`;
}

/** Publishes an event and returns where its status is. After 429 and 503 the same event is sent again. */
export async function publish(url: string, credential: Credential, type: string, event: Event): Promise<string> {
  const payload = Buffer.from(JSON.stringify(event));
  const body = JSON.stringify(envelope(credential, `application/vnd.${type}+json`, payload));
  for (let tries = 1; ; tries++) {
    const answer = await fetch(`${url}/v1/events`, { method: "POST", body, headers: {
      authorization: `Bearer ${token(credential)}`, "content-type": "application/vnd.dsse.envelope.v1+json",
      "ce-specversion": "1.0", "ce-type": type, "ce-source": "/examples/typescript", "ce-id": event.id,
      "ce-time": event.time, "ce-payloadsha256": createHash("sha256").update(payload).digest("hex") } });
    const said = (await answer.json()) as { url: string; detail: string; field: string };
    if (answer.status === 202) return said.url;
    if ((answer.status !== 429 && answer.status !== 503) || tries === 5) {
      throw new Error(`${answer.status} ${said.field}: ${said.detail}`);
    }
    const seconds = Number(answer.headers.get("retry-after") ?? 1);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

/** Asks what became of an event, waiting up to 20 seconds. */
export async function outcome(url: string, credential: Credential, path: string): Promise<Status> {
  const answer = await fetch(`${url}${path}&wait=20`, { headers: { authorization: `Bearer ${token(credential)}` } });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Status;
}

/** Returns the names of the vectors that come out otherwise here. */
export function wrong(vectors: Vector[]): string[] {
  const differs = (vector: Vector): boolean => {
    const payload = Buffer.from(vector.payload);
    const made = envelope({ ...vector, kid: vector.keyid }, vector.payload_type, payload);
    return createHash("sha256").update(payload).digest("hex") !== vector.payload_sha256
      || signedBytes(vector.payload_type, payload).toString("base64") !== vector.signed_bytes
      || made.signatures[0]?.sig !== vector.signature
      || made.payload !== vector.envelope.payload;
  };
  return vectors.filter(differs).map((vector: Vector) => vector.name);
}

const [first = "", second = "", tenant = "", content = ""] = process.argv.slice(2);
if (first === "--vectors") {
  const vectors = JSON.parse(readFileSync(second, "utf8")).vectors as Vector[];
  const failed = wrong(vectors);
  console.log(failed.length ? `wrong: ${failed.join("; ")}` : `${vectors.length} vectors hold`);
  process.exitCode = failed.length ? 1 : 0;
} else {
  const credential = JSON.parse(readFileSync(second, "utf8")) as Credential;
  const session = { agent: "assistant", principal: "ada", session: "t1" };
  const event = { id: randomUUID(), tenant, time: new Date().toISOString(), ...session, content };
  const path = await publish(first, credential, "memory.write.v1", event);
  const told = await outcome(first, credential, path);
  console.log(`${told.status}: ${told.words}`, told.reasons.map((reason) => reason.code).join(", "));
}
