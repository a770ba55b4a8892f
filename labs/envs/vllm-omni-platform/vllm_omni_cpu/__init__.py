"""A CPU platform for vLLM Omni's diffusion engine. It is the course's own: vLLM Omni itself has none."""


def platform() -> str:
    """Where vLLM Omni finds the class of its platform (entry point group `vllm_omni.platform_plugins`)."""
    return "vllm_omni_cpu.platform.CpuOmniPlatform"
