"""What the classifier is trained on is given by a person: a folder that is none of that kind is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsluice.errors import ConfigError
from memsluice_lab.training.corpus import Example, examples
from memsluice_lab.training.fit import fit, packed, table


@pytest.mark.parametrize("line", ["", "[]", '"text"', '{"question": 1, "answer": ["a"]}', "{", '{"answer": ["a"]}'])
def test_records_of_another_shape_are_an_error_of_ours(tmp_path: Path, line: str) -> None:
    """Lists, texts, numbers or nothing where records should be: one sentence that names the folder."""
    (tmp_path / "nq_open").mkdir()
    (tmp_path / "nq_open" / "dev_first2000.jsonl").write_text(line + "\n")
    with pytest.raises(ConfigError, match="no folder of the training records"):
        examples(tmp_path)


def test_the_fit_sums_in_one_thread() -> None:
    """Sums of several threads depend on their number: the same records would give another file on another machine."""
    linear, limits = pytest.importorskip("sklearn.linear_model"), pytest.importorskip("threadpoolctl")
    seen: list[int] = []

    class Watched(linear.LogisticRegression):  # type: ignore[misc]
        def fit(self, *given: Any) -> Any:
            seen.extend(pool["num_threads"] for pool in limits.threadpool_info())
            return super().fit(*given)

    texts = [Example(f"Remember the {n} boats by the pier.", n % 2, "self", f"g{n}", 1.0) for n in range(8)]
    some = table(texts)
    with limits.threadpool_limits(2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "LogisticRegression", Watched)
        weights, bias = fit(some, np.arange(len(some.labels)))
    assert set(seen) == {1}
    assert packed(weights, bias) == packed(*fit(some, np.arange(len(some.labels))))
