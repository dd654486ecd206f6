"""Prompts of causal language models: a text, and a second one, inside fixed words that no method changes."""

from string import Formatter
from typing import NamedTuple

from plumbline.errors import PlumblineError

TEXT, PAIR = "text", "pair"


class Prompt(NamedTuple):
    """The fixed parts of a prompt: before the text, after it and, with a second text, after that."""

    parts: list[str]

    def fill(self, *texts: str) -> str:
        """The prompt with these texts."""
        return "".join([*(part + text for part, text in zip(self.parts, texts, strict=False)), self.parts[-1]])


def parse_prompt(prompt: str, paired: bool) -> Prompt:
    """The fixed parts of a prompt, which must have `{text}` and, if the dataset has pairs of texts, then `{pair}`."""
    try:
        parsed = [*Formatter().parse(prompt)]
    except ValueError as error:
        raise PlumblineError(f"`prompt` is {prompt!r}: {error}; write {{{{ and }}}} for braces.") from None
    fields = [field for _, field, *_ in parsed if field is not None]
    expected = [TEXT, PAIR] if paired else [TEXT]
    if fields != expected or any(specification or conversion for *_, specification, conversion in parsed):
        places = " and then ".join(f"{{{name}}}" for name in expected)
        kind = "pairs of texts" if paired else "single texts"
        raise PlumblineError(
            f"`prompt` is {prompt!r}; for {kind} it must contain {places}, once each, and no other placeholder."
        )
    parts = [""]
    for literal, field, *_ in parsed:
        parts[-1] += literal
        parts += [] if field is None else [""]
    return Prompt(parts)


def prompt_end(prompt: str) -> str:
    """The fixed words after the last text of a prompt; if there are none, a letter in the text's place."""
    after = "".join(literal if field is None else f"{literal}\0" for literal, field, *_ in Formatter().parse(prompt))
    return after.rpartition("\0")[2] or "x"


def check_prompt(where: str, prompt: str, dataset: str, paired: bool) -> None:
    """Refuse a prompt that does not fit a dataset."""
    try:
        parse_prompt(prompt, paired)
    except PlumblineError as error:
        raise PlumblineError(f"`{where}`, dataset '{dataset}': {error}") from None
