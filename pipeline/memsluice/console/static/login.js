// Where one logs in with a key of this browser. The key's handling is in keys.js.
const told = document.getElementById("login-told");
if (told) told.textContent = "This browser has no key yet.";
