#!/usr/bin/env python3
"""How much speed is left beside busy neighbours.

Runs each engine with 0, 1, 2, ... other processes that spin (same priority, not bound to a CPU),
interleaved in one run, and prints medians and the share of the undisturbed speed. The neighbours
are stopped whatever happens.

    bench/neighbours.py --sluice build/release/sluice MODEL.gguf
    bench/neighbours.py --engine "a=build/a/sluice run" --engine "b=build/b/sluice run -t 4" MODEL
    bench/neighbours.py --llama-bench PATH MODEL.gguf
"""
import argparse
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile

REPORT = re.compile(r"prefill \d+ tok ([\d.]+) tok/s.*?decode \d+ tok ([\d.]+) tok/s"
                    r"(?:.*logits ([0-9a-f]+))?")


class Neighbours:
    """`count` processes that do nothing but use a CPU."""

    def __init__(self, count):
        self.count = count
        self.processes = []

    def __enter__(self):
        for _ in range(self.count):
            # Each dies with us even if we are killed and cannot stop it: it looks at its parent
            # now and then.
            code = (f"import os\nwhile os.getppid() == {os.getpid()}:\n"
                    "    for i in range(1000000): pass\n")
            self.processes.append(subprocess.Popen([sys.executable, "-c", code]))
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done


def run_sluice(command, options, prompt_file):
    command = command + [options.model, "-f", prompt_file, "-n", str(options.decode),
                         "--ignore-eos", "--temp", "0"]
    match = REPORT.search(output_of(command).stderr.replace("\n", " | "))
    if not match:
        sys.exit(f"{shlex.join(command)}: no line of results")
    return float(match[1]), float(match[2]), match[3]


def run_llama_bench(command, options, _):
    command = command + ["-m", options.model, "-p", str(options.prefill), "-n",
                         str(options.decode), "-r", "1", "-o", "json"]
    rows = json.loads(output_of(command).stdout)
    speed = {row["n_gen"] > 0: row["avg_ts"] for row in rows}
    return speed[False], speed[True], None


def measure(options, engines, prompt_file):
    """{(engine, neighbours): [(prefill, decode, hash)]}"""
    results = {}
    for repeat in range(options.repeats):
        for count in options.neighbours:
            for name, (run, command) in engines.items():
                with Neighbours(count):
                    row = run(command, options, prompt_file)
                results.setdefault((name, count), []).append(row)
                print(f"  {repeat + 1}/{options.repeats} {name} beside {count}: "
                      f"{row[0]:.1f} prefill, {row[1]:.1f} decode", file=sys.stderr)
    return results


def print_table(options, engines, results):
    print("| engine | neighbours | prefill tok/s | of quiet | decode tok/s | of quiet |")
    print("|---|---|---|---|---|---|")
    for name in engines:
        quiet = None
        for count in options.neighbours:
            median = [statistics.median(column) for column in
                      list(zip(*results[name, count]))[:2]]
            quiet = quiet or median
            print(f"| {name} | {count} | {median[0]:.1f} | {median[0] / quiet[0]:.0%} "
                  f"| {median[1]:.1f} | {median[1] / quiet[1]:.0%} |")
        hashes = {row[2] for count in options.neighbours for row in results[name, count]}
        if len(hashes) > 1:
            sys.exit(f"{name}: the logits differ between runs: {sorted(map(str, hashes))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sluice", help="the sluice program")
    parser.add_argument("--engine", action="append", default=[], metavar="NAME=COMMAND",
                        help="a sluice command up to the model; may be repeated")
    parser.add_argument("--llama-bench", help="a llama-bench program, of llama.cpp or a fork")
    parser.add_argument("--threads", type=int, default=0, help="0: each engine's default")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--prefill", type=int, default=512, help="tokens, for sluice about as many")
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    threads = ["-t", str(options.threads)] if options.threads else []

    engines = {}
    if options.sluice:
        engines["sluice"] = (run_sluice, [options.sluice, "run"] + threads)
    for text in options.engine:
        name, _, command = text.partition("=")
        engines[name] = (run_sluice, shlex.split(command) + threads)
    if options.llama_bench:
        engines["llama-bench"] = (run_llama_bench, [options.llama_bench] + threads)
    if not engines:
        parser.error("no engine: give --sluice, --engine or --llama-bench")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the neighbours are stopped

    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt:
        # A digit is a token of its own in most vocabularies.
        prompt.write(" ".join(str(i % 10) for i in range(options.prefill // 2)))
        prompt.flush()
        results = measure(options, engines, prompt.name)
    print_table(options, engines, results)


if __name__ == "__main__":
    main()
