"""Make the tiny image model that the labs serve where there is no GPU: python tiny_image_model.py FOLDER

A Qwen-Image with every part that the real one has: a Qwen2.5-VL that reads the prompt, a diffusion transformer, a VAE
that turns latents into pixels, and Qwen2's tokenizer with no merges, so that each byte is a token. Its weights are
random, but for a few that `paints_regions` sets. It takes the code path of a real model and needs no download. Run this
with the engine environment's Python, which has torch, transformers and diffusers. A second call with the same folder
makes nothing, unless this program has changed since. FOLDER's name has to hold "Qwen-Image": SGLang knows the model by
that.
"""

import json
import tempfile
from pathlib import Path

import made_once

SEED = 0
VOCABULARY = 512
SHARPNESS, CONTRAST, NOISE_TAKEN, BRIGHTNESS = 8.0, 9.0, 0.9, 3.0
SPECIAL = "im_start im_end vision_start vision_end image_pad video_pad".split()


# The heavy imports stand inside the functions: a call that has nothing to make is done at once.


def tokenizer(folder: Path):
    """Qwen2's tokenizer over bytes alone; it is read from two files, written to `folder`."""
    from tokenizers import pre_tokenizers
    from transformers import Qwen2Tokenizer

    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    vocabulary.write_text(json.dumps({byte: i for i, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}))
    merges.write_text("#version: 0.2\n")
    made = Qwen2Tokenizer(vocab=str(vocabulary), merges=str(merges))
    made.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in SPECIAL]})
    return made


def text_encoder(ids: dict[str, int]):
    """The language model that reads the prompt; `ids` are those of the special tokens."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 6, 6]}
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "rope_parameters": rope,
        "rope_scaling": rope | {"type": "mrope"},
    }
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 64,
        "patch_size": 14,
        "fullatt_block_indexes": [0],
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def paints_regions(transformer, vae) -> None:
    """Set the weights that make a pattern of the prompt, in place of the mere noise that random weights leave.

    In the first layer each place of the picture asks, with one and the same query, which byte of the prompt it is to
    attend to. The answer depends on the place, since queries and keys are rotated by their positions, and so the bytes
    share the picture out among them. What the layer brings from there is painted, and most of the noise is taken away.
    """
    import torch

    width, channels = transformer.inner_dim, transformer.config.in_channels
    for block in transformer.transformer_blocks:
        for last in (block.attn.to_out[0], block.img_mlp.net[2]):
            torch.nn.init.zeros_(last.weight)
            torch.nn.init.zeros_(last.bias)
    first = transformer.transformer_blocks[0]
    silent = [first.attn.to_q, first.attn.to_k, first.attn.to_v, first.img_mod[1]]
    for linear in (*silent, transformer.img_in, transformer.proj_out, transformer.norm_out.linear):
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
    with torch.no_grad():
        first.attn.to_q.bias.normal_()
        first.attn.norm_q.weight.fill_(SHARPNESS)
        first.img_mod[1].bias[2 * width : 3 * width] = 1  # the gate of the attention
        colours = torch.randn(channels // 4, width) * CONTRAST / width**0.5
        first.attn.to_out[0].weight[channels : 2 * channels] = colours.repeat_interleave(4, 0)  # patches of 2 x 2
        transformer.img_in.weight[:channels].fill_diagonal_(1)
        transformer.proj_out.weight[:, :channels].fill_diagonal_(NOISE_TAKEN)
        transformer.proj_out.weight[:, channels : 2 * channels].fill_diagonal_(-1)
        vae.decoder.conv_out.weight.mul_(BRIGHTNESS)
        vae.decoder.conv_out.bias.zero_()


def pipeline(folder: Path):
    """The whole pipeline, in float32."""
    import torch
    from diffusers import (
        AutoencoderKLQwenImage,
        FlowMatchEulerDiscreteScheduler,
        QwenImagePipeline,
        QwenImageTransformer2DModel,
    )

    torch.manual_seed(SEED)
    words = tokenizer(folder)
    transformer = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=64,
        out_channels=16,
        num_layers=6,
        attention_head_dim=32,
        num_attention_heads=8,
        joint_attention_dim=64,
        axes_dims_rope=(8, 12, 12),
        guidance_embeds=False,
    )
    vae = AutoencoderKLQwenImage(
        base_dim=8, z_dim=16, dim_mult=[1, 2, 2, 2], num_res_blocks=1, temperal_downsample=[False, True, True]
    )
    paints_regions(transformer, vae)
    ids = {name: words.convert_tokens_to_ids(f"<|{name}|>") for name in SPECIAL}
    return QwenImagePipeline(
        # the settings of the real model's schedule, as its pipeline asks for them
        scheduler=FlowMatchEulerDiscreteScheduler(
            use_dynamic_shifting=True,
            base_shift=0.5,
            max_shift=0.9,
            base_image_seq_len=256,
            max_image_seq_len=8192,
            shift_terminal=0.02,
            time_shift_type="exponential",
        ),
        vae=vae,
        text_encoder=text_encoder(ids),
        tokenizer=words,
        transformer=transformer,
    )


def fill(folder: Path) -> None:
    """Write the model into `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        pipeline(Path(scratch)).save_pretrained(folder)


if __name__ == "__main__":
    made_once.main(__file__, f"a Qwen-Image of {{}}, seed {SEED}", fill)
