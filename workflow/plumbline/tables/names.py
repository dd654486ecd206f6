"""How sources are named in rules. It imports nothing, as every job reads the rules."""


def argument(source: str) -> str:
    """The name of a source among a job's inputs, which must be an identifier."""
    return source.replace(":", "_").replace("-", "_")
