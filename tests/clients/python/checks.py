"""Counts checks, and says in one line what each expected and found.

A script gets its server and what to expect of it from the environment that run.py sets, and ends
with `checks.end()`, which prints the line that run.py adds up.
"""
import json
import os
import sys
import time
import traceback
import urllib.request

URL = os.environ["SLUICE_URL"]
KEY = os.environ.get("SLUICE_KEY", "")
MODEL = os.environ["SLUICE_MODEL"]
# What `sluice run` makes of the same prompts, greedily: the text that every client must get.
EXPECTED = json.loads(os.environ["SLUICE_EXPECTED"])
PROMPT = EXPECTED["prompt"]
MESSAGES = EXPECTED["messages"]
TOKENS = EXPECTED["tokens"]
TEXT = EXPECTED["completion"]["text"]
CHAT = EXPECTED["chat"]["text"]
STOP = TEXT.split()[2]  # a word to stop at
CHAT_STOP = CHAT.split()[2]
PROMPT_TOKENS = EXPECTED["completion"]["prompt_tokens"]
CHAT_PROMPT_TOKENS = EXPECTED["chat"]["prompt_tokens"]

CITY = {"type": "object", "additionalProperties": False, "required": ["city"],
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}}}
WEATHER = {"type": "function",
           "function": {"name": "weather", "description": "The weather of a city.",
                        "parameters": CITY}}


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def _count(self, ok, name, detail):
        if ok:
            self.passed += 1
            print(f"ok      {name}")
        else:
            self.failed += 1
            print(f"FAILED  {name}: {detail}")
        sys.stdout.flush()

    def equal(self, name, found, expected):
        self._count(found == expected, name, f"expected {expected!r}, found {found!r}")

    def true(self, name, condition, found=None):
        self._count(bool(condition), name, f"found {found!r}")

    def raises(self, name, classes, call, text=""):
        """`call` fails with one of `classes`, whose message has `text`."""
        try:
            result = call()
        except classes as error:
            self._count(text in str(error), name, f"expected {text!r} in {error!r}")
        except Exception as error:  # noqa: BLE001: the wrong class is what this looks for
            self._count(False, name, f"expected {classes}, found {type(error)}: {error}")
        else:
            self._count(False, name, f"expected {classes}, found an answer: {result!r}")

    def skip(self, name, why):
        self.skipped += 1
        print(f"skipped {name}: {why}")

    def part(self, function):
        """Runs one part of the checks; an exception is one failure and not the end of the rest."""
        try:
            function()
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            self._count(False, function.__name__, f"{type(error).__name__}: {error}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(1 if self.failed else 0)


def metrics():
    """The samples of /metrics by their whole name with labels."""
    request = urllib.request.Request(URL + "/metrics")
    with urllib.request.urlopen(request, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    samples = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, value in samples}


def ended(reason):
    """How many requests have ended this way."""
    return sum(value for name, value in metrics().items()
               if name.startswith("vllm:request_success_total")
               and f'finished_reason="{reason}"' in name)


def check_cancel(checks, name, start):
    """`start` begins a long answer and leaves it: the server must notice, and run it no further."""
    before = ended("abort")
    start()
    deadline = time.monotonic() + 20
    while ended("abort") == before and time.monotonic() < deadline:
        time.sleep(0.1)
    checks.equal(f"{name}: the server counts one abort", ended("abort") - before, 1)
    running = [value for key, value in metrics().items() if "num_requests_running" in key]
    checks.equal(f"{name}: nothing runs any more", running, [0.0])
