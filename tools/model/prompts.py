"""Story requests: word lists, ways of asking, and what a story must mention to count as an answer.

The same ways of asking serve twice: for the seed stories, where subject and words are read off
the story, and for sampling, where they are drawn from the lists.
"""

import re

NAMES_HER = """Ada Amy Anna Bella Clara Daisy Ella Emma Eva Grace Hannah Ivy Jane Kate Lila Lily
Lucy Luna Maria Mary Maya Mia Molly Nina Nora Rosa Rose Ruby Sally Sara Sophie Sue Zoe""".split()
NAMES_HIM = """Adam Ali Ben Bob Charlie Dan David Eli Finn George Henry Hugo Jack Jake Jim Joe John
Leo Luke Mark Max Mike Noah Oliver Omar Oscar Paul Pete Peter Sam Theo Tim Toby Tom Will""".split()
NAMES_PET = """Bella Benny Billy Bobo Bruno Bunny Buddy Coco Daisy Dot Fluffy Fuzzy Ginger Gus Hop
Kiki Lulu Max Milo Mimi Momo Nibbles Olive Oscar Pepper Pip Polly Remy Rocky Ruby Sammy Snowy Spot
Sunny Teddy Tiny Toby Willow Ziggy""".split()

HER = "girl|princess|queen|mother|grandmother|witch|mermaid|lady|sister|fairy".split("|")
HIM = "boy|king|prince|farmer|wizard|pirate|knight|father|grandfather|man|brother|giant".split("|")
BOTH = """baker doctor teacher fisherman gardener painter singer dancer sailor driver builder baby
clown explorer student cook""".split()
ANIMALS = """ant bat bear beaver bee bird bug bunny butterfly camel cat caterpillar chick chicken
cow crab crow deer dinosaur dog dolphin donkey dragon duck eagle elephant fish fly fox frog giraffe
goat goose hedgehog hen hippo horse kangaroo kitten koala ladybug lamb lion lizard mole monkey
moose mouse octopus otter owl panda parrot peacock penguin pig pony puppy rabbit raccoon rat robin
seal shark sheep skunk snail snake spider squirrel starfish swan tiger turkey turtle unicorn whale
wolf worm zebra""".split()
THINGS = """robot boat train car truck bus airplane rocket kite tree flower star cloud leaf
snowman toy doll balloon bell pumpkin seed apple candle clock house river moon mountain stone bike
raindrop snowflake monster ghost alien""".split()

ADJECTIVES = """angry big brave bright brown busy careful clever cold curious cute friendly funny
gentle good grumpy happy honest hungry kind lazy little lonely lost loud lucky messy new nice
noisy old playful polite poor proud quick quiet sad scared selfish shy silly sleepy slow small
smart soft special strange strong tall tiny tired wild wise young""".split()
COLOURS = "red blue green yellow orange purple pink white black brown golden silver".split()
OBJECTS = """apple bag ball balloon banana basket bed bell bike blanket boat book boot bottle
bowl box bread bridge broom bucket button cake camera candle candy carrot chair cheese clock coat
cookie crown cup diamond doll door drum egg feather flag flower flute game gem gift hammer hat
honey horn ice jacket jar jelly kite ladder lamp leaf lemon letter map mask milk mirror mitten
mug mushroom necklace nest net nut paint pan paper pencil penny phone piano picture pie pillow
pizza plant plate potato present pumpkin puzzle ribbon ring rock rope rug salt sandwich scarf seed
shell shirt shoe shovel soap sock soup spoon star stick stone string sweater swing sword table
tent ticket towel tower toy treasure truck tub umbrella vase violin wagon wand watch wheel whistle
window wood""".split()
PLACES = """at the beach|at the farm|at the fair|at the market|at the park|at the zoo|at school|
at the playground|at the circus|at a birthday party|by the lake|by the river|by the sea|in a cave|
in a castle|in a small village|in a big city|in the attic|in the desert|in the forest|in the garden|
in the jungle|in the kitchen|in the library|in the meadow|in the mountains|in the rain|in the snow|
in the woods|in a tall tree|in a toy shop|in space|on a boat|on a farm|on a hill|on an island|
on a train|on the moon|under the bed|under the sea|under a bridge|in winter|in spring|in summer|
on a windy day|on a sunny day|on a rainy day|on a cold night|in the dark|in a pond|in a barn|
in the sky|at night|at home|at grandma's house""".replace("\n", "").split("|")
PLOTS = """wants to fly|wants to make a friend|wants to sing|wants to dance|wants to see the sea|
wants to go home|wants to be big|wants to help|wants to learn to swim|wants to find treasure|
wants to touch the moon|cannot sleep|cannot swim|is afraid of the dark|is afraid of water|is lost|
gets lost|gets stuck|gets wet|gets sick|gets a surprise|gets a new hat|finds a key|finds an egg|
finds a map|finds a magic stone|finds a lost puppy|finds a secret door|finds a new friend|
finds a big box|loses a toy|loses a tooth|loses a shoe|breaks a vase|breaks a toy|tells a lie|
tells the truth|learns to share|learns to be kind|learns to be patient|learns to ride a bike|
learns to cook|learns to listen|learns to read|makes a mistake|makes a cake|makes a mess|
meets a dragon|meets a talking tree|meets a kind giant|meets a stranger|meets a new friend|
helps a friend|helps an old man|helps a bird|saves a friend|saves the day|builds a house|
builds a boat|plants a seed|loves to run|loves to paint|loves to read|loves apples|loves music|
goes on a trip|goes to the moon|goes to school|plays in the mud|plays a trick|hides from the rain|
does not like to share|does not listen|is always late|is too small|has no friends|has a bad day|
has a big dream|has a birthday|sees a rainbow|hears a strange noise|wins a race|loses a race|
catches a fish|climbs a tree|climbs a mountain|says sorry""".replace("\n", "").split("|")
THEMES = """friendship|sharing|being kind|being brave|being honest|helping others|telling the truth|
working together|trying again|saying sorry|being patient|listening to mom|family|a lost toy|
a big storm|a birthday|a surprise|a race|a magic trick|a long trip|a rainy day|a picnic|a dream|
a promise|a new friend|a secret|a big adventure|good manners|the first day of school|a snowy day|
going to bed|a treasure""".replace("\n", "").split("|")
VERBS = """bake build call carry catch chase clap clean climb cook count cry cut dance dig draw
dream drink drive drop eat fall fight fill find fix float fly follow forget give grab grow help hide
hop hug hurry jump kick kiss laugh learn listen look lose march mix open paint pick plant play point
pour pretend promise pull push race read rest ride roll run sail save scream share shine shout sing
sit skip sleep slide smell smile sneeze spin splash squeeze swim swing taste tell throw tickle touch
trade travel try wait wake walk wash watch wave whisper win wish wonder work write yell""".split()
FRIENDS = ["friend", "best friend", "mom", "dad", "brother", "sister", "grandma", "grandpa"]

