// What is wrong with a page, as text a line: elements and links that contents made, characters that act, a page that
// is wider than its window, scripts that ran. It is written without the console's own rules, to find slips in them.
(computed) => {
  const found = [...window.canary.splice(0)];
  const tags = new Set(("a article bdi body br button caption code dd details dialog div dl dt fieldset footer form h1 h2 " +
    "h3 h4 head header html input kbd label legend li link main mark meta nav noscript ol option p pre search section " +
    "select small span strong summary table tbody td textarea th thead time title tr ul").split(" "));
  const drawn = new Set("svg g path line rect circle ellipse polyline polygon text tspan title desc defs marker".split(" "));
  const inside = (address) => {
    try { return new URL(address, location.href).origin === location.origin; } catch { return false; }
  };
  const say = (kind, element) => found.push(`${kind}: ${element.outerHTML.slice(0, 160)}`);
  for (const element of document.querySelectorAll("*")) {
    const tag = element.localName;
    if (element.closest("svg") ? !drawn.has(tag) : !tags.has(tag) && tag !== "script") say("an element of a content", element);
    if (tag === "script" && !/^\/static\/[a-z]+\.js$/.test(element.getAttribute("src") ?? "")) say("a script", element);
    if (tag === "meta" && element.hasAttribute("http-equiv")) say("a meta element", element);
    const told = element.parentElement?.closest("bdi.told");
    if (told && !(tag === "span" && element.className === "ctl" && element.attributes.length === 1) && tag !== "mark")
      say("an element within a content", element);
    for (const { name, value } of element.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") say(`an attribute ${name}`, element);
      if (name === "href" && value === "data:," && element.rel === "icon") continue;
      if (["href", "src", "action", "formaction", "xlink:href", "poster", "data"].includes(name) && !inside(value))
        say("a link out", element);
    }
  }
  const acts = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (acts.test(data) && !["script", "style", "textarea"].includes(parentElement.localName))
      found.push(`a character that acts: U+${acts.exec(data)[0].codePointAt(0).toString(16)} in ${parentElement.localName}`);
    if (data.includes(computed)) found.push(`a template was filled in: ${data.slice(0, 80)}`);
  }
  const wide = document.scrollingElement.scrollWidth;
  if (wide > innerWidth) {
    const widest = [...document.querySelectorAll("body *")].find((one) => one.getBoundingClientRect().right > innerWidth + 1);
    found.push(`overflow: ${wide} of ${innerWidth} pixels, ${widest?.outerHTML.slice(0, 120)}`);
  }
  return found;
}
