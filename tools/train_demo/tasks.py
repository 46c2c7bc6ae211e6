"""The tasks of the demo model: questions with their one right answer. Needs NumPy and Pillow
only.

Every generator takes a `random.Random` and returns one or more turns for prompt.conversation.
`held` selects what is kept out of training: number pairs, phrasings of the FAQ, out-of-scope
questions.
"""

import json
import zlib

import pictures
from faq import FAQ, OUT, OUT_PARTS, OUT_QUESTIONS, PREFIX
from pictures import KINDS, NAMES, PLACES

PEOPLE = (
    "Anna Ben Carla David Emma Felix Greta Hans Ida Jonas Karin Leo Maria Nils Olga Paul Rosa "
    "Simon Tina Victor Wanda Boris Clara Erik Frida Georg Helen Ivan Julia Konrad Lena Martin "
    "Nora Oskar Petra Robert Sara Tom Ursula Vera"
).split()
CITIES = (
    "Paris London Berlin Rome Madrid Vienna Oslo Tokyo Lima Cairo Boston Delhi Sydney Prague "
    "Athens Dublin Lisbon Warsaw Helsinki Zurich Munich Hamburg Milan Seoul Toronto Chicago "
    "Geneva Basel Lyon Porto"
).split()
ADJ = (
    "old young quiet loud cold warm dark bright slow quick happy tired small large green "
    "empty heavy simple strange busy"
).split()
NOUN = (
    "house garden river train market window teacher letter bridge forest winter summer "
    "kitchen story clock street doctor farmer village ship"
).split()
VERB = "sees finds likes paints opens crosses remembers describes leaves visits".split()
WEATHER = "sunny cloudy rainy windy foggy snowy".split()


# ------------------------------------------------------------------------------------------------
# - pictures


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def phrase(s):
    return article(s["colour"]) + " " + s["kind"]