ASKS = """Tell me a story about {s}.|Tell me a story about {s}|Tell me a short story about {s}.|
Tell me a bedtime story about {s}.|Tell a story about {s}.|Write a story about {s}.|
Write a short story about {s}.|Write a short story about {s}|Write me a story about {s}.|
Write a little story about {s}.|Write a children's story about {s}.|Write a simple story about {s}.|
Can you tell me a story about {s}?|Can you write a story about {s}?|Could you tell me about {s}?|
Please tell me a story about {s}.|Please write a story about {s}.|Make up a story about {s}.|
I want to hear a story about {s}.|I would like a story about {s}.|Give me a story about {s}.|
A story about {s}, please.|A story about {s}.|Story about {s}|tell me a story about {s}|
write a story about {s}|Tell me about {s}.|Let's hear a story about {s}.|
I want a story about {s}|Do you know a story about {s}?""".replace("\n", "").split("|")
PLAIN_ASKS = """Tell me a story.|Tell me a story|Tell me a short story.|Tell me a bedtime story.|
Write a story.|Write a short story.|Write a short story for children.|Can you tell me a story?|
Please tell me a story.|Tell me a nice story.|Tell me a funny story.|I want to hear a story.|
Make up a story.|Once more, a story please.|tell me a story|Write a simple story for a child.|
Hello|Hi|Hello!|Hi! Tell me a story.""".replace("\n", "").split("|")
USE_WORDS = """ Use the words {w}.| Use these words: {w}.| Please use the words {w}.|
 The story should have the words {w}.| It should have the words {w}.""".replace("\n", "").split("|")
WORD_ASKS = """Write a story with the words {w}.|Tell me a story with the words {w}.|
Make up a story that uses the words {w}.|Write a short story with these words: {w}.|
Can you tell a story with the words {w}?""".replace("\n", "").split("|")
ENDINGS = """ It should have a happy ending.| Make it funny.| Make it short.| Use simple words.|
 It should teach something.| Please use simple words.""".replace("\n", "").split("|")

_STEMS = {w for words in (ANIMALS, THINGS, OBJECTS, VERBS, BOTH, HER, HIM) for w in words}
_LIST_WORDS = _STEMS | set(ADJECTIVES) | set(COLOURS)


def an(phrase):
    """The phrase with its indefinite article."""
    vowel = phrase[0] in "aeiou" and not phrase.startswith("uni") or phrase.startswith("honest")
    return ("an " if vowel else "a ") + phrase


def join_words(words):
    if len(words) == 1:
        return words[0]
    return ", ".join(words[:-1]) + " and " + words[-1]


def _with_ending(rng, text):
    if rng.random() < 0.12 and text[-1] in ".?":
        text += rng.choice(ENDINGS)
    return text


def mentions(story_lower, word):
    """Whether the story has the word, also with a common ending such as -s, -ed or -ing."""
    stem = word[:-1] if word.endswith(("e", "y")) and len(word) > 3 else word
    return re.search(r"\b" + re.escape(stem), story_lower) is not None


