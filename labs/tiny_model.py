"""Make the tiny model that the labs serve where there is no GPU: python tiny_model.py FOLDER

A Qwen3 with four layers and random weights, and a tokenizer trained here on Python's own help texts. It answers
nonsense, at the speed and through the code path of a real model, and needs no download. Run it with the engine
environment's Python, which has torch and transformers. A second call with the same folder makes nothing, unless this
program has changed since.
"""

import pydoc_data.topics
from pathlib import Path

import made_once

SEED = 0
VOCABULARY = 2048
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


# The heavy imports stand inside the functions: a call that has nothing to make is done at once.


def tokenizer():
    """A byte-level BPE tokenizer: any text can be encoded, and most tokens are English words or parts of them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(pydoc_data.topics.topics.values(), trainer)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def model():
    """Random weights in float32: on a CPU, vLLM 0.32.0 does not survive its first answer in bfloat16."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(SEED)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=4,
        num_attention_heads=12,
        num_key_value_heads=4,
        head_dim=64,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return Qwen3ForCausalLM(config).to(torch.float32)


def fill(folder: Path) -> None:
    """Write both into `folder`."""
    tokenizer().save_pretrained(folder)
    model().save_pretrained(folder)


if __name__ == "__main__":
    made_once.main(__file__, f"a Qwen3 of {{}} with random weights, seed {SEED}", fill)
