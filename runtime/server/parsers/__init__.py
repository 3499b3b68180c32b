"""What a model writes, taken apart: reasoning, content, tool calls.

A parser takes text in any pieces and gives the same parts as for the whole text (the tests cut at every
place), so that a streamed answer equals one that is not. Text that looks like a tool call and is none is
content: nothing of what the model wrote is lost.
"""

from llmc.server.parsers.output import OutputParser, Part
from llmc.server.parsers.reasoning import REASONING_PARSERS, guess_reasoning_parser
from llmc.server.parsers.tools import TOOL_PARSERS, guess_tool_parser

__all__ = ["REASONING_PARSERS", "TOOL_PARSERS", "OutputParser", "Part", "guess_reasoning_parser", "guess_tool_parser"]
