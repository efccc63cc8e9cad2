"""In: a record and a verification. Out: both as one JSON document, and its JSON schema."""

from __future__ import annotations

from typing import Any

from migrate.result import SCHEMA_VERSION, Frozen, Record, Verification


class Document(Frozen):
    """``verification`` is null when nothing was verified."""

    schema_version: int = SCHEMA_VERSION
    record: Record
    verification: Verification | None = None


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``torch2ms report --format json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Document.model_json_schema(mode="serialization"),
        "title": f"torch2mindspore result, version {SCHEMA_VERSION}",
    }


def to_json(record: Record, verification: Verification | None) -> str:
    """The document as indented JSON, with a final newline; NaN and infinity become null."""
    return Document(record=record, verification=verification).model_dump_json(indent=2) + "\n"
