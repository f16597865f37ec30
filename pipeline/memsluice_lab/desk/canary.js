// Runs before anything else of a page does: notes what no page of the console may come to.
(() => {
  const seen = [];
  const note = (kind, told) => seen.push(`${kind}: ${String(told).slice(0, 200)}`);
  Object.defineProperty(window, "canary", { value: seen });
  Object.defineProperty(window, "escaped", { set: (value) => note("a script ran", value), get: () => undefined });
  for (const name of ["alert", "confirm", "prompt", "open", "print"]) {
    window[name] = (told) => note(`${name} was called`, told);
  }
  document.addEventListener("securitypolicyviolation", (event) =>
    note("the browser had to block something", `${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
})();
