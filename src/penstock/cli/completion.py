"""``penstock completion SHELL``: a completion script, made from the very parser that reads the command line.

The script knows commands, actions and options, the values of options with a fixed choice, and files where a file is
meant; topics are not asked of a broker: a TAB must never wait for a network. Each script is one table from
``command action`` to words, so that the three shells say the same.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

from penstock.cli.arguments import describe

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print a completion script for a shell.",
        "penstock completion bash > ~/.local/share/bash-completion/completions/penstock",
        "penstock completion zsh > ~/.zfunc/_penstock      # with fpath+=~/.zfunc before compinit",
        "penstock completion fish > ~/.config/fish/completions/penstock.fish",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=_run)


class Word(NamedTuple):
    """What may follow: an option, a sub-command or a fixed argument."""

    text: str
    help: str
    takes_value: bool = False
    choices: tuple[str, ...] = ()


class Place(NamedTuple):
    """The words that may follow a path of sub-commands such as ``topics create``."""

    path: tuple[str, ...]
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """As the scripts for bash and zsh build it: a blank in front of each word."""
        return "".join(f" {name}" for name in self.path)

    @property
    def options(self) -> list[Word]:
        return [word for word in self.words if word.text.startswith("-")]

    @property
    def plain(self) -> list[Word]:
        return [word for word in self.words if not word.text.startswith("-")]


def _run(options: argparse.Namespace) -> int:
    sys.stdout.write(script(options.shell))
    return 0


def script(shell: str) -> str:
    from penstock.cli.main import COMMANDS, build_parser

    found = places(build_parser([command.name for command in COMMANDS]))
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](found)


def places(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> list[Place]:
    """Every path of sub-commands, the outermost first."""
    words: list[Word] = []
    below: list[Place] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, subparser in action.choices.items():
                words.append(Word(name, summaries.get(name, "")))
                below += places(subparser, (*path, name))
        elif action.option_strings:
            takes_value = action.nargs != 0
            choices = tuple(map(str, action.choices or ()))
            words += [Word(text, _one_line(action.help), takes_value, choices) for text in action.option_strings]
        elif action.choices:
            words += [Word(str(choice), "") for choice in action.choices]
    return [Place(path, tuple(words)), *below]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


# --- bash -------------------------------------------------------------------------------------------------------------

_BASH = """\
# bash completion for penstock; made by `penstock completion bash`
_penstock() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" at="" words="" options="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$at ${{COMP_WORDS[i]}}" in
            {paths}) at="$at ${{COMP_WORDS[i]}}" ;;
        esac
    done
    COMPREPLY=()
    case "$at $before" in
{values}
    esac
    case "$at" in
{words}
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _penstock penstock
"""


def bash(found: list[Place]) -> str:
    values, words = [], []
    for place in found:
        options, plain = (" ".join(word.text for word in some) for some in (place.options, place.plain))
        words.append(f'        "{place.text}") words="{plain}" options="{options}" ;;')
        for word in place.options:
            if word.takes_value:
                reply = f'compgen -W "{" ".join(word.choices)}"' if word.choices else "compgen -f"
                values.append(f'        "{place.text} {word.text}") COMPREPLY=($({reply} -- "$word")); return ;;')
    paths = "|".join(f'"{place.text}"' for place in found if place.path)
    return _BASH.format(paths=paths, values="\n".join(values), words="\n".join(words))


# --- zsh --------------------------------------------------------------------------------------------------------------

_ZSH = """\
#compdef penstock
# zsh completion for penstock; made by `penstock completion zsh`
_penstock() {{
    local at="" before="$words[CURRENT-1]" i
    local -a plain options
    for ((i = 2; i < CURRENT; i++)); do
        case "$at $words[i]" in
            ({paths}) at="$at $words[i]" ;;
        esac
    done
    case "$at $before" in
{values}
    esac
    case "$at" in
{words}
    esac
    if [[ $words[CURRENT] == -* ]]; then
        _describe -o option options
    elif (( $#plain )); then
        _describe command plain
    else
        _files
    fi
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _penstock "$@"
else
    compdef _penstock penstock
fi
"""


def zsh(found: list[Place]) -> str:
    values, words = [], []
    for place in found:
        options, plain = (
            " ".join(_zsh_quoted(f"{word.text}:{word.help}") for word in some) for some in (place.options, place.plain)
        )
        words.append(f"        ({_zsh_quoted(place.text)}) plain=({plain}); options=({options}) ;;")
        for word in place.options:
            if word.takes_value:
                reply = f"compadd -- {' '.join(word.choices)}" if word.choices else "_files"
                values.append(f"        ({_zsh_quoted(f'{place.text} {word.text}')}) {reply}; return ;;")
    paths = "|".join(_zsh_quoted(place.text) for place in found if place.path)
    return _ZSH.format(paths=paths, values="\n".join(values), words="\n".join(words))


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish -------------------------------------------------------------------------------------------------------------

_FISH = """\
# fish completion for penstock; made by `penstock completion fish`
function __penstock_at
    set -l at
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- (string trim -- "$at $word") {paths}
            set at $at $word
        end
    end
    test "$at" = "$argv"
end
{lines}
"""


def fish(found: list[Place]) -> str:
    paths = " ".join(_fish_quoted(" ".join(place.path)) for place in found if place.path)
    lines = []
    for place in found:
        at = f"complete -c penstock -n {_fish_quoted('__penstock_at ' + ' '.join(place.path))}"
        for word in place.plain:
            lines.append(f"{at} -f -a {_fish_quoted(word.text)} -d {_fish_quoted(word.help)}")
        for word in place.options:
            flag = f"-l {word.text[2:]}" if word.text.startswith("--") else f"-s {word.text[1:]}"
            value = f" -x -a {_fish_quoted(' '.join(word.choices))}" if word.choices else " -r" * word.takes_value
            lines.append(f"{at} {flag}{value} -d {_fish_quoted(word.help)}")
    return _FISH.format(paths=paths, lines="\n".join(lines))


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
