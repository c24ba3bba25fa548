#!/usr/bin/env python3
"""Trains tokenizers with the Python package `tokenizers` and writes what it makes of the corpus.

usage: gen_tokenizers.py FOLDER          writes the fixtures
       gen_tokenizers.py --check FOLDER  says whether the fixtures in the folder are what it would write

The configurations are those of Qwen, Llama 3, SmolLM and of models in the manner of SentencePiece,
trained on a few pages of text (tok_corpus.py). For each there is NAME.json, a tokenizer.json, and
NAME.crc: for every text the CRC-32 of its ids (u32 each, without and then with special tokens) and
that of the text decoded from them (as it is, then without special tokens); behind those, for
RANDOM_LISTS lists of random ids, the CRC-32 of the decoded text.

parts.json is one model without anything around it; every line of parts.jsonl is a configuration to go
with it, and parts.crc has the two numbers for every MODEL_FILES_STEP-th text and each line.
"""

import filecmp
import json
import os
import struct
import sys
import tempfile
import zlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

from tok_corpus import Random, samples, training

RANDOM_LISTS = 300
MODEL_FILES_STEP = 11

# Scripts of the models that do not know every byte; the characters of others are unknown to them.
SOME = ("english", "latin", "cyrillic", "chinese", "code")

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
BYTES = ["<0x%02X>" % b for b in range(256)]


def byte_level(vocab_size, pre, normalizer=None, specials=(), plain=(), ignore_merges=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(training(), trainers.BpeTrainer(
        vocab_size=vocab_size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    t.add_tokens([AddedToken(s, normalized=False) for s in plain])
    return t


def split_bytes(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def qwen():
    return byte_level(2600, split_bytes(QWEN2), normalizers.NFC(),
                      ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<think>", "</think>"])


def llama3():
    t = byte_level(3000, split_bytes(LLAMA3), None,
                   ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_7|>", "<|eot_id|>"], ignore_merges=True)
    bos = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B:1",
                                      special_tokens=[("<|begin_of_text|>", bos)])])
    # Some tokens that merging does not reach, so that it matters that whole words need no merges.
    state = json.loads(t.to_str())
    state["model"]["merges"] = [m for i, m in enumerate(state["model"]["merges"]) if i % 9 != 8]
    return Tokenizer.from_str(json.dumps(state))


def smollm():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return byte_level(2200, pre, None, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])


def sentencepiece():
    """Llama 2 and Mistral: spaces become U+2581, the whole text is one word, bytes are the last resort."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(training(SOME), trainers.BpeTrainer(
        vocab_size=2400, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"] + BYTES))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.pre_tokenizer = None
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                     special_tokens=[("<s>", 1)])
    # The trainer made the tokens of bytes special; SentencePiece does not. Two bytes are missing, so
    # that some characters are unknown.
    state = json.loads(t.to_str())
    state["added_tokens"] = [a for a in state["added_tokens"] if a["content"] not in BYTES]
    for byte in ("<0xE3>", "<0xF0>"):
        del state["model"]["vocab"][byte]
    return Tokenizer.from_str(json.dumps(state))


def metaspace():
    """Words that begin with U+2581, unknown characters, added tokens of every sort."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.train_from_iterator(training(SOME), trainers.BpeTrainer(
        vocab_size=1200, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"]))
    t.add_tokens([AddedToken("wordy", single_word=True, normalized=False),
                  AddedToken("[TOOL]", lstrip=True, rstrip=True, normalized=False),
                  AddedToken("<Think>", normalized=True), AddedToken("ÉTÉ", normalized=True, lstrip=True),
                  AddedToken("<|im_start|>", rstrip=True), AddedToken("<|im_start|>x", special=True)])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return t


TOKENIZERS = {"qwen": qwen, "llama3": llama3, "smollm": smollm, "sentencepiece": sentencepiece,
              "metaspace": metaspace}


# ---- single parts, all with one small model ----

def model_files_model():
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(training(SOME), trainers.BpeTrainer(
        vocab_size=1100, show_progress=False, special_tokens=["<unk>", "[CLS]", "[SEP]"] + BYTES[:128],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t.model


def parts():
    """(what is set on the tokenizer) of every line."""
    n, p, d = normalizers, pre_tokenizers, decoders
    rows = [{"normalizer": x} for x in [
        n.NFC(), n.NFD(), n.NFKC(), n.NFKD(), n.Lowercase(), n.StripAccents(), n.Strip(True, True),
        n.Strip(True, False), n.Strip(False, True), n.Prepend("_"), n.Replace("a", "b"),
        n.Replace(Regex(r"\s+"), " "), n.Replace(Regex("o*"), "0"), n.ByteLevel(),
        n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase(), n.Replace("e", ""), n.NFC()])]]
    for behavior in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
        rows.append({"pre_tokenizer": p.Split(Regex(r"\s|e"), behavior)})
        rows.append({"pre_tokenizer": p.Split(Regex(r"\w+|\d?"), behavior, invert=True)})
        rows.append({"pre_tokenizer": p.Punctuation(behavior)})
    rows += [{"pre_tokenizer": x} for x in [
        p.Split(" ", "merged_with_next"), p.Split(".", "isolated"), p.Digits(), p.Digits(True), p.Whitespace(),
        p.WhitespaceSplit(), p.CharDelimiterSplit("e"), p.ByteLevel(), p.ByteLevel(True, use_regex=False),
        p.Metaspace(prepend_scheme="always"), p.Metaspace(prepend_scheme="never"),
        p.Metaspace(prepend_scheme="first", split=False),
        p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first")]),
        p.Sequence([p.ByteLevel(False), p.Split(Regex("[\u0120e]"), "isolated")]),
        p.Sequence([p.Digits(True), p.Punctuation(), p.Metaspace(replacement="*")])]]
    rows += [{"decoder": x} for x in [
        d.ByteFallback(), d.Fuse(), d.Metaspace(prepend_scheme="never"), d.Metaspace(), d.ByteLevel(),
        d.Strip("e", 2, 0), d.Replace(Regex("[aeiou]+"), "-"),
        d.Sequence([d.ByteFallback(), d.Metaspace()]), d.Sequence([d.Fuse(), d.Replace("th", "TH")]),
        d.Sequence([d.Fuse(), d.Strip("\u2581", 3, 0), d.Replace("\u2581", " ")]),
        d.Sequence([d.Fuse(), d.ByteFallback()])]]
    rows += [{"post_processor": x} for x in [
        processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
        processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1)),
        processors.TemplateProcessing(single="[CLS] [CLS] $A [SEP] [CLS]",
                                      special_tokens=[("[CLS]", 1), ("[SEP]", 2)])]]
    return rows


