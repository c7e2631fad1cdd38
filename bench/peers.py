#!/usr/bin/env python3
"""sluice and llama.cpp on the same model files, interleaved in one run, as a Markdown table of medians.

usage: bench/peers.py SLUICE LLAMA_BENCH MODEL.gguf... [--rounds 5] [--threads 2] [--prompt 512] [--tokens 128]

Each round runs, for each model, `sluice run` (one process: a prompt of exactly --prompt tokens, then --tokens greedy
ones) and llama-bench (prefill alone, then decode at the same depth). Peak memory is the operating system's figure of
the process, mapped weights included. Read bandwidth is what sluice measures right after each of its runs.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys

WORDS = "the keeper of the light walks up the stairs at dusk and counts them ".split()


def measured(args):
    """stdout and peak memory in MB of one process."""
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        sys.exit(f"{args[0]} failed: {' '.join(args)}")
    return out, usage.ru_maxrss / 1024


def prompt_of(sluice, model, tokens):
    """A text of exactly `tokens` tokens, BOS included, or a little fewer where no text hits it."""
    count = lambda text: len(json.loads(measured([sluice, "tokenize", model, "--add-special", "--json", text])[0])["ids"])
    text = lambda words: " ".join(WORDS[i % len(WORDS)] for i in range(words))
    low, high = 1, tokens
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text(middle)) <= tokens else (low, middle - 1)
    best = text(low)
    while count(best + " a") <= tokens:
        best += " a"
    return best


def run_sluice(a, model, prompt):
    out, rss = measured([a.sluice, "run", model, "-p", prompt, "-n", str(a.tokens), "--temp", "0", "--ignore-eos",
                         "-t", str(a.threads), "--json"])
    o = json.loads(out)
    return {"prefill": o["prefill_tok_s"], "decode": o["decode_tok_s"], "rss": rss,
            "ceiling": o["ceiling_pct"], "bandwidth": o["read_bandwidth_gb_s"]}


def run_llama(a, model):
    base = [a.llama_bench, "-m", model, "-t", str(a.threads), "-r", "1", "-o", "json"]
    pp, rss1 = measured(base + ["-p", str(a.prompt), "-n", "0"])
    tg, rss2 = measured(base + ["-p", "0", "-n", str(a.tokens), "-d", str(a.prompt)])
    return {"prefill": json.loads(pp)[0]["avg_ts"], "decode": json.loads(tg)[0]["avg_ts"], "rss": max(rss1, rss2)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("sluice"), p.add_argument("llama_bench"), p.add_argument("models", nargs="+")
    p.add_argument("--rounds", type=int, default=5), p.add_argument("--threads", type=int, default=2)
    p.add_argument("--prompt", type=int, default=512), p.add_argument("--tokens", type=int, default=128)
    a = p.parse_args()

    prompts = {m: prompt_of(a.sluice, m, a.prompt) for m in a.models}
    ours, theirs = {m: [] for m in a.models}, {m: [] for m in a.models}
    for m in a.models:
        measured([a.sluice, "run", m, "-p", "a", "-n", "1"])  # writes the sidecar, warms the page cache
    for r in range(a.rounds):
        for m in a.models:
            ours[m].append(run_sluice(a, m, prompts[m]))
            theirs[m].append(run_llama(a, m))
        print(f"round {r + 1} of {a.rounds}", file=sys.stderr)

    print("| model | | sluice | llama.cpp | ratio (pairwise median) |\n|---|---|---|---|---|")
    for m in a.models:
        med = lambda rows, k: statistics.median(x[k] for x in rows)
        for k, name in (("prefill", "prefill tok/s"), ("decode", "decode tok/s"), ("rss", "peak memory MB")):
            ratio = statistics.median(x[k] / y[k] for x, y in zip(ours[m], theirs[m]))
            print(f"| {pathlib.Path(m).name} | {name} | {med(ours[m], k):.1f} | {med(theirs[m], k):.1f} | {ratio:.2f} |")
        print(f"| | share of the read ceiling | {med(ours[m], 'ceiling'):.0f} % of {med(ours[m], 'bandwidth'):.1f} GB/s | | |")


main()
