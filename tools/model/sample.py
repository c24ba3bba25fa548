"""Step 2, on a GPU: tunes the teacher on the seed stories and samples stories from it.

    sample.py DATA STORE OUT SECONDS [BATCH [TEMPERATURE]]

DATA is the folder that prepare.py wrote. STORE/stories.pt gets, for every story kept, its tokens
and the teacher's distribution at each of them; OUT/stories-N.xz the plain text (a JSON list of
[request, story]), OUT/sample.log what was done. The tuned teacher is kept in STORE/teacher.pt and
taken from there by a later call. The time for tuning is not part of SECONDS.
"""

import json
import lzma
import multiprocessing
import os
import random
import sys
import time
from collections import Counter, defaultdict

import torch
import torch.nn.functional as F

from bpe import Bpe
from filters import verdict
from prepare import unpack_teacher
from prompts import chat_prompt, sample_request
from teacher import Teacher
from tune import tune
from vocab import STOP

TOP = 24  # candidates of a position: sampled from and learnt from
MIN_SHARE = 0.01  # of the best candidate's probability, below which a candidate is dropped
BATCH = 8192
TEMPERATURE = 0.65
MAX_PROMPT, MAX_NEW = 56, 264
REQUESTS = 600_000
WORKERS = 14
_COMPACT_STEP = 512


def load_bpe(data):
    with open(os.path.join(data, "vocab.json"), encoding="utf-8") as file:
        v = json.load(file)
    return Bpe(v["tokens"], v["merges"], v["specials"], whole_words=True)


def allowed_bias(bpe, device):
    """0 for tokens a story may hold (printable ASCII, line ends, the stop), else -inf."""
    bias = torch.full((len(bpe.tokens),), -torch.inf)
    for i in range(len(bpe.tokens)):
        text = bpe.decode([i])
        fine = text.isascii() and (text.isprintable() or set(text) <= {"\n"})
        if i == STOP or (text and fine):
            bias[i] = 0.0
    return bias.to(device)


_worker_bpe = None


def _start_worker(data):
    global _worker_bpe
    _worker_bpe = load_bpe(data)


def _make_requests(args):
    """A list of (prompt ids, request, words it must mention)."""
    seed, count = args
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        request, must = sample_request(rng)
        ids = _worker_bpe.encode(chat_prompt(request))
        if len(ids) <= MAX_PROMPT:
            out.append((ids, request, must))
    return out


def _judge(args):
    """Verdict and text of each sampled story."""
    rows, requests = args
    out = []
    for ids, (_, _, must) in zip(rows, requests):
        text = _worker_bpe.decode(ids) if ids else ""
        out.append((verdict(text, must) if text else "unfinished", text))
    return out


class Wave:
    """One batch of prompts of equal length, sampled until nearly all stories have ended."""

    def __init__(self, teacher, bias, table, prompts, temperature):
        self.teacher, self.bias, self.table = teacher, bias, table
        self.temperature = temperature
        device = teacher.device
        self.n = len(prompts)
        self.prompt = torch.tensor(prompts, device=device)
        self.tokens = torch.full((self.n, MAX_NEW), -1, dtype=torch.int16, device=device)
        self.top_ids = torch.zeros((self.n, MAX_NEW, TOP), dtype=torch.int16, device=device)
        self.top_p = torch.zeros((self.n, MAX_NEW, TOP), dtype=torch.float16, device=device)
        self.length = torch.zeros(self.n, dtype=torch.long, device=device)
        self.log_p = torch.zeros(self.n, device=device)

    def _prefill(self, cache, chunk=2048):
        last = []
        for at in range(0, self.n, chunk):
            part = [[k[at : at + chunk], v[at : at + chunk]] for k, v in cache]
            hidden = self.teacher.forward(self.prompt[at : at + chunk], self.table, part)
            last.append(hidden[:, -1])
        return torch.cat(last)

    def _pick(self, hidden):
        logits = F.linear(hidden, self.teacher.embed).float() + self.bias
        value, ids = logits.topk(TOP, dim=-1)
        p = (value / self.temperature).softmax(-1)
        p = torch.where(p < MIN_SHARE * p[:, :1], 0, p)
        p = p / p.sum(-1, keepdim=True)
        # The smallest of exponential variables with these rates is a draw from p.
        at = (p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True)
        return ids.gather(1, at)[:, 0], ids, p, p.gather(1, at)[:, 0]

    def run(self):
        teacher, width = self.teacher, self.prompt.shape[1]
        cache = teacher.new_cache(self.n, MAX_PROMPT + MAX_NEW)
        hidden = self._prefill(cache)
        rows = torch.arange(self.n, device=teacher.device)
        alive = torch.ones_like(rows, dtype=torch.bool)
        for step in range(MAX_NEW):
            token, ids, p, chosen = self._pick(hidden)
            self.tokens[rows, step] = torch.where(alive, token, -1).short()
            self.top_ids[rows, step] = ids.short()
            self.top_p[rows, step] = p.half()
            self.log_p[rows] += torch.where(alive, chosen.log(), 0)
            ended = alive & (token == STOP)
            self.length[rows] = torch.where(ended, step + 1, self.length[rows])
            alive = alive & ~ended
            if step + 1 == MAX_NEW:
                break
            if step % 16 == 15 and step >= 64:
                left = int(alive.sum())
                if left < 0.05 * self.n:
                    break
                size = (left + _COMPACT_STEP - 1) // _COMPACT_STEP * _COMPACT_STEP
                if size < len(rows):
                    keep = torch.argsort(alive.to(torch.int8), descending=True)[:size]
                    rows, alive, token = rows[keep], alive[keep], token[keep]
                    self._compact(cache, keep, width + step)
            hidden = teacher.forward(token[:, None], self.table, cache, width + step)[:, 0]

    def _compact(self, cache, keep, used):
        for layer in cache:
            for i, old in enumerate(layer):
                new = old.new_empty((len(keep), *old.shape[1:]))
                new[:, :, :used] = old[keep, :, :used]
                layer[i] = new


