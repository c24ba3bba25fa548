"""Which sampled stories are good enough to learn from."""

import re
from collections import Counter

from prompts import mentions

MIN_CHARS, MAX_CHARS = 220, 1250
_SENTENCE = re.compile(r'[^.!?]+[.!?]+["\']?')
_UNFIT = re.compile(
    r"\b(kill\w*|dead|died|die|dying|blood\w*|guns?|sex\w*|drugs?|stupid|hell|hate[ds]?|drunk|beer|"
    r"wine|god|jesus|church|ai|assistant|words? limit|story is|in this story|the end of)\b",
    re.I,
)
_NAMED = re.compile(r"\b(?:named|called) ([A-Z][a-z]+)")
_INNER_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_NOT_NAMES = {"Mom", "Dad", "Mommy", "Daddy", "Mum", "Mummy", "Grandma", "Grandpa", "Christmas"}
_BAD_MARKS = re.compile(r'[<>{}\[\]_*#@/\\|~^=+$%&;]|\.\.\.\.|,,|""|\?\?|!!|  |\n\n\n')


def _repeats(text):
    """Whether a sentence comes twice or a run of five words three times."""
    sentences = Counter(s.strip().lower() for s in _SENTENCE.findall(text))
    if any(n > 1 and len(s) > 24 for s, n in sentences.items()):
        return True
    words = re.findall(r"[a-z']+", text.lower())
    runs = Counter(zip(words, words[1:], words[2:], words[3:], words[4:]))
    return bool(runs) and max(runs.values()) > 2


def _names_hold(text):
    """A character that is named at the start stays in the story, and few others come."""
    first = _NAMED.search(text[:200])
    if first and text.count(first.group(1)) < 3:
        return False
    return len(set(_INNER_NAME.findall(text)) - _NOT_NAMES) <= 4


def verdict(text, must):
    """Returns "ok" or the name of the rule that the story breaks."""
    if not MIN_CHARS <= len(text) <= MAX_CHARS:
        return "length"
    if not text[0].isupper() or text[-1] not in '.!"?' or text.count('"') % 2:
        return "form"
    if _BAD_MARKS.search(text) or not text.isascii():
        return "marks"
    if _UNFIT.search(text):
        return "words"
    if _repeats(text):
        return "repeats"
    if not _names_hold(text):
        return "names"
    lower = text.lower()
    missed = [w for w in must if not mentions(lower, w)]
    if missed and (missed[0] == must[0] or len(missed) > 1):
        return "request"
    return "ok"