# ---- what is written ----

def crc_ids(*lists):
    return zlib.crc32(b"".join(struct.pack(f"<{len(ids)}I", *ids) for ids in lists))


def crc_of(t, text):
    plain = t.encode(text, add_special_tokens=False).ids
    full = t.encode(text).ids
    decoded = [t.decode(full, skip_special_tokens=skip).encode() for skip in (False, True)]
    return struct.pack("<II", crc_ids(plain, full), zlib.crc32(b"\0".join(decoded)))


def random_lists(size):
    r = Random(7)
    for _ in range(RANDOM_LISTS):
        yield [r.below(size) for _ in range(1 + r.below(12))]


def compact(state):
    return json.dumps(state, ensure_ascii=False, separators=(",", ":"))


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else (data + "\n").encode())


def write_all(folder):
    texts = samples()
    for name, make in TOKENIZERS.items():
        t = make()
        state = json.loads(t.to_str())
        if name == "smollm": # the older form of merges
            state["model"]["merges"] = [" ".join(pair) for pair in state["model"]["merges"]]
        t = Tokenizer.from_str(json.dumps(state))
        crc = [crc_of(t, text) for text in texts]
        crc += [struct.pack("<I", zlib.crc32(t.decode(ids).encode()))
                for ids in random_lists(max(t.get_vocab().values()) + 1)]
        write(folder, name + ".json", compact(state))
        write(folder, name + ".crc", b"".join(crc))

    lines, crc = [], []
    model = model_files_model()
    for row in parts():
        t = Tokenizer(model)
        t.add_special_tokens(["[CLS]", "[SEP]"])
        for key, value in row.items():
            setattr(t, key, value)
        state = json.loads(t.to_str())
        crc += [crc_of(t, text) for text in texts[::MODEL_FILES_STEP]]
        write(folder, "parts.json", compact(state.pop("model")))
        lines.append(compact({k: v for k, v in state.items() if v is not None}))
    write(folder, "parts.jsonl", "\n".join(lines))
    write(folder, "parts.crc", b"".join(crc))


def check(folder):
    with tempfile.TemporaryDirectory() as fresh:
        write_all(fresh)
        names = sorted(os.listdir(fresh))
        other = [n for n in names if not os.path.exists(os.path.join(folder, n))
                 or not filecmp.cmp(os.path.join(folder, n), os.path.join(fresh, n), shallow=False)]
    print(f"{len(names)} files made anew, {len(other)} differ: {' '.join(other)}")
    sys.exit(1 if other else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2])
    os.makedirs(sys.argv[1], exist_ok=True)
    write_all(sys.argv[1])
