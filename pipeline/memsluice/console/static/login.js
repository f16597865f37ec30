// Logging in with this browser's key: it signs a challenge, for this console and no other.
import { base64, utf8 } from "./commands.js";
import { enrolment, held, make, unable } from "./keys.js";
import { element, post } from "./sending.js";

const FIRST_LINE = "memsluice console login v1";

/** What is signed: for which console, by which key, over which challenge. */
export const signedText = (origin, kid, challenge) => [FIRST_LINE, origin, kid, challenge].join("\n");

async function enter(section, key, tell) {
  tell("…");
  try {
    const { kid, challenge } = await post("/login/key", { public: key.public });
    const signature = base64(await key.signer(kid).sign(utf8(signedText(location.origin, kid, challenge))));
    await post("/login", { kid, challenge, signature });
    const next = section.dataset.next ?? "/";
    location.assign(next.startsWith("/") && !next.startsWith("//") ? next : "/");
  } catch (error) {
    tell(error.message);
  }
}

export function shown(key) {
  return element("dl", { class: "facts" },
    element("dt", {}, "Fingerprint"), element("dd", {}, element("code", { id: "fingerprint" }, key.fingerprint)),
    element("dt", {}, "Public half"), element("dd", {}, element("code", { id: "public" }, key.public)));
}

async function draw(section, box, tell) {
  const key = await held();
  if (key === null) {
    const button = element("button", { type: "button", id: "make-key", onclick: async () => {
      const why = await unable();
      if (why) return tell(why);
      await make();
      tell("");
      await draw(section, box, tell);
    } }, "Make a key in this browser");
    box.replaceChildren(element("p", {}, "This browser has no key yet."), button);
    return;
  }
  const entering = { type: "button", id: "enter", onclick: () => enter(section, key, tell) };
  box.replaceChildren(
    shown(key),
    element("p", {}, element("button", entering, "Log in with this key")),
    element("details", {}, element("summary", {}, "The key is not known to the console yet"),
      element("p", {}, "Send the public half to an operator of the gate, who compares the fingerprint with you:"),
      element("pre", { class: "told" }, enrolment(key))));
}

const section = document.getElementById("login");
if (section) {
  const told = document.getElementById("login-told");
  const tell = (text) => { told.textContent = text; };
  draw(section, document.getElementById("login-keys"), tell).catch((error) => tell(error.message));
}
