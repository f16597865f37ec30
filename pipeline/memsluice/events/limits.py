"""Limits on every field. A wire limit is fixed; a policy may only set a lower one."""

ID_CHARS_MAX = 128
NAME_CHARS_MAX = 128
TENANT_CHARS_MAX = 63
SOURCE_CHARS_MAX = 256
CONTENT_BYTES_MAX = 32_768
CONTENT_BYTES_DEFAULT = 8_192
QUESTION_BYTES_MAX = 4_096
REASON_CHARS_MAX = 512
PARENTS_MAX = 64
RETURNED_MAX = 100
REASONS_MAX = 32
OFFSET_MAX = 2**63 - 1
"""Kafka offsets are 64-bit; a larger integer could not be written as JSON further on."""
PARAMETERS_MAX = 16
HELD_CHARS_MAX = 180 * 1024
"""A held write's sealed record inside a command: with it a command still fits into RECORD_BYTES_MAX once signed."""
RENEWS_BYTES_MAX = 48 * 1024
"""An entry's accepted record inside a recall, with content of 32 KiB: escaped and signed, it fits into RECORD_BYTES_MAX
beside the rest of the largest recall."""
POLICY_CHARS_MAX = 1_792
"""An activated policy's text: it lies in a state row, which is written again with each activation."""
APPROVALS_MAX = 8
HEADERS_MAX = 64
HEADER_BYTES_MAX = 8_192
RECORD_BYTES_MAX = 262_144
"""An intake record's value: the largest write in an envelope, with room; anything larger is a dead letter."""
