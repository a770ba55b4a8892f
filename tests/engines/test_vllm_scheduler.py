"""The engine model against the real vLLM scheduler: the same requests get the same tokens in every step."""

import vllm_fidelity

from enginelab import environments


def test_the_model_schedules_as_vllm_does():
    loads = [vllm_fidelity.random_load(seed) for seed in range(60)]
    version, runs = vllm_fidelity.real(environments.python(vllm_fidelity.LOCK), loads)
    assert version.startswith("0.32.")
    for seed, (load, real) in enumerate(zip(loads, runs, strict=True)):
        assert vllm_fidelity.first_difference(real, vllm_fidelity.modelled(load)) is None, seed
    assert sum(any(step["preempted"] for step in run) for run in runs) >= 5, "hardly any load is short of memory"
