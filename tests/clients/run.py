#!/usr/bin/env python3
"""Serves a model and lets real clients, as their registries have them, talk to it.

    tests/clients/run.py --sluice build/release/sluice --model gemma-3-270m
    tests/clients/run.py --sluice build/release/sluice --model MODEL.gguf openai ollama-js

Each client is a script of checks in python/ or javascript/; it has a server of its own on a free
port of the loopback interface. The clients are installed into a cache folder, in the versions that
requirements*.txt and package.json name, once for each content of these files. What they must get
is what `sluice run` writes for the same prompts. Ends with the line `N passed, N failed,
N skipped`; exit code 1 after a failure.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATE = HERE / "chat.jinja"
PROMPT = "The capital of France is"
MESSAGES = [{"role": "user", "content": "Name three rivers of Europe."}]
TOKENS = 12
CLIENT_SECONDS = 420  # for one client's checks, on two busy cores
INSTALL_SECONDS = 1800
TOTALS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")

# Name: script, what it needs, whether it can bring a key.
CLIENTS = {
    "openai": ("python/openai_checks.py", "requirements.txt", True),
    "ollama": ("python/ollama_checks.py", "requirements.txt", True),
    "litellm": ("python/litellm_checks.py", "requirements.txt", True),
    "langchain": ("python/langchain_checks.py", "requirements.txt", True),
    "llamacpp": ("python/llamacpp_checks.py", "requirements.txt", False),
    "openai-js": ("javascript/openai_checks.mjs", "package.json", True),
    "ollama-js": ("javascript/ollama_checks.mjs", "package.json", True),
    "guidellm": ("python/guidellm_checks.py", "requirements-load.txt", True),
    "prometheus": ("python/prometheus_checks.py", None, True),
}


class Missing(Exception):
    """Something that cannot be had on this machine; its client is skipped."""


def install(needs, cache):
    """The program that runs scripts with `needs` installed."""
    if needs is None:
        return [sys.executable]
    source = HERE / needs
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    folder = cache / f"{source.stem}-{digest}"
    ready = folder / "ready"
    node = needs == "package.json"
    if node and not (shutil.which("node") and shutil.which("npm")):
        raise Missing("node or npm is not installed")
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"==> installing {needs} into {folder}", flush=True)
        if node:
            shutil.copy(source, folder)
            commands = [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]]
        else:
            commands = [[sys.executable, "-m", "venv", str(folder)],
                        [str(folder / "bin/pip"), "install", "-q", "-r", str(source)]]
        for command in commands:
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
        ready.touch()
    if not node:
        return [str(folder / "bin/python")]
    # Modules are looked for beside the script, so the scripts go where the modules are.
    for script in (HERE / "javascript").glob("*.mjs"):
        shutil.copy(script, folder)
    return ["node", "--prefix", str(folder)]


def run_json(sluice, model, prompt, *more):
    command = [sluice, "run", model, "-p", prompt, "-n", str(TOKENS), "--temp", "0", "--json", *more]
    return json.loads(subprocess.run(command, check=True, timeout=300, capture_output=True,
                                     text=True, stdin=subprocess.DEVNULL).stdout)


def expect(sluice, model):
    """What the command line makes of the prompts that the clients send."""
    request = json.dumps({"messages": MESSAGES, "add_generation_prompt": True})
    rendered = subprocess.run([sluice, "template", str(TEMPLATE)], input=request, check=True,
                              timeout=60, capture_output=True, text=True).stdout
    completion = run_json(sluice, model, PROMPT)
    chat = run_json(sluice, model, rendered, "--parse-special")
    return {"prompt": PROMPT, "messages": MESSAGES, "tokens": TOKENS, "rendered": rendered,
            "completion": {"text": completion["text"],
                           "prompt_tokens": completion["prompt_tokens"]},
            "chat": {"text": chat["text"], "prompt_tokens": chat["prompt_tokens"]}}


class Server:
    def __init__(self, sluice, model, key):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="sluice-serve-", suffix=".log",
                                               delete=False)
        command = [sluice, "serve", model, "--port", "0", "--kv-memory", "256MB", "--parallel", "8",
                   "--served-model-name", "small", "--chat-template", str(TEMPLATE)]
        if key:
            command += ["--api-key", key]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.log,
                                        stdout=self.log)
        self.url = self._wait()

    def _wait(self):
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and self.process.poll() is None:
            ready = re.search(r"ready on (http://\S+)", pathlib.Path(self.log.name).read_text())
            if ready:
                return ready.group(1)
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"sluice serve did not get ready; see {self.log.name}")

    def stop(self):
        """Its exit code after SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def run_client(name, program, server, environment):
    """Passed, failed, skipped."""
    script = HERE / CLIENTS[name][0]
    if program[0] == "node":
        command = ["node", str(pathlib.Path(program[2]) / script.name)]
    else:
        command = [*program, str(script)]
    start = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **environment}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    timed_out = False
    try:
        output, _ = process.communicate(timeout=CLIENT_SECONDS)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)  # the session that we made for it
        output, _ = process.communicate()
    lines = output.splitlines()
    totals = TOTALS.match(lines[-1]) if lines else None
    passed, failed, skipped = map(int, totals.groups()) if totals else (0, 1, 0)
    code = server.stop()
    if code != 0:
        lines.append(f"FAILED  the server ends with 0 after SIGTERM: found {code}")
        failed += 1
    else:
        passed += 1
    if timed_out:
        lines.append(f"FAILED  not done after {CLIENT_SECONDS} s")
    elif not totals:
        lines.append(f"FAILED  the script ended with {process.returncode} and no totals")
    elif process.returncode != 0 and failed == 0:
        failed = 1
    if failed:
        print("\n".join(lines))
        print(f"the server's log: {server.log.name}")
    else:
        print("\n".join(line for line in lines if line.startswith("skipped")) or "all passed")
        os.unlink(server.log.name)
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped in "
          f"{time.monotonic() - start:.0f} s", flush=True)
    return passed, failed, skipped


def main():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", required=True, help="the program")
    parser.add_argument("--model", required=True, help="a GGUF file, or a name in the model folder")
    parser.add_argument("--cache", default=os.path.join(base, "sluice", "clients"),
                        help="where the clients are installed (%(default)s)")
    parser.add_argument("clients", nargs="*", metavar="CLIENT",
                        help=f"one of {', '.join(CLIENTS)}; default: all")
    args = parser.parse_args()
    unknown = [name for name in args.clients if name not in CLIENTS]
    if unknown:
        parser.error(f"unknown client {unknown[0]}; there are {', '.join(CLIENTS)}")
    sluice = str(pathlib.Path(args.sluice).resolve())
    cache = pathlib.Path(args.cache)
    expected = expect(sluice, args.model)
    totals = [0, 0, 0]
    for name in args.clients or CLIENTS:
        print(f"\n=== {name}", flush=True)
        _, needs, keyed = CLIENTS[name]
        try:
            program = install(needs, cache)
        except (Missing, subprocess.SubprocessError) as error:
            print(f"skipped: {error}")
            totals[2] += 1
            continue
        key = secrets.token_hex(8) if keyed else ""
        server = Server(sluice, args.model, key)
        environment = {"SLUICE_URL": server.url, "SLUICE_KEY": key, "SLUICE_MODEL": "small",
                       "SLUICE_EXPECTED": json.dumps(expected)}
        try:
            counts = run_client(name, program, server, environment)
        finally:
            server.stop()
        totals = [a + b for a, b in zip(totals, counts)]
    print("\n%d passed, %d failed, %d skipped" % tuple(totals))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
