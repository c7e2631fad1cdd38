#!/usr/bin/env python3
"""sluice and llama-server on the same model file, many clients at once, interleaved, as a Markdown table of medians.

    bench/serving.py --sluice build/release/sluice --llama-server LLAMA_SERVER MODEL.gguf
    bench/serving.py --sluice build/release/sluice --connections 1000 --streaming 200 MODEL.gguf

Each round starts one server after the other on a free loopback port, with the same threads and as many slots as
streams, and sends both the same requests (POST /completion with token ids, greedy, end tokens ignored):

  streams   that many requests at once, distinct prompts, no prefix cache: output tokens a second from the first byte
            sent to the last token read, time to the first token (TTFT), gaps between tokens
  long      while some streams decode, a prompt of --long tokens arrives: their gaps until its first token, and its
            TTFT, which is compared with the TTFT it had alone
  repeated  a prompt of --repeat tokens, then the same again with each server's own prefix cache: TTFT of both

A gap is what a client sees: the time between two events that carry text. Beside the longest stands what is left of
them without the time that the hypervisor took from the CPU that lost most meanwhile (steal in /proc/stat, 10 ms steps).
"CPUs used by others" is what other processes of this machine took: a run where it is not near 0 compares little.
The second form opens idle connections and short streams at one sluice and checks that all are served.
Ratios are medians of the rounds' ratios; in parentheses what the project wants, and whether it is so.
Servers are ended by their process ids whatever happens; every wait has an end.
"""
import argparse
import asyncio
import bisect
import contextlib
import ctypes
import json
import math
import os
import pathlib
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

READY_SECONDS = 600  # the first start of sluice writes its sidecar
REQUEST_SECONDS = 1800
STOP_SECONDS = 20
WARM_TOKENS = 8
TICKS = os.sysconf("SC_CLK_TCK")
DEFAULT_MODEL = "~/.local/share/sluice/models/gemma-3-270m-q4_k_m.gguf"


class Failed(Exception):
    pass


def die_with_parent():
    """In the child, before exec: Linux ends it if this script is killed and cannot."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One server process from its start to its end, whatever happens between."""

    def __init__(self, name, command):
        self.name = name
        self.port = free_port()
        self.command = [*command, "--host", "127.0.0.1", "--port", str(self.port)]

    async def __aenter__(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        start_new_session=True, preexec_fn=die_with_parent)
        try:
            await self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    async def __aexit__(self, *_):
        self.stop()

    async def wait_until_ready(self):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Failed(f"{self.name}: ended with {self.process.returncode}: {self.last_lines()}")
            with contextlib.suppress(OSError, Failed, asyncio.TimeoutError):
                if (await get(self.port, "/health", 2))[0] == 200:
                    return
            await asyncio.sleep(0.1)
        raise Failed(f"{self.name}: not ready after {READY_SECONDS} s: {self.last_lines()}")

    async def wait_until_idle(self):
        """Requests that were cut off end a little later."""
        for _ in range(600):
            status, body = await get(self.port, "/slots", 30)
            if status != 200 or not any(slot["is_processing"] for slot in json.loads(body)):
                return
            await asyncio.sleep(0.1)
        raise Failed(f"{self.name}: still busy a minute after its clients left")

    def last_lines(self):
        self.log.seek(0)
        return " | ".join(self.log.read().decode(errors="replace").strip().splitlines()[-3:])

    def peak_mb(self):
        with contextlib.suppress(OSError), open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) / 1024
        return math.nan

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def cpu_ticks():
    """The rows of /proc/stat, one for each CPU."""
    with open("/proc/stat") as f:
        return [[int(n) for n in line.split()[1:]] for line in f if line.startswith("cpu") and line[3].isdigit()]


