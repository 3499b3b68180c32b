"""Serves engines over HTTP with OpenAI's API, until Ctrl-C or SIGTERM. Answers that run are finished first."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.config_file import with_config
from llmc.compiler.cli.generation import add_loading_options, load, user_errors
from llmc.errors import CompileError, OptionError

if TYPE_CHECKING:
    import uvicorn

    from llmc.server import Models


def spelled_out(words: Sequence[str]) -> list[str]:
    """With the options of --config."""
    return with_config(words, add_arguments, positionals="engines")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    engines = "engine folder or .llmc file, and the name that requests use (default: the file's)"
    parser.add_argument("engines", metavar="[NAME=]ENGINE", nargs="+", help=engines)
    add_option(parser, "config", type=Path, metavar="FILE",
               help="options from a YAML file, `option: value`, and `engines`; the command line wins")  # fmt: skip
    add_option(parser, "host", default="127.0.0.1", help="address to listen at; 0.0.0.0: every one")
    add_option(parser, "port", type=int, default=8000, help="0: a free one")
    add_option(parser, "served_model_name", metavar="NAME", help="name of the engine, where there is only one")

    forms = parser.add_argument_group("what models write (auto: as the chat template suggests)")
    add_option(forms, "tool_call_parser", choices=["auto", "none", "hermes", "llama3_json"], default="auto",
               help="form of tool calls")  # fmt: skip
    add_option(forms, "reasoning_parser", choices=["auto", "none", "qwen3", "deepseek_r1"], default="auto",
               help="form of thinking aloud; it becomes reasoning_content")  # fmt: skip

    limits = parser.add_argument_group("limits")
    add_option(limits, "max_requests", type=int, default=4096, metavar="N",
               help="completions that wait or run; more are refused with status 429")  # fmt: skip
    add_option(limits, "max_body_bytes", type=int, default=32 << 20, metavar="N",
               help="larger bodies are refused with status 413")  # fmt: skip
    add_option(limits, "request_timeout", type=float, metavar="SECONDS", help="a completion ends with what it has")
    add_option(limits, "default_max_tokens", type=int, metavar="N",
               help="length of answers that do not say it (default: 16 for text, what fits for chat)")  # fmt: skip
    add_option(limits, "response_store_bytes", type=int, default=64 << 20, metavar="N",
               help="memory for finished responses of /v1/responses; 0 stores none")  # fmt: skip
    add_option(limits, "drain_seconds", type=float, default=30.0, metavar="SECONDS",
               help="how long running answers may take after SIGTERM")  # fmt: skip

    access = parser.add_argument_group("access")
    add_option(access, "api_key", action="append", default=[], metavar="KEY",
               help="ask for this key; may be repeated (also LLMC_API_KEY, which `ps` does not show)")  # fmt: skip
    add_option(access, "allowed_origins", action="append", default=[], metavar="ORIGIN",
               help="web pages that may ask (CORS); may be repeated, '*': all")  # fmt: skip
    add_option(access, "ssl_certfile", type=Path, metavar="FILE", help="serve HTTPS with this certificate")
    add_option(access, "ssl_keyfile", type=Path, metavar="FILE", help="its private key")
    add_option(
        access, "docs", action="store_true", help="a page about the API at /docs (its scripts come from the network)"
    )
    add_option(access, "log_level", choices=["debug", "info", "warning", "error"], default="info",
               help="info: one JSON line a request on stderr")  # fmt: skip
    add_loading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    try:
        import uvicorn

        from llmc.server import ServerConfig, create_app
    except ImportError as error:
        raise CompileError(f"llmc serve needs fastapi, uvicorn and prometheus-client: {error}") from None
    keys = [*arguments.api_key, *filter(None, [os.environ.get("LLMC_API_KEY")])]
    config = ServerConfig(
        api_keys=tuple(keys),
        allowed_origins=tuple(arguments.allowed_origins),
        max_body_bytes=arguments.max_body_bytes,
        max_requests=arguments.max_requests,
        request_timeout=arguments.request_timeout,
        default_max_tokens=arguments.default_max_tokens,
        response_store_bytes=arguments.response_store_bytes,
        expose_docs=arguments.docs,
    )
    logging.basicConfig(level=arguments.log_level.upper(), format="%(message)s", stream=sys.stderr)
    # Bound before the engines load: a port that is taken must not cost minutes.
    with _listen(arguments.host, arguments.port) as listener, contextlib.ExitStack() as engines:
        models = _load(arguments, engines)
        _serve(
            uvicorn.Server(
                uvicorn.Config(
                    create_app(models, config),
                    log_config=None,
                    access_log=False,
                    log_level=arguments.log_level if arguments.log_level != "info" else "warning",
                    timeout_graceful_shutdown=max(1, round(arguments.drain_seconds)),
                    ssl_certfile=arguments.ssl_certfile,
                    ssl_keyfile=arguments.ssl_keyfile,
                    lifespan="on",
                )
            ),
            listener,
            f"http{'s' if arguments.ssl_certfile else ''}",
            [model.name for model in models],
        )
    return 0


def _serve(server: uvicorn.Server, listener: socket.socket, scheme: str, names: list[str]) -> None:
    listener.listen(2048)  # from here on clients wait where they were refused
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"Serving {', '.join(names)} at {scheme}://{shown}:{port}/v1", flush=True)
    # uvicorn drains, then raises the signal again for the program around it: a drained server has ended well.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def _load(arguments: argparse.Namespace, engines: contextlib.ExitStack) -> Models:
    from llmc.server import Models, served

    models = []
    for text in arguments.engines:
        name, path = _named(text, arguments.served_model_name)
        print(f"Loading {path}", file=sys.stderr, flush=True)
        llm = engines.enter_context(load(path, arguments))
        models.append(served(name, llm, arguments.tool_call_parser, arguments.reasoning_parser))
    with user_errors():
        return Models(models)


def _named(text: str, chosen: str | None) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        name, path = "", text
    name = chosen or name or Path(path).resolve().name.removesuffix(".llmc")
    return name, Path(path)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise OptionError(
            f"cannot listen at {host}:{port}: {error.strerror or error}. Choose another --port (0: any free one)"
        ) from None
    return listener


def _check(arguments: argparse.Namespace) -> None:
    def expect(name: str, right: bool, what: str) -> None:
        if not right:
            raise OptionError(f"--{name}: expected {what}, found {getattr(arguments, name)}")

    expect("port", 0 <= arguments.port < 65536, "0 to 65535")
    expect("max_requests", arguments.max_requests > 0, "a positive number")
    expect("max_body_bytes", arguments.max_body_bytes > 0, "a positive number")
    expect("response_store_bytes", arguments.response_store_bytes >= 0, "0 or more")
    expect("drain_seconds", 0 <= arguments.drain_seconds < 1e6, "seconds, 0 or more")
    expect("request_timeout", arguments.request_timeout is None or arguments.request_timeout > 0, "positive seconds")
    expect("default_max_tokens", arguments.default_max_tokens is None or arguments.default_max_tokens > 0, "1 or more")
    if arguments.served_model_name and len(arguments.engines) > 1:
        raise OptionError("--served_model_name names one engine: with several write NAME=ENGINE")
    if (arguments.ssl_certfile is None) != (arguments.ssl_keyfile is None):
        raise OptionError("--ssl_certfile and --ssl_keyfile belong together: found only one")
    for name in ("ssl_certfile", "ssl_keyfile"):
        path = getattr(arguments, name)
        expect(name, path is None or path.is_file(), "a file")
