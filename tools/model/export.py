"""Step 4, on any machine: writes the model folder in mlx-lm's 4-bit format.

    export.py DATA WEIGHTS OUT

DATA is the folder of prepare.py (vocabulary), WEIGHTS that of train.py (weights-N.bin).
"""

import json
import os
import sys

import numpy as np
import torch

from bpe import BYTE_CHARS
from quant import BITS, GROUP, pack, quantize_groups
from student import CONFIG
from train import load_weights
from vocab import END, STOP

# Every turn is one block; a story is the assistant's block.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def bfloat16_bits(tensor):
    return tensor.contiguous().to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


def model_tensors(matrices, norms):
    """Name -> (safetensors type, array) of the quantised model."""
    out = {}
    for name, w in matrices.items():
        base = name.removesuffix(".weight")
        codes, scale, bias = quantize_groups(w.contiguous().view(-1))
        per_row = (w.shape[0], w.shape[1] // GROUP)
        out[base + ".weight"] = ("U32", pack(codes.view(w.shape)))
        out[base + ".scales"] = ("BF16", bfloat16_bits(scale.view(per_row)))
        out[base + ".biases"] = ("BF16", bfloat16_bits(bias.view(per_row)))
    for name, w in norms.items():
        out[name] = ("BF16", bfloat16_bits(w))
    return dict(sorted(out.items()))


def write_safetensors(path, tensors, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, (kind, array) in tensors.items():
        end = at + array.nbytes
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for _, array in tensors.values():
            file.write(array.tobytes())


def model_config():
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": STOP,
        "hidden_act": "silu",
        **CONFIG,
        "model_type": "qwen3",
        "quantization": {"group_size": GROUP, "bits": BITS},
        "rope_scaling": None,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }


def tokenizer(vocab):
    """The tokenizer.json: byte-level BPE, every digit alone, words looked up before merging."""
    ids = {token: i for i, token in enumerate(vocab["tokens"])}
    missing = set(BYTE_CHARS.values()) - set(ids)
    if missing:
        raise ValueError(f"the vocabulary lacks the bytes {sorted(missing)}")
    added = [
        {
            "id": i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, token in enumerate(vocab["specials"])
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {**byte_level, "use_regex": True},
            ],
        },
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": ids,
            "merges": [m.split(" ") for m in vocab["merges"]],
        },
    }


def tokenizer_config(vocab):
    return {
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": None,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": vocab["specials"][STOP],
        "model_max_length": CONFIG["max_position_embeddings"],
        "pad_token": vocab["specials"][END],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": None,
    }


def generation_config():
    return {
        "do_sample": True,
        "eos_token_id": [STOP, END],
        "pad_token_id": END,
        "temperature": 1.0,
        "top_k": 40,
        "top_p": 0.95,
    }


def write_json(path, value, indent=2):
    separators = None if indent else (",", ":")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=indent, ensure_ascii=False, separators=separators)
        file.write("\n")


def main(data, weights, out):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(data, "vocab.json"), encoding="utf-8") as file:
        vocab = json.load(file)
    tensors = model_tensors(*load_weights(weights))
    write_safetensors(os.path.join(out, "model.safetensors"), tensors, {"format": "mlx"})
    write_json(os.path.join(out, "config.json"), model_config())
    write_json(os.path.join(out, "generation_config.json"), generation_config())
    write_json(os.path.join(out, "tokenizer_config.json"), tokenizer_config(vocab))
    write_json(os.path.join(out, "tokenizer.json"), tokenizer(vocab), indent=None)
    size = sum(os.path.getsize(os.path.join(out, f)) for f in os.listdir(out))
    print(f"{out}: {size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:4])
