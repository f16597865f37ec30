"""What the classifier is trained on is given by a person: a folder that is none of that kind is named."""

from pathlib import Path

import pytest

from memsluice.errors import ConfigError
from memsluice.lab.training.corpus import examples


@pytest.mark.parametrize("line", ["", "[]", '"text"', '{"question": 1, "answer": ["a"]}', "{", '{"answer": ["a"]}'])
def test_records_of_another_shape_are_an_error_of_ours(tmp_path: Path, line: str) -> None:
    """Lists, texts, numbers or nothing where records should be: one sentence that names the folder."""
    (tmp_path / "nq_open").mkdir()
    (tmp_path / "nq_open" / "dev_first2000.jsonl").write_text(line + "\n")
    with pytest.raises(ConfigError, match="no folder of the training records"):
        examples(tmp_path)
