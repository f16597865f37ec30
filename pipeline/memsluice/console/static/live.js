// Says that a page is older than what it shows, and keeps its counts alive. Only counts come, and only text is set.
const fresh = document.getElementById("fresh");
const told = document.getElementById("fresh-told");
const title = document.title;
const events = new EventSource("/events");

events.addEventListener("counts", (event) => {
  const now = JSON.parse(event.data);
  for (const one of document.querySelectorAll("[data-live]")) {
    one.textContent = String(now.states[one.dataset.live] ?? 0);
  }
  const waiting = now.states.pending ?? 0;
  document.title = waiting ? `(${waiting}) ${title}` : title;
  if (!fresh) return;
  fresh.hidden = !now.mark || now.mark === fresh.dataset.mark;
  if (!fresh.hidden) told.textContent = `What is held has changed: ${waiting} wait now.`;
});

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
