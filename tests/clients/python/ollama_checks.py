"""Ollama's Python client: generate, chat, thinking off, formats, tools, lists, errors."""
import asyncio

import ollama

from checks import (CHAT, CHAT_PROMPT_TOKENS, CITY, KEY, MESSAGES, MODEL, PROMPT, PROMPT_TOKENS,
                    TEXT, TOKENS, URL, WEATHER, Checks, check_cancel)

checks = Checks()
HEADERS = {"Authorization": f"Bearer {KEY}"}
client = ollama.Client(host=URL, headers=HEADERS, timeout=120)
GREEDY = {"temperature": 0, "num_predict": TOKENS, "repeat_penalty": 1.0}


def generate(**more):
    return client.generate(**{"model": MODEL, "prompt": PROMPT, "raw": True, "options": GREEDY,
                              **more})


def chat(**more):
    return client.chat(**{"model": MODEL, "messages": MESSAGES, "options": GREEDY, **more})


def generates():
    whole = generate()
    checks.equal("generate: the text of sluice run", whole.response, TEXT)
    checks.equal("generate: done", (whole.done, whole.done_reason), (True, "length"))
    checks.equal("generate: counts", (whole.prompt_eval_count, whole.eval_count),
                 (PROMPT_TOKENS, TOKENS))
    checks.true("generate: times in nanoseconds",
                1e5 < whole.eval_duration <= whole.total_duration < 120e9, whole)
    parts = list(generate(stream=True))
    checks.equal("generate, streamed: the same text", "".join(p.response for p in parts), TEXT)
    checks.equal("generate, streamed: done once, at the end", [p.done for p in parts],
                 [False] * (len(parts) - 1) + [True])
    checks.equal("generate, streamed: the same counts",
                 (parts[-1].prompt_eval_count, parts[-1].eval_count), (PROMPT_TOKENS, TOKENS))
    templated = generate(raw=False, prompt=MESSAGES[0]["content"])
    checks.equal("generate with the template: as chat", templated.response, CHAT)
    entries = generate(logprobs=True, top_logprobs=2).logprobs
    checks.equal("logprobs: tokens make the text", "".join(e.token for e in entries), TEXT)


def chats():
    whole = chat()
    checks.equal("chat: the text of sluice run", whole.message.content, CHAT)
    checks.equal("chat: role", whole.message.role, "assistant")
    checks.equal("chat: prompt tokens", whole.prompt_eval_count, CHAT_PROMPT_TOKENS)
    parts = list(chat(stream=True))
    checks.equal("chat, streamed: the same text",
                 "".join(p.message.content or "" for p in parts), CHAT)
    seeded = {**GREEDY, "temperature": 1.0, "seed": 5}
    checks.equal("seed: the same twice", chat(options=seeded).message.content,
                 chat(options=seeded).message.content)
    checks.equal("think=False is taken", chat(think=False).message.content, CHAT)


def formats():
    long = {**GREEDY, "num_predict": 40}
    answer = chat(format=CITY, options=long).message.content
    checks.true("format: follows the schema", "Paris" in answer or "Rome" in answer, answer)
    checks.equal("format, streamed: the same",
                 "".join(p.message.content for p in chat(format=CITY, options=long, stream=True)),
                 answer)
    turn = client.chat(model=MODEL, tools=[WEATHER], options=GREEDY, messages=[
        *MESSAGES,
        {"role": "assistant", "content": "",
         "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
        {"role": "tool", "tool_name": "weather", "content": "Sunny."}])
    checks.true("tools: calls and results are taken", turn.prompt_eval_count > CHAT_PROMPT_TOKENS,
                turn)


def lists():
    names = [m.model for m in client.list().models]
    checks.true("list", any(name.split(":")[0] == MODEL for name in names), names)
    checks.true("list: a size", client.list().models[0].size > 1e8, client.list())
    running = client.ps().models
    checks.equal("ps: what runs", [m.model.split(":")[0] for m in running], [MODEL])
    shown = client.show(MODEL)
    checks.equal("show: format", shown.details.format, "gguf")
    checks.true("show: capabilities", "completion" in shown.capabilities, shown.capabilities)
    checks.equal("show: model_info", shown.modelinfo["general.architecture"], "gemma3")
    loaded = client.generate(model=MODEL)
    checks.equal("an empty prompt loads", (loaded.response, loaded.done_reason), ("", "load"))



def embeds():
    whole = client.embed(model=MODEL, input=["a river", "a mountain"])
    checks.equal("embed: a vector each", len(whole.embeddings), 2)
    checks.true("embed: of unit length", abs(sum(x * x for x in whole.embeddings[0]) - 1) < 1e-5)
    checks.true("embed: tokens and time", whole.prompt_eval_count > 3 and whole.total_duration > 0,
                (whole.prompt_eval_count, whole.total_duration))
    one = client.embed(model=MODEL, input="a river")
    checks.equal("embed: alone the same bytes", one.embeddings[0], whole.embeddings[0])
    few = client.embed(model=MODEL, input="a river", dimensions=64).embeddings[0]
    checks.true("embed: dimensions", len(few) == 64 and abs(sum(x * x for x in few) - 1) < 1e-5)
    cut = client.embed(model=MODEL, input="word " * 400, options={"num_ctx": 64})
    checks.equal("embed: a text too long is cut", cut.prompt_eval_count, 64)
    old = client.embeddings(model=MODEL, prompt="a river").embedding
    scale = sum(x * x for x in old) ** 0.5
    checks.true("embeddings: the same direction", max(
        abs(x / scale - y) for x, y in zip(old, one.embeddings[0], strict=True)) < 1e-5)
    checks.true("show: can embed", "embedding" in client.show(MODEL).capabilities)


def errors():
    def fails(name, status, call, text):
        try:
            checks.true(name, False, call())
        except ollama.ResponseError as error:
            checks.equal(name, (error.status_code, text in error.error), (status, True))
    fails("an unknown model", 404, lambda: generate(model="nobody"), "nobody")
    fails("an unknown model, streamed", 404, lambda: list(chat(model="nobody", stream=True)),
          "nobody")
    fails("an option of the wrong type", 400, lambda: generate(options={"top_k": "some"}), "top_k")
    fails("embed: more dimensions than there are", 400,
          lambda: client.embed(model=MODEL, input="a", dimensions=100000), "dimensions")
    fails("embed: too long and not to be cut", 400,
          lambda: client.embed(model=MODEL, input="word " * 40000, truncate=False), "context")
    fails("create", 501, lambda: client.create(model="mine", from_=MODEL), "not offered")
    fails("delete what is not there", 404, lambda: client.delete("nobody"), "nobody")
    stranger = ollama.Client(host=URL, headers={"Authorization": "Bearer wrong"})
    fails("a wrong key", 401, stranger.list, "")


def leave_stream():
    stream = generate(stream=True, options={"num_predict": 4000, "temperature": 0,
                                            "stop": ["never comes"]})
    for _ in range(3):
        next(stream)
    stream.close()


def at_once():
    async def run():
        other = ollama.AsyncClient(host=URL, headers=HEADERS)

        async def one():
            return (await other.generate(model=MODEL, prompt=PROMPT, raw=True,
                                         options=GREEDY)).response
        return await asyncio.gather(*(one() for _ in range(4)))
    checks.equal("four at once: all the same text", set(asyncio.run(run())), {TEXT})


for part in (generates, chats, formats, lists, embeds, errors, at_once):
    checks.part(part)
checks.part(lambda: check_cancel(checks, "cancel", leave_stream))
checks.end()
