"""Fine-tunes the teacher on the seed stories, each as the answer to a request."""

import math
import random
import time

import torch
import torch.nn.functional as F

from prompts import chat_prompt, seed_request
from vocab import END, STOP


def encode_seed(bpe, rng, story):
    """Returns (ids, number of leading ids that are the request)."""
    prompt = bpe.encode(chat_prompt(seed_request(rng, story)))
    return prompt + bpe.encode(story) + [STOP], len(prompt)


def batch_tensors(samples, device):
    """Right-padded inputs and targets; -100 marks what has no loss (requests, padding)."""
    width = max(len(ids) for ids, _ in samples)
    x = torch.full((len(samples), width - 1), END)
    y = torch.full((len(samples), width - 1), -100)
    for row, (ids, n_prompt) in enumerate(samples):
        t = torch.tensor(ids)
        x[row, : len(ids) - 1] = t[:-1]
        y[row, n_prompt - 1 : len(ids) - 1] = t[n_prompt:]
    return x.to(device), y.to(device)


def batches(bpe, rng, stories, size, device):
    """Shuffled batches of stories of like length, so that little is padding."""
    samples = [encode_seed(bpe, rng, s) for s in stories]
    rng.shuffle(samples)
    samples.sort(key=lambda s: len(s[0]) // 24)
    groups = [samples[i : i + size] for i in range(0, len(samples), size)]
    rng.shuffle(groups)
    return [batch_tensors(g, device) for g in groups]


def loss_of(teacher, x, y, table):
    hidden = teacher.forward(x, table)
    logits = F.linear(hidden, teacher.embed).float()
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100)


def evaluate(teacher, batch_list, table):
    total = count = 0.0
    with torch.no_grad(), torch.autocast(teacher.device, torch.bfloat16):
        for x, y in batch_list:
            n = (y >= 0).sum().item()
            total += loss_of(teacher, x, y, table).item() * n
            count += n
    return total / count


def tune(teacher, bpe, stories, epochs=3, peak=1e-4, batch=16, held_out=80, seed=1, log=print):
    """Trains all weights in place (float32, bfloat16 products); returns the held-out loss."""
    rng = random.Random(seed)
    stories = stories[:]
    rng.shuffle(stories)
    check = batches(bpe, rng, stories[:held_out], batch, teacher.device)
    train = stories[held_out:]
    table = teacher.rope_table(640)
    params = [p.requires_grad_(True) for p in teacher.parameters()]
    fused = teacher.device == "cuda"
    optimizer = torch.optim.AdamW(
        params, lr=peak, betas=(0.9, 0.95), weight_decay=0.01, fused=fused
    )
    total = epochs * math.ceil(len(train) / batch)
    step, start = 0, time.time()
    log(f"teacher: held-out loss before tuning {evaluate(teacher, check, table):.4f}")
    for epoch in range(epochs):
        running = 0.0
        groups = batches(bpe, rng, train, batch, teacher.device)
        for x, y in groups:
            part = step / total
            rate = (
                peak * min(1, (step + 1) / 20) * (0.05 + 0.95 * (1 + math.cos(math.pi * part)) / 2)
            )
            for group in optimizer.param_groups:
                group["lr"] = rate
            with torch.autocast(teacher.device, torch.bfloat16):
                loss = loss_of(teacher, x, y, table)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            running += loss.detach()
            step += 1
        held = evaluate(teacher, check, table)
        log(
            f"teacher: epoch {epoch + 1} train {running.item() / len(groups):.4f} "
            f"held-out {held:.4f} {time.time() - start:.1f} s"
        )
    for p in params:
        p.requires_grad_(False)
    return held
