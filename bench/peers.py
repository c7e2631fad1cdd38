#!/usr/bin/env python3
"""sluice, llama.cpp and ik_llama.cpp on the same model files, interleaved in one run, as a Markdown table of medians.

    bench/peers.py --llama LLAMA_BENCH [--ik IK_LLAMA_BENCH --ik-sweep IK_SWEEP_BENCH] MODEL.gguf... [--rounds 3]
    bench/peers.py ... --depth 8192 MODEL.gguf      # also prefill and decode behind that many tokens

Each round runs every engine on every model: prefill of --prompt tokens, decode of --tokens from an empty context, and
with --depth both again behind so many tokens (ik_llama.cpp through its sweep tool). ik_llama.cpp runs as it is and with
weights repacked at run time (-rtr). Ratios are medians of the rounds' ratios, peers' best column last. Peak memory is the
operating system's figure of the process, mapped files included. The share of the ceiling is of the read bandwidth that
sluice measures beside its own runs.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile


class Failed(Exception):
    pass


def measured(args, everything=False):
    """stdout (with stderr, if everything is wanted) and peak memory in MB of one process. Its logs are thrown away."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as folder:
        p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if everything else errors, cwd=folder)
        out = p.stdout.read()
        _, status, usage = os.wait4(p.pid, 0)
        if status != 0:
            errors.seek(0)
            last = (out if everything else errors.read()).decode(errors="replace").strip().splitlines()[-1:]
            raise Failed(f"{' '.join(args)}: status {status}: {''.join(last)}")
    return out, usage.ru_maxrss / 1024


def rows_of(out):
    """{'prefill': tok/s, 'decode': tok/s, and at a depth 'prefill @ D' ...} of llama-bench's JSON."""
    rows = {}
    for r in json.loads(out):
        depth = r.get("n_depth", 0)
        name = ("prefill" if r["n_prompt"] else "decode") + (f" @ {depth}" if depth else "")
        rows[name] = r["avg_ts"]
        if "ceiling_pct" in r and r["n_gen"]:
            rows["ceiling" + (f" @ {depth}" if depth else "")] = (r["ceiling_pct"], r["read_bandwidth_gb_s"])
    return rows


def run_bench(program, a, model, extra=(), depth=None):
    args = [*program, "-m", model, "-p", str(a.prompt), "-n", str(a.tokens), "-t", str(a.threads), "-r", "1", "-o", "json", *extra]
    if depth:
        args += ["-d", str(depth)]
    out, rss = measured(args)
    return {**rows_of(out), "peak memory MB": rss}


def run_sweep(a, model, extra):
    """ik_llama.cpp at a depth: the sweep's row whose context already holds that many tokens."""
    out, _ = measured([a.ik_sweep, "-m", model, "-c", str(a.depth + a.prompt), "-b", str(a.prompt),
                       "-ub", str(a.prompt), "-n", str(a.tokens), "-t", str(a.threads),
                       "--sweep-stride", str(a.depth // a.prompt), *extra], everything=True)
    for line in out.decode(errors="replace").splitlines():
        cells = [c.strip() for c in line.strip("| ").split("|")]
        if len(cells) >= 7 and cells[2] == str(a.depth):
            return {f"prefill @ {a.depth}": float(cells[4]), f"decode @ {a.depth}": float(cells[6])}
    raise Failed("the sweep printed no row at the depth: is it a multiple of --prompt?")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+"), p.add_argument("--sluice", default="build/release/sluice")
    p.add_argument("--llama"), p.add_argument("--ik"), p.add_argument("--ik-sweep")
    p.add_argument("--rounds", type=int, default=3), p.add_argument("--threads", type=int, default=2)
    p.add_argument("--prompt", type=int, default=512), p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--depth", type=int, default=0)
    a = p.parse_args()
    a.models = [os.path.abspath(m) for m in a.models]
    for program in ("sluice", "llama", "ik", "ik_sweep"):
        if getattr(a, program):
            setattr(a, program, os.path.abspath(getattr(a, program)))

    engines = {"sluice": lambda m: run_bench([a.sluice, "bench"], a, m)}
    at_depth = {"sluice": lambda m: run_bench([a.sluice, "bench"], a, m, depth=a.depth)}
    if a.llama:
        engines["llama.cpp"] = lambda m: run_bench([a.llama], a, m)
        at_depth["llama.cpp"] = lambda m: run_bench([a.llama], a, m, depth=a.depth)
    for name, extra in (("ik", ()), ("ik -rtr", ("-rtr", "1"))):
        if a.ik:
            engines[name] = lambda m, extra=extra: run_bench([a.ik], a, m, extra)
        if a.ik_sweep and name == "ik":
            at_depth[name] = lambda m: run_sweep(a, m, ())

    for m in a.models:
        measured([a.sluice, "run", m, "-p", "a", "-n", "1"])  # writes the sidecar, warms the page cache
    results = {(m, e): [] for m in a.models for e in engines}
    for r in range(a.rounds):
        for m in a.models:
            for e, run in engines.items():
                row = {}
                for measure in [run, at_depth.get(e) if a.depth else None]:
                    try:
                        row.update({k: v for k, v in (measure(m) if measure else {}).items() if k not in row})
                    except Failed as failure:  # the others go on
                        print(failure, file=sys.stderr)
                results[m, e].append(row)
            print(f"round {r + 1} of {a.rounds}: {pathlib.Path(m).name}", file=sys.stderr)

    peers = [e for e in engines if e != "sluice"]
    print("| model | | sluice | " + " | ".join(f"{e} | ratio" for e in peers) + " |")
    print("|---|---|---|" + "---|---|" * len(peers))
    names = ["prefill", "decode", *([f"prefill @ {a.depth}", f"decode @ {a.depth}"] if a.depth else []), "peak memory MB"]
    for m in a.models:
        ours = results[m, "sluice"]
        for n in [n for n in names if all(n in x for x in ours)]:
            cells = []
            for e in peers:
                pairs = [(x[n], y[n]) for x, y in zip(ours, results[m, e]) if n in x and n in y]
                cells += ([f"{statistics.median(y for _, y in pairs):.1f}",
                           f"{statistics.median(x / y for x, y in pairs):.2f}"] if pairs else ["", ""])
            unit = "" if "memory" in n else " tok/s"
            print(f"| {pathlib.Path(m).stem} | {n}{unit} | {statistics.median(x[n] for x in ours):.1f} | " + " | ".join(cells) + " |")
        for n in [n for n in ours[0] if n.startswith("ceiling")]:
            share = statistics.median(x[n][0] for x in ours)
            print(f"| | {n.replace('ceiling', 'decode, share of the read ceiling')} | {share:.0f} % of "
                  f"{statistics.median(x[n][1] for x in ours):.1f} GB/s |" + " | |" * len(peers))


main()
