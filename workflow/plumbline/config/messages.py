"""Validation errors as sentences: the key, its value and what is allowed."""

import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from plumbline.errors import nearest


def _known_keys(model: type[BaseModel], path: Iterable[Any]) -> list[str]:
    """The keys that are allowed in the section at `path`."""
    section: Any = model
    for part in path:
        if part not in getattr(section, "model_fields", {}):
            continue
        annotation = section.model_fields[part].annotation
        if get_origin(annotation) in (Union, types.UnionType):
            annotation = next(a for a in get_args(annotation) if a is not type(None))
        section = get_args(annotation)[1] if get_origin(annotation) is dict else annotation
    return list(section.model_fields) if isinstance(section, type) and issubclass(section, BaseModel) else []


# What a value must be, by pydantic's type of error.
EXPECTED = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "keys and values"),
    "list_type": "a list",
    "string_type": "text",
}


def _location(fault: Mapping[str, Any]) -> list[str]:
    """The keys that lead to a value, without the member of a union that pydantic appends."""
    members = ("literal[", "constrained-", "[key]", "dict[", "list[")
    location = [str(part) for part in fault["loc"] if not str(part).startswith(members)]
    return location[:-1] if len(location) > 1 and location[-1] in ("int", "float", "str", "bool") else location


def validation_message(error: ValidationError, prefix: str, known: type[BaseModel] | list[str]) -> str:
    """The first validation error as one sentence; `known` are the keys that are allowed at `prefix`."""
    fault = error.errors()[0]
    location = _location(fault)
    key = ".".join([prefix, *location] if prefix else location)
    value = fault["input"]
    if fault["type"] == "extra_forbidden":
        candidates = known if isinstance(known, list) else _known_keys(known, fault["loc"][:-1])
        return f"`{key}` (set to {value!r}) is not a known key; {nearest(location[-1], candidates)}"
    if fault["type"] == "missing":
        return f"`{key}` is missing; add it, because every study needs it."
    if fault["type"] == "literal_error":
        expected = [word.strip(" '") for word in fault["ctx"]["expected"].replace(" or ", ", ").split(",")]
        # Other members of a union, such as a whole number.
        others = [EXPECTED[other["type"]] for other in error.errors()[1:] if other["type"] in EXPECTED]
        hint = nearest(str(value), expected)
        choices = hint.removesuffix(".") if "choose from" in hint else f"{hint} Choose from: {', '.join(expected)}"
        or_else = f", or {others[0]}" if others and location == _location(error.errors()[1]) else ""
        return f"`{key}` is {value!r}; {choices}{or_else}."
    if fault["type"] in ("too_short", "string_too_short"):
        return f"`{key}` is {value!r}: it must not be empty."
    if fault["type"] in EXPECTED:
        return f"`{key}` is {value!r}: it must be {EXPECTED[fault['type']]}."
    message = fault["msg"].removeprefix("Value error, ")
    return f"`{key}` is {value!r}: {message[0].lower() + message[1:].rstrip('.')}."
