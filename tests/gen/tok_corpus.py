"""Texts for the tokenizers: many scripts, code, white space, numbers, characters that are rare.

samples() is the same on every machine: the random numbers are our own. Every text was written for
this file.

usage: tok_corpus.py OUTPUT   writes them, each after its length in bytes (u32, little endian)
"""

import struct
import sys

SENTENCES = {
    "english": [
        "The quick brown fox doesn't jump over the lazy dog's fence; it walks around it.",
        "I'm sure they've said they'd come, but we'll see what she's bringing.",
        "Once upon a time, in a small village by the sea, there lived a curious little girl.",
        "\"Where are we going?\" asked Tom. \"To the moon!\" laughed Ann -- and off they went...",
        "A well-known state-of-the-art re-evaluation of co-operation (see p. 12, fig. 3b).",
        "WE'LL SHOUT IF YOU'RE NOT LISTENING! IT'S OKAY, THEY'D SAY, DON'T WORRY.",
        "Prices rose 3.5% in 2023, from $1,299.99 to $1,345.49, i.e. by almost $50.",
        "Dr. Smith's e-mail is john.smith@example.org; his site: https://www.example.org/a?b=c&d=%20.",
        "unbelievably antidisestablishmentarianism floccinaucinihilipilification supercalifragilistic",
        "He said: it's 5 o'clock; rock 'n' roll, y'all'd've known.",
        "The cat sat on the mat. The cat sat on the mat. The cat sat on the mat.",
        "Tokenizers split text into words and words into pieces that occur often.",
    ],
    "chinese": [
        "你好，世界！今天天气很好，我们去公园散步吧。",
        "人工智能正在改变我们的生活方式，但它也带来了新的问题。",
        "从前有一个小女孩，她住在海边的一个小村庄里。",
        "2024年3月15日，北京的气温是12摄氏度。",
        "「這是一個繁體中文的句子」，他說，「你看得懂嗎？」",
        "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？",
        "价格：￥199.00元（含税）；电话：010-12345678。",
        "你好啊！请问你叫什么名字？我叫小明，今年十岁。",
        "𠀀𠀁𠀂 罕用字 㐀㐁 龘靐齉",
    ],
    "japanese": [
        "こんにちは、世界。今日はとても良い天気ですね。",
        "吾輩は猫である。名前はまだ無い。",
        "カタカナとひらがなと漢字が混ざった文章です。",
        "ﾊﾝｶｸｶﾀｶﾅ と 全角ＡＢＣ１２３ の違い。",
        "がぎぐげご ぱぴぷぺぽ を分解するとがぎぐ。",
        "東京タワーの高さは３３３メートルです！？",
    ],
    "korean": [
        "안녕하세요, 세계! 오늘 날씨가 정말 좋네요.",
        "옛날 옛적에 바닷가 작은 마을에 호기심 많은 소녀가 살았어요.",
        "가격은 12,000원이며 배송비는 무료입니다.",
        "한글 자모: ㄱㄴㄷ 그리고 한글 은 분해된 글자입니다.",
    ],
    "arabic": [
        "مرحبا بالعالم! كيف حالك اليوم؟",
        "كان يا ما كان، في قديم الزمان، فتاة صغيرة تحب القراءة.",
        "اَلْعَرَبِيَّةُ لُغَةٌ جَمِيلَةٌ.",
        "السعر ١٢٣٫٤٥ ريال (٢٠٢٤).",
        "این یک جملهٔ فارسی است؛ می‌خواهم بدانم.",
        "یہ اردو کا ایک جملہ ہے۔",
    ],
    "hebrew": [
        "שלום עולם! מה שלומך היום?",
        "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ.",
        "המחיר הוא 45 ש\"ח, כולל מע״מ.",
    ],
    "devanagari": [
        "नमस्ते दुनिया! आज मौसम बहुत अच्छा है।",
        "एक समय की बात है, एक छोटे से गाँव में एक लड़की रहती थी।",
        "कीमत ₹१,२३४.५० है, क्षत्रिय ज्ञान श्री।",
        "বাংলা ভাষায় একটি বাক্য। தமிழ் வாக்கியம். తెలుగు వాక్యం.",
    ],
    "thai": [
        "สวัสดีชาวโลก วันนี้อากาศดีมาก",
        "กาลครั้งหนึ่งนานมาแล้ว มีเด็กหญิงอาศัยอยู่ริมทะเล ราคา ๑๒๓ บาท",
        "ພາສາລາວ ភាសាខ្មែរ မြန်မာဘာသာ",
    ],
    "cyrillic": [
        "Привет, мир! Сегодня очень хорошая погода.",
        "Жили-были старик со старухой у самого синего моря.",
        "Съешь же ещё этих мягких французских булок, да выпей чаю.",
        "Їжак, ґанок і європейська п'ятниця — українською.",
        "Ћирилица и латиница: čćžšđ.",
    ],
    "greek": [
        "Γειά σου Κόσμε! Τι κάνεις σήμερα;",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ ὀδυσσεύς ἄνδρα μοι ἔννεπε.",
    ],
    "latin": [
        "Voilà l'été: c'est déjà Noël à l'hôtel, n'est-ce pas ?",
        "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. STRAßE ẞ",
        "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia. ¿Qué? ¡Olé!",
        "Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń.",
        "Tiếng Việt có nhiều dấu: ấ ầ ẩ ẫ ậ, nghĩa là gì?",
        "İstanbul'da ılık bir gün; ıI iİ. ŉ ǆ ﬁ ﬂ ﬀ",
        "ᚠᚢᚦᚨᚱᚲ ⠓⠑⠇⠇⠕ ᏣᎳᎩ ქართული հայերեն አማርኛ",
    ],
    "emoji": [
        "👨‍👩‍👧‍👦 family, 👩🏽‍🚀 astronaut, 🏳️‍🌈 flag, 🇩🇪🇫🇷🇯🇵 flags",
        "😀😃😄😁😆😅🤣😂 🙂🙃 ❤️ ❤ ☺︎ ☺️ 1️⃣2️⃣#️⃣",
        "👍🏻👍🏼👍🏽👍🏾👍🏿 👋hello👋 🤷‍♀️🤷🏿‍♂️ 🧑‍🤝‍🧑",
        "✨🚀 Launch! ✅ done ❌ failed ⚠️ warning → ← ↑ ↓ ∞ ≠ ≤ ≥ ± √ ∑ ∫",
    ],
    "combining": [
        "e\u0301 e\u0300 a\u0308 o\u0302\u0301 n\u0303 c\u0327\u0301 q\u0323\u0307 q\u0307\u0323",
        "Am\u0301elie Poulain\u0308 re\u0301sume\u0301 nai\u0308ve co\u00f6perate \u212b \u2126 \u212a",
        "Z\u0351\u036b\u0343\u036a\u0302a\u0352\u0360lgo t\u0315\u0321e\u0322x\u0334t",
        "\u1100\u1161\u11a8 \u0915\u093c \u095b \u0958 \u09c7\u09be \u0b47\u0b3e \u0ddc",
        "\u1e69 s\u0323\u0307 s\u0307\u0323 \u1e9b\u0323 \u01d5 U\u0308\u0304 \ufb2c \ufb49\u05c1",
        "\u00a0nbsp\u00a0 \u00adsoft\u00adhyphen \ufb01 \u2460 \u3300 \uff21 \u00bd \u00b2 \u2167",
    ],
    "odd": [
        "\ufeffBOM at the start and \ufeff inside",
        "zero\u200bwidth\u200cspaces\u200dand\u2060joiners\u00ad",
        "\u202eright-to-left override\u202c \u2066isolate\u2069",
        "control \x01\x02\x07\x08\x0b\x0c\x1b\x1f\x7f\x80\x85\x9f characters",
        "private \ue000\uf8ff\U000f0000 unassigned \u0378\U000e0080 noncharacter \ufffe\uffff\U0010ffff",
        "replacement \ufffd\ufffd and \ufffc object",
        "\u180e mongolian \u1680 ogham \u2000\u2001\u2002\u2003\u2009\u200a \u202f\u205f\u3000 spaces",
        "line\u2028separator paragraph\u2029separator next\u0085line vertical\x0btab form\x0cfeed",
        "math \U0001d400\U0001d4d0\U0001d56c \U0001d7d8\U0001d7ff fractur, \u2102\u210d\u2115",
        "<0x0A> <0xE4><0xBD><0xA0> <unk> <s> </s> [INST] <<SYS>> \u2581under\u2581score \u2581",
        "\u0120hello\u0120world \u010a\u0109 \u00c4\u00a0 alphabet of bytes",
    ],
    "code": [
        "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)",
        "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }  // dot product",
        "\tif (x == NULL) {\r\n\t\treturn -1;\r\n\t}\r\n",
        "SELECT id, name FROM users WHERE age >= 18 AND email LIKE '%@example.com' ORDER BY name;",
        "#include <stdio.h>\n\nint main(void)\n{\n\tprintf(\"%d\\n\", 0x1F & ~0b101);\n\treturn 0;\n}\n",
        "{\"key\": [1, 2.5e-3, null, true], \"nested\": {\"a\\u00e9\": \"\\n\"}}",
        "<div class=\"a b\" id='x'>&nbsp;&lt;p&gt;</div><!-- comment -->",
        "let f = |x: &mut Vec<u8>| -> Option<_> { x.pop().map(|b| b as char) };",
        "$ ls -la /usr/bin | grep '^d' | awk '{print $NF}' && echo \"done: $?\"",
        "x = (a**2+b**2)**0.5; y=x//3; z=~x^y|w&v<<2>>1; assert x!=y, f'{x:.3f}'",
        "git commit -m 'fix(parser): off-by-one in read_header()' --author=\"A <a@b.c>\"",
        "    public static void main(String[] args) {        System.out.println(\"hi\");    }",
        "%%timeit -n 10\nnp.einsum('ij,jk->ik', A, B)\n\n\n\n# end",
        "CamelCaseIdentifier snake_case_identifier kebab-case SCREAMING_CASE x1y2z3 __init__",
    ],
    "numbers": [
        "0 1 12 123 1234 12345 123456 1234567 12345678901234567890",
        "3.14159 -2.5e+10 1,000,000 0xDEADBEEF 1/2 50% 12:34:56 2024-02-29",
        "٠١٢٣٤٥٦٧٨٩ ०१२३४५६७८९ ๐๑๒๓๔๕๖๗๘๙ ０１２３４５６７８９ ①②③ ⅠⅡⅢ ½¼¾ ²³¹",
        "+49 (0)30 1234-5678, 192.168.0.1, v1.2.3-rc.4+build.5",
    ],
}

SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|eot_id|>", "<think>",
            "</think>", "<s>", "</s>", "<|reserved_7|>", "[TOOL]", "  [TOOL]  ", "<|im_start", "|im_end|>",
            "<<|im_end|>>", "wordy", "awordy", "wordyb", " wordy "]
SPACES = [" ", "  ", "   ", "    ", "        ", "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", " \n ",
          " \t \n", "\u3000", "\u00a0", "\r", "\n\t", "                 "]
MARKS = [".", ",", "!", "?", "...", "--", ";", ":", "'", "\"", "(", ")", "[]", "{}", "!!!", "?!", "。", "，",
         "'s", "'ll", "'RE", "’s", "-", "_", "/", "\\", "@", "#", "$$", "%", "^", "&&", "*", "+", "=", "~", "`", "|"]


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & (2**64 - 1)
        return (z ^ z >> 31) % n

    def pick(self, items):
        return items[self.below(len(items))]


def words_of(sentences):
    return [w for s in sentences for w in s.split(" ") if w]


def mixed_line(r, words):
    parts = []
    for _ in range(3 + r.below(12)):
        parts.append(r.pick(words))
        kind = r.below(10)
        if kind < 6:
            parts.append(" ")
        elif kind < 8:
            parts.append(r.pick(SPACES))
        else:
            parts.append(r.pick(MARKS))
    return "".join(parts)


