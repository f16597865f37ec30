"""The findings that say that a person let in what detection had found; whoever asks for them imports no detector."""

RELEASED_CODE = "review.released"
OVERRIDDEN_CODE = "promotion.overridden"
LET_IN = frozenset({RELEASED_CODE, OVERRIDDEN_CODE})
