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
  if (fresh && now.mark && now.mark !== fresh.dataset.mark) {
    told.textContent = `What is held has changed: ${waiting} wait now.`;
    fresh.hidden = false;
  }
});
events.addEventListener("ended", () => {
  events.close();
  if (fresh) {
    told.textContent = "Your session ended: log in again.";
    fresh.hidden = false;
  }
});
