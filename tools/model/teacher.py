"""The teacher: a Llama model from GGUF tensors, as plain torch code for big batches.

All sequences of a batch stand at the same position: prompts of one length are sampled together,
so attention needs no mask beyond the causal one of the prompt.
"""

import numpy as np
import torch
import torch.nn.functional as F

from gguf_file import dequantize


def _split_rope(weight, heads):
    """GGUF stores q and k rows for interleaved rotation; we rotate halves."""
    rows, cols = weight.shape
    return weight.view(heads, rows // heads // 2, 2, cols).transpose(1, 2).reshape(rows, cols)


class Teacher:
    """Llama weights on a device; ids are rows of the embedding, which is the output layer too."""

    def __init__(self, meta, tensors, device, dtype):
        self.layers = meta["llama.block_count"]
        self.heads = meta["llama.attention.head_count"]
        self.kv_heads = meta["llama.attention.head_count_kv"]
        self.dim = meta["llama.embedding_length"]
        self.head_dim = self.dim // self.heads
        self.eps = meta["llama.attention.layer_norm_rms_epsilon"]
        self.base = meta["llama.rope.freq_base"]
        self.device, self.dtype = device, dtype

        def get(name):
            array = np.array(dequantize(*tensors[name]))
            return torch.from_numpy(array)

        def put(t):
            return t.to(device=device, dtype=dtype).contiguous()

        self.embed = put(get("token_embd.weight"))
        self.norm = put(get("output_norm.weight"))
        self.blocks = []
        for i in range(self.layers):
            p = f"blk.{i}."
            q = _split_rope(get(p + "attn_q.weight"), self.heads)
            k = _split_rope(get(p + "attn_k.weight"), self.kv_heads)
            qkv = torch.cat([q, k, get(p + "attn_v.weight")])
            up = torch.cat([get(p + "ffn_gate.weight"), get(p + "ffn_up.weight")])
            self.blocks.append(
                {
                    "norm1": put(get(p + "attn_norm.weight")),
                    "qkv": put(qkv),
                    "out": put(get(p + "attn_output.weight")),
                    "norm2": put(get(p + "ffn_norm.weight")),
                    "up": put(up),
                    "down": put(get(p + "ffn_down.weight")),
                }
            )

    def rope_table(self, length):
        inv = self.base ** (-torch.arange(0, self.head_dim, 2).float() / self.head_dim)
        angle = torch.arange(length).float()[:, None] * inv[None, :]
        angle = torch.cat([angle, angle], dim=1)
        return angle.cos().to(self.device, self.dtype), angle.sin().to(self.device, self.dtype)

    def _rotate(self, x, cos, sin):
        half = self.head_dim // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        return x * cos + turned * sin

    def new_cache(self, batch, length):
        shape = (batch, self.kv_heads, length, self.head_dim)
        return [
            [torch.empty(shape, device=self.device, dtype=self.dtype) for _ in range(2)]
            for _ in range(self.layers)
        ]

    def _attend(self, q, k, v, whole):
        """q [batch, n, heads, d] on k, v [batch, kv heads, seen, d]; whole: a sequence from 0."""
        batch, n = q.shape[:2]
        group = self.heads // self.kv_heads
        if not whole:
            # One new position: the query heads of a key head are the rows of one small product.
            q = q.view(batch, self.kv_heads, group, self.head_dim)
            return F.scaled_dot_product_attention(q, k, v).reshape(batch, 1, self.dim)
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True)
        return a.transpose(1, 2).reshape(batch, n, self.dim)

    def forward(self, ids, table, cache=None, pos=0):
        """Hidden states [batch, n, dim] of ids [batch, n]: a whole sequence (pos 0), or one token.

        With a cache, keys and values are written at pos and all earlier ones are attended to.
        """
        batch, n = ids.shape
        cos, sin = (t[pos : pos + n, None, :] for t in table)
        x = F.embedding(ids, self.embed)
        for i, block in enumerate(self.blocks):
            h = F.rms_norm(x, (self.dim,), block["norm1"], self.eps)
            qkv = F.linear(h, block["qkv"]).view(batch, n, -1, self.head_dim)
            q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=2)
            q, k = self._rotate(q, cos, sin), self._rotate(k, cos, sin)
            k, v = k.transpose(1, 2), v.transpose(1, 2)
            if cache is not None:
                keys, values = cache[i]
                keys[:, :, pos : pos + n] = k
                values[:, :, pos : pos + n] = v
                k, v = keys[:, :, : pos + n], values[:, :, : pos + n]
            x = x + F.linear(self._attend(q, k, v, whole=pos == 0), block["out"])
            h = F.rms_norm(x, (self.dim,), block["norm2"], self.eps)
            gate, up = F.linear(h, block["up"]).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, block["down"])
        return F.rms_norm(x, (self.dim,), self.norm, self.eps)

    def parameters(self):
        return [self.embed, self.norm] + [t for block in self.blocks for t in block.values()]

    def cast(self, dtype):
        """Changes the type of all weights in place."""
        self.dtype = dtype
        self.embed, self.norm = self.embed.detach().to(dtype), self.norm.detach().to(dtype)
        for block in self.blocks:
            for name, tensor in block.items():
                block[name] = tensor.detach().to(dtype)