def process_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Machine:
    """What it did besides while a server was measured: samples, for each CPU, the time that the hypervisor gave to
    others (stolen), and counts the time that other processes took."""

    PERIOD = 0.02

    def __init__(self, server):
        self.pid = server.process.pid

    def others(self):
        """CPU seconds of everything but the server and this script, so far."""
        busy = sum(sum(row[:3]) + sum(row[5:7]) for row in cpu_ticks()) / TICKS  # not idle, not stolen
        return busy - process_seconds(self.pid) - time.process_time()

    async def __aenter__(self):
        self.times, self.ticks = [], []
        self.sample()
        self.others_before = self.others()
        self.task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.sample()
        with contextlib.suppress(OSError):  # the server may have died
            self.others_cpus = max(0, self.others() - self.others_before) / (self.times[-1] - self.times[0])

    async def run(self):
        while True:
            await asyncio.sleep(self.PERIOD)
            self.sample()

    def sample(self):
        self.times.append(time.monotonic())
        self.ticks.append([row[7] for row in cpu_ticks()])

    def within(self, begin, end):
        """Seconds of the CPU that lost most: the others wait for it."""
        first = max(0, bisect.bisect_right(self.times, begin) - 1)
        last = min(len(self.times) - 1, bisect.bisect_left(self.times, end))
        lost = max(b - a for a, b in zip(self.ticks[first], self.ticks[last]))
        return lost / TICKS

    def figures(self):
        return {"stolen s": self.within(self.times[0], self.times[-1]), "CPUs used by others": self.others_cpus}


def head_of(method, path, length=0, close=True):
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {'close' if close else 'keep-alive'}\r\n"
            + (f"Content-Type: application/json\r\nContent-Length: {length}\r\n" if method == "POST" else "")
            + "\r\n").encode()


