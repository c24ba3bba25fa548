"""Step 3, on a GPU: trains the student on the sampled stories and the teacher's distributions.

    train.py STORE OUT SECONDS

STORE is the folder of sample.py (stories.pt).
OUT/weights-N.bin get the float32 weights (matrices, then norms) in parts, OUT/train.log the loss.
The last third of the steps computes with 4-bit weights, so that quantising costs next to nothing.
"""

import os
import sys
import time

import numpy as np
import torch

from quant import fake_quantize
from student import CONFIG, count, forward, initial, logits, matrix_shapes, norm_shapes
from student import rope_table, slices
from vocab import END, STOP

LENGTH = 512
ROWS = 128
PEAK_RATE = 3e-3
WARM_STEPS = 200
QUANTIZED_FROM = 0.65  # of the time
WEIGHT_DECAY = 0.05
HELD_OUT = 2000
PART_BYTES = 14 << 20


class Stories:
    """The sampled stories on the device, and rows of LENGTH + 1 tokens made of them."""

    def __init__(self, flat, device):
        self.tokens = flat["tokens"].to(device)
        self.top_ids, self.top_p = flat["top_ids"].to(device), flat["top_p"].to(device)
        self.end = flat["end"].numpy()
        self.begin = np.concatenate([[0], self.end[:-1]])
        self.story = flat["story_start"].numpy()
        self.device = device
        docs = np.random.default_rng(0).permutation(len(self.end))
        held = min(HELD_OUT, len(docs) // 10)
        self.held, self.train = docs[:held], docs[held:]

    def rows(self, docs, seed):
        """Fills rows with whole documents, the last cut off: (places, is raw), both [n, L + 1].

        A document is a chat turn (request and story) or, every second time, the raw story.
        """
        rng = np.random.default_rng(seed)
        docs = rng.permutation(docs)
        raw = rng.random(len(docs)) < 0.5
        first = np.where(raw, self.story[docs], self.begin[docs])
        last = np.where(raw, self.end[docs] - 1, self.end[docs])
        size = last - first
        width, fill = LENGTH + 1, 0
        take = size.tolist()
        for i, n in enumerate(take):
            if fill + n >= width:
                take[i], fill = width - fill, 0
            else:
                fill += n
        if fill:
            take = take[: len(take) - self._open_tail(take, fill)]
        take = np.array(take, dtype=np.int64)
        docs_of = np.repeat(np.arange(len(take)), take)
        within = np.arange(take.sum()) - np.repeat(take.cumsum() - take, take)
        places = (first[docs_of] + within).reshape(-1, width)
        return places, raw[docs_of].reshape(-1, width)

    @staticmethod
    def _open_tail(take, fill):
        """How many documents at the end are in the row that did not fill up."""
        n = 0
        while fill > 0:
            n += 1
            fill -= take[-n]
        return n

    def batch(self, places, raw):
        """Inputs, candidate ids and probabilities for the next token."""
        places = torch.from_numpy(places).to(self.device, non_blocking=True)
        raw = torch.from_numpy(raw).to(self.device, non_blocking=True)
        ids = self.tokens[places].long()
        ids = torch.where(raw & (ids == STOP), END, ids)
        nxt = places[:, 1:]
        top_ids, top_p = self.top_ids[nxt].long(), self.top_p[nxt].float()
        top_ids = torch.where(raw[:, 1:, None] & (top_ids == STOP), END, top_ids)
        return ids[:, :-1], ids[:, 1:], top_ids, top_p


def distil_loss(w, config, ids, top_ids, top_p, table):
    """Mean cross-entropy with the teacher over the places that have a distribution."""
    out = logits(w, forward(w, config, ids, table)).float()
    weight = top_p.sum(-1)
    picked = (out.gather(-1, top_ids) * top_p).sum(-1)
    return (out.logsumexp(-1) * weight - picked).sum() / weight.sum().clamp(min=1)


def leaves(flat, shapes):
    """Views of a flat tensor that collect gradients on their own."""
    return {name: view.requires_grad_(True) for name, view in slices(flat, shapes).items()}


def flat_gradient(views):
    """The gradients of all views as one float32 tensor; clears them."""
    gradient = torch.cat([v.grad.reshape(-1) for v in views.values()]).float()
    for view in views.values():
        view.grad = None
    return gradient


class Trainer:
    """master and norms: float32 weights that the optimizer moves.

    work: what the model computes with, the master rounded to bfloat16 or to 4 bits; gradients
    pass from there to the master as if nothing were rounded.
    """

    def __init__(self, stories, device, log):
        self.stories, self.device, self.log = stories, device, log
        self.table = rope_table(CONFIG, LENGTH, device)
        self.master, self.norms = (t.to(device) for t in initial(CONFIG, 1))
        self.work = self.master.to(torch.bfloat16 if device == "cuda" else torch.float32, copy=True)
        self.matrix_views = leaves(self.work, matrix_shapes(CONFIG))
        self.norm_views = leaves(self.norms, norm_shapes(CONFIG))
        self.weights = self.matrix_views | self.norm_views
        groups = [
            {"params": [self.master], "weight_decay": WEIGHT_DECAY},
            {"params": [self.norms], "weight_decay": 0.0},
        ]
        fused = device == "cuda"
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=fused)
        self.loss = torch.compile(distil_loss) if device == "cuda" else distil_loss

    @torch.no_grad()
    def refresh(self, quantized):
        self.work.copy_(fake_quantize(self.master) if quantized else self.master)

    def step(self, rate, quantized, batch):
        ids, _, top_ids, top_p = batch
        loss = self.loss(self.weights, CONFIG, ids, top_ids, top_p, self.table)
        loss.backward()
        self.master.grad = flat_gradient(self.matrix_views)
        self.norms.grad = flat_gradient(self.norm_views)
        torch.nn.utils.clip_grad_norm_([self.master, self.norms], 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.refresh(quantized)
        return loss.detach()

    @torch.no_grad()
    def evaluate(self, quantized, rows=ROWS):
        """(cross-entropy with the teacher, cross-entropy with the sampled tokens), held-out."""
        self.refresh(quantized)
        places, raw = self.stories.rows(self.stories.held, 7)
        totals = torch.zeros(3, device=self.device)
        for at in range(0, len(places), rows):
            ids, nxt, top_ids, top_p = self.stories.batch(
                places[at : at + rows], raw[at : at + rows]
            )
            hidden = forward(self.weights, CONFIG, ids, self.table)
            out = logits(self.weights, hidden).float().log_softmax(-1)
            weight = top_p.sum(-1)
            teacher = -(out.gather(-1, top_ids) * top_p).sum()
            token = -(out.gather(-1, nxt[..., None])[..., 0] * weight).sum()
            totals += torch.stack([teacher, token, weight.sum()])
        return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()

    def rate(self, step, part):
        """Warms up, then falls linearly to zero over the given time."""
        return PEAK_RATE * min(1.0, (step + 1) / WARM_STEPS) * max(0.0, 1.0 - part)

    def compile(self):
        """One step that moves nothing, so that compiling is not part of the training time."""
        places, raw = self.stories.rows(self.stories.train, 99)
        self.step(0.0, False, self.stories.batch(places[:ROWS], raw[:ROWS]))

    def run(self, seconds):
        start, step, epoch, shown = time.time(), 0, 0, 0.0
        while True:
            places, raw = self.stories.rows(self.stories.train, 100 + epoch)
            for at in range(0, len(places) - ROWS + 1, ROWS):
                part = (time.time() - start) / seconds
                if part >= 1.0:
                    self.log(
                        f"{step} steps, {step * ROWS * LENGTH / 1e6:.0f} M tokens, {epoch} epochs"
                    )
                    return
                batch = self.stories.batch(places[at : at + ROWS], raw[at : at + ROWS])
                loss = self.step(self.rate(step, part), part >= QUANTIZED_FROM, batch)
                step += 1
                # Waiting now and then keeps the queue short, so that the clock is the device's.
                if step % 20 == 0:
                    shown = loss.item()
                if step in (1, 20, 100) or step % 500 == 0:
                    passed = time.time() - start
                    self.log(f"step {step} epoch {epoch} loss {shown:.4f} {passed:.1f} s")
            epoch += 1

    def save(self, out):
        data = torch.cat([self.master, self.norms]).cpu().numpy().tobytes()
        for i in range(0, len(data), PART_BYTES):
            path = os.path.join(out, f"weights-{i // PART_BYTES}.bin")
            with open(path, "wb") as file:
                file.write(data[i : i + PART_BYTES])


def load_weights(out):
    """Name -> float32 tensor from the parts that Trainer.save wrote."""
    data, i = b"", 0
    while os.path.exists(os.path.join(out, f"weights-{i}.bin")):
        with open(os.path.join(out, f"weights-{i}.bin"), "rb") as file:
            data += file.read()
        i += 1
    flat = torch.from_numpy(np.frombuffer(data, np.float32).copy())
    n = count(matrix_shapes(CONFIG))
    return slices(flat[:n], matrix_shapes(CONFIG)), slices(flat[n:], norm_shapes(CONFIG))


def main(store, out, seconds):
    began = time.time()
    log_file = open(os.path.join(out, "train.log"), "w", encoding="utf-8")

    def log(text):
        line = f"[{time.time() - began:6.1f}] {text}"
        print(line, flush=True)
        print(line, file=log_file, flush=True)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.manual_seed(0)
    flat = torch.load(os.path.join(store, "stories.pt"))
    trainer = Trainer(Stories(flat, device), device, log)
    log(f"{count(matrix_shapes(CONFIG)) + count(norm_shapes(CONFIG))} weights, data loaded")
    trainer.compile()
    log("compiled")
    trainer.run(float(seconds))
    for quantized in (False, True):
        teacher, token = trainer.evaluate(quantized)
        kind = "4-bit" if quantized else "float"
        log(
            f"held-out, {kind} weights: with the teacher {teacher:.4f}, with its tokens {token:.4f}"
        )
    trainer.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:4])
