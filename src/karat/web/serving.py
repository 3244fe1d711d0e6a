"""The server: on this machine's own address, under a token of its own."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from typing import TYPE_CHECKING

import click
import uvicorn

from karat.errors import OptionError
from karat.web.app import make_app

if TYPE_CHECKING:
    from karat.web.folders import Folders

HOST = "127.0.0.1"  # never another: what is shown is for this machine


def serve(folders: Folders, port: int, *, browse: bool = False) -> None:
    """Serve until interrupted."""
    listener = _listen(port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    url = f"http://{HOST}:{port}/?token={token}"
    click.echo(url)
    click.echo("press Ctrl-C to stop", err=True)
    if browse:
        webbrowser.open(url)
    config = uvicorn.Config(
        make_app(folders, token, port),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # from here on who follows the link waits instead of being refused
    except OSError as error:
        listener.close()
        raise OptionError(
            f"port {port} cannot be used: {error.strerror}", fix="leave --port out for a free one"
        ) from None
    return listener
