"""The course's router and planner against the real ones of Dynamo, on a sample; `dynamo_fidelity.py` tries more."""

import dynamo_fidelity
import pytest

from enginelab.kvrouter import Weights

ROUTED, PLANNED = 120, 60


@pytest.fixture(scope="module")
def routed():
    """States, how each compares, and Dynamo's version."""
    states = [dynamo_fidelity.random_state(seed) for seed in range(ROUTED)]
    version, answers = dynamo_fidelity.real_choices(states)
    return states, [dynamo_fidelity.compare(*pair) for pair in zip(states, answers, strict=True)], version


def test_the_router_costs_and_chooses_as_dynamo_does(routed):
    states, verdicts, version = routed
    assert version.startswith("1.6.")
    assert [f"state {i}: {v.difference}" for i, v in enumerate(verdicts) if not v.same] == []
    clear = sum(not verdict.tie for verdict in verdicts)
    assert clear >= ROUTED / 2, "hardly any state has one cheapest worker"
    assert len({state.weights for state in states}) > 1


def test_a_temperature_gives_each_worker_the_chance_that_dynamo_gives_it():
    states = [
        dynamo_fidelity.random_state(seed)._replace(weights=Weights(temperature=temperature))
        for temperature in (0.2, 1.0, 5.0)
        for seed in range(5)
    ]
    _, answers = dynamo_fidelity.real_choices(states, again=400)
    for state, answer in zip(states, answers, strict=True):
        assert dynamo_fidelity.unlikely(state, answer["again"]) == ""


def test_the_planner_decides_as_dynamo_does():
    cases = [dynamo_fidelity.random_case(seed) for seed in range(PLANNED)]
    version, decisions = dynamo_fidelity.ask(dynamo_fidelity.PLANNER, "dynamo_plan.py", cases)
    assert version.startswith("1.6.")
    assert [dynamo_fidelity.decision(case) for case in cases] == decisions
    moved = [case for case, now in zip(cases, decisions, strict=True) if now != case["current"]]
    assert sum(case["gpus"] is not None for case in moved) >= PLANNED / 4


def test_dynamo_plans_the_lesson():
    case = {"engine_rates": [10.0, 10.0], "least": [1, 1], "worker_gpus": [1, 1], "most_change": 8, "gpus": None}
    cases = [case | {"rate": rate, "current": [1, 1]} for rate in (30, 31, 60)]
    _, decisions = dynamo_fidelity.ask(dynamo_fidelity.PLANNER, "dynamo_plan.py", cases)
    assert decisions == [[3, 3], [4, 4], [6, 6]]
