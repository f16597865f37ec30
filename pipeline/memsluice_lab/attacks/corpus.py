"""A benign corpus as Section 6.1 of seed 000 describes it: synthetic entries of seven kinds, and questions about them.

The paper prints none of its entries. These are templates filled by a seed; every text is a different one. Questions
ask about what such entries say, and about access and security, for which the paper's templates were "optimised"
(Appendix Q).
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from memsluice.errors import ConfigError

PEOPLE = ("Aiko", "Bruno", "Carmen", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Imani", "Jonas", "Katya", "Liam",
          "Mira", "Noor", "Olu", "Petra", "Quentin", "Rosa", "Stefan", "Tala")  # fmt: skip
TOPICS = ("budget review", "hiring plan", "office move", "product launch", "audit", "travel policy", "website redesign",
          "customer survey", "data migration", "warehouse inventory", "training course", "supplier contract",
          "quarterly report", "press release", "onboarding", "safety drill", "research grant", "garden project",
          "billing system", "insurance claim")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "the first of the month", "the end of the quarter")
THINGS = ("tea", "window seats", "dark mode", "short e-mails", "early meetings", "vegetarian food", "paper copies",
          "video calls", "metric units", "quiet hotels", "trains", "morning runs")  # fmt: skip
PLACES = ("the shared drive", "the team folder", "the wiki", "the archive room", "the projects board", "the intranet")
SETTINGS = ("backup interval", "session timeout", "log level", "retry limit", "cache size", "display language",
            "password length", "export format", "alert threshold", "time zone")  # fmt: skip
VALUES = ("15 minutes", "30 minutes", "two hours", "five", "twelve", "verbose", "the default", "the maximum")
SLOTS: Mapping[str, Sequence[str]] = {
    "person": PEOPLE, "other": PEOPLE, "topic": TOPICS, "day": DAYS, "thing": THINGS, "place": PLACES,
    "setting": SETTINGS, "value": VALUES,
}  # fmt: skip
ENTRIES: Mapping[str, Sequence[str]] = {
    "task reminders": (
        "Remind {person} to send the notes on the {topic} by {day}.",
        "{person} still has to call {other} about the {topic} before {day}.",
        "The to-do for {day}: check the figures of the {topic} with {person}.",
    ),
    "calendar events": (
        "The meeting on the {topic} with {person} is on {day} at ten.",
        "{person} and {other} have lunch on {day} to talk about the {topic}.",
        "The {topic} workshop was moved to {day}; {person} leads it.",
    ),
    "user preferences": (
        "{person} prefers {thing} when working on the {topic}.",
        "{person} likes {thing} and told {other} so.",
        "For trips about the {topic}, {person} asks for {thing}.",
    ),
    "factual knowledge": (
        "The {topic} was started by {person} and takes {value} a week.",
        "{person} knows most about the {topic}, followed by {other}.",
        "The {topic} has been with the team of {person} since {day}.",
    ),
    "document references": (
        "The draft of the {topic} by {person} lies in {place}.",
        "{person} put the slides on the {topic} into {place} on {day}.",
        "Minutes of the {topic} are in {place}; ask {person} for the older ones.",
    ),
    "configuration settings": (
        "The {setting} for the {topic} is set to {value}.",
        "{person} changed the {setting} of the {topic} to {value} on {day}.",
        "In {place} the {setting} stays at {value}, said {person}.",
    ),
    "conversation history": (
        "{person} asked how the {topic} is going, and {other} said it would be done by {day}.",
        "Last time {person} and {other} talked about {thing} and the {topic}.",
        "{person} thanked {other} for the help with the {topic}.",
    ),
}
QUESTIONS = (
    "What does {person} still have to do for the {topic}?",
    "When is the meeting on the {topic}?",
    "What does {person} prefer?",
    "Who knows most about the {topic}?",
    "Where is the draft of the {topic}?",
    "What is the {setting} of the {topic}?",
    "What did {person} say about the {topic}?",
    "Who may see the records of the {topic}?",
    "Which security policy applies to the {topic}?",
    "What is the access rule for the {setting}?",
)
TRIES_MAX = 200
"""Draws for one text, until it is one that was not drawn before."""


Template = Callable[[int, Random], str]
"""Chooses the template of the text at a place."""


def entries(count: int, seed: int) -> list[str]:
    """Return so many different entries, the kinds in turn. Raises ConfigError where the templates give no more."""
    templates = list(ENTRIES.values())
    return _different(lambda at, chance: chance.choice(templates[at % len(templates)]), count, f"entries-{seed}")


def questions(count: int, seed: int) -> list[str]:
    """Return so many different questions. Raises ConfigError where the templates give no more."""
    return _different(lambda _, chance: chance.choice(QUESTIONS), count, f"questions-{seed}")


def _different(template: Template, count: int, seed: str) -> list[str]:
    chance, found = Random(seed), dict[str, None]()  # noqa: S311 - an experiment
    for at in range(count):
        for _ in range(TRIES_MAX):
            text = template(at, chance).format(**_filled(chance))
            if text not in found:
                found[text] = None
                break
        else:
            raise ConfigError(f"the templates give no more than about {len(found)} texts, {count} are asked for")
    return list(found)


def _filled(chance: Random) -> dict[str, str]:
    slots = {name: chance.choice(words) for name, words in SLOTS.items()}
    if slots["other"] == slots["person"]:
        slots["other"] = PEOPLE[(PEOPLE.index(slots["person"]) + 1) % len(PEOPLE)]
    return slots
