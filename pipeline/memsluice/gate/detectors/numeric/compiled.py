"""Arithmetic that is compiled: on a few hundred numbers NumPy's calls cost several times what the numbers do.

Rounding is the same in compiled code and outside of it: to whole steps, of halves to the even one.

A compiled function is still a pure function of its arguments, and its source is the only one: nothing is written twice.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba

FOUR, SIX = 1e4, 1e6
"""Steps of one to which a number is rounded before it is compared, shown or kept: four and six digits."""
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(signature: str | list[str], *, reassociate: bool = False) -> Callable[[Function], Function]:
    """Compile a function for arguments of just these types (any of a list of signatures), when its module is imported.

    It may use what its own module defines and nothing of another: the machine code is kept beside the module (or in the
    user's cache) and is made anew only when that file changes; not when the options here do: then remove
    ``__pycache__``. No index is checked: what comes from outside is compared in shape before, what is laid out beside
    the call is not. ``reassociate`` lets sums be taken in any order, several at a time, which moves their last bits
    from one machine to the next: only where rounding follows.
    """
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": {"reassoc", "contract"} if reassociate else False}

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(signature, cache=True, **options)(function))
        except Exception as error:  # whatever is wrong with what is kept: compiled without it, or said once more
            made = cast(Function, numba.njit(signature, **options)(function))
            say_alone(type(error).__name__)
            return made

    return decorate


@cache
def say_alone(why: str) -> None:
    """Warn once, not of each function: the warnings' own memory of what was said is emptied while Numba compiles."""
    warnings.warn(f"screening is compiled for this process alone: no code can be kept ({why})", stacklevel=1)


def rounded(value: float, steps: float) -> float:
    """Return a finite value in whole steps, as ``np.rint(value * steps) / steps`` does in compiled code.

    ``round(value, 4)`` goes by way of text, in three times the time.
    """
    return round(value * steps) / steps