async def read_answer(reader):
    """Status and body of an answer with a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
    status, length = int(head.split()[1]), 0
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length":
            length = int(value)
    return status, await reader.readexactly(length)


async def get(port, path, seconds):
    async def exchange():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head_of("GET", path))
            return await read_answer(reader)
        finally:
            writer.close()
    try:
        return await asyncio.wait_for(exchange(), seconds)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
        raise Failed(f"GET {path}: no answer in HTTP: {error!r}") from error


class Stream:
    """One streaming request. Bytes are stamped as they arrive and understood after the last one, so that the client
    costs the servers little of their CPUs."""

    def __init__(self, port, prompt, tokens, cache=False):
        self.port = port
        self.tokens = tokens
        self.body = json.dumps({"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
                                "cache_prompt": cache, "stream": True, "return_tokens": True}).encode()
        self.begin = self.end = None
        self.stamps = []  # (time, bytes)
        self.first_text = asyncio.Event()

    async def run(self):
        await asyncio.wait_for(self.exchange(), REQUEST_SECONDS)
        return self

    async def exchange(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            self.begin = time.monotonic()
            writer.write(head_of("POST", "/completion", len(self.body)) + self.body)
            while data := await reader.read(1 << 16):
                self.stamps.append((time.monotonic(), data))
                if not self.first_text.is_set() and b'"content"' in data:
                    self.first_text.set()
        finally:
            writer.close()

    def parse(self, whole=True):
        """Fills in token_times, one for each event with text, and count; a cut off stream is not `whole`."""
        ends, raw = [], b""
        for _, data in self.stamps:
            raw += data
            ends.append(len(raw))
        head, _, _ = raw.partition(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0] + b" ":
            raise Failed(f"/completion: {raw[:300].decode(errors='replace')!r}")
        text, origin = unchunked(raw, len(head) + 4, b"chunked" in head.lower())
        self.token_times, self.count, last, at = [], 0, None, 0
        while (next_at := text.find(b"\n\n", at)) >= 0:
            event, begin, at = text[at:next_at].strip(), at, next_at + 2
            if not event.startswith(b"data:") or event == b"data: [DONE]":
                continue
            last = json.loads(event[5:])
            if "content" not in last:
                raise Failed(f"/completion: {event[:300].decode(errors='replace')}")
            if last["content"]:
                self.token_times.append(self.stamps[bisect.bisect_right(ends, origin(next_at + 1))][0])
            self.count = last.get("tokens_predicted", self.count)
        if whole and (not last or not last.get("stop") or self.count != self.tokens):
            raise Failed(f"/completion: expected {self.tokens} tokens and an end, found {self.count}")
        if not self.token_times:
            raise Failed("/completion: no token came")
        return self

    def ttft(self):
        return self.token_times[0] - self.begin

    def gaps(self, begin=-math.inf, end=math.inf):
        """(seconds, from, to) of each that touches the window."""
        return [(b - a, a, b) for a, b in zip(self.token_times, self.token_times[1:]) if b > begin and a < end]


def unchunked(raw, begin, chunked):
    """The body, and a function from a place in it to the place in `raw`."""
    if not chunked:
        return raw[begin:], lambda place: place + begin
    pieces, body_starts, raw_starts, size = [], [], [], 0
    while (line_end := raw.find(b"\r\n", begin)) >= 0:
        length = int(raw[begin:line_end].split(b";")[0], 16)
        if length == 0:
            break
        pieces.append(raw[line_end + 2:line_end + 2 + length])
        body_starts.append(size)
        raw_starts.append(line_end + 2)
        size += len(pieces[-1])
        begin = line_end + 4 + length

    def origin(place):
        chunk = bisect.bisect_right(body_starts, min(place, size - 1)) - 1
        return min(raw_starts[chunk] + place - body_starts[chunk], len(raw) - 1)
    return b"".join(pieces), origin


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def gap_figures(gaps, machine):
    if not gaps:
        raise Failed("no gaps to measure: give the streams more tokens")
    seconds = [g for g, _, _ in gaps]
    own = [max(0, g - machine.within(a, b)) for g, a, b in gaps]
    return {"gap p50 ms": 1e3 * percentile(seconds, 0.5), "gap p99 ms": 1e3 * percentile(seconds, 0.99),
            "gap p99.9 ms": 1e3 * percentile(seconds, 0.999), "gap p99.9 less stolen ms": 1e3 * percentile(own, 0.999),
            "worst gap ms": 1e3 * max(seconds), "worst gap less stolen ms": 1e3 * max(own)}


async def together(streams):
    """Runs all; the first failure ends the others."""
    tasks = [asyncio.create_task(s.run()) for s in streams]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Prompts:
    """Random token ids; the same for every engine of a round."""

    def __init__(self, options, seed):
        self.random = random.Random(seed)
        self.limits = (min(1000, options.vocab // 2), options.vocab - 1)  # the first ids are often special

    def next(self, length):
        return [self.random.randint(*self.limits) for _ in range(length)]


async def measure_streams(server, prompts, options, count):
    streams = [Stream(server.port, prompts.next(options.prompt), options.generate) for _ in range(count)]
    async with Machine(server) as machine:
        await together(streams)
    for s in streams:
        s.parse()
    begin, end = min(s.begin for s in streams), max(s.token_times[-1] for s in streams)
    ttft = [s.ttft() for s in streams]
    figures = {"tok/s": sum(s.count for s in streams) / (end - begin), "TTFT s": statistics.median(ttft),
               "worst TTFT s": max(ttft), **gap_figures([g for s in streams for g in s.gaps()], machine),
               **machine.figures()}
    events = sum(len(s.token_times) for s in streams)
    if events < 0.95 * sum(s.count for s in streams):  # text is held back until its characters are whole
        print(f"{server.name}: only {events} events for {sum(s.count for s in streams)} tokens: gaps look longer "
              "than they are", file=sys.stderr)
    return figures


async def time_to_first(server, prompt, cache):
    stream = Stream(server.port, prompt, WARM_TOKENS, cache)
    await stream.run()
    return stream.parse().ttft()


async def until_all_decode(streams, tasks):
    started = asyncio.gather(*(s.first_text.wait() for s in streams))
    await asyncio.wait([started, *tasks], timeout=REQUEST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if not started.done():
        started.cancel()
        over = [t.exception() or "too short" for t in tasks if t.done()]
        raise Failed(f"a running stream ended before all of them decoded: {over or 'nothing came'}")


async def measure_long(server, prompts, options, count):
    alone = await time_to_first(server, prompts.next(options.long), False)
    running = [Stream(server.port, prompts.next(64), options.long) for _ in range(count)]
    tasks = [asyncio.create_task(s.run()) for s in running]
    try:
        await until_all_decode(running, tasks)
        async with Machine(server) as machine:
            await asyncio.sleep(1)
            late = Stream(server.port, prompts.next(options.long), WARM_TOKENS)
            await late.run()
            late.parse()
            early = [t for t in tasks if t.done()]
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError):
            raise Failed(f"a running stream failed: {error!r}")
    if early:
        print(f"{server.name}: {len(early)} of {count} streams ended before the long prompt's first token",
              file=sys.stderr)
    await server.wait_until_idle()
    first = late.token_times[0]
    gaps = [g for s in running for g in s.parse(whole=False).gaps(late.begin, first)]
    rate = sum(sum(late.begin < t <= first for t in s.token_times) for s in running) / (first - late.begin)
    return {"long TTFT s": late.ttft(), "long TTFT alone s": alone, "long TTFT / alone": late.ttft() / alone,
            "tok/s meanwhile": rate, **gap_figures(gaps, machine), **machine.figures()}


async def measure_repeated(server, prompts, options):
    prompt = prompts.next(options.repeat)
    cold = await time_to_first(server, prompt, True)
    again = [await time_to_first(server, prompt, True) for _ in range(3)]
    return {"cold TTFT s": cold, "repeated TTFT ms": 1e3 * statistics.median(again)}


def sluice_command(options, slots, context):
    return [options.sluice, "serve", options.model, "-t", str(options.threads), "-c", str(context), "--np", str(slots),
            "--no-access-log", "--drain-seconds", "2", *options.sluice_args.split()]


def llama_command(options, slots, context):
    """Its context is shared out among the slots."""
    return [options.llama_server, "-m", options.model, "-t", str(options.threads), "-tb", str(options.threads),
            "-c", str(context * slots), "-np", str(slots), *options.llama_args.split()]


async def warm_up(server, prompts, options, slots):
    await Stream(server.port, prompts.next(options.prompt), WARM_TOKENS).run()
    await together([Stream(server.port, prompts.next(32), WARM_TOKENS) for _ in range(slots)])


def whole_pages(context):
    return -(-context // 256) * 256


async def part_streams(name, command, options, seed, report):
    slots, prompts = max(options.streams), Prompts(options, seed)
    async with Server(name, command(options, slots, whole_pages(options.prompt + options.generate + 64))) as server:
        await warm_up(server, prompts, options, slots)
        for count in options.streams:
            figures = await measure_streams(server, prompts, options, count)
            report("streams", count, {**figures, "peak memory MB": server.peak_mb()})


async def part_long(name, command, options, seed, report):
    """Few slots of a larger context."""
    beside, prompts = [n for n in options.beside if options.long], Prompts(options, seed)
    context = whole_pages(max(options.long + 64, options.repeat) + 64)
    slots = max([0, *beside]) + 1
    async with Server(name, command(options, slots, context)) as server:
        await warm_up(server, prompts, options, slots)
        for count in beside:
            report("long", count, await measure_long(server, prompts, options, count))
        if options.repeat:
            report("repeated", 1, await measure_repeated(server, prompts, options))


async def rounds(options, results):
    """Fills in {engine: [{(what, streams): figures} of each round]}; engines take turns at each part. Whether all
    could be measured."""
    engines = {"sluice": sluice_command}
    if options.llama_server:
        engines["llama-server"] = llama_command
    parts = [part_streams] if options.streams else []
    parts += [part_long] if options.long or options.repeat else []
    complete = True
    for r in range(options.rounds):
        for name in engines:
            results.setdefault(name, []).append({})
        for part in parts:
            for name, command in engines.items():
                def report(what, count, figures, name=name, r=r):
                    results[name][-1][what, count] = figures
                    print(f"round {r + 1} of {options.rounds}: {name}: {what} {count}: "
                          + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()), file=sys.stderr)
                try:
                    await part(name, command, options, 1000 * r + parts.index(part), report)
                except (Failed, OSError, asyncio.TimeoutError) as failure:  # the others go on
                    print(f"round {r + 1}: {name}: {failure!r}", file=sys.stderr)
                    complete = False
    return complete


# What the project wants: (what, figure) -> (of sluice's own value or of the ratio, at least or at most, value).
def goals(avx2_only):
    worst = 600 if avx2_only else 400
    shares = {1: 1.2, 4: 1.6, 16: 1.8} if avx2_only else {1: 1.4, 4: 2.0, 16: 2.5}
    table = {("streams", count, "tok/s"): ("ratio", ">=", share) for count, share in shares.items()}
    table["long", None, "gap p99.9 less stolen ms"] = ("value", "<=", worst)
    table["long", None, "long TTFT / alone"] = ("value", "<=", 1.3)
    table["repeated", None, "repeated TTFT ms"] = ("ratio", "<=", 1.1)
    return table


def cpu_info(name):
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return ""


def median(values):
    """Of those that were measured."""
    return statistics.median([v for v in values if not math.isnan(v)] or [math.nan])


def shown(value, form=""):
    return "" if math.isnan(value) else format(value, form or (".0f" if value >= 100 else ".3g"))


def print_table(options, results):
    wanted = goals("avx512f" not in cpu_info("flags").split())
    ours, theirs = results.get("sluice", []), results.get("llama-server", [])
    order = ["streams", "long", "repeated"]
    steps = sorted({k for r in ours + theirs for k in r}, key=lambda k: (order.index(k[0]), k[1]))
    titles = {"streams": f"streams: {{}}, prompt {options.prompt}, then {options.generate}",
              "long": f"prompt of {options.long} beside streams: {{}}",
              "repeated": f"prompt of {options.repeat} repeated"}
    print("| | | sluice | llama-server | ratio | goal |\n|---|---|---|---|---|---|")
    for step in steps:
        title = titles[step[0]].format(step[1])
        for figure in next(r[step] for r in ours + theirs if step in r):
            a, b = ([r[step][figure] if step in r else math.nan for r in rows] for rows in (ours, theirs))
            ratio = median(x / y for x, y in zip(a, b) if y)
            kind, way, goal = wanted.get((*step, figure)) or wanted.get((step[0], None, figure)) or ("", "", 0)
            value = {"value": median(a), "ratio": ratio}.get(kind, math.nan)
            met = "" if math.isnan(value) else ": yes" if (value >= goal if way == ">=" else value <= goal) else ": no"
            print(f"| {title} | {figure} | {shown(median(a))} | {shown(median(b))} | {shown(ratio, '.2f')} | "
                  + (f"({kind} {way} {goal:g}{met})" if kind else "") + " |")
            title = ""


class Health:
    """Asks for /health again and again, each time on a new connection."""

    def __init__(self, port):
        self.port = port
        self.seconds, self.failures = [], []

    async def run(self):
        while True:
            begin = time.monotonic()
            try:
                status, _ = await get(self.port, "/health", 10)
                if status != 200:
                    self.failures.append(f"status {status}")
            except (Failed, OSError, asyncio.TimeoutError) as error:
                self.failures.append(repr(error))
            self.seconds.append(time.monotonic() - begin)
            await asyncio.sleep(0.1)


async def open_idle(port, count):
    """Connections that have asked once, with a listening server's backlog in mind."""
    idle = []
    for _ in range(count):
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 10)
        idle.append((reader, writer))
    await ask_all(idle)
    return idle


