"""Weaviate as the store."""

from memsluice.extras import require

require("The Weaviate store", "recall")
