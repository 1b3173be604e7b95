"""scikit-learn's way with parameters, for a class whose constructor also takes options by any name.

`sklearn.base.BaseEstimator` has the same, but it knows no such options, and it takes a second to import.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from fewnode.display import facts_html


class Parameters:
    """An object that can be made again from the arguments of its constructor: `get_params`, `set_params`, `clone`."""

    options: dict[str, Any]
    """What the constructor was given beside its named arguments."""

    def argument(self, name: str) -> Any:
        """A named argument, as the constructor takes it."""
        return getattr(self, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that make an unfitted object like this one."""
        return {**{name: self.argument(name) for name in self._defaults()}, **self.options}

    def set_params(self, **changes: Any) -> Self:
        """Make it anew with some arguments changed. It has to be fitted again."""
        if changes:
            type(self).__init__(self, **{**self.get_params(), **changes})
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.changed().items())})"

    def facts(self) -> dict[str, object]:
        """What it has learned, for a person."""
        return {}

    def _repr_html_(self) -> str:
        return facts_html(repr(self), self.facts())

    def changed(self) -> dict[str, Any]:
        """The arguments that are not what they are by default."""
        defaults = self._defaults()
        given = self.get_params()
        return {name: value for name, value in given.items() if name not in defaults or value != defaults[name]}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The named arguments of the constructor, and what they are unless told otherwise."""
        known = inspect.signature(cls).parameters.values()
        return {each.name: each.default for each in known if each.kind is not each.VAR_KEYWORD}
