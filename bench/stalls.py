#!/usr/bin/env python3
"""Whether injected causes of slowness are found under their names and in their size.

Runs `sluice run --json` undisturbed and disturbed, interleaved, and compares the time a request
took longer with what its account (`ceiling.stalls_s`) names:

  quota     half of one CPU for all threads together                -> throttled
  hog       a program that copies memory, on one of the CPUs        -> preempted
  disk      the weights dropped from the page cache, a slow disk    -> page_faults
  threads   twice as many threads as CPUs                           -> preempted, barrier

    bench/stalls.py --sluice build/release/sluice MODEL.gguf
    bench/stalls.py --sluice build/release/sluice --cause quota,hog --check MODEL.gguf

quota and the slow disk need control groups that we may write (root, or a delegated group); what
cannot be injected is said and left out. What was made is taken away again whatever happens.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = {"quota": ["throttled"], "hog": ["preempted"], "disk": ["page_faults"],
         "threads": ["preempted", "barrier"]}
SLOW_DISK = 150_000_000  # bytes per second


class Unavailable(Exception):
    pass


class Group:
    """A control group with `settings` ({"cpu": {"cpu.max": ...}} by controller; for the first
    version's hierarchies a second dictionary), gone at the end."""

    def __init__(self, controller, v1, v2):
        self.folder = None
        for line in open("/proc/self/mountinfo"):
            left, right = line.split(" - ")
            mount, kind = left.split()[4], right.split()
            if kind[0] == "cgroup" and controller in kind[2].split(","):
                self.make(mount, v1)
                return
        for line in open("/proc/self/mountinfo"):
            left, right = line.split(" - ")
            mount = left.split()[4]
            if right.split()[0] != "cgroup2":
                continue
            own = next((l.strip()[3:] for l in open("/proc/self/cgroup") if l.startswith("0::")),
                       "/")
            parent = os.path.join(mount, own.lstrip("/"))
            if controller in open(os.path.join(parent, "cgroup.subtree_control")).read().split():
                self.make(parent, v2)
                return
        raise Unavailable(f"no control group with the {controller} controller that we may write")

    def make(self, parent, settings):
        self.folder = os.path.join(parent, f"sluice-stalls-{os.getpid()}")
        try:
            os.mkdir(self.folder)
            for name, value in settings:
                with open(os.path.join(self.folder, name), "w") as out:
                    out.write(value)
        except OSError as error:
            self.close()
            raise Unavailable(f"{self.folder}: {error.strerror}")

    def enter(self):  # in the child
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as out:
            out.write(str(os.getpid()))

    def close(self):
        for _ in range(50):
            try:
                os.rmdir(self.folder)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)


class Quota:
    def __init__(self, options):
        quota = int(options.quota / 100 * 100_000)
        self.group = Group("cpu", [("cpu.cfs_period_us", "100000"),
                                   ("cpu.cfs_quota_us", str(quota))],
                           [("cpu.max", f"{quota} 100000")])
        self.flags, self.enter = ["-t", str(options.threads)], self.group.enter

    def close(self):
        self.group.close()


class Hog:
    def __init__(self, options):
        cpu = max(os.sched_getaffinity(0))
        # Dies with us even if we are killed: it looks at its parent now and then.
        code = (f"import os\nos.sched_setaffinity(0, {{{cpu}}})\n"
                "a, b = bytearray(1 << 26), bytearray(1 << 26)\n"
                f"while os.getppid() == {os.getpid()}:\n    a[:] = b\n")
        self.process = subprocess.Popen([sys.executable, "-c", code])
        time.sleep(0.3)
        self.flags, self.enter = ["-t", str(options.threads)], None

    def close(self):
        self.process.kill()
        self.process.wait()


class Disk:
    """Drops the weights from the page cache and lets them come back slowly."""

    def __init__(self, options):
        device = os.stat(options.model).st_dev
        numbers = f"{os.major(device)}:{os.minor(device)}"
        self.group = None
        try:
            self.group = Group("blkio", [("blkio.throttle.read_bps_device",
                                          f"{numbers} {SLOW_DISK}")],
                               [("io.max", f"{numbers} rbps={SLOW_DISK}")])
        except Unavailable as why:
            print(f"disk: as fast as it is ({why})", file=sys.stderr)
        files = [options.model]
        for folder, _, names in os.walk(os.path.join(options.cache, "panels")):
            files += [os.path.join(folder, name) for name in names]
        for path in files:
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
        self.flags = ["-t", str(options.threads)]
        self.enter = self.group.enter if self.group else None

    def close(self):
        if self.group:
            self.group.close()