def join(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def upper(t):
    return t[0].upper() + t[1:]


def at(s):
    return "at the " + PLACES[s["cell"]]


def sentence_of(shapes):
    return upper(join([phrase(s) + " " + at(s) for s in shapes])) + "."


def each_line(shapes):
    """[(shape, "red circle, upper left")]"""
    return [(s, "%s %s, %s" % (s["colour"], s["kind"], PLACES[s["cell"]])) for s in shapes]


def lines_of(shapes):
    return "\n".join(line for _, line in each_line(shapes))


def number_of(n, word):
    if n == 1:
        return "There is 1 %s." % word
    return "There are %s %ss." % (n or "no", word)


SENTENCE_Q = ["What is in this picture?"] * 6 + [
    "What is in the picture?",
    "Describe the picture.",
    "Describe this image.",
    "What do you see?",
    "What is this?",
    "Which shapes are in this picture?",
    "What can you see in this picture?",
    "What is in this image?",
    "What shapes are there?",
    "What do you see in this picture?",
    "Describe this picture.",
    "What's in this picture?",
]
LINES_Q = ["List the shapes."] * 5 + [
    "List all shapes.",
    "List the shapes in this picture.",
    "Please list the shapes.",
]
COUNT_Q = ["How many %ss are there?"] * 3 + [
    "How many %ss?",
    "How many %ss are in the picture?",
    "How many %ss do you see?",
    "Count the %ss.",
    "How many %ss can you see?",
]
COUNT_COLOUR_Q = [
    "How many %s shapes are there?",
    "How many shapes are %s?",
    "How many %s shapes do you see?",
]
COLOUR_Q = ["What colour is the %s?"] * 3 + [
    "What color is the %s?",
    "Which colour does the %s have?",
    "What is the colour of the %s?",
    "Which colour is the %s?",
]
WHERE_Q = ["Where is the %s %s?"] * 3 + [
    "Where do you see the %s %s?",
    "In which place is the %s %s?",
    "What is the position of the %s %s?",
]
WHERE_KIND_Q = ["Where is the %s?", "Where do you see the %s?"]


def reasoning(shapes, intro, attribute, mark):
    """Reads the picture shape by shape. Before each decision stands the word that it is about, as
    it stands in the question: equal words are what attention finds first.
    """
    words = ["%s, %s %s" % (line, attribute(s), mark(s)) for s, line in each_line(shapes)]
    return intro + ". " + "; ".join(words) + "."


def look(shapes, wanted, attribute):
    """Says of each shape whether it is meant."""

    def mark(s):
        return "yes" if attribute(s) == wanted else "no"

    return reasoning(shapes, "I look for: " + wanted, attribute, mark)


def count_of(shapes, wanted, attribute, noun):
    """-> (answer, reasoning that counts along)"""
    n = 0

    def mark(s):
        nonlocal n
        n += attribute(s) == wanted
        return n

    r = reasoning(shapes, "I count: " + wanted, attribute, mark)
    return number_of(n, noun), r


def kind_of(s):
    return s["kind"]


def colour_of(s):
    return s["colour"]


def name_of(s):
    return s["colour"] + " " + s["kind"]


def place_of(s):
    return PLACES[s["cell"]]


def ask_count(rng, shapes):
    u = rng.random()
    if u < 0.55:
        k = rng.choice(shapes)["kind"] if rng.random() < 0.75 else rng.choice(KINDS)
        return "count", rng.choice(COUNT_Q) % k, *count_of(shapes, k, kind_of, k)
    if u < 0.8:
        q = rng.choice(COUNT_Q) % "shape"
        return "count", q, *count_of(shapes, "shape", lambda s: "shape", "shape")
    c = rng.choice(shapes)["colour"] if rng.random() < 0.75 else rng.choice(NAMES)
    q = rng.choice(COUNT_COLOUR_Q) % c
    return "count", q, *count_of(shapes, c, colour_of, c + " shape")


def ask_colour(rng, shapes):
    k = rng.choice(shapes)["kind"] if rng.random() < 0.92 else rng.choice(KINDS)
    found = [s["colour"] for s in shapes if s["kind"] == k]
    if len(found) == 1:
        a = "The %s is %s." % (k, found[0])
    elif found:
        a = "The %ss are %s." % (k, join(list(dict.fromkeys(found))))
    else:
        a = "There are no %ss." % k
    return "colour", rng.choice(COLOUR_Q) % k, a, look(shapes, k, kind_of)


def ask_where(rng, shapes):
    s = rng.choice(shapes)
    c, k = s["colour"], s["kind"]
    same = [o for o in shapes if o["kind"] == k]
    if len(same) == 1 and rng.random() < 0.4:
        a = "The %s is %s." % (k, at(s))
        return "where", rng.choice(WHERE_KIND_Q) % k, a, look(shapes, k, kind_of)
    same = [o for o in same if o["colour"] == c]
    a = (
        "The %s %s is %s." % (c, k, at(s))
        if len(same) == 1
        else "The %s %ss are %s." % (c, k, join([at(o) for o in same]))
    )
    return "where", rng.choice(WHERE_Q) % (c, k), a, look(shapes, name_of(s), name_of)


def ask_what_at(rng, shapes):
    p = rng.choice(shapes)["cell"] if rng.random() < 0.8 else rng.randrange(9)
    found = [phrase(s) for s in shapes if s["cell"] == p]
    q = rng.choice(["What is at the %s?", "Which shape is at the %s?"]) % PLACES[p]
    a = upper(join(found)) + "." if found else "Nothing."
    return "at", q, a, look(shapes, PLACES[p], place_of)


def ask_exists(rng, shapes):
    s = rng.choice(shapes)
    c, k = s["colour"], s["kind"]
    if rng.random() < 0.5:
        c, k = (rng.choice(NAMES), k) if rng.random() < 0.5 else (c, rng.choice(KINDS))
    yes = any((s["colour"], s["kind"]) == (c, k) for s in shapes)
    name = phrase(dict(colour=c, kind=k))
    return (
        "yes",
        rng.choice(["Is there %s?", "Do you see %s?"]) % name,
        ("Yes, there is %s." if yes else "No, there is not %s.") % name,
        look(shapes, c + " " + k, name_of),
    )


def picture_question(rng, shapes, what=None):
    """-> (type, question, answer, reasoning) about shapes in reading order."""
    what = (
        what
        or rng.choices(
            ["lines", "sentence", "count", "colour", "where", "at", "yes"],
            [20, 17, 24, 17, 17, 3, 2],
        )[0]
    )
    if what == "lines":
        return (
            what,
            rng.choice(LINES_Q),
            lines_of(shapes),
            "I look from the upper left to the lower right.",
        )
    if what == "sentence":
        return (
            what,
            rng.choice(SENTENCE_Q),
            sentence_of(shapes),
            "I look from the upper left to the lower right.",
        )
    ask = dict(count=ask_count, colour=ask_colour, where=ask_where, at=ask_what_at, yes=ask_exists)[
        what
    ]
    return ask(rng, shapes)


def picture_turns(rng, sc, count, what=None):
    """Up to `count` questions about one scene; the first turn carries the picture."""
    out, used = [], set()
    for _ in range(count):
        kind, q, a, r = picture_question(rng, sc["shapes"], what)
        if q in used or (kind in ("lines", "sentence") and kind in used):
            continue
        used |= {q, kind} if kind in ("lines", "sentence") else {q}
        out.append(dict(user=q, answer=a, reasoning=r, images=[] if out else [sc]))
    return out


# ------------------------------------------------------------------------------------------------
# - numbers


def held_pair(a, b):
    """Every twentieth pair, by a hash: a linear rule would hold out whole digit facts."""
    return zlib.crc32(b"%d,%d" % (a, b)) % 20 == 0


def steps_of(a, op, b):
    """Written-out calculation, units first, and the result."""
    if op == "*":
        return "%d times %d is %d." % (a, b, a * b), a * b
    a1, a0, b1, b0 = a // 10, a % 10, b // 10, b % 10
    if op == "+":
        u = a0 + b0
        more = (
            ", carry 1. %d+%d+1=%d." % (a1, b1, a1 + b1 + 1)
            if u > 9
            else ". %d+%d=%d." % (a1, b1, a1 + b1)
        )
        return "%d+%d=%d" % (a0, b0, u) + more, a + b
    if a0 < b0:
        return (
            "1%d-%d=%d, borrow 1. %d-%d-1=%d." % (a0, b0, a0 + 10 - b0, a1, b1, a1 - b1 - 1),
            a - b,
        )
    return "%d-%d=%d. %d-%d=%d." % (a0, b0, a0 - b0, a1, b1, a1 - b1), a - b


ARITH_Q = ["What is %s?"] * 3 + [
    "Calculate %s.",
    "%s = ?",
    "%s",
    "How much is %s?",
    "What is the result of %s?",
]


def arithmetic(rng, held=False):
    """-> (question, "17+25 = 42.", steps). Products are of single digits and never held out."""
    while True:
        op = rng.choice("++++---*" if not held else "+++--")
        if op == "*":
            a, b = rng.randint(0, 9), rng.randint(0, 9)
            break
        lo = 10 if rng.random() < 0.7 else 0
        a, b = rng.randint(lo, 99), rng.randint(lo, 99)
        if op == "-" and a < b:
            a, b = b, a
        if held_pair(a, b) == held:
            break
    word = {"+": "plus", "-": "minus", "*": "times"}[op]
    sp = rng.choice(["", " "])
    q = rng.choice(ARITH_Q) % ("%d%s%s%s%d" % (a, sp, op, sp, b))
    if rng.random() < 0.2:
        q = "What is %d %s %d?" % (a, word, b)
    steps, c = steps_of(a, op, b)
    return q, "%d%s%d = %d." % (a, op, b, c), steps


def arithmetic_turns(rng, count, think, held=False):
    out = []
    for _ in range(count):
        q, a, r = arithmetic(rng, held)
        out.append(dict(user=q, answer=r + " " + a, reasoning=r))
    if think:  # the last turn's steps go into its reasoning
        out[-1]["answer"] = a
    return out


# ------------------------------------------------------------------------------------------------
# - recall


def sentence(rng):
    k = rng.randrange(4)
    if k == 0:
        return "The %s %s %s the %s." % (
            rng.choice(ADJ),
            rng.choice(NOUN),
            rng.choice(VERB),
            rng.choice(NOUN),
        )
    if k == 1:
        return "In %s the %s is %s." % (rng.choice(CITIES), rng.choice(NOUN), rng.choice(ADJ))
    if k == 2:
        return "%s %s a %s %s." % (
            rng.choice(PEOPLE),
            rng.choice(VERB),
            rng.choice(ADJ),
            rng.choice(NOUN),
        )
    return "There is a %s near the %s %s." % (rng.choice(NOUN), rng.choice(ADJ), rng.choice(NOUN))


def fact(rng, p):
    """-> (fact, question, answer, reasoning) about person p."""
    if rng.random() < 0.65:
        v = "".join(rng.choice("0123456789") for _ in range(4))
        q = rng.choice(
            ["What is the code of %s?"] * 2
            + ["Which code does %s have?", "Tell me the code of %s."]
        )
        t = "The code of %s is %s." % (p, v)
        return t, q % p, t, "I look for the code of %s." % p
    if rng.random() < 0.5:
        t = "The favourite colour of %s is %s." % (p, rng.choice(NAMES))
        q = rng.choice(["What is the favourite colour of %s?", "Which colour does %s like?"])
        return t, q % p, t, "I look for the favourite colour of %s." % p
    t = "%s lives in %s." % (p, rng.choice(CITIES))
    q = rng.choice(["Where does %s live?", "In which city does %s live?"])
    return t, q % p, t, "I look for the home of %s." % p


def recall_turns(rng, words, keys=None, questions=None):
    """A text of about `words` words with facts inside, then questions about some of them."""
    n = keys or rng.randint(1, max(1, min(12, words // 9)))
    facts = [fact(rng, p) for p in rng.sample(PEOPLE, n)]
    body = []
    while sum(map(len, body)) < words * 5.5:
        body.append(sentence(rng))
    for f in facts:
        body.insert(rng.randint(0, len(body)), f[0])
    text = " ".join(body)
    out = [
        dict(user=q, answer=a, reasoning=r)
        for _, q, a, r in rng.sample(facts, min(n, questions or rng.randint(1, 8)))
    ]
    out[0]["user"] = text + "\n\n" + out[0]["user"]
    return out


def copy_turns(rng, count):
    out = []
    for _ in range(count):
        items = [
            (
                rng.choice(rng.choice((NOUN, ADJ, PEOPLE, CITIES)))
                if rng.random() < 0.6
                else str(rng.randint(0, 9999))
            )
            for _ in range(rng.randint(3, 8))
        ]
        t = " ".join(items)
        out.append(
            dict(
                user=rng.choice(["Repeat: %s", "Repeat this: %s", "Say: %s"]) % t,
                answer=t,
                reasoning="I repeat the words.",
            )
        )
    return out


# ------------------------------------------------------------------------------------------------
# - tools


def schema(name, desc, params):
    props = {k: {"type": t, "description": d} for k, (t, d) in params.items()}
    return json.dumps(
        {
            "name": name,
            "description": desc,
            "parameters": {"type": "object", "properties": props, "required": list(params)},
        }
    )


def get_weather(rng):
    c, t, w = rng.choice(CITIES), rng.randint(-9, 39), rng.choice(WEATHER)
    q = rng.choice(
        ["What is the weather in %s?", "How is the weather in %s?", "Tell me the weather in %s."]
    )
    return (
        q % c,
        [("city", c, True)],
        '{"temperature": %d, "condition": "%s"}' % (t, w),
        "It is %s in %s, %d degrees." % (w, c, t),
    )


def get_time(rng):
    c, t = rng.choice(CITIES), "%02d:%02d" % (rng.randint(0, 23), rng.randint(0, 59))
    q = rng.choice(["What time is it in %s?", "Tell me the time in %s."])
    return q % c, [("city", c, True)], '{"time": "%s"}' % t, "It is %s in %s." % (t, c)


def set_timer(rng):
    m = rng.randint(1, 90)
    q = rng.choice(["Set a timer for %d minutes.", "Start a timer of %d minutes."])
    return (
        q % m,
        [("minutes", str(m), False)],
        '{"ok": true}',
        "The timer is set for %d minutes." % m,
    )


def send_message(rng):
    p, w = rng.choice(PEOPLE), "The %s is %s." % (rng.choice(NOUN), rng.choice(ADJ))
    q = rng.choice(['Send "%s" to %s.', 'Write "%s" to %s.'])
    return (
        q % (w, p),
        [("to", p, True), ("text", w, True)],
        '{"sent": true}',
        "The message was sent to %s." % p,
    )


TOOLS = {
    "get_weather": (
        get_weather,
        schema(
            "get_weather",
            "Get the current weather of a city.",
            {"city": ("string", "Name of the city")},
        ),
    ),
    "get_time": (
        get_time,
        schema(
            "get_time", "Get the local time of a city.", {"city": ("string", "Name of the city")}
        ),
    ),
    "set_timer": (
        set_timer,
        schema("set_timer", "Start a timer.", {"minutes": ("integer", "Length in minutes")}),
    ),
    "send_message": (
        send_message,
        schema(
            "send_message",
            "Send a short message to a person.",
            {"to": ("string", "Name of the person"), "text": ("string", "Text of the message")},
        ),
    ),
}


def tool_turns(rng, names, count):
    out = []
    for _ in range(count):
        name = rng.choice(names)
        q, params, result, answer = TOOLS[name][0](rng)
        out.append(
            dict(
                user=q,
                answer=answer,
                reasoning="I use the tool %s." % name,
                call=(name, params, result),
            )
        )
    return out


# ------------------------------------------------------------------------------------------------
# - questions


def out_of_scope(rng, held=False):
    """A question the model must decline; every sixth question and combination is held out."""
    while True:
        if rng.random() < 0.5:
            return rng.choice([q for i, q in enumerate(OUT_QUESTIONS) if (i % 6 == 5) == held])
        i, j = rng.randrange(len(OUT_PARTS[0])), rng.randrange(len(OUT_PARTS[1]))
        if ((i * 7 + j) % 6 == 5) == held:
            return (
                OUT_PARTS[0][i]
                + " "
                + OUT_PARTS[1][j]
                + ("?" if held else rng.choice(["?", ".", ""]))
            )


def out_turns(rng, count, held=False):
    return [
        dict(
            user=("" if held else rng.choice(PREFIX)) + out_of_scope(rng, held),
            answer=OUT,
            reasoning="I do not know this.",
        )
        for _ in range(count)
    ]


def faq_turns(rng, count, held=False):
    """The last two phrasings of every entry are held out."""
    out = []
    for _ in range(count):
        a, qs = rng.choice(FAQ)
        q = rng.choice(qs[-2:] if held else qs[:-2])
        if not held:
            if rng.random() < 0.15:
                q = q.rstrip("?.!") if rng.random() < 0.5 else q.lower()
            q = rng.choice(PREFIX) + q
        out.append(dict(user=q, answer=a, reasoning="This is a question about me or the engine."))
    return out


def scene_of(rng, n=None):
    """A scene without drawing style, for training on codes instead of pixels."""
    return pictures.scene(rng, n=n, small=0.6, styles=False)