class Sampler:
    def __init__(self, data, device, batch, temperature, log):
        self.log, self.batch, self.device = log, batch, device
        self.temperature = temperature
        self.bpe = load_bpe(data)
        self.pool = multiprocessing.get_context("fork").Pool(WORKERS, _start_worker, (data,))
        jobs = [(1000 + i, REQUESTS // (4 * WORKERS)) for i in range(4 * WORKERS)]
        self.requests = self.pool.map_async(_make_requests, jobs, chunksize=1)
        self.data = data

    def make_teacher(self, kept, choices):
        """Takes the tuned teacher from the file, or tunes one and writes it."""
        meta, tensors = unpack_teacher(os.path.join(self.data, "teacher.pack"))
        if os.path.exists(kept):
            self.teacher = Teacher(meta, tensors, self.device, torch.float32)
            for p, value in zip(self.teacher.parameters(), torch.load(kept)):
                p.copy_(value)
        else:
            self.teacher = self._tune(meta, tensors, choices)
            torch.save([p.cpu() for p in self.teacher.parameters()], kept)
        self.teacher.cast(torch.bfloat16 if self.device == "cuda" else torch.float32)
        self.bias = allowed_bias(self.bpe, self.device)
        self.table = self.teacher.rope_table(MAX_PROMPT + MAX_NEW)

    def _tune(self, meta, tensors, choices):
        """Tunes a teacher with each (epochs, rate) and returns the one best on held-out seeds."""
        with open(os.path.join(self.data, "seeds.json"), encoding="utf-8") as file:
            seeds = json.load(file)
        best = None
        for epochs, rate in choices:
            teacher = Teacher(meta, tensors, self.device, torch.float32)
            self.log(f"tuning: {epochs} epochs, rate {rate}")
            held = tune(teacher, self.bpe, seeds, epochs=epochs, peak=rate, log=self.log)
            if best is None or held < best[0]:
                best = (held, teacher)
        return best[1]

    def _buckets(self):
        """Groups of requests with prompts of one length, in random order."""
        by_length = defaultdict(list)
        for part in self.requests.get():
            for item in part:
                by_length[len(item[0])].append(item)
        groups = []
        for items in by_length.values():
            groups += [items[i : i + self.batch] for i in range(0, len(items), self.batch)]
        groups = [g for g in groups if len(g) >= 0.75 * self.batch]
        random.Random(5).shuffle(groups)
        self.log(f"{sum(map(len, groups))} requests in {len(groups)} groups")
        return groups

    @torch.no_grad()
    def run(self, seconds):
        """Samples wave after wave; returns [(wave, requests, verdicts to come)]."""
        start, done, longest, total = time.time(), [], 0.0, 0
        for group in self._buckets():
            if time.time() - start + longest > seconds:
                break
            began = time.time()
            wave = Wave(
                self.teacher, self.bias, self.table, [r[0] for r in group], self.temperature
            )
            wave.run()
            rows = wave.tokens.cpu().numpy()
            length = wave.length.cpu().numpy()
            stories = [row[: n - 1].tolist() if n else [] for row, n in zip(rows, length)]
            cut = (len(group) + WORKERS - 1) // WORKERS
            jobs = [(stories[i : i + cut], group[i : i + cut]) for i in range(0, len(group), cut)]
            done.append((wave, group, self.pool.map_async(_judge, jobs, chunksize=1)))
            total += int(length.sum())
            longest = max(longest, time.time() - began)
            if len(done) in (1, 2, 5) or len(done) % 10 == 0:
                rate = total / (time.time() - start)
                self.log(f"wave {len(done)}: {total} tokens of ended stories, {rate:.0f} a second")
        self.log(f"{len(done)} waves in {time.time() - start:.0f} s, {total} tokens")
        return done


def gather(done, newline, log, worst=0.1):
    """Joins what passed the filters into flat tensors, and the texts.

    tokens: request, story, stop and line end of each story in a row; story_start and end: where
    its story begins and where all of it ends; top_ids, top_p: the teacher's candidates for the
    token at that place, of probability 0 outside stories.
    """
    counts, seen, texts = Counter(), set(), []
    parts = defaultdict(list)
    at = 0
    for wave, group, result in done:
        verdicts = [v for part in result.get() for v in part]
        mean = (wave.log_p / wave.length.clamp(min=1)).cpu()
        ended = mean[wave.length.cpu() > 0].sort().values
        limit = ended[int(worst * len(ended))] if len(ended) else 0.0
        rows = []
        for row, (word, text) in enumerate(verdicts):
            if word == "ok" and mean[row] < limit:
                word = "unlikely"
            if word == "ok" and text[40:160] in seen:
                word = "twin"
            counts[word] += 1
            if word == "ok":
                seen.add(text[40:160])
                rows.append(row)
                texts.append((group[row][1], text))
        if not rows:
            continue
        device = wave.tokens.device
        rows = torch.tensor(rows, device=device)
        length, width = wave.length[rows], wave.prompt.shape[1]
        span = wave.tokens.shape[1]
        used = torch.arange(span, device=device)[None, :] < length[:, None]
        inside = F.pad(used, (width, 1), value=True)
        tail = torch.full((len(rows), 1), newline, dtype=torch.int16, device=device)
        line = torch.cat([wave.prompt[rows].short(), wave.tokens[rows], tail], dim=1)
        parts["tokens"].append(line[inside])
        for name, source in (("top_ids", wave.top_ids), ("top_p", wave.top_p)):
            padded = F.pad(source[rows], (0, 0, width, 1))
            parts[name].append(padded[inside])
        sizes = length.cpu() + width + 1
        ends = at + sizes.cumsum(0)
        parts["end"].append(ends)
        parts["story_start"].append(ends - sizes + width)
        at = int(ends[-1])
    log("verdicts: " + ", ".join(f"{k} {v}" for k, v in counts.most_common()))
    return {name: torch.cat(p).cpu() for name, p in parts.items()}, texts


def _write_text(args):
    path, texts = args
    with lzma.open(path, "wt", preset=1, encoding="utf-8") as file:
        json.dump(texts, file)


def write_texts(pool, out, texts, files=5, most=120_000):
    texts = texts[:most]
    cut = (len(texts) + files - 1) // files
    jobs = [
        (os.path.join(out, f"stories-{i}.xz"), texts[i * cut : (i + 1) * cut]) for i in range(files)
    ]
    pool.map(_write_text, jobs, chunksize=1)


def main(data, store, out, seconds, batch=BATCH, temperature=TEMPERATURE):
    began = time.time()
    log_file = open(os.path.join(out, "sample.log"), "w", encoding="utf-8")

    def log(text):
        line = f"[{time.time() - began:6.1f}] {text}"
        print(line, flush=True)
        print(line, file=log_file, flush=True)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.enable_cudnn_sdp(False)
    sampler = Sampler(data, device, int(batch), float(temperature), log)
    sampler.make_teacher(os.path.join(store, "teacher.pt"), [(3, 1e-4), (3, 3e-4)])
    done = sampler.run(float(seconds))
    flat, texts = gather(done, sampler.bpe.ids["\u010a"], log)
    torch.save(flat, os.path.join(store, "stories.pt"))
    log(f"{len(texts)} stories, {len(flat['tokens'])} tokens saved")
    write_texts(sampler.pool, out, texts)
    for request, text in random.Random(3).sample(texts, min(8, len(texts))):
        log(f"--- {request}\n{text}")
    sampler.pool.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
