"""``headpond completion SHELL``: a completion script, made from the very parser that reads the command line.

The script knows commands, actions and options, the values of options with a fixed choice, and files where a file is
meant. Names of topics, groups and transactional ids it asks the broker for, with ``headpond completion --names``, which
is quick or silent. Each script is one table from ``command action`` to words, so that the three shells say the same.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

from headpond.cli.common.arguments import describe
from headpond.cli.completion.names import KINDS, print_names

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print a completion script for a shell.",
        "headpond completion bash > ~/.local/share/bash-completion/completions/headpond",
        "headpond completion zsh > ~/.zfunc/_headpond      # with fpath+=~/.zfunc before compinit",
        "headpond completion fish > ~/.config/fish/completions/headpond.fish",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", nargs="?", help="bash, zsh or fish")
    asked = parser.add_argument_group("used by the scripts")
    asked.add_argument(
        "--names", choices=KINDS, metavar="KIND", help=f"print names that the broker knows: {', '.join(KINDS)}"
    )
    asked.add_argument("--line", metavar="TEXT", default="", help="the command line so far, which may name the broker")
    parser.set_defaults(run=_run)


class Word(NamedTuple):
    """What may follow: an option, a sub-command or a fixed argument."""

    text: str
    help: str
    takes_value: bool = False
    choices: tuple[str, ...] = ()
    names_of: str = ""
    """Its value is such a name: topics, groups, transactions."""


class Place(NamedTuple):
    """The words that may follow a path of sub-commands such as ``topics create``."""

    path: tuple[str, ...]
    words: tuple[Word, ...]
    names_of: str = ""
    """Such names may follow, too."""

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
    if options.names is not None:
        print_names(options.names, options.line)
    elif options.shell is not None:
        sys.stdout.write(script(options.shell, options.whole_parser()))
    else:
        options.parser.error("the following arguments are required: SHELL")
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](places(parser))


def places(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> list[Place]:
    """Every path of sub-commands, the outermost first."""
    words: list[Word] = []
    below: list[Place] = []
    names = ""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, subparser in action.choices.items():
                words.append(Word(name, summaries.get(name, "")))
                below += places(subparser, (*path, name))
        elif action.option_strings:
            takes_value = action.nargs != 0
            choices = tuple(map(str, action.choices or ()))
            rest = (_one_line(action.help), takes_value, choices, getattr(action, "names_of", ""))
            words += [Word(text, *rest) for text in action.option_strings]
        elif action.choices:
            words += [Word(str(choice), "") for choice in action.choices]
        else:
            names = names or getattr(action, "names_of", "")
    return [Place(path, tuple(words), names), *below]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


# --- bash -------------------------------------------------------------------------------------------------------------

_BASH = """\
# bash completion for headpond; made by `headpond completion bash`
_headpond_names() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" name
    compopt +o filenames 2>/dev/null  # a folder of that name is not meant
    while IFS= read -r name; do
        [[ $name == "$word"* ]] && COMPREPLY+=("$name")
    done < <("${{COMP_WORDS[0]}}" completion --names "$1" --line "$COMP_LINE" 2>/dev/null </dev/null)
}}
_headpond_files() {{
    local name
    while IFS= read -r name; do  # the shell would cut names at their blanks; the bash of macOS has no mapfile
        COMPREPLY+=("$name")
    done < <(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}")
}}
_headpond() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" at="" words="" options="" names="" i
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
    elif [[ -n $names ]]; then
        _headpond_names "$names"
    else
        _headpond_files
    fi
}}
complete -o filenames -F _headpond headpond
"""


def bash(found: list[Place]) -> str:
    values, words = [], []
    for place in found:
        options, plain = (" ".join(word.text for word in some) for some in (place.options, place.plain))
        names = f' names="{place.names_of}"' if place.names_of else ""
        words.append(f'        "{place.text}") words="{plain}" options="{options}"{names} ;;')
        for word in place.options:
            if word.takes_value:
                choices = " ".join(word.choices)
                reply = f'COMPREPLY=($(compgen -W "{choices}" -- "$word"))' if choices else "_headpond_files"
                reply = f"_headpond_names {word.names_of}" if word.names_of else reply
                values.append(f'        "{place.text} {word.text}") {reply}; return ;;')
    paths = "|".join(f'"{place.text}"' for place in found if place.path)
    return _BASH.format(paths=paths, values="\n".join(values), words="\n".join(words))


# --- zsh --------------------------------------------------------------------------------------------------------------

_ZSH = """\
#compdef headpond
# zsh completion for headpond; made by `headpond completion zsh`
_headpond_names() {{
    local -a found
    found=(${{(f)"$("$words[1]" completion --names "$1" --line "$words" 2>/dev/null </dev/null)"}})
    compadd -- $found
}}
_headpond() {{
    local at="" before="$words[CURRENT-1]" names="" i
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
    elif [[ -n $names ]]; then
        _headpond_names $names
    else
        _files
    fi
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _headpond "$@"
else
    compdef _headpond headpond
fi
"""


def zsh(found: list[Place]) -> str:
    values, words = [], []
    for place in found:
        options, plain = (
            " ".join(_zsh_quoted(f"{word.text}:{word.help}") for word in some) for some in (place.options, place.plain)
        )
        names = f"; names={place.names_of}" if place.names_of else ""
        words.append(f"        ({_zsh_quoted(place.text)}) plain=({plain}); options=({options}){names} ;;")
        for word in place.options:
            if word.takes_value:
                reply = f"compadd -- {' '.join(word.choices)}" if word.choices else "_files"
                reply = f"_headpond_names {word.names_of}" if word.names_of else reply
                values.append(f"        ({_zsh_quoted(f'{place.text} {word.text}')}) {reply}; return ;;")
    paths = "|".join(_zsh_quoted(place.text) for place in found if place.path)
    return _ZSH.format(paths=paths, values="\n".join(values), words="\n".join(words))


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish -------------------------------------------------------------------------------------------------------------

_FISH = """\
# fish completion for headpond; made by `headpond completion fish`
function __headpond_at
    set -l at
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- (string trim -- "$at $word") {paths}
            set at $at $word
        end
    end
    test "$at" = "$argv"
end
function __headpond_names
    set -l words (commandline -opc)
    command -q $words[1]
    and $words[1] completion --names $argv[1] --line "$words" 2>/dev/null </dev/null
end
{lines}
"""


def fish(found: list[Place]) -> str:
    paths = " ".join(_fish_quoted(" ".join(place.path)) for place in found if place.path)
    lines = []
    for place in found:
        at = f"complete -c headpond -n {_fish_quoted('__headpond_at ' + ' '.join(place.path))}"
        for word in place.plain:
            lines.append(f"{at} -f -a {_fish_quoted(word.text)} -d {_fish_quoted(word.help)}")
        if place.names_of:
            lines.append(f"{at} -f -a '(__headpond_names {place.names_of})'")
        for word in place.options:
            flag = f"-l {word.text[2:]}" if word.text.startswith("--") else f"-s {word.text[1:]}"
            offered = f"(__headpond_names {word.names_of})" if word.names_of else " ".join(word.choices)
            value = f" -x -a {_fish_quoted(offered)}" if offered else " -r" * word.takes_value
            lines.append(f"{at} {flag}{value} -d {_fish_quoted(word.help)}")
    return _FISH.format(paths=paths, lines="\n".join(lines))


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
