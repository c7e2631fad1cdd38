#!/usr/bin/env python3
"""How far each engine's rounding moves the logits of one model: mean KL divergence from float activations, per format.

    bench/accuracy.py --quantize LLAMA_QUANTIZE --perplexity LLAMA_PERPLEXITY MODEL.gguf [--formats q4_0,q8_0] [--text FILE]

MODEL is requantised to each format (from what it is: a format is judged on its own weights, so what was lost before does
not matter). `sluice perplexity` with float activations, float keys and values and the weights' own numbers writes the
base; llama-perplexity and sluice are both judged against it, over the same positions. Prints a Markdown table.
"""
import argparse, json, pathlib, re, subprocess, sys, tempfile


def run(*args):
    p = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, args))}\n{p.stdout.decode(errors='replace')[-2000:]}")
    return p.stdout.decode(errors="replace")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model"), p.add_argument("--sluice", default="build/release/sluice")
    p.add_argument("--quantize", required=True), p.add_argument("--perplexity", required=True)
    p.add_argument("--text", default=pathlib.Path(__file__).parent.parent / "tests/testdata/lighthouse.txt")
    p.add_argument("--formats", default="q4_0,q4_k_m,q5_0,q5_k_m,q6_k,q8_0,iq4_nl")
    p.add_argument("--ctx-size", default="512"), p.add_argument("--threads", default="2")
    a = p.parse_args()
    print("| format | sluice | llama.cpp | same top token |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        base, model = f"{folder}/base.kld", f"{folder}/model.gguf"
        common = ["-f", a.text, "-c", a.ctx_size, "-t", a.threads]
        for f in a.formats.split(","):
            run(a.quantize, "--allow-requantize", a.model, model, f.upper(), a.threads)
            run(a.sluice, "perplexity", model, *common, "--weights", "gguf", "--activations", "f32", "--kv-type", "f32",
                "--save-all-logits", base)
            ours = json.loads(run(a.sluice, "perplexity", model, *common, "--weights", "gguf", "--kl", "--json")
                              .splitlines()[-1])
            theirs = run(a.perplexity, "-m", model, *common, "--kl-divergence", "--kl-divergence-base", base)
            kl = re.search(r"Mean\s+KLD:\s*([\d.-]+)\s*±\s*([\d.]+)", theirs)
            top = re.search(r"Same top p:\s*([\d.]+)", theirs)
            print(f"| {f.upper()} | {ours['kl']:.5f} +- {ours['kl_error']:.5f} | {float(kl[1]):.5f} +- {float(kl[2]):.5f} | "
                  f"{100 * ours['same_top']:.1f} %, {float(top[1]):.1f} % |", flush=True)


main()
