"""Small language models of lm_models.py as GGUF files."""
import struct

import numpy as np

from io_files import gguf, listed, text, value

MODULES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
    "mlp.switch_mlp.gate_proj": "ffn_gate_exps", "mlp.switch_mlp.up_proj": "ffn_up_exps",
    "mlp.switch_mlp.down_proj": "ffn_down_exps",
}
ARCHS = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
         "qwen3_moe": "qwen3moe"}
F32, Q4_1 = 0, 3


def renamed(name):
    module, part = name.rsplit(".", 1)
    if module.startswith("model.layers."):
        layer, module = module[len("model.layers."):].split(".", 1)
        return "blk.%s.%s.%s" % (layer, MODULES[module], part)
    return "%s.%s" % (MODULES[module], part)


def interleaved(rows, heads):
    """Rows of each head in the order that rotations of neighbours want."""
    at = np.arange(rows).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
    return at


def q4_1(words, scales, biases):
    codes = (words[..., None] >> (np.arange(8, dtype=np.uint32) * 4) & 15).astype(np.uint8)
    codes = codes.reshape(-1, 32)
    block = np.concatenate([scales.astype("<f2").reshape(-1, 1).view(np.uint8),
                            biases.astype("<f2").reshape(-1, 1).view(np.uint8),
                            codes[:, :16] | codes[:, 16:] << 4], 1)
    return block.tobytes()


def tensors_of(c, tensors):
    swaps = {"self_attn.q_proj": c["num_attention_heads"],
             "self_attn.k_proj": c["num_key_value_heads"]} if ARCHS[c["model_type"]] == "llama" \
        else {}
    for name, x in tensors.items():
        module, part = name.rsplit(".", 1)
        if part in ("scales", "biases"):
            continue
        order = slice(None)
        for end, heads in swaps.items():
            if module.endswith(end):
                order = interleaved(len(x), heads)
        dims = x.shape[::-1]
        if x.dtype == np.uint32:
            scales, biases = (tensors["%s.%s" % (module, p)][order] for p in ("scales", "biases"))
            yield renamed(name), (dims[0] * 8,) + dims[1:], Q4_1, q4_1(x[order], scales, biases), \
                None
        else:
            yield renamed(name), dims, F32, x[order].astype("<f4").tobytes(), None


def llama3_factors(c, r):
    dim = c["head_dim"]
    freq = c["rope_theta"] ** (np.arange(0, dim, 2) / dim)
    turns = r["original_max_position_embeddings"] / (2 * np.pi * freq)
    low, high = r["low_freq_factor"], r["high_freq_factor"]
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return 1 / ((1 - smooth) / r["factor"] + smooth)


def tokenizer():
    """Letters and digits; two of them make a token."""
    tokens = ["<unk>", "<s>", "</s>", "\u2581", "ab", "\u2581ab"]
    tokens += [chr(x) for x in range(48, 48 + 97 - len(tokens))]
    scores = [-float(i) for i in range(len(tokens))]
    types = [2, 3, 3] + [1] * (len(tokens) - 3)
    return [value("tokenizer.ggml.model", 8, text("llama")),
            listed("tokenizer.ggml.tokens", 8, len(tokens), b"".join(map(text, tokens))),
            listed("tokenizer.ggml.scores", 6, len(scores), struct.pack("<97f", *scores)),
            listed("tokenizer.ggml.token_type", 5, len(types), struct.pack("<97i", *types)),
            value("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1)),
            value("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2))]


def metadata_of(c):
    arch = ARCHS[c["model_type"]]
    numbers = dict(embedding_length=c["hidden_size"], block_count=c["num_hidden_layers"],
                   feed_forward_length=c["intermediate_size"],
                   context_length=c["max_position_embeddings"])
    numbers["attention.head_count"] = c["num_attention_heads"]
    numbers["attention.head_count_kv"] = c["num_key_value_heads"]
    if "head_dim" in c:
        numbers["attention.key_length"] = c["head_dim"]
    if "num_experts" in c:
        numbers.update(expert_count=c["num_experts"], expert_used_count=c["num_experts_per_tok"],
                       expert_feed_forward_length=c["moe_intermediate_size"])
    rope = c.get("rope_parameters", c.get("rope_scaling", {}))
    kind = rope.get("rope_type", rope.get("type"))
    floats = {"attention.layer_norm_rms_epsilon": c["rms_norm_eps"],
              "rope.freq_base": rope.get("rope_theta", c.get("rope_theta"))}
    out = [value("general.architecture", 8, text(arch))]
    if kind in ("linear", "yarn"):
        out.append(value(arch + ".rope.scaling.type", 8, text(kind)))
        floats["rope.scaling.factor"] = rope["factor"]
        numbers["rope.scaling.original_context_length"] = \
            rope.get("original_max_position_embeddings", 1)
    out += [value("%s.%s" % (arch, k), 4, struct.pack("<I", v)) for k, v in numbers.items()]
    out += [value("%s.%s" % (arch, k), 6, struct.pack("<f", v)) for k, v in floats.items()]
    return out


def model_file(c, tensors):
    """The bytes of a file."""
    parts = list(tensors_of(c, tensors))
    rope = c.get("rope_scaling", {})
    if rope.get("rope_type") == "llama3":
        factors = llama3_factors(c, rope)
        parts.append(("rope_freqs.weight", factors.shape, F32, factors.astype("<f4").tobytes(),
                      None))
    return gguf(metadata_of(c) + tokenizer(), parts)
