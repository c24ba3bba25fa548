"""Step 1, on any machine: packs teacher, vocabulary and seed stories into one folder.

    prepare.py TEACHER.gguf STORIES.txt OUT

STORIES.txt has seed stories separated by <|endoftext|> lines, as TinyStories is published.
OUT/teacher.pack holds the teacher's layers as they are in the GGUF file (Q4_1, byte planes
deflated) and the embedding rows of the chosen vocabulary; OUT/vocab.json the vocabulary and its
merges; OUT/seeds.json the cleaned stories.
"""

import json
import os
import re
import sys
import zlib

import numpy as np

from gguf_file import Gguf
from vocab import SPECIALS, choose

VOCAB_SIZE = 5120
MIN_CHARS, MAX_CHARS = 300, 1100
_UNFIT = re.compile(r"\b(kill|killed|dead|died|die|blood|gun|hell|stupid|drunk|beer|wine)\b", re.I)
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def clean_story(text):
    """Returns the story in plain form, or None when it is not fit as a seed."""
    text = text.translate(_QUOTES).strip()
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n\s*", "\n\n", text)
    if not text.isascii() or not MIN_CHARS <= len(text) <= MAX_CHARS or _UNFIT.search(text):
        return None
    if not text[0].isupper() or text[-1] not in '.!?"':
        return None
    return text


def read_seeds(path):
    with open(path, encoding="utf-8") as file:
        parts = file.read().split("<|endoftext|>")
    stories = [clean_story(p) for p in parts]
    return list(dict.fromkeys(s for s in stories if s))


def deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    return packer.compress(data) + packer.flush()


def _planes(type_name, raw):
    """Bytes of one kind beside each other deflate better than blocks."""
    if type_name == "Q4_1":
        blocks = raw.reshape(-1, 20)
        return [blocks[:, i].tobytes() for i in range(4)] + [blocks[:, 4:].tobytes()]
    return [raw.tobytes()]


def pack_teacher(gguf, ids, path):
    """Header length, JSON header, then the deflated planes in the header's order."""
    tensors = dict(gguf.tensors)
    kind, shape, raw = tensors["token_embd.weight"]
    rows = raw.reshape(shape[0], -1)[ids]
    tensors["token_embd.weight"] = (kind, (len(ids), shape[1]), rows.reshape(-1))
    meta = {k: v for k, v in gguf.meta.items() if k.startswith("llama.")}
    header, body = {"meta": meta, "tensors": []}, []
    for name, (kind, shape, raw) in tensors.items():
        planes = [deflate(p) for p in _planes(kind, np.ascontiguousarray(raw))]
        header["tensors"].append([name, kind, list(shape), [len(p) for p in planes]])
        body += planes
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head + b"".join(body))


def unpack_teacher(path):
    """Returns (meta, tensors) as gguf_file.Gguf has them."""
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        tensors = {}
        for name, kind, shape, sizes in head["tensors"]:
            planes = [np.frombuffer(zlib.decompress(file.read(n)), np.uint8) for n in sizes]
            if kind == "Q4_1":
                heads = np.stack(planes[:4], axis=1)
                planes = [np.concatenate([heads, planes[4].reshape(-1, 16)], axis=1).reshape(-1)]
            tensors[name] = (kind, tuple(shape), planes[0])
    return head["meta"], tensors


def main(gguf_path, stories_path, out):
    os.makedirs(out, exist_ok=True)
    gguf = Gguf(gguf_path)
    stories = read_seeds(stories_path)
    tokens = gguf.meta["tokenizer.ggml.tokens"]
    merges = gguf.meta["tokenizer.ggml.merges"]
    kept, kept_merges, ids = choose(tokens, merges, stories, VOCAB_SIZE)
    with open(os.path.join(out, "vocab.json"), "w", encoding="utf-8") as file:
        json.dump({"tokens": kept, "merges": kept_merges, "specials": SPECIALS}, file)
    with open(os.path.join(out, "seeds.json"), "w", encoding="utf-8") as file:
        json.dump(stories, file)
    pack_teacher(gguf, ids, os.path.join(out, "teacher.pack"))
    print(f"{len(stories)} seed stories, {len(kept)} tokens, {len(kept_merges)} merges")


if __name__ == "__main__":
    main(*sys.argv[1:4])
