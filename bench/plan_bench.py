#!/usr/bin/env python3
"""Holds `sluice plan` to what happens, and prints the table of bench/README.md.

    bench/plan_bench.py --sluice build/release/sluice MODEL.gguf... [--pairs 20] [--json FILE]

For each model: prompts of 64, 512 and 2048 tokens alone, and 512 for four at once (the
combinations; --quick: half of them). Each is `sluice plan --check`: a pair is a measurement of the
ceilings that a prediction needs, the prediction, and the run right after it, because shared
machines swing twofold within minutes. One pair of every combination makes a round, so that
all combinations see the same hours; the table has medians over the rounds. Wanted: the time per
token within 10 %, the time to the first token within 15 %.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

COMBINATIONS = [(64, 64, 1), (512, 64, 1), (2048, 32, 1), (512, 32, 4)]
QUICK = [(512, 64, 1), (512, 32, 4)]


def check(sluice, model, prompt, output, concurrency, pairs, cache):
    command = [sluice, "plan", model, "--check", "--pairs", str(pairs), "--json",
               "--prompt", str(prompt), "--output", str(output),
               "--concurrency", str(concurrency)]
    environment = dict(os.environ, SLUICE_CACHE=cache) if cache else None
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["samples"]


def median_error(samples, predicted, measured):
    return statistics.median(s[predicted] / s[measured] - 1 for s in samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--sluice", default="build/release/sluice")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--a-round", type=int, default=2,
                        help="pairs per load of a model; a round loads every one once")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cache", help="another cache folder ($SLUICE_CACHE)")
    parser.add_argument("--json", help="keep all samples in this file")
    flags = parser.parse_args()

    rows = [(model, *c) for model in flags.models for c in (QUICK if flags.quick else COMBINATIONS)]
    samples = {row: [] for row in rows}
    for first in range(0, flags.pairs, flags.a_round):
        for row in rows:
            count = min(flags.a_round, flags.pairs - first)
            samples[row] += check(flags.sluice, *row, count, flags.cache)
        print(f"{min(flags.pairs, first + flags.a_round)} of {flags.pairs} pairs", file=sys.stderr)
        if flags.json:
            with open(flags.json, "w") as out:
                json.dump([{"row": r, "samples": s} for r, s in samples.items()], out)

    print("| model | prompt | output | at once | GB/s | TTFT predicted | measured | error "
          "| per token predicted | measured | error |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        s = samples[row]
        def middle(field):
            return statistics.median(x[field] for x in s)
        ttft = median_error(s, "predicted_ttft_s", "ttft_s")
        token = median_error(s, "predicted_token_s", "token_s")
        print(f"| {os.path.basename(row[0]).removesuffix('.gguf')} | {row[1]} | {row[2]} | {row[3]} "
              f"| {middle('read_gb_s'):.1f} "
              f"| {middle('predicted_ttft_s'):.3f} s | {middle('ttft_s'):.3f} s | {100 * ttft:+.1f} % "
              f"| {1e3 * middle('predicted_token_s'):.2f} ms | {1e3 * middle('token_s'):.2f} ms "
              f"| {100 * token:+.1f} % |")
    good = sum(abs(median_error(s, "predicted_ttft_s", "ttft_s")) <= 0.15 and
               abs(median_error(s, "predicted_token_s", "token_s")) <= 0.10
               for s in samples.values())
    print(f"\n{good} of {len(rows)} within 15 % (TTFT) and 10 % (per token); "
          f"medians of {flags.pairs} pairs")


if __name__ == "__main__":
    main()
