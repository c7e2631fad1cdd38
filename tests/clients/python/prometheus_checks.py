"""Prometheus itself scrapes /metrics; what it made of them is asked from its query API."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from checks import KEY, MODEL, PROMPT, PROMPT_TOKENS, TOKENS, URL, Checks

checks = Checks()
REQUESTS = 3
REQUEST = {"prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
# What must be there after REQUESTS completions: expression, value.
QUERIES = [
    ("vllm:generation_tokens_total", REQUESTS * TOKENS),
    ('vllm:request_success_total{finished_reason="length"}', REQUESTS),
    ("vllm:time_to_first_token_seconds_count", REQUESTS),
    ('vllm:e2e_request_latency_seconds_bucket{le="+Inf"}', REQUESTS),
    ("vllm:inter_token_latency_seconds_count", REQUESTS * (TOKENS - 1)),
    ("vllm:request_prompt_tokens_sum", REQUESTS * PROMPT_TOKENS),
    ("vllm:num_requests_running", 0),
    ("llamacpp:tokens_predicted_total", REQUESTS * TOKENS),
    ("llamacpp:requests_processing", 0),
    ("sluice:inter_token_latency_seconds_count", REQUESTS * (TOKENS - 1)),
    ('sluice:limits_hit_total{limit="body"}', 0),
]
NAMES = ["vllm:prefix_cache_hits_total", "vllm:kv_cache_usage_perc", "llamacpp:prompt_tokens_total",
         "llamacpp:predicted_tokens_seconds", "sluice:kv_pages_free", "sluice:http_requests_total",
         "sluice:decode_read_bytes_total", "sluice:weight_bytes_per_token", "sluice:resident_bytes"]

UNTIL_IT_HAPPENS = ["sluice:requests_refused_total"]  # not there


def complete():
    request = urllib.request.Request(URL + "/v1/completions", json.dumps(REQUEST).encode(),
                                     {"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    def __init__(self, program, folder):
        target = urllib.parse.urlparse(URL).netloc
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w") as file:
            json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                       "scrape_configs": [{"job_name": "sluice",
                                           "static_configs": [{"targets": [target]}]}]}, file)
        self.address = f"127.0.0.1:{free_port()}"
        self.log = open(os.path.join(folder, "log"), "w")
        self.process = subprocess.Popen(
            [program, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.address}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def get(self, path, **query):
        url = f"http://{self.address}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        result = self.get("/api/v1/query", query=expression)["result"]
        return [float(series["value"][1]) for series in result]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if condition():
                return True
        except OSError:
            pass  # not listening yet
        time.sleep(0.5)
    return False


def ask(prometheus):
    checks.true("up", wait_for(lambda: prometheus.values("up") == [1.0]),
                prometheus.get("/api/v1/targets")["activeTargets"])
    tokens = REQUESTS * TOKENS
    checks.true("the requests arrive",
                wait_for(lambda: prometheus.values("vllm:generation_tokens_total") == [tokens], 20),
                prometheus.values("vllm:generation_tokens_total"))
    for expression, value in QUERIES:
        checks.equal(expression, prometheus.values(expression), [float(value)])
    for name in NAMES:
        checks.equal(f"{name}: one series", len(prometheus.values(name)), 1)
    quantile = prometheus.values(
        "histogram_quantile(0.99, sum by (le) (vllm:time_to_first_token_seconds_bucket))")
    checks.true("a quantile can be computed", len(quantile) == 1 and 0 < quantile[0] < 60, quantile)
    series = prometheus.get("/api/v1/series", **{"match[]": '{__name__=~"vllm:.+"}'})
    checks.equal("labels of vLLM's families", {(s.get("model_name"), s.get("engine"))
                                               for s in series}, {(MODEL, "0")})
    described = prometheus.get("/api/v1/targets/metadata")
    named = {entry["metric"]: entry["type"] for entry in described}
    checks.equal("types", (named["vllm:prompt_tokens_total"], named["vllm:num_requests_running"],
                           named["vllm:time_to_first_token_seconds"]),
                 ("counter", "gauge", "histogram"))


def dashboard_expressions():
    file = pathlib.Path(__file__).parents[3] / "deploy" / "grafana.json"
    for panel in json.loads(file.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], (target["expr"].replace("$__rate_interval", "1m")
                                   .replace("$model", ".*"))


def check_dashboard(prometheus):
    """Prometheus takes every expression of the dashboard, and knows each metric in it."""
    described = {entry["metric"] for entry in prometheus.get("/api/v1/targets/metadata")}
    for title, expression in dashboard_expressions():
        try:
            prometheus.values(expression)
            refused = ""
        except urllib.error.HTTPError as error:
            refused = error.read().decode()
        names = re.findall(r"(?:vllm|llamacpp|sluice):\w+", expression)
        unknown = [name for name in names if name not in described and
                   re.sub("_(bucket|sum|count)$", "", name) not in described and
                   name not in UNTIL_IT_HAPPENS]
        checks.equal(f"dashboard: {title}", (refused, unknown, bool(names)), ("", [], True))


def main():
    program = shutil.which("prometheus")
    if program is None:
        checks.skip("prometheus", "not installed; Debian's package is called prometheus")
        return
    for _ in range(REQUESTS):
        complete()
    with tempfile.TemporaryDirectory(prefix="sluice-prometheus-") as folder:
        prometheus = Prometheus(program, folder)
        try:
            ask(prometheus)
            check_dashboard(prometheus)
        finally:
            prometheus.stop()


checks.part(main)
checks.end()
