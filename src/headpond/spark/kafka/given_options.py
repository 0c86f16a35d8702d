"""The user's options under their right names, without regard to case; a name that is nobody's is refused here.

options = Given({"KAFKA.bootstrap.servers": "...", "Subscribe": "orders"}, names.READING)
options.get("subscribe"), options.setting("bootstrap.servers")
"""

from __future__ import annotations

from collections.abc import Mapping

from headpond.client.security import Security
from headpond.client.security_settings import SecurityMistake, UnknownSetting, is_security, parse_security
from headpond.model.nearest import did_you_mean
from headpond.runtime.environment import read_file
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.kafka.option_names import Vocabulary
from headpond.spark.kafka.option_values import LONG_MAX, read_truth, read_whole_number


class Given:
    def __init__(self, given: Mapping[str, str], vocabulary: Vocabulary) -> None:
        self._options: dict[str, str] = {}
        self._settings: dict[str, str] = {}
        by_lower = {name.lower(): name for name in vocabulary.options}
        for name, value in given.items():
            lowered = name.lower()
            if lowered in by_lower:
                self._options[by_lower[lowered]] = value
            elif lowered.startswith(names.KAFKA):
                setting = lowered.removeprefix(names.KAFKA)
                _check_setting(setting, vocabulary)
                self._set(setting, value)
            elif lowered in vocabulary.bare_settings:
                self._set(vocabulary.bare_settings[lowered], value)
            else:
                raise WrongOption(_unknown(name, vocabulary))

    def _set(self, setting: str, value: str) -> None:
        if self._settings.get(setting, value) != value:
            raise WrongOption(f"kafka.{setting} is given twice, and the two contradict each other: give one of them")
        self._settings[setting] = value

    def get(self, name: str) -> str | None:
        return self._options.get(name)

    def setting(self, name: str) -> str | None:
        return self._settings.get(name)

    def number(self, name: str, *, at_least: int, at_most: int = LONG_MAX) -> int | None:
        text = self._options.get(name)
        return None if text is None else read_whole_number(name, text, at_least=at_least, at_most=at_most)

    def number_setting(self, name: str, default: int, *, at_least: int, at_most: int) -> int:
        text = self._settings.get(name)
        if text is None:
            return default
        return read_whole_number(names.KAFKA + name, text, at_least=at_least, at_most=at_most)

    def truth(self, name: str, default: bool) -> bool:
        text = self._options.get(name)
        return default if text is None else read_truth(name, text)

    def refuse(self, those: tuple[str, ...], why: str) -> None:
        for name in those:
            if name in self._options:
                raise WrongOption(f"{name}: {why}")

    def security(self) -> Security:
        try:
            return parse_security(self._settings, read_file)
        except UnknownSetting as unknown:
            raise WrongOption(unknown.shown(names.KAFKA)) from None
        except SecurityMistake as error:
            raise WrongOption(f"{names.KAFKA}{error}") from None


def _check_setting(setting: str, vocabulary: Vocabulary) -> None:
    if setting in vocabulary.refused:
        raise WrongOption(f"kafka.{setting} can't be set: {vocabulary.refused[setting]}")
    known = (*vocabulary.obeyed, *vocabulary.ignored)
    if setting in known or is_security(setting):
        return
    suggestions = [names.KAFKA + one for one in known]
    raise WrongOption(f"unknown option kafka.{setting}{did_you_mean(names.KAFKA + setting, suggestions)}")


def _unknown(name: str, vocabulary: Vocabulary) -> str:
    lowered = name.lower()
    if lowered in vocabulary.mistaken:
        return vocabulary.mistaken[lowered]
    if lowered in (*vocabulary.obeyed, *vocabulary.ignored):
        return f"unknown option {name} (did you mean {names.KAFKA}{lowered}?)"
    known = (*vocabulary.options, *(names.KAFKA + one for one in vocabulary.obeyed))
    return f"unknown option {name}{did_you_mean(name, known)}"