def cut_line(r, sentences):
    """A part of a sentence, from and to any character."""
    s = r.pick(sentences)
    start = r.below(len(s))
    return s[start:start + 1 + r.below(40)]


def char_soup(r):
    """Characters that every version of Unicode in use has; others are in the "odd" sentences."""
    safe = [(0x20, 0x7F), (0xA0, 0x17F), (0x300, 0x33F), (0x391, 0x3A1), (0x3B1, 0x3C9), (0x410, 0x44F),
            (0x5D0, 0x5EA), (0x621, 0x63A), (0x905, 0x939), (0xE01, 0xE30), (0x1EA0, 0x1EF9), (0x2010, 0x2027),
            (0x2190, 0x21FF), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3),
            (0xFF01, 0xFF5E), (0x1F600, 0x1F64F)]
    out = []
    for _ in range(5 + r.below(30)):
        low, high = r.pick(safe)
        out.append(chr(low + r.below(high - low + 1)))
    return "".join(out)


def long_word(r):
    kind = r.below(5)
    n = 200 + r.below(2000)
    if kind == 0:
        return r.pick("axZ9_é") * n
    if kind == 1:
        return "".join(chr(97 + r.below(26)) for _ in range(n))
    if kind == 2:
        return "".join(r.pick(["ab", "ba", "abc", "cab"]) for _ in range(n // 2))
    if kind == 3:
        return "".join(chr(0x4E00 + r.below(500)) for _ in range(n // 3))
    return r.pick(SPACES) * (n // 4)


def number_line(r):
    out = []
    for _ in range(1 + r.below(8)):
        digits = "".join(str(r.below(10)) for _ in range(1 + r.below(12)))
        out.append(r.pick(["", "$", "-", "+", "#", "€", " "]) + digits + r.pick(["", ".", ",", "%", "th", " kg", "e5", ":"]))
    return r.pick([" ", ", ", "\t", ""]).join(out)


def special_line(r, words):
    out = []
    for _ in range(1 + r.below(6)):
        out.append(r.pick(SPECIALS))
        out.append(r.pick(["", " ", "\n", "  ", "a", "."]) + r.pick(words) + r.pick(["", " ", "\n"]))
    return "".join(out)


def samples():
    """At least 2,000 texts, none of them empty except the first."""
    r = Random(20260115)
    all_sentences = [s for group in SENTENCES.values() for s in group]
    all_words = words_of(all_sentences)
    out = ["", " ", "  ", "\n", "a", "▁", "é", "你"]
    out += all_sentences
    out += [s.upper() for s in SENTENCES["english"]] + [" " + s for s in all_sentences]
    for sentences in SENTENCES.values():
        words = words_of(sentences)
        out += [mixed_line(r, words) for _ in range(35)]
        out += [cut_line(r, sentences) for _ in range(35)]
    out += [mixed_line(r, all_words) for _ in range(250)]
    out += [r.pick(SPACES) + mixed_line(r, all_words) + r.pick(SPACES) for _ in range(100)]
    out += [char_soup(r) for _ in range(120)]
    out += [number_line(r) for _ in range(100)]
    out += [special_line(r, all_words) for _ in range(200)]
    out += [long_word(r) for _ in range(20)]
    out += ["".join(r.pick(SPACES) for _ in range(2 + r.below(6))) for _ in range(60)]
    out += ["\n".join(r.pick(all_sentences) for _ in range(6)) for _ in range(8)]
    return out


def training(scripts=None):
    """What tokenizers are trained on: the sentences, or those of some scripts; English more often."""
    out = []
    for name, sentences in SENTENCES.items():
        if not scripts or name in scripts:
            out += sentences * (8 if name == "english" else 3)
    return out


def main():
    with open(sys.argv[1], "wb") as f:
        for s in samples():
            data = s.encode()
            f.write(struct.pack("<I", len(data)) + data)


if __name__ == "__main__":
    main()
