#!/usr/bin/env python3
"""Draws docs/plots/*.svg, the figures of prefill-and-decode.md.

    docs/plots.py --sluice build/release/sluice
    docs/plots.py --sluice build/release/sluice --measure MODEL.gguf

The first takes a minute and loads no model: `sluice plan --json` computes everything from shapes
(shapes.py) and the published figures of machines, so the same program draws the same files. The
second also runs MODEL on this machine with `sluice bench -o json`, keeps what it said in
docs/plots/measured.json, and draws that. Python's standard library is enough.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import shapes
from chart import Chart, Panel

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plots")
MACHINE, READ_SHARE, COMPUTE_SHARE = "ddr5-dual", 0.8, 0.5  # what `sluice plan --on` expects of it
STREAMS = [1, 2, 4, 8, 16, 32, 64]
MEASURED_STREAMS, ROUNDS = [1, 2, 4, 8, 16], 5
KEPT = ("build_version", "cpu_info", "model_type", "n_gen", "concurrency", "n_threads", "target",
        "test_time", "samples_ts", "other_load_pct")


class Planner:
    def __init__(self, sluice, folder):
        self.sluice, self.folder, self.files = sluice, folder, {}

    def plan(self, size, weights="Q4_0", on=MACHINE, **flags):
        """What `sluice plan --json` says of this shape on this machine."""
        if (size, weights) not in self.files:
            self.files[size, weights] = shapes.write(self.folder, size, weights)
        command = [self.sluice, "plan", self.files[size, weights], "--on", on, "--json"]
        for flag, value in flags.items():
            command += ["--" + flag.replace("_", "-"), str(value)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"plots.py: {' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def check(what, counted, said):
    """The pages' formulae, computed here, must be what sluice computes."""
    if abs(counted - said) > 0.005 * said:
        sys.exit(f"plots.py: {what}: by the formula {counted:g}, sluice says {said:g}")


def matrix_macs(size):
    """Multiply-adds of a token in the layers and in the output matrix: weights used."""
    layers, dim, heads, kv_heads, head_dim, ffn, vocab, experts, used, expert_ffn = \
        shapes.SHAPES[size]
    mlp = 3 * dim * expert_ffn * used + dim * experts if experts else 3 * dim * ffn
    return layers * (2 * dim * head_dim * (heads + kv_heads) + mlp), dim * vocab


def attention_macs(size, positions):
    layers, _, heads, _, head_dim = shapes.SHAPES[size][:5]
    return 2 * layers * heads * head_dim * positions


def kv_bytes(size, positions, bytes_per_value=2):
    layers, _, _, kv_heads, head_dim = shapes.SHAPES[size][:5]
    return 2 * layers * kv_heads * head_dim * bytes_per_value * positions


def roofs(planner):
    """GB/s and 1e9 multiply-adds/s of MACHINE, out of two plans: one bound by each."""
    one = planner.plan("8B")["prediction"]
    many = planner.plan("8B", concurrency=512, output=1)["prediction"]
    if (one["decode_bound_by"], many["decode_bound_by"]) != ("bandwidth", "compute"):
        sys.exit("plots.py: expected one stream to be bound by bandwidth and 512 by compute")
    return (one["bytes_per_step"] * one["decode_ceiling_tok_s"] / 1e9,
            many["macs_per_step"] * many["decode_ceiling_tok_s"] / 512 / 1e9)


