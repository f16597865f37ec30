"""The embedded store: SQLite and FAISS."""

from memsluice.extras import require

require("The embedded store", "embedded")
