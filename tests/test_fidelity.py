"""The record of the last fidelity run, as pages read it."""

import json
from datetime import date

import pytest

from enginelab import fidelity


@pytest.mark.parametrize("program", ["vllm", "dynamo router", "dynamo planner"])
def test_the_record_that_pages_show_is_of_a_full_run(program):
    run = fidelity.read(program)
    assert run.loads >= 1000 and 0 <= run.identical <= run.loads
    assert run.version and run.date >= date(2026, 12, 1)


def test_a_date_is_shown_in_words():
    assert fidelity.Agreement("1", 2, 1, date(2027, 3, 9)).day == "9 March 2027"


def test_what_is_kept_is_what_is_read_and_others_stay(tmp_path):
    record, first = tmp_path / "fidelity.json", fidelity.Agreement("0.32.0", 2000, 1999, date(2026, 12, 1))
    fidelity.keep("vllm", first, record)
    fidelity.keep("dynamo", fidelity.Agreement("1.6.1", 1000, 1000, date(2026, 12, 2)), record)
    assert fidelity.read("vllm", record) == first
    fidelity.keep("vllm", later := fidelity.Agreement("0.33.0", 3000, 3000, date(2027, 1, 5)), record)
    assert fidelity.read("vllm", record) == later and fidelity.read("dynamo", record).version == "1.6.1"


def test_a_missing_or_broken_entry_is_named(tmp_path):
    record = tmp_path / "fidelity.json"
    record.write_text(json.dumps({"vllm": {"version": "1", "loads": 2, "identical": 1}}))
    with pytest.raises(ValueError, match="'vllm' is not the record .*date"):
        fidelity.read("vllm", record)
    with pytest.raises(ValueError, match=r"no run of 'dynamo', only of \['vllm'\]: run `make fidelity`"):
        fidelity.read("dynamo", record)