def roofline(planner):
    read, macs = roofs(planner)
    ridge = macs / read
    chart = Chart(860, 520, "Roofline: an 8B model on a machine of "
                  f"{read:.0f} GB/s and {macs / 1e3:.0f}·10¹² multiply-adds per second (computed)")
    p = chart.add(Panel((76, 60, 836, 462), (0.3, 1000), (10, 10000), "log", "log",
                        "multiply-adds per byte read", "10⁹ multiply-adds per second"))
    for share_read, share_macs, dash in ((1, 1, ""), (READ_SHARE, COMPUTE_SHARE, "5 4")):
        knee = share_macs * macs / (share_read * read)
        p.line([(0.3, 0.3 * share_read * read), (knee, share_macs * macs),
                (1000, share_macs * macs)], 5, dash=dash)
    p.along((0.4, 0.4 * read), (3, 3 * read), f"reads {read:.0f} GB/s", 5)
    p.note(1000, macs, "the roof", 5, anchor="end", dx=0, dy=-10)
    p.note(1000, 34, "dashed: to expect, 80 % of the reading,", 5, anchor="end", dx=-6)
    p.note(1000, 25, "50 % of the multiplying", 5, anchor="end", dx=-6)
    p.line([(ridge, 10), (ridge, macs)], 5, dash="2 4", width=1)
    p.note(ridge, 10, f"ridge: {ridge:.0f} per byte", 5, dx=6, dy=-10)
    for weights, colour in (("Q4_0", 0), ("BF16", 1)):
        labels = {}
        for n in (1, 4, 16) if weights == "Q4_0" else (1, 16):
            d = planner.plan("8B", weights, concurrency=n)["prediction"]
            check("multiply-adds of a step", d["macs_per_step"],
                  n * (sum(matrix_macs("8B")) + attention_macs("8B", 512 + 64 + 1)))
            labels[f"{weights} decode, {n} stream" + "s" * (n > 1)] = (
                d["macs_per_step"] / d["bytes_per_step"], d["macs_per_step"] / d["step_s"] / 1e9)
        d = planner.plan("8B", weights)["prediction"]
        layers, output = matrix_macs("8B")
        work = 512 * layers + output + attention_macs("8B", 1) * 512 * 513 / 2
        size = d["weight_bytes_per_step"] + kv_bytes("8B", 512)
        labels[f"{weights} prefill, 512 tokens"] = (work / size, work / d["prefill_s"] / 1e9)
        for label, (x, y) in labels.items():
            p.point(x, y, colour)
            if "prefill" in label:
                if weights == "Q4_0":
                    p.note(x, y, label, colour, anchor="end", dx=8, dy=-10)
                else:
                    p.note(x, y, label, colour, dx=-6, dy=20)
            else:
                p.note(x, y, label, colour, dx=9, dy=2 if weights == "BF16" and x > 1 else 15)
    chart.save(os.path.join(FOLDER, "roofline.svg"))


def context(planner):
    read, _ = roofs(planner)
    chart = Chart(860, 460, f"Decode against context: 8B, Q4_0 weights, {read:.0f} GB/s (computed)")
    p = chart.add(Panel((70, 60, 740, 400), (512, 131072), (0, 24), "log2", "linear",
                        "tokens in the context", "tok/s at most"))
    for colour, kv_type, per_value in ((2, "q8", 34 / 32), (0, "f16", 2), (1, "f32", 4)):
        d = planner.plan("8B", kv_type=kv_type)
        points = []
        for row in d["contexts"]:
            said = row["prediction"]
            check("bytes of a step", said["weight_bytes_per_step"] + kv_bytes(
                "8B", int(row["context"]), per_value), said["bytes_per_step"])
            points.append((int(row["context"]), said["decode_ceiling_tok_s"]))
        check("KV bytes", kv_bytes("8B", 1, per_value), d["memory"]["kv_bytes_per_token"])
        p.line(points, colour)
        for point in points:
            p.point(*point, colour, 3)
        p.note(*points[-1], f"{kv_type}, {kv_bytes('8B', 1, per_value) / 1024:.0f} KiB/tok", colour,
               dx=8)
    weights = planner.plan("8B")["prediction"]["weight_bytes_per_step"]
    p.line([(512, read * 1e9 / weights), (131072, read * 1e9 / weights)], 5, dash="2 4", width=1)
    p.note(131072, read * 1e9 / weights, "weights alone", 5, dx=8)
    twice = weights / kv_bytes("8B", 1)
    p.line([(twice, 0), (twice, read * 1e9 / weights / 2)], 0, dash="2 4", width=1)
    p.note(twice, 0, f"f16: {twice:.0f} tokens weigh what the weights do", 0, anchor="end", dx=-6,
           dy=-8)
    chart.save(os.path.join(FOLDER, "context.svg"))


def streams(planner):
    read, macs = roofs(planner)
    chart = Chart(860, 460, "Streams that decode together: 8B Q4_0, "
                  f"{READ_SHARE * read:.0f} GB/s, {COMPUTE_SHARE * macs / 1e3:.0f}·10¹² "
                  "multiply-adds/s (computed)")
    left = chart.add(Panel((64, 60, 390, 400), (1, 64), (32, 2048), "log2", "log2",
                           "streams", "ms a step"))
    right = chart.add(Panel((476, 60, 770, 400), (1, 64), (0, 250), "log2", "linear",
                            "streams", "tok/s of all"))
    for colour, prompt in ((0, 512), (2, 2048), (1, 8192)):
        plans = [planner.plan("8B", concurrency=n, prompt=prompt, output=2)["prediction"]
                 for n in STREAMS]
        left.line([(n, 1e3 * d["step_s"]) for n, d in zip(STREAMS, plans)], colour)
        right.line([(n, d["decode_tok_s"]) for n, d in zip(STREAMS, plans)], colour)
        for n, d in zip(STREAMS, plans):
            left.point(n, 1e3 * d["step_s"], colour, 3)
            right.point(n, d["decode_tok_s"], colour, 3)
        right.note(64, plans[-1]["decode_tok_s"], f"{prompt} tokens", colour, dx=8)
    left.note(1.15, 1600, "context of each stream:", 5, dx=0)
    for i, (colour, prompt) in enumerate(((0, 512), (2, 2048), (1, 8192))):
        left.note(1.15, 1600, f"{prompt} tokens", colour, dx=0, dy=22 + 18 * i)
    chart.save(os.path.join(FOLDER, "streams.svg"))


