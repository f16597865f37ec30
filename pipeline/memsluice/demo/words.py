"""Reason codes in words. The rule behind a code is the module of the gate that the code names."""

from typing import Any

WORDS = {
    "authenticity": "nobody could be established as the sender",
    "clock_skew": "its time lies outside of the window in which event ids are remembered",
    "commands.already_protected": "the key is protected already",
    "commands.bad_parameter": "a parameter of the command is not valid",
    "commands.expired": "the approval had run out",
    "commands.not_available": "this command is not carried out yet",
    "commands.not_permitted": "the signer's role may not give this command",
    "commands.one_tenant": "this command is about one tenant's entry, not about all tenants",
    "cross_tenant": "the credential is not of this tenant",
    "detect.held": "wording, questions or nearness that are rare for this tenant",
    "detect.look_back_budget": "more to take back than one person's questions may in a day",
    "detect.looked_back": "the question showed what had landed in a new light",
    "duplicates.other_content": "another content under an event id that was used before",
    "duplicates.replayed": "an earlier message, sent once more",
    "expired_key": "the key's time is over",
    "forged_signature": "not signed by the key that it names",
    "holding.full": "this principal's share of the quarantine is full",
    "instructions.found": "reads like an instruction to the agent",
    "instructions.long_fact": "a structured fact too long to be one",
    "limit_exceeded": "a field is larger than its limit",
    "limits.content_bytes": "longer than the policy allows",
    "limits.invisible_characters": "has characters that nobody sees",
    "malformed": "no event at all, or not of the schema",
    "memsad.above_threshold": "closer to past questions than honest writes are",
    "memsad.cold": "nothing was asked yet, so there is nothing to compare with",
    "monitor.rule_3_immutable": "the key is protected",
    "monitor.rule_4_tainted": "made from, or after, outside content",
    "monitor.rule_5_untrusted": "comes from an untrusted channel",
    "monitor.rule_9_narrowed": "asked to be shared; only a promotion shares it",
    "not_permitted": "the credential may not publish this",
    "rates.exceeded": "more writes in a day than the tier may",
    "replay.standing": "a doubt about its sender or its id stands",
    "review.appealed_before": "a review of it was asked for before",
    "review.bad_parameter": "a parameter of the command is not valid",
    "review.decided": "it was released or rejected before",
    "review.not_the_writer": "only the credential that wrote it may ask for its review",
    "review.not_overridable": "held for a reason that a release does not override",
    "review.other_digest": "the command is bound to another content",
    "review.other_record": "the command does not carry the write that is held",
    "review.tainted": "tainted: no release overrides that",
    "review.unknown": "no such entry is held for this tenant (or no longer)",
    "revoked_key": "the key was revoked",
    "sessions.mismatch": "the session belongs to another agent or person",
    "tampered": "its bytes are not those that were signed",
    "unknown_key": "nobody knows this key",
    "wrong_partition": "not on its tenant's partition",
}


def words(code: str) -> str:
    """Return what a reason code means, or the code itself where there are no words for it."""
    return WORDS.get(code, code)


def score_note(verdict: dict[str, Any]) -> str:
    """Return the numbers behind a MEMSAD verdict, or ""."""
    score = verdict.get("score")
    if not score or score["score"] is None or score["threshold"] is None:
        return ""
    return f"{score['score']:.2f} against {score['threshold']:.2f}, {score['phase']}"
