"""Drafts through the API: the answer stays the same, only the time of its tokens changes."""

import json
import tempfile
import unittest

from case_files import generate
from drawings import data_url, picture_message, report_picture
from program import Server

COUNTS = ("off", 1, 2, 3, 5, 64, "auto")
QUESTIONS = ("What are you?", "What is 17+25?", "List the shapes.", "What is the capital of Peru?")


def seen(answer):
    """What must not depend on drafts: everything but ids and times."""
    return json.dumps([answer["choices"], answer["usage"]], sort_keys=True)


class Drafts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def answers(self, messages, **fields):
        """{draft: answer}, each from the start."""
        fields = {"temperature": 0, "max_tokens": 80, "cache_prompt": False, **fields}
        return {draft: self.server.chat(messages, speculation={"draft": draft}, **fields)
                for draft in COUNTS}

    def assert_all_same(self, answers):
        plain = seen(answers["off"])
        for draft, answer in answers.items():
            with self.subTest(draft=draft):
                self.assertEqual(seen(answer), plain)

    def test_greedy_answers_are_the_same_to_the_last_bit(self):
        for question in QUESTIONS:
            for thinking in ("disabled", "enabled"):
                with self.subTest(question, thinking=thinking):
                    self.assert_all_same(self.answers(
                        question, thinking={"type": thinking}, logprobs=True, top_logprobs=3))

    def test_a_picture_is_described_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            url = data_url(report_picture(folder).read_bytes())
        question = picture_message(url, text="List the shapes.")
        self.assert_all_same(self.answers(question, logprobs=True))

    def test_ends_inside_a_run_of_accepted_drafts(self):
        chat = {"thinking": {"type": "disabled"}}
        for fields in ({"stop": "demo"}, {"stop": ["small", "model"]}, {"max_tokens": 7},
                       {"min_tokens": 60, "max_tokens": 64}, {"ignore_eos": True}):
            with self.subTest(**fields):
                self.assert_all_same(self.answers("What are you?", **chat, **fields))

    def test_penalties_and_bias_count_accepted_tokens_once(self):
        for fields in ({"frequency_penalty": 0.8}, {"presence_penalty": 1.5},
                       {"repeat_penalty": 1.4, "repeat_last_n": 9}, {"logit_bias": {"300": 3}}):
            with self.subTest(**fields):
                self.assert_all_same(self.answers("What are you?", logprobs=True, **fields))

    def test_a_seed_repeats_a_drawn_answer(self):
        for draft in COUNTS:
            with self.subTest(draft=draft):
                fields = {"temperature": 1.5, "seed": 11, "max_tokens": 60,
                          "cache_prompt": False, "speculation": {"draft": draft}}
                first = self.server.chat("What are you?", **fields)
                self.assertEqual(seen(self.server.chat("What are you?", **fields)), seen(first))

    def test_the_next_turn_goes_on_from_an_answer_with_drafts(self):
        chat = {"temperature": 0, "thinking": {"type": "disabled"}, "max_tokens": 60}
        turn = [{"role": "user", "content": "What are you?"}]
        texts, cached = set(), set()
        for draft in ("off", 5):
            fields = {**chat, "speculation": {"draft": draft}}
            first = self.server.chat(turn, **fields)["choices"][0]["message"]["content"]
            second = self.server.chat(
                [*turn, {"role": "assistant", "content": first},
                 {"role": "user", "content": "What is 3+4?"}], **fields)
            texts.add(first + "|" + second["choices"][0]["message"]["content"])
            cached.add(second["usage"]["prompt_tokens_details"]["cached_tokens"])
        self.assertEqual(len(texts), 1, texts)
        self.assertEqual(len(cached), 1, cached)
        self.assertGreater(cached.pop(), 0)

    def test_smp2_prompts_on_which_drafting_went_wrong_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            requests = generate("smp2_draft_equal.py", folder)
        self.assertEqual(len(requests), 40)
        for name, case in requests.items():
            if "response_format" in case["body"] or name.startswith("long"):
                continue  # JSON is refused; the long prompt exceeds the demo's context
            body = {**case["body"], "cache_prompt": False}
            counts = ("off", 1, 3, 5)
            if body["temperature"] > 0:  # drawn: each count repeats itself
                counts = (5, 5)
            answers = [seen(self.server.chat(**body, speculation={"draft": draft}))
                       for draft in counts]
            with self.subTest(name):
                self.assertEqual(len(set(answers)), 1)

    def test_counts_are_told(self):
        answer = self.server.chat("What are you?", temperature=0, speculation={"draft": 5})
        timings = answer["timings"]
        self.assertGreater(timings["draft_n"], 0)
        self.assertGreater(timings["draft_n_accepted"], 0)
        self.assertLessEqual(timings["draft_n_accepted"], timings["draft_n"])
        plain = self.server.chat("What are you?", temperature=0, speculation={"draft": "off"})
        self.assertEqual(plain["timings"]["draft_n"], 0)
        status, body, _ = self.server.get("/props")
        self.assertEqual(status, 200)
        speculation = json.loads(body)["speculation"]
        self.assertEqual(speculation["draft_tokens_max"], 5)
        self.assertEqual(len(speculation["by_position"]), 5)
        self.assertGreaterEqual(sum(place["draft_n"] for place in speculation["by_position"]),
                                timings["draft_n"])

    def test_wishes_that_cannot_be_are_refused(self):
        for draft in ("fast", -1, 65, 2.5, [], True):
            with self.subTest(draft=draft):
                status, body, _ = self.server.ask(
                    "POST", "/v1/chat/completions",
                    {"messages": [{"role": "user", "content": "x"}],
                     "speculation": {"draft": draft}})
                error = json.loads(body)["error"]
                self.assertEqual((status, error["param"]), (400, "speculation.draft"))
                self.assertIn("wanted auto, off or 0 to 64", error["message"])


if __name__ == "__main__":
    unittest.main()