def machines(planner):
    names = ["pi5", "ddr4-dual", "ddr5-dual", "m4", "lpddr5x-256", "server-12ch", "rtx4090",
             "a100-80g", "h100-sxm"]
    models = ["1B", "30B-A3B", "8B", "14B", "32B", "70B"]
    chart = Chart(860, 560, "Decode ceilings of one stream: Q4_0 weights, 576 tokens of context "
                  "(computed)")
    p = chart.add(Panel((70, 130, 760, 502), (14, 4000), (0.3, 5000), "log", "log",
                        "GB/s of memory", "tok/s at most"))
    for name in names:
        d = planner.plan("1B", on=name)["prediction"]
        p.mark_x(d["bytes_per_step"] * d["decode_ceiling_tok_s"] / 1e9, name)
    for colour, size in enumerate(models):
        points = []
        for name in names:
            d = planner.plan(size, on=name)
            s = d["prediction"]
            points.append((s["bytes_per_step"] * s["decode_ceiling_tok_s"] / 1e9,
                           s["decode_ceiling_tok_s"], d["memory"]["fits"]))
        p.line([(x, y) for x, y, _ in points], colour, width=1.5)
        for x, y, fits in points:
            p.point(x, y, colour, 4, hollow=not fits)
        p.note(points[-1][0], points[-1][1], size, colour, dx=10)
    p.note(15, 3400, "hollow: does not fit in its memory", 5, dx=0)
    chart.save(os.path.join(FOLDER, "machines.svg"))


def measure(sluice, model):
    """All counts in turns, so that a machine whose speed swings does so for each of them."""
    command = [sluice, "bench", model, "-p", "0", "-n", "16", "-r", "1", "-o", "json", "-np",
               ",".join(map(str, MEASURED_STREAMS))]
    rows = []
    for _ in range(ROUNDS):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"plots.py: {' '.join(command)} failed")
        more = [{key: row[key] for key in KEPT} for row in json.loads(done.stdout)]
        rows = rows or [row | {"samples_ts": [], "other_load_pct": 0} for row in more]
        for row, new in zip(rows, more):
            row["samples_ts"] += new["samples_ts"]
            row["other_load_pct"] = max(row["other_load_pct"], new["other_load_pct"])
    with open(os.path.join(FOLDER, "measured.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


def measured():
    with open(os.path.join(FOLDER, "measured.json"), encoding="utf-8") as file:
        decode = json.load(file)
    first = decode[0]
    busy = max(r["other_load_pct"] for r in decode)
    chart = Chart(860, 460, f"Measured: {first['model_type']}, {first['cpu_info']}, "
                  f"{first['n_threads']} threads, {first['test_time'][:10]}")
    chart.text(24, 48, f"best of {len(first['samples_ts'])} samples"
               + (f"; other programs took up to {busy:.0f} % of the CPUs" if busy > 10 else ""))
    best = [(r["concurrency"], max(r["samples_ts"])) for r in decode]
    top_ms = 1.15 * max(1e3 * n / t for n, t in best)
    top_rate = 1.15 * max(t for _, t in best)
    left = chart.add(Panel((64, 70, 404, 410), (0.8, 20), (0, top_ms), "log2", "linear",
                           "streams", "ms a step"))
    right = chart.add(Panel((490, 70, 830, 410), (0.8, 20), (0, top_rate), "log2", "linear",
                            "streams", "tok/s of all"))
    left.line([(n, 1e3 * n / t) for n, t in best], 0)
    right.line(best, 0)
    for n, t in best:
        left.point(n, 1e3 * n / t, 0)
        right.point(n, t, 0)
        ratio = n / t * best[0][1]
        left.note(n, 1e3 * n / t, f"× {ratio:.2f}", 0, anchor="end" if n >= 4 else "start",
                  dx=-2 if n >= 4 else -12, dy=-10)
    chart.save(os.path.join(FOLDER, "measured.svg"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sluice", required=True, help="the program")
    parser.add_argument("--measure", metavar="MODEL", help="runs this model too")
    flags = parser.parse_args()
    os.makedirs(FOLDER, exist_ok=True)
    if flags.measure:
        measure(flags.sluice, flags.measure)
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(flags.sluice, folder)
        for draw in (roofline, context, streams, machines):
            draw(planner)
    if os.path.exists(os.path.join(FOLDER, "measured.json")):
        measured()


if __name__ == "__main__":
    main()
