"""A pipeline from its file, whatever form it has; all mistakes at once, and no Spark."""

from __future__ import annotations

from collections.abc import Mapping

from headpond.runtime.environment import variables as environment_variables
from headpond.spark.pipeline.checks import check
from headpond.spark.pipeline.declaration import Declaration
from headpond.spark.pipeline.document import Document, read_toml, read_yaml
from headpond.spark.pipeline.mistakes import Mistake, Mistakes, Place, WrongDeclaration
from headpond.spark.pipeline.model import Pipeline


def load_pipeline(file: str, variables: Mapping[str, str] | None = None) -> Pipeline:
    """Raises ``WrongDeclaration`` with every mistake that can be found without a broker and without Spark."""
    mistakes = Mistakes()
    document = _document(file)
    pipeline = Declaration(document, mistakes, environment_variables() if variables is None else variables).read()
    check(pipeline, mistakes)
    if mistakes.found:
        raise WrongDeclaration(mistakes.in_order())
    return pipeline


def _document(file: str) -> Document:
    if file.endswith(".toml"):
        return read_toml(file)
    if file.endswith((".yaml", ".yml")):
        return read_yaml(file)
    if file.endswith(".py"):
        from headpond.spark.pipeline.python_form import read_python

        return read_python(file)
    raise WrongDeclaration(
        [Mistake(Place(file, 1), "a pipeline is declared in a file that ends in .toml, .yaml or .py")]
    )
