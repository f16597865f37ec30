// Commands of two people. The first signs what his page shows; the second signs the first one's very bytes, which his
// own browser reads and shows.
import {
  base64, commandText, cosigned, envelope, moment, opened, PROPOSED_VALID_S, sha256, Unsignable, utf8,
} from "./commands.js";
import { signer } from "./deciding.js";
import { displayed, Reader } from "./reading.js";
import { element, Failed, post, spelled } from "./sending.js";
import { confirmed } from "./stepup.js";

const told = document.getElementById("said");

function tell(text, kind = "") {
  told.className = kind;
  told.replaceChildren(spelled(text));
}

async function trying(button, what) {
  button.disabled = true;
  try {
    await what();
  } catch (error) {
    if (!(error instanceof Failed || error instanceof Unsignable || error instanceof DOMException)) throw error;
    tell(error.message, "bad");
    button.disabled = false;
  }
}

/** The fields of a command as terms and their values; what a record or a policy is, whole, in a box of its own. */
export function fields(command) {
  return Object.entries(command).filter(([, value]) => value !== null && value !== "").flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : Object.entries(value).map((pair) => pair.join(" = ")).join("\n");
    if (!text) return [];
    const long = name === "held" || name === "policy";
    const head = element("summary", {}, `${text.length} characters`);
    const shown = long
      ? element("details", { open: name === "policy" }, head, element("pre", { class: "told" }, spelled(text)))
      : spelled(text);
    return [element("dt", {}, name), element("dd", {}, shown)];
  });
}

/** What is about an entry names, and has beside it, the content that its first signer was shown. */
async function asShown(section, command) {
  if (command.action === "activate") return;
  const content = section.querySelector("pre.content");
  const shown = command.parameters.shown;
  if (!shown) throw new Unsignable("It does not say which content its first signer was shown: propose it again.");
  if (!content || await sha256(utf8(displayed(content))) !== shown) {
    throw new Unsignable("The content on this page is not the one that the first signer was shown: do not sign it.");
  }
}

async function proposal(section) {
  const proposed = JSON.parse(section.dataset.envelope);
  const { text, command } = opened(proposed);
  document.getElementById("fields").replaceChildren(...fields(command));
  document.getElementById("text").replaceChildren(spelled(text));
  await asShown(section, command);
  const reader = new Reader([section]);
  const button = document.getElementById("approve");
  if (button) {
    button.disabled = false;
    button.addEventListener("click", () => trying(button, async () => {
      if (section.querySelector("pre.content")) reader.text(section);
      const looser = document.getElementById("accepted");
      if (looser && !looser.checked) throw new Unsignable("Read what gets looser, and say that it is meant.");
      const both = await cosigned(proposed, await signer());
      const { items: [item] } = await post(section.dataset.path, { envelope: both, step_up: await confirmed([both]) });
      tell(`${item.came}: ${item.told}`, item.came === "done" ? "good" : "bad");
    }));
  }
  const back = document.getElementById("withdraw");
  back?.addEventListener("click", () => trying(back, async () => {
    const key = await signer();
    const said = ["memsluice console withdraw v1", location.origin, key.kid, section.dataset.name].join("\n");
    await post(`${section.dataset.path}/withdraw`, { kid: key.kid, signature: base64(await key.sign(utf8(said))) });
    tell("It is taken back.", "good");
  }));
}

function draft(section) {
  const reader = new Reader([section]);
  const button = document.getElementById("propose");
  button.addEventListener("click", () => trying(button, async () => {
    const { action, tenant, target, digest, carried } = section.dataset;
    const now = Date.now();
    if (!carried) throw new Unsignable("This page has no record that a command could be bound to: load it again.");
    const parameters = { shown: await sha256(utf8(reader.text(section))) };
    if (document.getElementById("despite").checked) parameters.despite = "detection";
    const command = {
      id: crypto.randomUUID(), tenant, time: moment(now), action, target, digest,
      expires_at: moment(now + PROPOSED_VALID_S * 1000), reason: document.getElementById("why").value.trim(),
      parameters, held: carried, policy: null,
    };
    commandText(command);
    const signed = await envelope(command, await signer());
    const { path, told: words } = await post("/proposals", { envelope: signed, step_up: await confirmed([signed]) });
    tell(`${words} `, "good");
    told.append(element("a", { href: path, id: "proposed" }, "Its page"));
  }));
}

const [one, other] = [document.getElementById("proposal"), document.getElementById("draft")];
if (one) proposal(one).catch((error) => tell(error.message, "bad"));
if (other) draft(other);
