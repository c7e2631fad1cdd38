"""GuideLLM, a load client that speaks what `vllm bench serve` does: streamed completions of a
fixed length with `ignore_eos`, counted by the server's usage."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import KEY, PROMPT, PROMPT_TOKENS, TEXT, TOKENS, URL, Checks, metrics

checks = Checks()
PROGRAM = pathlib.Path(sys.executable).with_name("guidellm")
REQUESTS = 6


def bench(folder, key, *rate):
    """The report of one benchmark, or None where there is none."""
    data = pathlib.Path(folder, "prompts.jsonl")
    line = json.dumps({"prompt": PROMPT, "output_tokens_count": TOKENS})
    data.write_text("\n".join([line] * REQUESTS) + "\n")
    report = pathlib.Path(folder, "report.json")
    report.unlink(missing_ok=True)
    command = [str(PROGRAM), "benchmark", "run", "--target", URL, "--data", str(data),
               "--max-requests", str(REQUESTS), "--output-path", str(report),
               "--disable-progress", "--disable-console-outputs",
               "--backend-args", json.dumps({"extra_body": {"temperature": 0}}), *rate]
    # No tokenizer is asked for, and nothing is to be looked for on a hub.
    subprocess.run(command, env={**os.environ, "GUIDELLM__OPENAI__API_KEY": key,
                                 "HF_HUB_OFFLINE": "1"},
                   timeout=150, stdin=subprocess.DEVNULL, check=False)
    return json.loads(report.read_text())["benchmarks"][0] if report.exists() else None


def check_report(name, report):
    totals = report["request_totals"]
    checks.equal(f"{name}: requests", (totals["successful"], totals["errored"]), (REQUESTS, 0))
    requests = report["requests"]["successful"]
    checks.equal(f"{name}: every text", {r["output"] for r in requests}, {TEXT})
    checks.equal(f"{name}: tokens by the server's usage",
                 {(r["prompt_tokens"], r["output_tokens"]) for r in requests},
                 {(PROMPT_TOKENS, TOKENS)})
    measured = report["metrics"]
    first = measured["time_to_first_token_ms"]["successful"]["mean"]
    gap = measured["inter_token_latency_ms"]["successful"]["mean"]
    whole = 1000 * measured["request_latency"]["successful"]["mean"]
    checks.true(f"{name}: first token, then gaps, make the latency",
                0 < first < whole and abs(first + (TOKENS - 1) * gap - whole) < 0.25 * whole,
                (first, gap, whole))


def load():
    with tempfile.TemporaryDirectory(prefix="sluice-guidellm-") as folder:
        check_report("synchronous", bench(folder, KEY, "--rate-type", "synchronous"))
        check_report("three at once", bench(folder, KEY, "--rate-type", "concurrent", "--rate",
                                            "3"))
        generated = sum(value for name, value in metrics().items()
                        if name.startswith("vllm:generation_tokens_total"))
        # It tries the server out with one token or so before each.
        checks.true("the server counts the same tokens, and few more",
                    0 <= generated - 2 * REQUESTS * TOKENS <= 2 * TOKENS, generated)
        checks.equal("with a wrong key there is no report",
                     bench(folder, "wrong", "--rate-type", "synchronous"), None)


checks.part(load)
checks.end()
