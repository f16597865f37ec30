"""The committed schemas, as somebody in another language would load them: files, and references between files."""

import gzip
import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

TOP = Path(__file__).resolve().parents[2]
VENDORED = Path(__file__).parent / "vendor" / "asyncapi-3.0.0.json.gz"
VENDORED_SHA256 = "abe96881dbfaad495ccbb6bd8d3fb43ca18a13b9d7564849ccb66f39d5e5b20f"


@cache
def schemas() -> dict[str, Any]:
    """Return every committed schema by its file's name."""
    return {
        path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted((TOP / "schemas").glob("*.json"))
    }


@cache
def _registry() -> Any:
    resources = []
    for name, schema in schemas().items():
        resource = DRAFT202012.create_resource(schema)
        resources += [(name, resource), (f"./schemas/{name}", resource)]
    return Registry().with_resources(resources)


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """Return a validator that follows references to the other files and checks formats."""
    return Draft202012Validator(schema, registry=_registry(), format_checker=Draft202012Validator.FORMAT_CHECKER)


def named(name: str) -> Draft202012Validator:
    """Return the validator of a committed schema by its name."""
    return validator(schemas()[f"{name}.json"])


@cache
def asyncapi() -> Any:
    """Return the committed AsyncAPI document."""
    return yaml.safe_load((TOP / "asyncapi.yaml").read_text(encoding="utf-8"))


@cache
def asyncapi_schema() -> Any:
    """Return AsyncAPI's own schema, having checked that it is the published one."""
    data = gzip.decompress(VENDORED.read_bytes())
    assert sha256(data).hexdigest() == VENDORED_SHA256
    return json.loads(data)