def _name_for(rng, noun):
    if noun in HER:
        return rng.choice(NAMES_HER)
    if noun in HIM:
        return rng.choice(NAMES_HIM)
    if noun in BOTH:
        return rng.choice(NAMES_HER + NAMES_HIM)
    return rng.choice(NAMES_PET)


def _subject(rng):
    """A subject phrase and the words a story about it must mention."""
    pool = rng.choices(
        [ANIMALS, THINGS, HER[:2] * 6 + HER, HIM[:1] * 9 + HIM, BOTH], [9, 3, 4, 4, 1]
    )
    noun = rng.choice(pool[0])
    adjectives = []
    if rng.random() < 0.55:
        adjectives.append(rng.choice(ADJECTIVES))
    if rng.random() < 0.2:
        adjectives.append("little" if adjectives != ["little"] and rng.random() < 0.6 else "big")
    if pool[0] in (ANIMALS, THINGS) and rng.random() < 0.12:
        adjectives.append(rng.choice(COLOURS))
    adjectives = list(dict.fromkeys(adjectives))
    if "little" in adjectives and "big" in adjectives:
        adjectives.remove("big")
    phrase = an(" ".join([*adjectives, noun]))
    must = [noun]
    if rng.random() < 0.3:
        name = _name_for(rng, noun)
        phrase, must = f"{phrase} {rng.choice(['named', 'called'])} {name}", [noun, name.lower()]
        if rng.random() < 0.15:
            phrase, must = name, [name.lower()]
    return phrase, must


def _companion(rng):
    roll = rng.random()
    if roll < 0.45:
        noun = rng.choice(ANIMALS)
        return an(noun), [noun]
    if roll < 0.85:
        noun = rng.choice(OBJECTS)
        colour = rng.choice([*ADJECTIVES[:8], *COLOURS]) if rng.random() < 0.5 else ""
        return an(f"{colour} {noun}".strip()), [noun]
    noun = rng.choice(FRIENDS)
    return "a " + noun, []


def sample_request(rng):
    """Returns the text of a request and the lower-case words that the story must mention."""
    roll = rng.random()
    if roll < 0.05:
        return rng.choice(PLAIN_ASKS), []
    if roll < 0.11:
        words = [rng.choice(VERBS), rng.choice(OBJECTS), rng.choice(ADJECTIVES)]
        rng.shuffle(words)
        words = words[: rng.choice([2, 3, 3])]
        return rng.choice(WORD_ASKS).format(w=join_words(words)), words
    if roll < 0.17:
        return rng.choice(ASKS).format(s=rng.choice(THEMES)), []
    phrase, must = _subject(rng)
    roll = rng.random()
    if roll < 0.3:
        other, extra = _companion(rng)
        phrase, must = f"{phrase} and {other}", must + extra
    elif roll < 0.5:
        phrase += " who " + rng.choice(PLOTS)
    elif roll < 0.62:
        phrase += " " + rng.choice(PLACES)
    text = rng.choice(ASKS).format(s=phrase)
    if text[-1] in ".?" and rng.random() < 0.18:
        words = rng.sample([rng.choice(VERBS), rng.choice(OBJECTS), rng.choice(ADJECTIVES)], 2)
        text += rng.choice(USE_WORDS).format(w=join_words(words))
        must = must + words
    return _with_ending(rng, text), must


_OPENING = re.compile(
    r"(?:there (?:was|lived|once was) |One [a-z ]*day, |Once,? )"
    r"(an? (?:[a-z]+,? ){0,3}?[a-z]+)(?: (?:named|called) ([A-Z][a-z]+))?"
    r"(?=[.,]| who| and| that| in | on | at | with | from | was | loved| found| went| saw)"
)


def seed_request(rng, story):
    """A request that the given story answers: its subject, or words that it uses."""
    found = _OPENING.search(story[:160])
    tokens = set(re.findall(r"[a-z]+", story.lower()))
    words = sorted(tokens & _LIST_WORDS)
    if found and rng.random() < 0.85:
        phrase, name = found.group(1).replace(",", ""), found.group(2)
        if name and rng.random() < 0.4:
            phrase = (
                name
                if rng.random() < 0.15
                else f"{phrase} {rng.choice(['named', 'called'])} {name}"
            )
        nouns = [w for w in words if w in OBJECTS or w in ANIMALS]
        nouns = [w for w in nouns if w not in phrase]
        if nouns and rng.random() < 0.45:
            phrase += " and " + an(rng.choice(nouns))
        text = rng.choice(ASKS).format(s=phrase)
        if text[-1] in ".?" and len(words) > 3 and rng.random() < 0.25:
            text += rng.choice(USE_WORDS).format(w=join_words(rng.sample(words, 2)))
        return _with_ending(rng, text)
    if len(words) > 3 and rng.random() < 0.8:
        return rng.choice(WORD_ASKS).format(w=join_words(rng.sample(words, rng.choice([2, 3]))))
    return rng.choice(PLAIN_ASKS)


def chat_prompt(request):
    return f"<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
