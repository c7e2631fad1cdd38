"""LangChain's OpenAI package: ChatOpenAI and OpenAI."""
from typing import Literal

import openai
import pydantic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAI

from checks import (CHAT, CHAT_PROMPT_TOKENS, KEY, MESSAGES, MODEL, PROMPT, TEXT, TOKENS, URL,
                    Checks, check_cancel)

checks = Checks()
SERVER = {"base_url": URL + "/v1", "api_key": KEY, "model": MODEL, "max_retries": 0,
          "timeout": 120}


class City(pydantic.BaseModel):
    """The weather of a city."""

    city: Literal["Paris", "Rome"]


def model(**more):
    return ChatOpenAI(**{**SERVER, "temperature": 0, "max_tokens": TOKENS, **more})


def chats():
    question = [HumanMessage(MESSAGES[0]["content"])]
    whole = model().invoke(question)
    checks.equal("chat: the text of sluice run", whole.content, CHAT)
    checks.equal("chat: usage", (whole.usage_metadata["input_tokens"],
                                 whole.usage_metadata["output_tokens"]),
                 (CHAT_PROMPT_TOKENS, TOKENS))
    chunks = list(model(stream_usage=True).stream(question))
    checks.equal("chat, streamed: the same text", "".join(c.content for c in chunks), CHAT)
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    checks.equal("chat, streamed: the same usage", total.usage_metadata["total_tokens"],
                 whole.usage_metadata["total_tokens"])
    checks.equal("chat, streamed: finish_reason", total.response_metadata["finish_reason"],
                 "length")
    checks.equal("a batch of three", [m.content for m in model().batch([question] * 3)], [CHAT] * 3)


def completions():
    text = OpenAI(**SERVER, temperature=0, max_tokens=TOKENS)
    checks.equal("completion: the text of sluice run", text.invoke(PROMPT), TEXT)
    checks.equal("completion, streamed: the same text", "".join(text.stream(PROMPT)), TEXT)


def structures():
    question = MESSAGES[0]["content"]
    for method in ("json_schema", "function_calling"):
        answer = model(max_tokens=60).with_structured_output(City, method=method).invoke(question)
        checks.true(f"structured output by {method}", answer in (City(city="Paris"),
                                                                 City(city="Rome")), answer)
    called = model(max_tokens=60).bind_tools([City], tool_choice="City").invoke(question)
    checks.equal("bind_tools: one call", [c["name"] for c in called.tool_calls], ["City"])
    back = model().invoke([HumanMessage(question),
                           AIMessage("", tool_calls=called.tool_calls),
                           ToolMessage("Sunny.", tool_call_id=called.tool_calls[0]["id"])])
    checks.true("the result of a call goes back",
                back.usage_metadata["input_tokens"] > CHAT_PROMPT_TOKENS, back)
    logprobs = model().bind(logprobs=True).invoke(question).response_metadata["logprobs"]
    checks.equal("logprobs: tokens make the text",
                 "".join(e["token"] for e in logprobs["content"]), CHAT)


def errors():
    checks.raises("an unknown model", openai.NotFoundError,
                  lambda: model(model="nobody").invoke("Hi"), "nobody")
    checks.raises("a bad parameter", openai.BadRequestError,
                  lambda: model(top_p=7).invoke("Hi"), "top_p")
    checks.raises("a wrong key", openai.AuthenticationError,
                  lambda: model(api_key="wrong").invoke("Hi"))


def leave_stream():
    stream = model(max_tokens=4000, extra_body={"ignore_eos": True}).stream("Hi")
    for _ in range(3):
        next(stream)
    stream.close()


for part in (chats, completions, structures, errors):
    checks.part(part)
checks.part(lambda: check_cancel(checks, "cancel", leave_stream))
checks.end()
