"""llamacpp-client, a client of llama-server's own API. It can bring no key."""
import asyncio
import json
import urllib.parse

import requests
from llamacpp_client import LlamaCppClient, LlamaCppServerAddress

from checks import (CHAT, CHAT_PROMPT_TOKENS, CITY, MESSAGES, PROMPT, PROMPT_TOKENS, STOP, TEXT,
                    TOKENS, URL, Checks, check_cancel)

checks = Checks()
where = urllib.parse.urlparse(URL)
client = LlamaCppClient([LlamaCppServerAddress(where.hostname, where.port)])
GREEDY = {"temperature": 0.0, "n_predict": TOKENS, "repeat_penalty": 1.0}


def completions():
    whole = client.new_completion(PROMPT, **GREEDY)
    checks.equal("completion: the text of sluice run", whole.content, TEXT)
    checks.equal("completion: counts", (whole.tokens_evaluated, whole.tokens_predicted),
                 (PROMPT_TOKENS, TOKENS))
    checks.equal("completion: why it ended", (whole.stop_type, whole.truncated), ("limit", False))
    checks.equal("completion: response_fields and no more", sorted(whole.raw), sorted(
        ["content", "stop_type", "stopping_word", "tokens_cached", "tokens_evaluated",
         "tokens_predicted", "truncated"]))
    # The client drops, with a line in its log, chunks that have not the form it knows: the text
    # would lack them.
    chunks = list(client.new_stream_completion(PROMPT, **GREEDY))
    checks.equal("completion, streamed: the same text", "".join(c.content for c in chunks), TEXT)
    checks.equal("completion, streamed: stop once, at the end", [c.stop for c in chunks],
                 [False] * (len(chunks) - 1) + [True])
    checks.equal("completion, streamed: the last chunk",
                 (chunks[-1].stop_type, chunks[-1].tokens_evaluated), ("limit", PROMPT_TOKENS))
    stopped = client.new_completion(PROMPT, stop=[STOP], **GREEDY)
    checks.equal("stop: the text before it", stopped.content, TEXT[:TEXT.index(STOP)])
    checks.equal("stop: why it ended", (stopped.stop_type, stopped.raw["stopping_word"]),
                 ("word", STOP))


def raw_fields():
    answer = client.completion(PROMPT, n_probs=2, return_tokens=True, cache_prompt=True, **GREEDY)
    checks.equal("raw: the text", answer["content"], TEXT)
    checks.equal("raw: tokens", len(answer["tokens"]), TOKENS)
    checks.equal("raw: probabilities", len(answer["completion_probabilities"]), TOKENS)
    timings = answer["timings"]
    checks.equal("raw: timings count the tokens", timings["cache_n"] + timings["prompt_n"],
                 PROMPT_TOKENS)
    checks.equal("raw: settings as asked for",
                 (answer["generation_settings"]["n_predict"],
                  answer["generation_settings"]["temperature"]), (TOKENS, 0.0))
    schema = client.completion(PROMPT, json_schema=CITY, temperature=0.0, n_predict=40)
    checks.true("json_schema", json.loads(schema["content"])["city"] in ("Paris", "Rome"), schema)
    grammar = client.completion(PROMPT, grammar='root ::= " Lyon"', temperature=0.0, n_predict=9)
    checks.equal("grammar", grammar["content"], " Lyon")


def chats():
    whole = client.v1_chat_completions(MESSAGES, temperature=0, max_tokens=TOKENS)
    checks.equal("chat: the text of sluice run", whole["choices"][0]["message"]["content"], CHAT)
    checks.equal("chat: prompt tokens", whole["usage"]["prompt_tokens"], CHAT_PROMPT_TOKENS)

    async def streamed():
        return b"".join([part async for part in client.async_v1_chat_completions(
            MESSAGES, temperature=0, max_tokens=TOKENS, stream=True)])
    events = asyncio.run(streamed()).decode().split("\n\n")
    checks.equal("chat, streamed: ends as agreed", events[-2:], ["data: [DONE]", ""])
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    checks.equal("chat, streamed: the same text",
                 "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks
                         if c["choices"]), CHAT)
    checks.true("chat, streamed: timings at the end",
                chunks[-1]["timings"]["predicted_n"] == TOKENS, chunks[-1])


def errors():
    checks.raises("a bad parameter", requests.HTTPError,
                  lambda: client.new_completion(PROMPT, top_k="some"), "400")
    answer = client.completion(PROMPT, grammar="root ::= (")
    checks.equal("a bad grammar", (answer["error"]["code"], answer["error"]["type"]),
                 (400, "invalid_request_error"))
    answer = client.completion("word " * 40000)
    checks.equal("a prompt too long", answer["error"]["type"], "exceed_context_size_error")
    answer = client.completion(PROMPT, model="nobody")
    checks.equal("an unknown model", answer["error"]["code"], 404)


def leave_stream():
    async def run():
        stream = client.async_completion(PROMPT, n_predict=4000, ignore_eos=True, stream=True)
        async for _ in stream:
            break
        await stream.aclose()
    asyncio.run(run())


for part in (completions, raw_fields, chats, errors):
    checks.part(part)
checks.part(lambda: check_cancel(checks, "cancel", leave_stream))
checks.end()