async def ask_all(idle):
    async def ask(reader, writer):
        writer.write(head_of("GET", "/health", close=False))
        return (await read_answer(reader))[0]
    answers = await asyncio.wait_for(
        asyncio.gather(*(ask(*connection) for connection in idle), return_exceptions=True), 60)
    bad = [a for a in answers if a != 200]
    if bad:
        raise Failed(f"{len(bad)} of {len(idle)} idle connections were not answered: {bad[0]!r}")


async def check_connections(options):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = options.connections + options.streaming + 100
    if soft < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(need, hard) if hard > 0 else need, hard))
    options.model = options.model or os.path.expanduser(DEFAULT_MODEL)
    prompts = Prompts(options, 1)
    command = sluice_command(options, options.slots, 256) + [
        "--max-queue", str(max(128, options.streaming)), "--max-connections", str(max(2048, 2 * need))]
    async with Server("sluice", command) as server:
        before = server.peak_mb()
        idle = await open_idle(server.port, options.connections)
        health = Health(server.port)
        task = asyncio.create_task(health.run())
        streams = [Stream(server.port, prompts.next(8), options.generate_few) for _ in range(options.streaming)]
        try:
            async with Machine(server) as machine:
                await together(streams)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for s in streams:
            s.parse()  # fails unless the count is right
        await ask_all(idle)
        memory = server.peak_mb() - before
        for _, writer in idle:
            writer.close()
    figures = gap_figures([g for s in streams for g in s.gaps()], machine)
    figures.update(machine.figures())
    seconds = max(s.token_times[-1] for s in streams) - min(s.begin for s in streams)
    print(f"{options.connections} idle connections answered before and after; {options.streaming} streams of "
          f"{options.generate_few} tokens ended with all of them in {seconds:.2f} s "
          f"({sum(s.count for s in streams) / seconds:.0f} tok/s), peak memory grew by {memory:.0f} MB")
    ttft = [s.ttft() for s in streams]
    print(f"TTFT median {statistics.median(ttft):.2f} s, worst {max(ttft):.2f} s; "
          + ", ".join(f"{k} {v:.1f}" for k, v in figures.items()))
    print(f"/health: {len(health.seconds)} answers, worst {1e3 * max(health.seconds, default=0):.0f} ms "
          f"(goal: < 1000), {len(health.failures)} failed")
    if health.failures or not health.seconds or max(health.seconds) >= 1:
        raise Failed(f"/health was not answered in a second: {health.failures[:3]}")


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?")
    p.add_argument("--sluice", default="build/release/sluice")
    p.add_argument("--llama-server")
    p.add_argument("--sluice-args", default="", help="more flags for sluice serve, in one word")
    p.add_argument("--llama-args", default="", help="more flags for llama-server, in one word")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--prompt", type=int, default=512)
    p.add_argument("--generate", type=int, default=128)
    numbers = lambda text: [int(n) for n in text.split(",") if n]  # noqa: E731
    p.add_argument("--streams", type=numbers, default=[1, 4, 16], help="such as 1,4,16; '' leaves the part out")
    p.add_argument("--long", type=int, default=4000, help="tokens; 0 leaves the part out")
    p.add_argument("--beside", type=numbers, default=[1, 4], help="streams that run when the long prompt arrives")
    p.add_argument("--repeat", type=int, default=2000, help="tokens; 0 leaves the part out")
    p.add_argument("--vocab", type=int, default=30000, help="prompts are made of token ids below this")
    p.add_argument("--json", help="a file for the figures of every round")
    p.add_argument("--connections", type=int, default=0, help="idle ones: check these instead of measuring")
    p.add_argument("--streaming", type=int, default=0, help="short streams beside them")
    p.add_argument("--slots", type=int, default=32, help="of them that run at once")
    p.add_argument("--generate-few", type=int, default=8, help="tokens of each short stream")
    options = p.parse_args()
    if not options.model and not options.connections and not options.streaming:
        p.error("no model")
    for path in ("model", "sluice", "llama_server"):
        if getattr(options, path):
            setattr(options, path, os.path.abspath(getattr(options, path)))
    return options


