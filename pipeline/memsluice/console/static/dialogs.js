// Dialogs: a question with one line of text, and what the keys of the desk and of lists do.
import { element } from "./sending.js";

const KEYS = [
  ["j / k", "next, previous"], ["space", "read on"], ["r / x", "release, reject this one"],
  ["R / X", "release, reject all on this page that were read"], ["u", "take the last rejections back"],
  ["c / n / a", "claim or give back, note, assign"], ["s", "go on to the next that waits, without deciding"],
  ["Enter", "open"], ["/", "filter"], ["?", "these keys"],
];

const LIST_KEYS = [
  ["j / k", "next, previous"], ["Enter", "open"], ["o", "older ones"], ["/", "filter"], ["?", "these keys"],
];

function open(dialog) {
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => { resolve(dialog.returnValue); dialog.remove(); }, { once: true });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks for a text; null where the answer is no. `lines`: texts or elements. `optional`: no text is an answer, too. */
export async function ask({ title, lines, label, chars, act, optional = false }) {
  const field = element("input", {
    id: "dialog-text", maxlength: String(chars), autocomplete: "off", required: !optional,
  });
  const yes = element("button", { value: "yes", autofocus: optional }, act);
  const no = element("button", { value: "no", class: "quiet", formnovalidate: true }, "Cancel");
  const said = lines.map((line) => (typeof line === "string" ? element("p", {}, line) : line));
  const form = element("form", { method: "dialog" },
    element("h2", { id: "dialog-title" }, title), ...said,
    element("p", {}, element("label", { for: "dialog-text" }, label), element("br"), field),
    element("p", {}, yes, " ", no));
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  const opening = open(dialog);
  (optional ? yes : field).focus();
  return await opening === "yes" ? field.value : null;
}

/** Shows what the keys of the desk do. */
export const help = () => shown(KEYS);

/** Shows what the keys of a list do. */
export const listHelp = () => shown(LIST_KEYS);

async function shown(keys) {
  const lines = keys.flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)]);
  const form = element("form", { method: "dialog" },
    element("h2", { id: "dialog-title" }, "Keys"), element("dl", { class: "facts" }, ...lines),
    element("p", {}, element("button", { value: "no" }, "Close")));
  await open(element("dialog", { "aria-labelledby": "dialog-title" }, form));
}
