"""LiteLLM, which speaks to one server in the dialects of many."""
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a list of prices
os.environ["DO_NOT_TRACK"] = "1"

import litellm  # noqa: E402

from checks import (CHAT, CHAT_PROMPT_TOKENS, CITY, KEY, MESSAGES, MODEL, PROMPT, PROMPT_TOKENS,
                    TEXT, TOKENS, URL, WEATHER, Checks, check_cancel)

checks = Checks()
litellm.telemetry = False
litellm.suppress_debug_info = True
# How its names say which dialect to speak, and where that lives.
OPENAI = {"model": f"openai/{MODEL}", "api_base": URL + "/v1", "api_key": KEY}
VLLM = {"model": f"hosted_vllm/{MODEL}", "api_base": URL + "/v1", "api_key": KEY}
OLLAMA = {"model": f"ollama_chat/{MODEL}", "api_base": URL, "api_key": KEY,
          "repeat_penalty": 1.0}
TEXTS = {"model": f"text-completion-openai/{MODEL}", "api_base": URL + "/v1", "api_key": KEY}
GREEDY = {"max_tokens": TOKENS, "temperature": 0, "num_retries": 0, "timeout": 120}


def chat(dialect, **more):
    return litellm.completion(messages=MESSAGES, **{**dialect, **GREEDY, **more})


def chats():
    for name, dialect in (("openai", OPENAI), ("vllm", VLLM), ("ollama", OLLAMA)):
        whole = chat(dialect)
        checks.equal(f"{name}: the text of sluice run", whole.choices[0].message.content, CHAT)
        checks.equal(f"{name}: usage", (whole.usage.prompt_tokens, whole.usage.completion_tokens),
                     (CHAT_PROMPT_TOKENS, TOKENS))
        checks.equal(f"{name}: finish_reason", whole.choices[0].finish_reason, "length")
        chunks = list(chat(dialect, stream=True))
        checks.equal(f"{name}, streamed: the same text",
                     "".join(c.choices[0].delta.content or "" for c in chunks), CHAT)
        checks.equal(f"{name}, streamed: finish_reason", chunks[-1].choices[0].finish_reason,
                     "length")
    usage = [c.usage for c in chat(OPENAI, stream=True, stream_options={"include_usage": True})
             if getattr(c, "usage", None)]
    checks.equal("streamed usage", [u.total_tokens for u in usage], [CHAT_PROMPT_TOKENS + TOKENS])


def completions():
    def complete(**more):
        return litellm.text_completion(prompt=PROMPT, **{**TEXTS, **GREEDY, **more})
    whole = complete()
    checks.equal("completion: the text of sluice run", whole.choices[0].text, TEXT)
    checks.equal("completion: prompt tokens", whole.usage.prompt_tokens, PROMPT_TOKENS)
    checks.equal("completion, streamed: the same text",
                 "".join(c.choices[0].text or "" for c in complete(stream=True)), TEXT)


def structures():
    answer = chat(OPENAI, max_tokens=40, response_format={
        "type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}})
    city = json.loads(answer.choices[0].message.content)
    checks.true("schema", city.get("city") in ("Paris", "Rome"), city)
    answer = chat(OPENAI, max_tokens=60, tools=[WEATHER], tool_choice="required")
    calls = answer.choices[0].message.tool_calls
    checks.equal("tools: name", calls[0].function.name, "weather")
    checks.true("tools: arguments", json.loads(calls[0].function.arguments)["city"], calls)


def errors():
    checks.raises("an unknown model", litellm.NotFoundError,
                  lambda: chat({**OPENAI, "model": "openai/nobody"}), "nobody")
    checks.raises("a bad parameter", litellm.BadRequestError, lambda: chat(OPENAI, top_p=7),
                  "top_p")
    checks.raises("a prompt too long", litellm.ContextWindowExceededError,
                  lambda: litellm.completion(
                      messages=[{"role": "user", "content": "word " * 40000}],
                      **{**OPENAI, **GREEDY}))
    checks.raises("a wrong key", litellm.AuthenticationError,
                  lambda: chat({**OPENAI, "api_key": "wrong"}))


def leave_stream():
    stream = chat(OPENAI, stream=True, max_tokens=4000, extra_body={"ignore_eos": True})
    for _ in range(3):
        next(stream)
    stream.completion_stream.close()  # the wrapper itself has no close()


for part in (chats, completions, structures, errors):
    checks.part(part)
checks.part(lambda: check_cancel(checks, "cancel", leave_stream))
checks.end()
