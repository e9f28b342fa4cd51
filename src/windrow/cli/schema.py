"""`windrow schema`: what editors need to complete and check YAML files."""

from __future__ import annotations

import json

from windrow.errors import QueryError
from windrow.pipelines.json_schema import SCHEMAS
from windrow.wording import choices


def schema_command(what: str) -> int:
    """Print the JSON schema of one kind of file."""
    if what not in SCHEMAS:
        raise QueryError(f"there is no schema of {what!r}{choices(what, SCHEMAS)}")
    print(json.dumps(SCHEMAS[what](), indent=1))
    return 0
