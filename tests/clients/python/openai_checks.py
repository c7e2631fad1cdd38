"""OpenAI's Python client: chat, completions, responses, tools, schemas, errors, cancelling."""
import asyncio
import json
from typing import Literal

import openai
import pydantic

from checks import (CHAT, CHAT_PROMPT_TOKENS, CHAT_STOP, CITY, KEY, MESSAGES, MODEL, PROMPT,
                    PROMPT_TOKENS, STOP, TEXT, TOKENS, URL, WEATHER, Checks, check_cancel)

checks = Checks()
client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0, timeout=120)
GREEDY = {"model": MODEL, "max_tokens": TOKENS, "temperature": 0}


def chat(**more):
    return client.chat.completions.create(messages=MESSAGES, **{**GREEDY, **more})


def complete(**more):
    return client.completions.create(**{"prompt": PROMPT, **GREEDY, **more})


def models():
    listed = list(client.models.list())
    checks.equal("models: the served one is first", listed[0].id, MODEL)
    checks.equal("models: retrieve", client.models.retrieve(MODEL).id, MODEL)
    checks.raises("models: an unknown one", openai.NotFoundError,
                  lambda: client.models.retrieve("nobody"), "nobody")


def completions():
    whole = complete()
    checks.equal("completion: the text of sluice run", whole.choices[0].text, TEXT)
    checks.equal("completion: finish_reason", whole.choices[0].finish_reason, "length")
    checks.equal("completion: usage", (whole.usage.prompt_tokens, whole.usage.completion_tokens,
                                       whole.usage.total_tokens),
                 (PROMPT_TOKENS, TOKENS, PROMPT_TOKENS + TOKENS))
    chunks = list(complete(stream=True, stream_options={"include_usage": True}))
    checks.equal("completion, streamed: the same text",
                 "".join(c.choices[0].text for c in chunks if c.choices), TEXT)
    checks.equal("completion, streamed: usage comes once, without choices",
                 [(len(c.choices), c.usage.completion_tokens) for c in chunks if c.usage],
                 [(0, TOKENS)])
    checks.true("completion, streamed: about one chunk a token", len(chunks) >= TOKENS, len(chunks))
    checks.equal("completion, streamed: one id", len({c.id for c in chunks}), 1)

    checks.equal("completion, echo", complete(echo=True).choices[0].text, PROMPT + TEXT)
    logprobs = complete(logprobs=3).choices[0].logprobs
    checks.equal("logprobs: tokens make the text", "".join(logprobs.tokens), TEXT)
    checks.true("logprobs: greedy takes the best",
                all(abs(max(top.values()) - chosen) < 1e-5 for top, chosen in
                    zip(logprobs.top_logprobs, logprobs.token_logprobs)), logprobs)
    checks.equal("logprobs: offsets", [TEXT[at - logprobs.text_offset[0]:][:len(token)] for
                                       at, token in zip(logprobs.text_offset, logprobs.tokens)],
                 logprobs.tokens)

    two = complete(prompt=[PROMPT, "One two three"])
    checks.equal("two prompts: indexes", sorted(c.index for c in two.choices), [0, 1])
    checks.equal("two prompts: the first one's text",
                 next(c.text for c in two.choices if c.index == 0), TEXT)
    stopped = complete(stop=[STOP])
    checks.equal("stop: the text before it", stopped.choices[0].text, TEXT[:TEXT.index(STOP)])
    checks.equal("stop: finish_reason", stopped.choices[0].finish_reason, "stop")


