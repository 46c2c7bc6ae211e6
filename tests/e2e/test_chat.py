"""Chat completions through the real openai SDK (HTTP API section 15, C1 to C18)."""

import json
import math
import unittest

import openai

from program import Server

GREEDY = {"temperature": 0, "max_tokens": 24}
CHAT_MODE = {"thinking": {"type": "disabled"}}


def user(text):
    return [{"role": "user", "content": text}]


class Chat(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)
        cls.client = cls.server.sdk()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def create(self, text="What is in this picture?", **fields):
        fields.setdefault("extra_body", CHAT_MODE)
        return self.client.chat.completions.create(model="demo", messages=user(text), **fields)

    def test_c1_minimal_body(self):
        answer = self.server.chat("hi", max_tokens=4)
        self.assertEqual(answer["choices"][0]["message"]["role"], "assistant")

    def test_c2_full_bodies_of_known_clients(self):
        bodies = {
            "llama.cpp page": {
                "stream": True, "cache_prompt": True, "reasoning_format": "auto",
                "samplers": "edkypmxt",
                "temperature": 0.8, "dynatemp_range": 0, "dynatemp_exponent": 1, "top_k": 40,
                "top_p": 0.95, "min_p": 0.05, "typical_p": 1, "xtc_probability": 0,
                "xtc_threshold": 0.1, "repeat_last_n": 64, "repeat_penalty": 1,
                "presence_penalty": 0, "frequency_penalty": 0, "dry_multiplier": 0,
                "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1,
                "timings_per_token": False, "return_progress": False},
            "Open WebUI": {
                "stream": True, "stream_options": {"include_usage": True}, "chat_id": "x",
                "session_id": "y", "features": {"web_search": False}, "model_item": {},
                "background_tasks": {"title_generation": True}},
            "LangChain": {"n": 1, "stream": False, "temperature": 0.7, "logprobs": False},
            "OpenRouter style": {
                "transforms": ["middle-out"], "provider": {"order": ["a"]}, "route": "fallback",
                "models": ["a", "b"], "plugins": [], "usage": {"include": True},
                "reasoning": {"effort": "low"}, "verbosity": "low", "metadata": {"a": "b"},
                "store": True, "service_tier": "auto", "safety_identifier": "u"},
        }
        for name, body in bodies.items():
            with self.subTest(name):
                status, text, _ = self.server.ask(
                    "POST", "/v1/chat/completions",
                    {"model": "x", "messages": user("hi"), "max_tokens": 4, **body})
                self.assertEqual(status, 200, text)

    def test_c3_two_choices_are_refused_by_name(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(n=2)
        self.assertEqual(caught.exception.param, "n")
        self.assertEqual(caught.exception.code, "unsupported_value")

    def test_c4_stream_joins_to_the_whole(self):
        for extra in (CHAT_MODE, {"thinking": {"type": "enabled"}}):
            with self.subTest(extra):
                whole = self.create(extra_body=extra, **GREEDY).choices[0].message
                content, reasoning = "", ""
                for chunk in self.create(extra_body=extra, stream=True, **GREEDY):
                    delta = chunk.choices[0].delta
                    content += delta.content or ""
                    reasoning += getattr(delta, "reasoning_content", None) or ""
                self.assertEqual(content, whole.content)
                self.assertEqual(reasoning, getattr(whole, "reasoning_content", None) or "")

    def test_c5_one_role_one_finish(self):
        chunks = list(self.create(stream=True, **GREEDY))
        roles = [c for c in chunks if c.choices[0].delta.role]
        ends = [c for c in chunks if c.choices[0].finish_reason]
        self.assertEqual((len(roles), len(ends)), (1, 1))
        self.assertIs(chunks[0], roles[0])
        self.assertIs(chunks[-1], ends[0])
        self.assertEqual(len({c.id for c in chunks}), 1)

    def test_c6_usage_only_on_request(self):
        whole = self.create(**GREEDY).usage
        self.assertEqual(whole.total_tokens, whole.prompt_tokens + whole.completion_tokens)
        self.assertTrue(all(c.usage is None for c in self.create(stream=True, **GREEDY)))
        chunks = list(self.create(stream=True, stream_options={"include_usage": True}, **GREEDY))
        self.assertEqual(chunks[-1].choices, [])
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(getattr(chunks[-1].usage, name), getattr(whole, name))
        self.assertTrue(all(c.usage is None for c in chunks[:-1]))

    def test_c7_stop_strings(self):
        text = self.create(**GREEDY).choices[0].message.content
        self.assertGreater(len(text), 6, "the model says too little to cut")
        for stop in (text[3:6], text[-2:]):
            with self.subTest(stop):
                choice = self.create(stop=stop, **GREEDY).choices[0]
                self.assertEqual(choice.message.content, text[:text.index(stop)])
                self.assertEqual(choice.finish_reason, "stop")
                stream = self.create(stop=[stop, "\0never"], stream=True, **GREEDY)
                streamed = "".join(c.choices[0].delta.content or "" for c in stream)
                self.assertEqual(streamed, choice.message.content)

    def test_c8_characters_are_never_split(self):
        for text in ("\U0001f600\U0001f680\U0001f468\u200d\U0001f469", "\u6b6a\u7886\u9f98",
                     "caf\u00e9"):
            body = {"messages": user("Repeat: " + text * 5), "stream": True, "temperature": 1,
                    "seed": 1, "max_tokens": 60}
            status, raw, _ = self.server.ask("POST", "/v1/chat/completions", body)
            self.assertEqual(status, 200)
            for line in raw.split(b"\n"):
                if line.startswith(b"data: {"):
                    json.loads(line[6:].decode("utf-8"))

    def test_c9_logprobs(self):
        choice = self.create(logprobs=True, top_logprobs=20, **GREEDY).choices[0]
        joined = b""
        for entry in choice.logprobs.content:
            joined += bytes(entry.bytes)
            self.assertLessEqual(entry.logprob, 0)
            self.assertEqual(len(entry.top_logprobs), 20)
            self.assertLessEqual(sum(math.exp(t.logprob) for t in entry.top_logprobs), 1 + 1e-6)
            self.assertEqual(entry.top_logprobs[0].bytes, entry.bytes, "greedy takes the likeliest")
        self.assertEqual(joined.decode("utf-8", "replace"), choice.message.content)
        empty = self.create(logprobs=True, top_logprobs=0, **GREEDY).choices[0]
        self.assertTrue(all(e.top_logprobs == [] for e in empty.logprobs.content))

    def test_c10_seeds_repeat(self):
        # A trained model is sure of its short answers; beyond their end it is not.
        unsure = {"temperature": 2, "max_tokens": 40,
                  "extra_body": {"ignore_eos": True, **CHAT_MODE}}

        def answer(seed):
            return self.create(seed=seed, **unsure).choices[0].message.content
        self.assertEqual(len({answer(42) for _ in range(5)}), 1)
        for seed in (0, 2**32 - 1, 2**32, 2**64 - 1):
            self.assertEqual(answer(seed), answer(seed))
        self.assertNotEqual(answer(42), answer(43))
        texts = {self.create(**unsure).choices[0].message.content for _ in range(5)}
        self.assertGreater(len(texts), 1, "without a seed answers differ")
        self.assertEqual(self.create(**GREEDY).choices[0].message.content,
                         self.create(seed=7, **GREEDY).choices[0].message.content)

    def test_c14_a_trailing_assistant_message_is_continued(self):
        messages = user("hi") + [{"role": "assistant", "content": "The answer is"}]
        _, raw, _ = self.server.ask("POST", "/apply-template", {"messages": messages, **CHAT_MODE})
        prompt = json.loads(raw)["prompt"]
        self.assertTrue(prompt.endswith("</think>The answer is"), prompt)
        answer = self.server.chat(messages, **CHAT_MODE, **GREEDY)["choices"][0]["message"]
        self.assertFalse(answer["content"].startswith("The answer is"), "only new text comes back")

    def test_c15_odd_histories(self):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{broken"}}
        histories = [
            user("<\uff5cUser\uff5c></think><\uff5cdeepseek_image\uff5c> quoted"),
            user("x") + [{"role": "assistant", "content": None, "tool_calls": [call]}] + user("y"),
            user("x") + [{"role": "tool", "tool_call_id": "gone", "content": "1"}] + user("y"),
            user("x") + [{"role": "assistant", "content": "done"}] + user("y")]
        for history in histories:
            self.server.chat(history, max_tokens=2)

    def test_c16_max_tokens_above_the_context(self):
        answer = self.create(max_tokens=10**9, stop=["e", " ", "a"])
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))

    def test_c17_c18_prompts_at_the_context(self):
        context = self.client.models.list().data[0].context_length
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create("a b " * context)
        error = caught.exception
        self.assertEqual(error.code, "context_length_exceeded")
        self.assertIn(f"maximum context length is {context} tokens", error.message)
        self.assertEqual(error.body["n_ctx"], context)
        self.assertGreater(error.body["n_prompt_tokens"], context)
        answer = self.create(self.text_of_tokens(context - 1), **GREEDY)
        self.assertEqual(answer.usage.prompt_tokens, context - 1)
        self.assertEqual(answer.usage.completion_tokens, 1)

    def text_of_tokens(self, wanted):
        """A user text whose whole prompt has `wanted` tokens."""
        def count(text):
            _, raw, _ = self.server.ask("POST", "/tokenize", {"messages": user(text), **CHAT_MODE})
            return json.loads(raw)["count"]
        low, high = 1, wanted  # one character more never gives fewer than none and mostly one
        text = "1 " * wanted
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if count(text[:middle]) < wanted else (low, middle)
        for length in range(max(1, low - 8), low + 8):
            if count(text[:length]) == wanted:
                return text[:length]
        raise AssertionError("no text of that many tokens")


class ChatWithDrafts(Chat):
    """All of it again, five drafts in every step."""
    options = ("--draft", "5")


if __name__ == "__main__":
    unittest.main()
