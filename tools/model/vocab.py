"""Chooses the story vocabulary: a part of the teacher's tokens, so that teacher and student agree.

A word of the stories that is one token for the teacher is one token here (the tokenizer looks a
word up before it merges), so only word pieces need the merges that build them.
"""

import random
from collections import Counter

from bpe import BYTE_CHARS, WORDS, Bpe
from prompts import ASKS, PLAIN_ASKS, USE_WORDS, WORD_ASKS, sample_request

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END, START, STOP = range(3)
_PROMPT_SAMPLES = 20000
_PROMPT_WEIGHT = 0.05


def count_words(stories):
    """Words of the seed stories, and with a smaller weight those of the requests."""
    counts = Counter()
    for story in stories:
        counts.update(WORDS.findall(story))
    requests = Counter()
    rng = random.Random(0)
    for _ in range(_PROMPT_SAMPLES):
        requests.update(WORDS.findall(sample_request(rng)[0]))
    for text in [*ASKS, *PLAIN_ASKS, *USE_WORDS, *WORD_ASKS]:
        requests.update(WORDS.findall(text))
    for role in ("user", "assistant", "system"):
        requests[role] += _PROMPT_SAMPLES
    for word, count in requests.items():
        counts[word] += count * _PROMPT_WEIGHT
    return counts


def _merge_parents(merges):
    parents = {}
    for merge in merges:
        left, right = merge.split(" ")
        parents.setdefault(left + right, (left, right))
    return parents


def _with_parents(token, parents):
    todo, seen = [token], {token}
    while todo:
        for part in parents.get(todo.pop(), ()):
            if part not in seen:
                seen.add(part)
                todo.append(part)
    return seen


def choose(tokens, merges, stories, size):
    """Returns (token strings, merges, teacher ids) of a vocabulary of the given size."""
    teacher = Bpe(tokens, merges, SPECIALS)
    parents = _merge_parents(merges)
    whole, pieces = Counter(), Counter()
    for word, count in count_words(stories).items():
        ids = teacher.encode(word)
        for i in ids:
            (whole if len(ids) == 1 else pieces)[tokens[i]] += count
    chosen = set(BYTE_CHARS.values())
    built = set(chosen)
    ranked = [(c, t, True) for t, c in whole.items()] + [(c, t, False) for t, c in pieces.items()]
    for _, token, is_word in sorted(ranked, key=lambda r: (-r[0], r[1])):
        need = {token} if is_word else _with_parents(token, parents)
        if len(chosen | need) + len(SPECIALS) > size:
            continue
        chosen |= need
        if not is_word:
            built |= need
    kept_merges = [m for m in merges if m.replace(" ", "") in built and set(m.split(" ")) <= built]
    # The teacher lacks a few bytes that no English text has; they borrow the row of END.
    teacher_id = {t: teacher.ids.get(t, END) for t in chosen}
    kept = SPECIALS + sorted(chosen, key=lambda t: (teacher_id[t], t))
    return kept, kept_merges, [END, START, STOP] + [teacher_id[t] for t in kept[len(SPECIALS) :]]
