// Requests of the console's pages to their own server, and elements made of text alone.

/** What a request failed with, as a person is told. `status` is 0 where there was no answer. */
export class Failed extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Sends JSON and returns the JSON of the answer. Throws Failed. */
export async function post(path, value) {
  const token = document.querySelector("meta[name=csrf]")?.content ?? "";
  const headers = { "content-type": "application/json", accept: "application/json", "x-csrf-token": token };
  return answered(() => fetch(path, { method: "POST", body: JSON.stringify(value), headers, redirect: "error" }));
}

/** Asks for JSON. Throws Failed. */
export const get = (path) =>
  answered(() => fetch(path, { headers: { accept: "application/json" }, redirect: "error" }));

async function answered(ask) {
  let answer;
  try {
    answer = await ask();
  } catch {
    throw new Failed(0, "The console does not answer. What was sent may have been published: load the page again.");
  }
  const value = await answer.json().catch(() => null);
  if (answer.ok) return value;
  if (answer.status === 401) throw new Failed(401, "You are not logged in any more: log in again.");
  throw new Failed(answer.status, value?.detail ?? `The console answered with ${answer.status}.`);
}

/** An element with attributes and children: elements, or texts, which stay texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const FILLERS = "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0";
const BLANKS = `${FILLERS}\\u180b-\\u180f\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}`;
const HIDDEN = new RegExp(`[\\p{Cc}\\p{Cf}\\p{Cn}\\p{Co}\\p{Cs}\\p{Zl}\\p{Zp}${BLANKS}]`, "u");
const MARK = /[\p{Mn}\p{Me}]/u;
const MARKS_MAX = 3;
const PILED = new RegExp(`[\\p{Mn}\\p{Me}]{${MARKS_MAX + 1}}`, "u");

/**
 * Nodes that show a text that somebody else chose: what is not seen in it, or moves the rest, is spelled out. The rule
 * is that of memsluice/escaping.py; a character that the server or this browser does not know yet is not seen.
 */
export function spelled(text) {
  const box = element("bdi", { class: "told" });
  let [plain, marks] = ["", 0];
  for (const letter of text) {
    marks = MARK.test(letter) ? marks + 1 : 0;
    if (letter === "\n" || !(marks > MARKS_MAX || HIDDEN.test(letter))) {
      plain += letter;
      continue;
    }
    const code = letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    box.append(plain, element("span", { class: "ctl" }, `U+${code}`));
    plain = "";
  }
  box.append(plain);
  return box;
}

/** Whether a text has what is not seen, or moves the rest; line feeds apart. */
export const hides = (text) => HIDDEN.test(text.replaceAll("\n", "")) || PILED.test(text);
