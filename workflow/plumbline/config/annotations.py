"""Files generated from the config models: the JSON schema and the comments of config files."""

import json
import re
from pathlib import Path
from textwrap import wrap

from plumbline.config.schema import Study

WIDTH = 118


def schema() -> str:
    """The JSON schema of a config file."""
    return json.dumps(Study.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def annotate(text: str) -> str:
    """A config file with the description of each top-level key as the only comment directly above it."""
    lines: list[str] = []
    for line in text.splitlines():
        key = re.match(r"([a-z_]+):", line)
        if key and key[1] in Study.model_fields:
            while lines and lines[-1].startswith("#"):
                lines.pop()
            while lines and not lines[-1]:
                lines.pop()
            if lines:
                lines.append("")
            description = Study.model_fields[key[1]].description or ""
            lines += [f"# {part}" for part in wrap(description, WIDTH, break_on_hyphens=False)]
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def generated_files(project: Path) -> dict[Path, str]:
    """The JSON schema and the config files of the project, with their content."""
    configs = [project / "config.yaml", *sorted((project / "studies").glob("*.yaml"))]
    return {
        project / "workflow" / "schemas" / "config.schema.json": schema(),
        **{path: annotate(path.read_text(encoding="utf-8")) for path in configs},
    }
