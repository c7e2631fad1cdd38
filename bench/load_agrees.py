#!/usr/bin/env python3
"""Does `sluice load` measure what a published load client measures? Both send the same load to a server that answers
by a script (the first token after a fixed time, then one every so often), in turns; medians of the rounds, as a
Markdown table with the ratios.

    bench/load_agrees.py --sluice build/release/sluice [--rounds 3] [--cache FOLDER]

The other client is GuideLLM, as tests/clients/requirements-load.txt names it, installed into the cache folder that
tests/clients/run.py uses. What the script of the server makes is the truth that neither can be below, and it stands in
the first column. GuideLLM's "inter-token latency" is one number per request, the time from its first to its last token
by the tokens between: our TPOT. Requests a second and tokens a second are computed from its requests' own times, from
the first start to the last end, as ours are.
"""
import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "clients"))
import run as clients  # noqa: E402

RUN_SECONDS = 300


class ScriptedServer:
    """OpenAI completions: `max_tokens` events with text, at fixed times after the request came."""

    def __init__(self, first_s, gap_s):
        self.first_s, self.gap_s = first_s, gap_s

    async def serve(self, port):
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    async def connection(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                came = asyncio.get_running_loop().time()
                length = 0
                for line in head.split("\r\n"):
                    if line.lower().startswith("content-length:"):
                        length = int(line.split(":")[1])
                body = json.loads(await reader.readexactly(length)) if length else {}
                await self.answer(head.split()[1], body, came, writer)
        writer.close()

    async def answer(self, path, body, came, writer):
        if not path.startswith("/v1/completions"):
            text = json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
                         + text)
            return await writer.drain()
        tokens = int(body.get("max_tokens") or 16)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        loop = asyncio.get_running_loop()
        for i in range(tokens):
            due = came + self.first_s + i * self.gap_s
            await asyncio.sleep(max(0, due - loop.time()))
            self.event(writer, {"choices": [{"index": 0, "text": " word", "finish_reason": None}]})
            await writer.drain()
        self.event(writer, {"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})
        prompt = body.get("prompt", "")
        count = len(prompt) if isinstance(prompt, list) else len(prompt.split())
        self.event(writer, {"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": tokens,
                                                     "total_tokens": count + tokens}})
        done = b"data: [DONE]\n\n"
        writer.write(b"%x\r\n" % len(done) + done + b"\r\n0\r\n\r\n")
        await writer.drain()

    @staticmethod
    def event(writer, value):
        value = {"id": "x", "object": "text_completion", "created": 0, "model": "scripted", **value}
        data = b"data: " + json.dumps(value).encode() + b"\n\n"
        writer.write(b"%x\r\n" % len(data) + data + b"\r\n")


@contextlib.contextmanager
def running(first_s, gap_s):
    """The URL of a scripted server in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=lambda: asyncio.run(ScriptedServer(first_s, gap_s).serve(there)), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.kill()
        process.join()


def guidellm(program, url, options, folder):
    data, report = folder / "prompts.jsonl", folder / "guidellm.json"
    line = json.dumps({"prompt": "one two three four five six seven eight", "output_tokens_count": options.tokens})
    data.write_text("\n".join([line] * options.requests) + "\n")
    report.unlink(missing_ok=True)
    subprocess.run([str(program), "benchmark", "run", "--target", url, "--data", str(data), "--max-requests",
                    str(options.requests), "--rate-type", "concurrent", "--rate", str(options.concurrency),
                    "--output-path", str(report), "--disable-progress", "--disable-console-outputs"],
                   env={**os.environ, "HF_HUB_OFFLINE": "1"}, timeout=RUN_SECONDS, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    benchmark = json.loads(report.read_text())["benchmarks"][0]
    requests = benchmark["requests"]["successful"]
    seconds = max(r["end_time"] for r in requests) - min(r["start_time"] for r in requests)
    metrics = benchmark["metrics"]
    return {"answers": len(requests),
            "TTFT ms": metrics["time_to_first_token_ms"]["successful"]["median"],
            "TPOT ms": metrics["inter_token_latency_ms"]["successful"]["median"],
            "E2E ms": 1e3 * metrics["request_latency"]["successful"]["median"],
            "answers/s": len(requests) / seconds,
            "output tok/s": sum(r["output_tokens"] for r in requests) / seconds}


def sluice_load(program, url, options):
    text = subprocess.run([program, "load", url, "--concurrency", str(options.concurrency), "--requests",
                           str(options.requests), "--prompt-tokens", "8", "--output-tokens", str(options.tokens),
                           "--json"], timeout=RUN_SECONDS, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True).stdout
    s = json.loads(text)["steps"][0]["summary"]
    return {"answers": s["ok"], "TTFT ms": s["ttft_ms"]["p50"], "TPOT ms": s["tpot_ms"]["p50"],
            "ITL ms": s["itl_ms"]["p50"], "E2E ms": s["e2e_ms"]["p50"], "answers/s": s["achieved_req_s"],
            "output tok/s": s["output_tok_s"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", required=True, help="the program")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser.add_argument("--cache", default=os.path.join(base, "sluice", "clients"),
                        help="where GuideLLM is installed (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=32, help="of each answer (%(default)s)")
    parser.add_argument("--first-ms", type=float, default=600, help="until the first token (%(default)s)")
    parser.add_argument("--gap-ms", type=float, default=40, help="between tokens (%(default)s)")
    options = parser.parse_args()
    other = pathlib.Path(clients.install("requirements-load.txt", pathlib.Path(options.cache))[0])
    program = other.with_name("guidellm")

    ours, theirs = [], []
    with running(options.first_ms / 1e3, options.gap_ms / 1e3) as url, tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            ours.append(sluice_load(options.sluice, url, options))
            theirs.append(guidellm(program, url, options, pathlib.Path(folder)))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)

    whole_ms = options.first_ms + (options.tokens - 1) * options.gap_ms
    rate = 1e3 * options.concurrency / whole_ms
    script = {"answers": options.requests, "TTFT ms": options.first_ms, "TPOT ms": options.gap_ms,
              "ITL ms": options.gap_ms, "E2E ms": whole_ms, "answers/s": rate, "output tok/s": rate * options.tokens}
    print(f"| median of {options.rounds} rounds | script | sluice load | GuideLLM | sluice load / GuideLLM |")
    print("|---|---|---|---|---|")
    worst = 0
    for name, truth in script.items():
        a = statistics.median(r[name] for r in ours)
        if name not in theirs[0]:
            print(f"| {name} | {truth:.2f} | {a:.2f} | | |")
            continue
        b = statistics.median(r[name] for r in theirs)
        worst = max(worst, abs(a / b - 1))
        print(f"| {name} | {truth:.2f} | {a:.2f} | {b:.2f} | {a / b:.4f} |")
    print(f"\nThe largest difference is {100 * worst:.2f} %.")
    return 0 if worst <= 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
