"""The official V4.1 prompt format, as pieces of text that are trusted (markers) or not, learnt
or not.
"""

import os

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
SYSTEM, USER, ASSISTANT = "<｜System｜>", "<｜User｜>", "<｜Assistant｜>"
THINK, UNTHINK, DSML, IMAGE = "<think>", "</think>", "｜DSML｜", "<｜deepseek_image｜>"
SPECIALS = [
    SYSTEM,
    "<｜fim▁hole｜>",
    "<｜fim▁begin｜>",
    "<｜fim▁end｜>",
    USER,
    ASSISTANT,
    "<|EOT|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁sep｜>",
    THINK,
    UNTHINK,
    "<dsml:",
    "</dsml:",
    DSML,
    "<｜latest_reminder｜>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜title｜>",
    "<｜read_url｜>",
    IMAGE,
]
UNFLAGGED = {
    "<｜fim▁hole｜>",
    "<｜fim▁begin｜>",
    "<｜fim▁end｜>",
    USER,
    ASSISTANT,
    THINK,
    UNTHINK,
    DSML,
    IMAGE,
    "<dsml:",
    "</dsml:",
}
EFFORT = (
    "Reasoning Effort: %d (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
)

_HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(_HERE, "tools_prompt.txt"), encoding="utf-8") as _f:
    TOOLS_TEXT = _f.read()  # the official introduction to tools; %s: one JSON schema a line


def call_text(name, params):
    """A tool call in the official markup. params: list of (name, value, is_string)."""
    ps = "\n".join(
        '<｜DSML｜ parameter name="%s" string="%s">%s</｜DSML｜ parameter>'
        % (k, "true" if s else "false", v)
        for k, v, s in params
    )
    head = '\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="%s">\n' % name
    return head + ps + "\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"


class Doc:
    """A rendered conversation: pieces [text, trusted, loss] in order; `images` holds one scene
    per IMAGE marker.
    """

    def __init__(self, task):
        self.task, self.parts, self.images = task, [], []

    def add(self, text, loss=0, trusted=True):
        """Appends a piece. Untrusted text never turns into markers; loss 1 marks what the
        model has to say.
        """
        if self.parts and self.parts[-1][1:] == [trusted, loss] and not trusted:
            self.parts[-1][0] += text
        else:
            self.parts.append([text, trusted, loss])
        return self

    def text(self):
        return "".join(p[0] for p in self.parts)


def conversation(task, turns, think=False, system=None, tools=None, effort=75):
    """Renders turns, each a dict(user, answer, reasoning, images=[scene], call=(name, params,
    result)).
    """
    d = Doc(task).add(BOS)
    if think or system is not None or tools:
        d.add(SYSTEM)
        text = (EFFORT % effort if think else "") + (system or "")
        if text:
            d.add(text, trusted=False)
        if tools:
            d.add("\n\n" + TOOLS_TEXT % "\n".join(tools))
    for i, t in enumerate(turns):
        d.add(USER)
        for sc in t.get("images", ()):
            d.images.append(sc)
            d.add(IMAGE).add("\n\n", trusted=False)
        d.add(t["user"], trusted=False)
        steps = [(None, t["answer"], t.get("reasoning", ""))]
        if t.get("call"):
            steps = [
                (t["call"], "", t.get("reasoning", "")),
                (None, t["answer"], "The tool has answered."),
            ]
        for call, answer, reason in steps:
            d.add(ASSISTANT)
            if think and (i == len(turns) - 1 or tools):
                d.add(THINK).add(reason, 1, False).add(UNTHINK, 1)
            else:
                d.add(UNTHINK)
            if answer:
                d.add(answer, 1, False)
            if call:
                d.add(call_text(call[0], call[1]), 1)
            d.add(EOS, 1)
            if call:
                d.add(USER).add("<tool_result>" + call[2] + "</tool_result>", trusted=False)
    return d
