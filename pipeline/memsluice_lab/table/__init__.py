"""``memsluice lab table``: the tables of docs/detection-tables.md, row by row, on the same gate as ``lab run``."""
