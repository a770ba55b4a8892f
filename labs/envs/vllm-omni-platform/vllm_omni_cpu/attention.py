"""The diffusion engine's attention on a CPU; apart from `platform`, which is imported before attention can be."""

from vllm_omni.diffusion.attention.backends.sdpa import SDPABackend, SDPAImpl


class CpuAttention(SDPAImpl):
    """The engine's attention by torch's own kernel; its "CUDA" variant calls nothing that needs CUDA."""

    def forward(self, query, key, value, attn_metadata=None):
        return self.forward_cuda(query, key, value, attn_metadata)


class CpuAttentionBackend(SDPABackend):
    """Names `CpuAttention` to the engine."""

    @staticmethod
    def get_impl_cls():
        return CpuAttention
