"""`findwell monitor`: production retrieval from its traces; one file per subcommand."""

from __future__ import annotations

import importlib

import click

from findwell.cli.command import Group

SUBCOMMANDS = ("serve", "ingest", "mark", "show", "check")


class _Subcommands(Group):
    """Finds a subcommand in the module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the subcommands in the order of use."""
        del ctx
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand."""
        if cmd_name not in SUBCOMMANDS:
            raise self.unknown(ctx, cmd_name)
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command


@click.group("monitor", cls=_Subcommands, short_help="Watch retrieval in production.")
def command() -> None:
    """Watch the retrieval of an application in production, from its traces.

    \b
    findwell monitor serve --store store           take traces in, over HTTP
    findwell monitor ingest traces.jsonl --store store
    findwell monitor mark "v2.3 chunker" --store store
    findwell monitor show --store store --every day
    """