def chats():
    whole = chat()
    checks.equal("chat: the text of sluice run", whole.choices[0].message.content, CHAT)
    checks.equal("chat: role", whole.choices[0].message.role, "assistant")
    checks.equal("chat: prompt tokens", whole.usage.prompt_tokens, CHAT_PROMPT_TOKENS)
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    deltas = [c.choices[0].delta for c in chunks if c.choices]
    checks.equal("chat, streamed: the same text", "".join(d.content or "" for d in deltas), CHAT)
    checks.equal("chat, streamed: the role comes once, first",
                 [i for i, d in enumerate(deltas) if d.role], [0])
    checks.equal("chat, streamed: one finish_reason, at the end",
                 [c.choices[0].finish_reason for c in chunks if c.choices][-1],
                 whole.choices[0].finish_reason)
    checks.equal("chat, streamed: the same usage", chunks[-1].usage.total_tokens,
                 whole.usage.total_tokens)
    with client.chat.completions.stream(messages=MESSAGES, model=MODEL, temperature=0,
                                        max_tokens=TOKENS, stop=[CHAT_STOP]) as stream:
        final = stream.get_final_completion()
    checks.equal("chat, stream helper", final.choices[0].message.content,
                 CHAT[:CHAT.index(CHAT_STOP)])
    newer = client.chat.completions.create(messages=MESSAGES, model=MODEL, temperature=0,
                                           max_completion_tokens=3)
    checks.true("max_completion_tokens", newer.usage.completion_tokens <= 3, newer.usage)
    parts = client.chat.completions.create(
        messages=[{**m, "content": [{"type": "text", "text": m["content"]}]} for m in MESSAGES],
        **GREEDY)
    checks.equal("chat: content in parts", parts.choices[0].message.content, CHAT)
    entries = chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
    checks.equal("chat, logprobs: bytes make the text",
                 b"".join(bytes(e.bytes) for e in entries).decode(), CHAT)
    checks.equal("chat, logprobs: two alternatives", {len(e.top_logprobs) for e in entries}, {2})


def sampling():
    def sampled(seed, **more):
        return [c.message.content for c in chat(temperature=1.0, seed=seed, **more).choices]
    checks.equal("seed: the same twice", sampled(7), sampled(7))
    several = sampled(7, n=3)
    checks.equal("n: three answers", len(several), 3)
    checks.true("n: they differ", len(set(several)) > 1, several)
    best = complete(max_tokens=1, logprobs=1).choices[0]
    token = client.post("/../tokenize", cast_to=object,
                        body={"prompt": best.text, "add_special_tokens": False})["tokens"][0]
    biased = complete(max_tokens=1, logit_bias={str(token): -100}).choices[0].text
    checks.true("logit_bias: the banned token does not come", biased != best.text, biased)


class City(pydantic.BaseModel):
    city: Literal["Paris", "Rome"]


