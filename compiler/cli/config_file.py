"""Options from a YAML file: `--config FILE`, one entry an option. What the command line says comes after and wins."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llmc.errors import OptionError


def with_config(
    words: Sequence[str], add_arguments: Callable[[argparse.ArgumentParser], None], positionals: str
) -> list[str]:
    """The words of a subcommand with those of the file that `--config` names in front of its other options.

    `positionals` is the entry for what has no option, used where the command line has none of it. Raises OptionError.
    """
    words = list(words)
    place = next((i for i, word in enumerate(words) if word == "--config" or word.startswith("--config=")), None)
    if place is None:
        return words
    if "=" in words[place]:
        name, used = words[place].partition("=")[2], 1
    elif place + 1 < len(words):
        name, used = words[place + 1], 2
    else:
        return words  # argparse says what is missing
    del words[place : place + used]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    entries = _read(Path(name))
    placed = entries.pop(positionals, [])
    found = [word for key, value in entries.items() for word in _words(name, key, value, parser)]
    if not _has_positionals(words, parser):
        words = [*([placed] if isinstance(placed, str) else map(str, placed)), *words]
    # Positionals stand together in front: argparse takes them in one place only.
    count = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    return [*words[:count], *found, *words[count:]]


def _has_positionals(words: Sequence[str], parser: argparse.ArgumentParser) -> bool:
    return (bool(words) and not words[0].startswith("-")) or _last_is_positional(words, parser)


def _last_is_positional(words: Sequence[str], parser: argparse.ArgumentParser) -> bool:
    """Behind all options: the last word belongs to no option before it."""
    if not words or words[-1].startswith("-"):
        return False
    option = words[-2] if len(words) > 1 else ""
    taken = {spelling for action in parser._actions if action.nargs != 0 for spelling in action.option_strings}
    return option not in taken


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--config: cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise OptionError(f"--config: {path} is no YAML: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise OptionError(f"--config: {path}: expected lines `option: value`, found {type(content).__name__}")
    return content


def _words(file: str, key: str, value: Any, parser: argparse.ArgumentParser) -> list[str]:
    """An entry as words of the command line."""
    spelling = f"--{key}"
    action = next((one for one in parser._actions if spelling in one.option_strings), None)
    if action is None:
        known = sorted(one.dest for one in parser._actions if one.option_strings)
        raise OptionError(f"--config: {file}: there is no option '{key}'; there are {', '.join(known)}")
    if value is None:
        return []
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise OptionError(f"--config: {file}: {key}: expected true or false, found {value!r}")
        return [spelling] if value else []
    several = isinstance(action, argparse._AppendAction)
    values = value if isinstance(value, list) and several else [value]
    if any(isinstance(one, (list, dict, bool)) for one in values):
        what = "a value or a list of values" if several else "one value"
        raise OptionError(f"--config: {file}: {key}: expected {what}, found {value!r}")
    return [f"{spelling}={one}" for one in values]
