"""The comparison as data: the lesson's summary row by row, and a date and a source for what differs."""

import pytest

from enginelab import engines
from enginelab.table import Table

# From the lesson's summary: topic, then vLLM, SGLang, TensorRT-LLM.
SUMMARY = {
    "Performance": ("good", "good", "best"),
    "Ease of use": ("straightforward", "straightforward", "hard"),
    "Model support": ("most", "most", "some"),
    "Licence": ("Apache 2.0", "Apache 2.0", "Apache 2.0"),
}


@pytest.mark.parametrize("topic", SUMMARY)
def test_the_lessons_summary(topic):
    assert tuple(engine.claim(topic).lesson for engine in engines.ENGINES) == SUMMARY[topic]


def test_hardware_names_each_maker():
    hardware = {engine.name: engine.claim("Hardware").lesson for engine in engines.ENGINES}
    assert all(maker in hardware["vLLM"] for maker in ("NVIDIA", "AMD", "Intel", "TPU"))
    assert all(maker in hardware["SGLang"] for maker in ("NVIDIA", "AMD")) and "Intel" not in hardware["SGLang"]
    assert "only" in hardware["TensorRT-LLM"]


def test_every_engine_speaks_to_every_topic():
    topics = [[claim.topic for claim in engine.claims] for engine in engines.ENGINES]
    assert topics[0] == topics[1] == topics[2]
    by_topic, by_engine = engines.compare(), engines.compare(transpose=True)
    whole = [by_topic.columns, *by_topic.rows], [by_engine.columns, *by_engine.rows]
    cells = [{cell.strip("*") for row in table for cell in row} for table in whole]
    assert cells[0] == cells[1] and len(by_topic.rows) == len(topics[0])
    assert all(len(engine.use_when) == 3 for engine in engines.ENGINES)


def test_what_differs_today_has_a_source():
    assert len(engines.changes().rows) >= 4
    assert all(all(row) for row in engines.changes().rows)
    with pytest.raises(ValueError, match="needs a source"):
        engines.Claim("Price", "free", today="costs")


def test_an_unknown_topic_is_named():
    with pytest.raises(ValueError, match="^topic must be one of .* not 'Price'"):
        engines.compare("Price")


class TestTable:
    def test_markdown_keeps_its_cells_apart(self):
        table = Table(("a", "b"), ((1, "x|y\nz"),))
        assert table._repr_markdown_() == "| a | b |\n| --- | --- |\n| 1 | x\\|y z |"

    def test_text_lines_up(self):
        assert str(Table(("name", "n"), (("a", 10), ("longer", 2)))) == "name    n\na       10\nlonger  2"

    def test_a_row_has_a_cell_for_every_column(self):
        with pytest.raises(ValueError, match=r"^rows\[1\] must have 2 cells, not 1"):
            Table(("a", "b"), ((1, 2), (3,)))