class Threads:
    def __init__(self, options):
        self.flags, self.enter = ["-t", str(2 * len(os.sched_getaffinity(0)))], None

    def close(self):
        pass


class Nothing(Threads):
    def __init__(self, options):
        self.flags, self.enter = ["-t", str(options.threads)], None


INJECT = {"quota": Quota, "hog": Hog, "disk": Disk, "threads": Threads}


def run(options, prompt_file, kind):
    injection = kind(options)
    try:
        command = [options.sluice, "run", options.model, "-f", prompt_file, "-n",
                   str(options.decode), "--ignore-eos", "--temp", "0", "--json"]
        environment = dict(os.environ, SLUICE_CACHE=options.cache)
        done = subprocess.run(command + injection.flags, capture_output=True, text=True,
                              preexec_fn=injection.enter, env=environment, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        report = json.loads(done.stdout)
        return dict(report["ceiling"], by_clock_s=report["wall_s"])
    finally:
        injection.close()


def median_of(runs, key):
    return statistics.median(key(r) for r in runs)


def judge(cause, calm, disturbed):
    """(seconds it took longer, seconds more under the name, everything that grew)"""
    longer = (median_of(disturbed, lambda r: r["by_clock_s"]) -
              median_of(calm, lambda r: r["by_clock_s"]))
    grown = {name: median_of(disturbed, lambda r: r["stalls_s"][name]) -
             median_of(calm, lambda r: r["stalls_s"][name]) for name in calm[0]["stalls_s"]}
    return longer, sum(grown[name] for name in NAMES[cause]), grown


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sluice", default="build/release/sluice")
    parser.add_argument("--cause", default=",".join(INJECT), help="which, separated by commas")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--decode", type=int, default=128, help="tokens")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quota", type=float, default=50,
                        help="percent of one CPU; less where others leave no more of it")
    parser.add_argument("--tolerance", type=float, default=0.4,
                        help="how far named may be from longer, of longer (with 0.1 s on top)")
    parser.add_argument("--check", action="store_true",
                        help="exit code 1 if a cause is named too little or too much")
    options = parser.parse_args()
    causes = options.cause.split(",")
    if unknown := [c for c in causes if c not in INJECT]:
        parser.error(f"--cause {unknown[0]}: expected some of {', '.join(INJECT)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    options.cache = tempfile.mkdtemp(prefix="sluice-stalls-", dir=os.path.dirname(
        os.path.abspath(options.model)))  # beside the model: the same disk
    prompt = os.path.join(options.cache, "prompt.txt")
    with open(prompt, "w") as out:
        out.write("The water of the river runs down to the sea. " * 8)
    failed = False
    try:
        run(options, prompt, Nothing)  # makes the panels
        print("| injected | undisturbed s | disturbed s | longer s | named | named s | what else "
              "grew (s) | parts / wall |\n|---|---|---|---|---|---|---|---|")
        for cause in causes:
            calm, disturbed = [], []
            try:
                for _ in range(options.repeats):
                    calm.append(run(options, prompt, Nothing))
                    disturbed.append(run(options, prompt, INJECT[cause]))
            except Unavailable as why:
                print(f"{cause}: left out, {why}", file=sys.stderr)
                continue
            longer, named, grown = judge(cause, calm, disturbed)
            rest = ", ".join(f"{name} {value:+.2f}" for name, value in grown.items()
                             if name not in NAMES[cause] and abs(value) >= 0.05)
            parts = median_of(disturbed, lambda r: sum(r["stalls_s"].values()) / r["by_clock_s"])
            print(f"| {cause} | {median_of(calm, lambda r: r['by_clock_s']):.2f} | "
                  f"{median_of(disturbed, lambda r: r['by_clock_s']):.2f} | {longer:.2f} | "
                  f"{' + '.join(NAMES[cause])} | {named:.2f} | {rest or '-'} | {parts:.3f} |",
                  flush=True)
            if abs(named - longer) > options.tolerance * abs(longer) + 0.1:
                failed = True
                print(f"{cause}: {named:.2f} s named of {longer:.2f}", file=sys.stderr)
    finally:
        shutil.rmtree(options.cache, ignore_errors=True)
    sys.exit(1 if failed and options.check else 0)


if __name__ == "__main__":
    main()
