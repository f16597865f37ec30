"""An example of every command, shown at the end of its help and on the page of all commands."""

from typing import Any

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("memsluice demo", "memsluice demo --tenant casa-lindqvist --home ./demo", "memsluice demo --window"),
    "recall": (
        'memsluice recall acme "Where do the invoices go?" --principal ana',
        'memsluice recall acme "What did the page say?" --principal ana --research --json',
    ),
    "certify": (
        "memsluice certify --hostile 2 --delta 0.05",
        "memsluice certify -k 5 -n 5 --svg bound.svg",
        "memsluice certify --available 30 --attempts 10 --missed 0.02",
    ),
    "trace": ("memsluice trace w-17", "memsluice trace w-17 --tenant acme --json"),
    "lineage": ("memsluice lineage w-17", "memsluice lineage w-17 --tenant acme --depth 3 --json"),
    "blast-radius": ("memsluice blast-radius w-17", "memsluice blast-radius session:s-4 --tenant acme"),
    "revoke": (
        "memsluice revoke session:s-4 --tenant acme --contain --dry-run",
        'memsluice revoke w-17 --tenant acme --remove --why "a page told it so"',
    ),
    "promote": ('memsluice promote w-17 --tenant acme --why "holds for everybody"',),
    "declassify": (
        'memsluice declassify w-17 --tenant acme --propose w-17.json --why "read and checked"',
        "memsluice declassify w-17 --tenant acme --propose w-17.json --despite-detection",
        "memsluice declassify w-17 --tenant acme --kid reviewer-0a1b2c3d --kid reviewer-4e5f6a7b",
    ),
    "renew": ("memsluice renew w-17 --tenant acme",),
    "protect": ('memsluice protect w-17 --tenant acme --why "the door code holds"',),
    "approve": ("memsluice approve w-17.json", "memsluice approve w-17.json --kid reviewer-4e5f6a7b"),
    "review": (
        "memsluice review",
        'memsluice review "reason:detect since:24h" --tenant acme',
        "memsluice review @vouchers",
    ),
    "quarantine list": (
        "memsluice quarantine list --tenant acme --since 24h",
        "memsluice quarantine list --reason memsad --min-score 0.8",
        "memsluice quarantine list --query 'reason:detect tenant:acme since:2h score:0.8..'",
        "memsluice quarantine list --withdrawn --since 7d",
    ),
    "quarantine groups": (
        "memsluice quarantine groups --tenant acme --since 24h",
        "memsluice quarantine groups 3f2a9c417be05d68",
    ),
    "quarantine filters list": ("memsluice quarantine filters list",),
    "quarantine filters save": ("memsluice quarantine filters save vouchers 'tenant:acme reason:rates principal:kim'",),
    "quarantine filters delete": ("memsluice quarantine filters delete vouchers",),
    "quarantine show": ("memsluice quarantine show w-17 --tenant acme",),
    "quarantine stats": ("memsluice quarantine stats --since 7d",),
    "quarantine export": ("memsluice quarantine export held.jsonl --tenant acme --all",),
    "quarantine release": (
        'memsluice quarantine release w-17 --tenant acme --why "ana confirmed it"',
        'memsluice quarantine release --group 3f2a9c417be05d68 --why "ana confirmed them"',
        "memsluice quarantine release w-17 --tenant acme --withdrawn",
    ),
    "quarantine reject": (
        'memsluice quarantine reject w-17 --tenant acme --why "never asked for"',
        "memsluice quarantine reject --filter vouchers --query 'since:2h'",
    ),
    "quarantine reopen": ("memsluice quarantine reopen w-17 --tenant acme",),
    "quarantine note": ('memsluice quarantine note w-17 "asked ana" --assign bea --claim 30m',),
    "quarantine replay": (
        "memsluice quarantine replay --tenant acme --reason rates --dry-run",
        "memsluice quarantine replay --resume r0123456789ab",
    ),
    "notices run": (
        "memsluice notices run",
        "memsluice notices run --every 1m --metrics-port 9465",
        "memsluice notices run --once",
    ),
    "notices test": ("memsluice notices test", "memsluice notices test --settings ./notices.yaml"),
    "dead-letters list": ("memsluice dead-letters list --reason expired_key --since 24h",),
    "dead-letters show": ("memsluice dead-letters show memory.events.v1/3/17",),
    "dead-letters stats": ("memsluice dead-letters stats",),
    "dead-letters export": ("memsluice dead-letters export letters.jsonl --reason malformed",),
    "dead-letters replay": (
        "memsluice dead-letters replay --reason unknown_key --dry-run",
        "memsluice dead-letters replay --reason unknown_key --max-messages 100 --rate 20",
    ),
    "dead-letters reject": ('memsluice dead-letters reject memory.events.v1/3/17 --why "a scanner of ours"',),
    "dead-letters release": ("memsluice dead-letters release memory.events.v1/3/17",),
    "top": ("memsluice top", "memsluice top --once --since 12h --tenants 5"),
    "calibration show": (
        "memsluice calibration show acme",
        "memsluice calibration show acme --detector memsad --png acme.png",
    ),
    "policy shipped": ("memsluice policy shipped", "memsluice policy shipped published-rolling"),
    "store verify": ("memsluice store verify", "memsluice store verify --tenant acme --json"),
    "store repair": ("memsluice store repair --tenant acme",),
    "store rebuild": ("memsluice store rebuild --tenant acme --yes",),
    "partition status": ("memsluice partition status", "memsluice partition status --json"),
    "partition resume": ('memsluice partition resume screen 3 --why "the topic was restored"',),
    "partition acknowledge-gap": (
        'memsluice partition acknowledge-gap screen 3 --from 601 --to 653 --why "the disk of broker 2, ticket 4711"',
    ),
    "stack up": ("memsluice stack up --home ./stack",),
    "stack status": ("memsluice stack status --json",),
    "stack logs": ("memsluice stack logs kafka --lines 100", "memsluice stack logs weaviate --follow"),
    "stack down": ("memsluice stack down", "memsluice stack down --wipe"),
    "stack doctor": ("memsluice stack doctor",),
    "stack roles": ("memsluice stack roles",),
    "topics plan": ("memsluice topics plan",),
    "topics apply": ("memsluice topics apply --files ./topics",),
    "topics check": ("memsluice topics check",),
    "keys init": ("memsluice keys init",),
    "keys new": (
        "memsluice keys new producer --tenant acme --agent helper --days 90",
        "memsluice keys new reader --tenant '*' --note \"the recall service\"",
        "memsluice keys new seal",
    ),
    "keys enrol": (
        "memsluice keys enrol reviewer --public A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg= --principal ana "
        "--tenant acme --days 90",
    ),
    "keys rotate": ("memsluice keys rotate producer-0a1b2c3d --overlap 7d",),
    "keys retire": ("memsluice keys retire producer-0a1b2c3d",),
    "keys revoke": ("memsluice keys revoke producer-0a1b2c3d", "memsluice keys revoke seal-0a1b2c3d --drained"),
    "keys public": ("memsluice keys public reader-ring.json --tenant acme",),
    "keys list": ("memsluice keys list --json",),
    "policy check": ("memsluice policy check strict.yaml --strict",),
    "policy diff": ("memsluice policy diff strict.yaml", "memsluice policy diff strict.yaml --in-force acme"),
    "policy evaluate": ("memsluice policy evaluate strict.yaml --tenant acme --since 7d",),
    "policy show": ("memsluice policy show acme",),
    "policy activate": (
        'memsluice policy activate strict.yaml --tenant acme --propose strict.json --why "campaign of Tuesday"',
        "memsluice policy activate --end --tenant acme --kid operator-0a1b2c3d --kid operator-4e5f6a7b",
    ),
    "rescreen": (
        "memsluice rescreen --policy strict.yaml --tenant acme",
        "memsluice rescreen --policy strict.yaml --since 24h --json",
    ),
    "work": (
        "memsluice work seal screen land --metrics-port 9464",
        "memsluice work screen --replica screen-2 --tenant-metrics 50",
    ),
    "console": (
        "memsluice console",
        "memsluice console --host 0.0.0.0 --url https://desk.example.org --plain",
    ),
    "recall-service": (
        "memsluice recall-service",
        "memsluice recall-service --host 0.0.0.0 --tls-certificate gate.pem --tls-key gate.key --quota-per-s 20",
    ),
    "ingest-service": (
        "memsluice ingest-service",
        "memsluice ingest-service --host 0.0.0.0 --tls-certificate gate.pem --tls-key gate.key --quota-per-s 20",
    ),
    "mcp": (
        "memsluice mcp --tenant acme --principal ada",
        "memsluice mcp --tenant acme --principal ada --session monday-1 --host-reports",
        "memsluice mcp --tenant acme --http 127.0.0.1:8092",
        "memsluice mcp --tenant acme --principal ada --http 127.0.0.1:8092 --no-auth",
    ),
    "doctor": ("memsluice doctor", "memsluice doctor --json"),
    "lab train": ("memsluice lab train --data ./records --out ./models --keep ./features",),
    "lab table": (
        "memsluice lab table --data ./records --out ./work --page tables.md --row systems",
        "memsluice lab table --out ./work --list",
    ),
    "lab run": ("memsluice lab run ./streams ./verdicts --jobs 2 --policy strict.yaml",),
}


def attach(name: str, command: Any) -> None:
    """Let a command, and all below it, end its help with its example."""
    if name in EXAMPLES:
        command.epilog = "\n\n".join(("Example:", *EXAMPLES[name]))
    for part, inner in getattr(command, "commands", {}).items():
        attach(f"{name} {part}", inner)
