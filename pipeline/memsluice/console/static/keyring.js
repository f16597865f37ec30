// The page of a person's own keys: that of this browser, and a security key besides.
import { Unsignable } from "./commands.js";
import { signer } from "./deciding.js";
import { enrolment, forget, held, make, unable } from "./keys.js";
import { shown } from "./login.js";
import { element, Failed } from "./sending.js";
import { register } from "./stepup.js";

const box = document.getElementById("signing-key");
const told = document.getElementById("keys-told");
const tell = (text) => { told.textContent = text; };
const button = (id, text, act) =>
  element("button", { type: "button", id, class: "quiet", onclick: () => trying(act) }, text);

async function trying(what) {
  try {
    await what();
  } catch (error) {
    if (!(error instanceof Failed || error instanceof Unsignable || error instanceof DOMException)) throw error;
    tell(error.message);
  }
}

async function made() {
  const why = await unable();
  if (why) return tell(why);
  await make();
  await draw();
}

async function forgotten() {
  if (!confirm("Forget this key? It cannot be had back: you would make another one, and have it enrolled.")) return;
  await forget();
  await draw();
}

async function draw() {
  const key = await held();
  if (key === null) {
    const making = button("make-key", "Make a key in this browser", made);
    box.replaceChildren(element("p", {}, "This browser has no key."), making);
    return;
  }
  const kid = await signer().then((found) => found.kid, () => "");
  const unknown = "The registry does not know it yet: an operator of the gate runs";
  const known = kid ? `The registry knows it as ${kid}.` : unknown;
  box.replaceChildren(shown(key), element("p", {}, known),
    ...(kid ? [] : [element("pre", { class: "told" }, enrolment(key))]), button("forget-key", "Forget it", forgotten));
}

document.getElementById("register")?.addEventListener("click", () => trying(async () => {
  await register(await signer());
  location.reload();
}));
trying(draw);
