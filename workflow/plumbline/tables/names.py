"""Names of sources in rules. It imports nothing, since every job parses the rules."""


def argument(source: str) -> str:
    """The name of a source among the inputs of a rule, which must be an identifier."""
    return source.replace(":", "_").replace("-", "_")
