"""`erasable dataset add --types`."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import erasable


def test_the_command_line_takes_them(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('id,"dose, mg",zip\n1,3,007\n')
    erasable("init", folder=tmp_path)
    line = ["dataset", "add", "d", "d.csv", "--id", "id"]
    for given, told in [("zip", "--types has 'zip', with no '='"), ("=text", "no column"),
                        ("zip=text,zip=text", "one that came before"), ("zip=real",
                        "'real'")]:  # fmt: skip
        result = erasable(*line, "--types", given, folder=tmp_path)
        assert result.exit_code == 2
        assert told in result.output
    types = ["--types", 'zip=text,"dose, mg=number"', "--types", "id=integer"]
    result = erasable(*line, *types, "--json", folder=tmp_path)
    assert result.exit_code == 0, result.output
    shown = json.loads(erasable("dataset", "show", "d", "--json", folder=tmp_path).output)
    assert [each["type"] for each in shown["columns"]] == ["int64", "double", "string"]
