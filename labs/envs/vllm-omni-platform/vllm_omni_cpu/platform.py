"""What vLLM Omni's diffusion engine asks a platform, answered for a CPU."""

import psutil
import torch
from vllm.platforms.cpu import CpuPlatform
from vllm_omni.platforms.interface import OmniPlatform, OmniPlatformEnum


class CpuOmniPlatform(OmniPlatform, CpuPlatform):
    """One device, the CPU, whose memory is the machine's."""

    _omni_enum = OmniPlatformEnum.OOT

    @classmethod
    def get_diffusion_attn_backend_cls(cls, selected_backend=None, head_size=-1, allow_trtllm_default=False):
        return "vllm_omni_cpu.attention.CpuAttentionBackend"

    @classmethod
    def get_omni_ar_worker_cls(cls):
        return "vllm_omni.worker.gpu_ar_worker.GPUARWorker"

    @classmethod
    def get_omni_generation_worker_cls(cls):
        return "vllm_omni.worker.gpu_generation_worker.GPUGenerationWorker"

    @classmethod
    def get_default_stage_config_path(cls):
        return "vllm_omni/deploy"

    @classmethod
    def supports_torch_inductor(cls):
        return False

    @classmethod
    def get_torch_device(cls, local_rank=None):
        return torch.device("cpu")

    @classmethod
    def set_device(cls, device):
        """There is only one."""

    @classmethod
    def get_device_count(cls):
        return 1

    @classmethod
    def get_device_name(cls, device_id=0):
        return "cpu"

    @classmethod
    def get_device_version(cls):
        return None

    @classmethod
    def current_stream(cls, device=None):
        return None

    @classmethod
    def synchronize(cls):
        """A CPU has done what it was told when the call returns."""

    @classmethod
    def empty_cache(cls):
        """torch keeps no cache of CPU memory."""

    @classmethod
    def get_free_memory(cls, device=None):
        return psutil.virtual_memory().available

    @classmethod
    def get_device_memory(cls, device=None):
        memory = psutil.virtual_memory()
        return memory.available, memory.total

    @classmethod
    def get_device_total_memory(cls, device_id=0):
        return psutil.virtual_memory().total

    @classmethod
    def reset_peak_memory_stats(cls, device=None):
        """Nothing is counted."""

    @classmethod
    def max_memory_reserved(cls, device=None):
        return 0

    @classmethod
    def max_memory_allocated(cls, device=None):
        return 0

    @classmethod
    def is_available(cls):
        return True