def save(options, results):
    plain = {name: [{f"{what} {count}": figures for (what, count), figures in r.items()} for r in rows]
             for name, rows in results.items()}
    with open(options.json, "w") as f:
        json.dump({"model": pathlib.Path(options.model).name, "cpu": cpu_info("model name"), "threads": options.threads,
                   "date": time.strftime("%Y-%m-%d"), "prompt": options.prompt, "generate": options.generate,
                   "long": options.long, "repeat": options.repeat, "rounds": plain}, f, indent=1)


async def run(options):
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asyncio.current_task().cancel)
    if options.connections or options.streaming:
        return await check_connections(options)
    results, complete = {}, False
    try:
        complete = await rounds(options, results)
    finally:  # what there is, also when interrupted
        if options.json:
            save(options, results)
        print(f"{cpu_info('model name')}, {options.threads} threads, {pathlib.Path(options.model).stem}, medians of "
              f"{options.rounds} interleaved rounds{'' if complete else ', of which some are incomplete'}\n")
        print_table(options, results)
    if not complete:
        raise Failed("not every round could be measured")


def main():
    options = parse_options()
    try:
        asyncio.run(run(options))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
    except (Failed, OSError, asyncio.TimeoutError) as failure:
        sys.exit(f"serving.py: {failure!r}")


if __name__ == "__main__":
    main()