def schemas():
    parsed = client.chat.completions.parse(messages=MESSAGES, response_format=City,
                                           **{**GREEDY, "max_tokens": 40})
    checks.true("schema: parsed by the client",
                parsed.choices[0].message.parsed in (City(city="Paris"), City(city="Rome")), parsed)
    chunks = chat(stream=True, max_tokens=40, response_format={
        "type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}})
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    checks.equal("schema, streamed: the same", json.loads(text),
                 parsed.choices[0].message.parsed.model_dump())


def tools():
    more = {"tools": [WEATHER], "max_tokens": 60,
            "tool_choice": {"type": "function", "function": {"name": "weather"}}}
    answer = chat(**more).choices[0]
    checks.equal("tools: finish_reason", answer.finish_reason, "tool_calls")
    call = answer.message.tool_calls[0]
    checks.equal("tools: name", call.function.name, "weather")
    city = json.loads(call.function.arguments)
    checks.true("tools: arguments follow the schema", city.get("city") in ("Paris", "Rome"), city)
    checks.true("tools: an id", call.id, call)
    with client.chat.completions.stream(messages=MESSAGES, **{**GREEDY, **more}) as stream:
        final = stream.get_final_completion().choices[0]
    checks.equal("tools, streamed: the same arguments",
                 json.loads(final.message.tool_calls[0].function.arguments), city)
    checks.equal("tools, streamed: finish_reason", final.finish_reason, "tool_calls")
    turn = client.chat.completions.create(
        messages=MESSAGES + [answer.message,
                             {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}],
        tools=[WEATHER], **GREEDY)
    checks.true("tools: the result goes back", turn.usage.prompt_tokens > CHAT_PROMPT_TOKENS, turn)


def responses():
    whole = client.responses.create(model=MODEL, input=MESSAGES, temperature=0,
                                    max_output_tokens=TOKENS)
    checks.equal("responses: the text of chat", whole.output_text, CHAT)
    checks.equal("responses: tokens", whole.usage.input_tokens, CHAT_PROMPT_TOKENS)
    events = list(client.responses.create(model=MODEL, input=MESSAGES, temperature=0,
                                          max_output_tokens=TOKENS, stream=True))
    checks.equal("responses, streamed: the same text",
                 "".join(e.delta for e in events if e.type == "response.output_text.delta"), CHAT)
    checks.equal("responses, streamed: first and last event",
                 (events[0].type, events[-1].type),
                 ("response.created", f"response.{whole.status}"))


def embed(texts, **more):
    return client.embeddings.create(model=MODEL, input=texts, **more)


def embeddings():
    # Without encoding_format the client asks for base64 and decodes it itself.
    coded = embed(["a river", "a mountain"])
    checks.equal("embeddings: one for each, in order", [e.index for e in coded.data], [0, 1])
    vector = coded.data[0].embedding
    checks.true("embeddings: of unit length", abs(sum(x * x for x in vector) - 1) < 1e-5)
    plain = embed("a river", encoding_format="float").data[0].embedding
    checks.true("embeddings: floats are those of base64", len(plain) == len(vector) and max(
        abs(x - y) for x, y in zip(plain, vector)) < 1e-7)
    checks.true("embeddings: usage",
                coded.usage.prompt_tokens == coded.usage.total_tokens > 3, coded.usage)
    few = embed("a river", dimensions=64).data[0].embedding
    checks.equal("embeddings: dimensions", len(few), 64)
    checks.true("embeddings: of unit length again", abs(sum(x * x for x in few) - 1) < 1e-5)
    ids = embed([[2, 100, 200], [2, 100]]).data
    checks.equal("embeddings: token ids", len(ids), 2)
    many = embed([f"text number {i}" for i in range(50)]).data
    checks.equal("embeddings: fifty at once, like alone", many[37].embedding,
                 embed("text number 37").data[0].embedding)


def errors():
    checks.raises("an unknown model", openai.NotFoundError, lambda: chat(model="nobody"), "nobody")
    checks.raises("temperature -1", openai.BadRequestError, lambda: chat(temperature=-1),
                  "temperature")
    checks.raises("max_tokens as text", openai.BadRequestError, lambda: complete(max_tokens="few"),
                  "max_tokens")
    checks.raises("messages as text", openai.BadRequestError,
                  lambda: client.chat.completions.create(messages="Hi", **GREEDY), "messages")
    checks.raises("an error before a stream", openai.BadRequestError,
                  lambda: chat(stream=True, top_p=7), "top_p")
    checks.raises("a prompt too long", openai.BadRequestError,
                  lambda: complete(prompt="word " * 40000), "context")
    checks.raises("embeddings: an empty text", openai.BadRequestError,
                  lambda: embed([""]), "input")
    checks.raises("embeddings: a text too long", openai.BadRequestError,
                  lambda: embed("word " * 40000), "context")
    checks.raises("embeddings: more dimensions than there are", openai.BadRequestError,
                  lambda: embed("a", dimensions=100000), "dimensions")
    stranger = openai.OpenAI(base_url=URL + "/v1", api_key="wrong", max_retries=0)
    checks.raises("a wrong key", openai.AuthenticationError,
                  lambda: stranger.models.list().data)
    try:
        complete(extra_headers={"x-request-id": "from-the-test"}, temperature=-9)
    except openai.BadRequestError as error:
        checks.equal("error: param", error.param, "temperature")
        checks.equal("error: type", error.type, "invalid_request_error")
        checks.equal("error: the request's own id", error.request_id, "from-the-test")
    answer = client.completions.with_raw_response.create(prompt=PROMPT, **GREEDY)
    checks.equal("a raw response parses", answer.parse().choices[0].text, TEXT)
    checks.true("x-request-id of an answer", answer.headers.get("x-request-id"), answer.headers)


def leave_stream():
    stream = complete(max_tokens=4000, stream=True, extra_body={"ignore_eos": True})
    for _ in range(3):
        next(iter(stream))
    stream.close()


def at_once():
    async def run():
        async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key=KEY) as other:
            async def one(stream):
                answer = await other.completions.create(prompt=PROMPT, stream=stream, **GREEDY)
                if not stream:
                    return answer.choices[0].text
                return "".join([c.choices[0].text async for c in answer])
            return await asyncio.gather(*(one(i % 2 == 1) for i in range(6)))
    checks.equal("six at once: all the same text", set(asyncio.run(run())), {TEXT})


for part in (models, completions, chats, sampling, schemas, tools, responses, embeddings, errors,
             at_once):
    checks.part(part)
checks.part(lambda: check_cancel(checks, "cancel", leave_stream))
checks.end()
