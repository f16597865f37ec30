// Says that a page is older than what it shows, and keeps its counts alive. Only counts come, and only text is set.
const fresh = document.getElementById("fresh");
const told = document.getElementById("fresh-told");
const title = document.title;
const events = new EventSource("/events");

events.addEventListener("counts", (event) => {
  const now = JSON.parse(event.data);
  if (now.states) showCounts(now.states);
  if (!fresh) return;
  const changed = now.mark && now.mark !== fresh.dataset.mark;
  const news = [answering(now.away), changed ? `What is held has changed: ${now.states.pending ?? 0} wait now.` : ""];
  told.textContent = news.filter(Boolean).join(" ");
  fresh.hidden = !told.textContent;
});

function showCounts(states) {
  for (const one of document.querySelectorAll("[data-live]")) {
    one.textContent = String(states[one.dataset.live] ?? 0);
  }
  const waiting = states.pending ?? 0;
  document.title = waiting ? `(${waiting}) ${title}` : title;
}

// What does not answer any more, or again, since the page was made: what did not then stands above it.
function answering(away) {
  if (away.join(" ") === fresh.dataset.away) return "";
  if (!away.length) return "All answer again: show the page anew.";
  const verb = away.length > 1 ? "do" : "does";
  return `The ${away.join(" and the ")} ${verb} not answer: what is shown is what was known before.`;
}

function say(text) {
  if (!fresh) return;
  told.textContent = text;
  fresh.hidden = false;
}

events.addEventListener("ended", () => {
  events.close();
  say("Your session ended: log in again.");
});
// A browser tries again by itself, unless it was refused: as after the console's own start, or beyond its pages.
events.addEventListener("error", () => {
  if (events.readyState === EventSource.CLOSED) {
    say("This page is told nothing new: its session ended, or too many pages are open. Close some, or log in again.");
  } else say("The console does not answer: what is shown is what was known before.");
});
