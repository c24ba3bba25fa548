"""The student: a small Qwen3 model whose weights are slices of two flat tensors."""

import torch
import torch.nn.functional as F

CONFIG = {
    "hidden_size": 384,
    "num_hidden_layers": 8,
    "intermediate_size": 896,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 5120,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
}


def matrix_shapes(c):
    """Name -> shape of every quantised matrix, in the order in which they lie in memory."""
    dim, inner = c["hidden_size"], c["intermediate_size"]
    q, kv = (c[k] * c["head_dim"] for k in ("num_attention_heads", "num_key_value_heads"))
    shapes = {"model.embed_tokens.weight": (c["vocab_size"], dim)}
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        shapes[p + "self_attn.q_proj.weight"] = (q, dim)
        shapes[p + "self_attn.k_proj.weight"] = (kv, dim)
        shapes[p + "self_attn.v_proj.weight"] = (kv, dim)
        shapes[p + "self_attn.o_proj.weight"] = (dim, q)
        shapes[p + "mlp.gate_proj.weight"] = (inner, dim)
        shapes[p + "mlp.up_proj.weight"] = (inner, dim)
        shapes[p + "mlp.down_proj.weight"] = (dim, inner)
    return shapes


def norm_shapes(c):
    """Name -> shape of every norm weight; these stay unquantised."""
    dim, head = c["hidden_size"], c["head_dim"]
    shapes = {}
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        shapes[p + "input_layernorm.weight"] = (dim,)
        shapes[p + "self_attn.q_norm.weight"] = (head,)
        shapes[p + "self_attn.k_norm.weight"] = (head,)
        shapes[p + "post_attention_layernorm.weight"] = (dim,)
    shapes["model.norm.weight"] = (dim,)
    return shapes


def slices(flat, shapes):
    """Views of a flat tensor by name."""
    out, at = {}, 0
    for name, shape in shapes.items():
        size = torch.Size(shape).numel()
        out[name] = flat[at : at + size].view(shape)
        at += size
    return out


def count(shapes):
    return sum(torch.Size(s).numel() for s in shapes.values())


def initial(c, seed):
    """Flat float32 start values: (matrices, norms)."""
    generator = torch.Generator().manual_seed(seed)
    flat = torch.empty(count(matrix_shapes(c))).normal_(0, 0.02, generator=generator)
    shrink = (2 * c["num_hidden_layers"]) ** -0.5
    for name, view in slices(flat, matrix_shapes(c)).items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            view.mul_(shrink)
    return flat, torch.ones(count(norm_shapes(c)))


def rope_table(c, length, device):
    half = c["head_dim"] // 2
    inv = c["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * inv
    angle = torch.cat([angle, angle], dim=1).float()
    return angle.cos().to(device), angle.sin().to(device)


def _norm(x, weight, eps):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * weight.float()).to(x.dtype)


def _rotate(x, cos, sin):
    half = x.shape[-1] // 2
    wide = x.float()
    turned = torch.cat([-wide[..., half:], wide[..., :half]], dim=-1)
    return (wide * cos + turned * sin).to(x.dtype)


def forward(w, c, ids, table):
    """Hidden states [batch, n, dim] after the last norm; w: name -> weight."""
    batch, n = ids.shape
    heads, kv, hd = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    eps = c["rms_norm_eps"]
    cos, sin = (t[:n, None, :] for t in table)
    x = F.embedding(ids, w["model.embed_tokens.weight"])
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = _norm(x, w[p + "input_layernorm.weight"], eps)
        q = F.linear(h, w[p + "self_attn.q_proj.weight"]).view(batch, n, heads, hd)
        k = F.linear(h, w[p + "self_attn.k_proj.weight"]).view(batch, n, kv, hd)
        v = F.linear(h, w[p + "self_attn.v_proj.weight"]).view(batch, n, kv, hd)
        q = _rotate(_norm(q, w[p + "self_attn.q_norm.weight"], eps), cos, sin).transpose(1, 2)
        k = _rotate(_norm(k, w[p + "self_attn.k_norm.weight"], eps), cos, sin).transpose(1, 2)
        k = k.repeat_interleave(heads // kv, 1)
        v = v.transpose(1, 2).repeat_interleave(heads // kv, 1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        a = a.transpose(1, 2).reshape(batch, n, heads * hd)
        x = x + F.linear(a, w[p + "self_attn.o_proj.weight"])
        h = _norm(x, w[p + "post_attention_layernorm.weight"], eps)
        gate = F.linear(h, w[p + "mlp.gate_proj.weight"])
        up = F.linear(h, w[p + "mlp.up_proj.weight"])
        x = x + F.linear(F.silu(gate) * up, w[p + "mlp.down_proj.weight"])
    return _norm(x, w["model.norm.weight"], eps)


def logits(w, hidden):
    return F.linear(hidden, w["model.embed_tokens.weight"])
