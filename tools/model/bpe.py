"""Byte-level BPE as GPT-2 and SmolLM2 write it, for ASCII text, with a cache per word."""

import re

# GPT-2's pre-tokenizer with every digit on its own; ASCII is all our prompts and stories hold.
WORDS = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def _byte_chars():
    """The printable character that stands for each byte in a vocabulary."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    chars = {b: chr(b) for b in keep}
    for b in range(256):
        if b not in chars:
            chars[b] = chr(256 + len(chars) - len(keep))
    return chars


BYTE_CHARS = _byte_chars()
CHAR_BYTES = {c: b for b, c in BYTE_CHARS.items()}


class Bpe:
    """tokens: list of strings by id; merges: list of "left right"; specials: whole-text tokens.

    whole_words: a word that is a token is that token, whatever the merges would make of it.
    """

    def __init__(self, tokens, merges, specials, whole_words=False):
        self.tokens = tokens
        self.whole_words = whole_words
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.ranks = {tuple(m.split(" ")): i for i, m in enumerate(merges)}
        self.specials = {s: self.ids[s] for s in specials}
        self._split_specials = re.compile("(" + "|".join(map(re.escape, specials)) + ")")
        self._cache = {}
        self._bytes = [self._token_bytes(t) for t in tokens]

    def _token_bytes(self, token):
        if token in self.specials:
            return b""
        return bytes(CHAR_BYTES[c] for c in token)

    def _word(self, word):
        parts = [BYTE_CHARS[b] for b in word.encode("utf-8")]
        if self.whole_words and "".join(parts) in self.ids:
            return [self.ids["".join(parts)]]
        while len(parts) > 1:
            pairs = [self.ranks.get(p, 1 << 30) for p in zip(parts, parts[1:])]
            best = min(pairs)
            if best == 1 << 30:
                break
            at = pairs.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [self.ids[p] for p in parts]

    def encode(self, text):
        out = []
        for part in self._split_specials.split(text):
            if part in self.specials:
                out.append(self.specials[part])
                continue
            for word in WORDS.findall(part):
                ids = self._cache.get(word)
                if ids is None:
                    ids = self._cache[word] = self._word(word)
                out.extend(ids)
        return out

    def decode(self, ids):
        return b"".join([self._bytes[i] for i in ids]).decode("utf-8", "replace")
