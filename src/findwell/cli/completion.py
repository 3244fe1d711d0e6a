"""`findwell completion`: the lines that let a shell complete commands, options and settings."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from findwell.cli import options
from findwell.cli.command import Command

PROGRAM = "findwell"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command, short_help="Let your shell complete findwell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the lines that let a SHELL complete commands, options and settings.

    \b
    findwell completion bash >> ~/.bashrc
    findwell completion zsh >> ~/.zshrc
    findwell completion fish > ~/.config/fish/completions/findwell.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click has no completion for {shell}")
    script = found(context.find_root().command, {}, PROGRAM, f"_{PROGRAM}_complete".upper())
    # not `source`, which asks the shell for its version
    options.write(script.source_template % script.source_vars(), None)
