// What the pages beside the held writes have signed: a form says what, its reason is the person's, and this browser's
// key signs the bytes that are built here of the two. The server can publish these bytes or not; it can change nothing.
import { PROPOSED_VALID_S, VALID_S, base64, envelope, moment, signedBytes, utf8 } from "./commands.js";
import { signer } from "./deciding.js";
import { element, post, spelled } from "./sending.js";
import { confirmed } from "./stepup.js";

const TYPES = {
  letters: "application/vnd.memsluice.letter-order.v1+json",
  partition: "application/vnd.memsluice.partition-order.v1+json",
};

/** The one text of a value: keys in order, no blanks. Keys are ASCII, so that their order is the gate's own. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${fields.join(",")}}`;
}

/** What a form's order says, with the reason and the time of whoever signs. */
export function orderOf(form, reason, nowMs, id) {
  if (form.order === "letters") return { id, letters: JSON.parse(form.letters), why: reason, given_ms: nowMs };
  return { ...JSON.parse(form.said), why: reason, given_ms: nowMs };
}

/** The command that a form describes. One that a second person must sign holds longer: he may be asleep. */
export function commandOf(form, reason, nowMs, id) {
  const valid_s = form.send === "/proposals" ? PROPOSED_VALID_S : VALID_S;
  return {
    id, tenant: form.tenant, time: moment(nowMs), action: form.command, target: form.target, digest: form.digest,
    expires_at: moment(nowMs + valid_s * 1000), reason, parameters: {}, held: null, policy: form.policy ?? null,
  };
}

const OWN = new Set(["id", "time", "expires_at", "given_ms", "reason", "why"]);

/** What a form has signed, a field a line, but for the reason and the times, which are the signer's own. */
export function signedWords(form) {
  const whole = form.order ? orderOf(form, "", 0, "") : commandOf(form, "", 0, "");
  const told = Object.entries(whole).filter(([name, value]) => !OWN.has(name) && value !== null && value !== "");
  const said = (value) => (typeof value === "string" ? value : canonical(value).replaceAll("],[", "],\n["));
  return told.filter(([, value]) => canonical(value) !== "{}").map(([name, value]) => `${name}: ${said(value)}`).join("\n");
}

/** An order's envelope, signed by {kid, sign(bytes)}. */
export async function orderEnvelope(kind, order, signer) {
  const payload = utf8(canonical(order));
  const sig = base64(await signer.sign(signedBytes(TYPES[kind], payload)));
  return { payload: base64(payload), payloadType: TYPES[kind], signatures: [{ keyid: signer.kid, sig }] };
}

async function sign(form) {
  const reason = form.elements.namedItem("reason").value.trim();
  const said = form.dataset;
  if (said.order) {
    const id = crypto.randomUUID().replaceAll("-", "");
    return post(said.send, await orderEnvelope(said.order, orderOf(said, reason, Date.now(), id), await signer()));
  }
  const signed = await envelope(commandOf(said, reason, Date.now(), crypto.randomUUID()), await signer());
  const step_up = await confirmed([signed]);
  return post(said.send, said.send === "/proposals" ? { envelope: signed, step_up } : { envelopes: [signed], step_up });
}

/** What came of it, in words. */
export function told(answer) {
  if (answer.items) return answer.items.map((item) => `${item.came}: ${item.told}`).join("; ");
  if (answer.letters) return answer.letters.map(letterTold).join("\n");
  if ("parked" in answer) return partitionTold(answer);
  return answer.told ?? "It is proposed: another person's signature makes it count.";
}

function letterTold(one) {
  if (one.decision) return `${one.letter}: ${one.decision} ${one.reasons.join(" ")}`.trimEnd();
  if (one.reason) return `${one.letter}: ${one.published ? `${one.reason} again` : `still ${one.reason}, not published`}`;
  return `${one.letter}: published, no answer yet`;
}

function partitionTold({ stage, partition, parked }) {
  if (parked === null) return `The order was sent; no worker of ${stage} has answered yet.`;
  return parked ? `Partition ${partition} of ${stage} is parked again: load the page.` : `Partition ${partition} of ${stage} runs again.`;
}

function listen(form) {
  const place = form.querySelector("[data-told]");
  const button = form.querySelector("button");
  form.prepend(element("details", { open: true },
    element("summary", {}, "What you sign, as this browser reads it"),
    element("pre", { class: "told", "data-signed": true }, spelled(signedWords(form.dataset)))));
  button.disabled = false;  // without this script it stays so: a form that is sent unsigned says nothing
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    place.className = "";
    place.textContent = "Signing …";
    try {
      place.replaceChildren(spelled(told(await sign(form))));
    } catch (error) {
      place.className = "problem";
      place.replaceChildren(spelled(error.message));
      button.disabled = false;
    }
  });
}

if (globalThis.document) {
  for (const form of document.querySelectorAll("form[data-order], form[data-command]")) listen(form);
}
