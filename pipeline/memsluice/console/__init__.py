"""The console: held writes and all that an operator looks at, in a browser. Needs the extra ``console``."""
