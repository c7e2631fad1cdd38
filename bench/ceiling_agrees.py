#!/usr/bin/env python3
"""Whether the share of the ceiling that sluice reports is the one that somebody else would find.

For each model, pairs of a run of `sluice run` and of an account that uses nothing of sluice:

  bytes a token   the matrices in the GGUF's own tensor list (all but the embedding's table; of a
                  mixture's experts those that a token uses; the embedding once where it is the
                  output matrix too), and keys and values of 16 bits at the mean position
  time a token    from the first piece of text that leaves the process to the last, by our clock
  CPUs            the process's CPU time over that time, from /proc/PID/stat
  bandwidth       a C program, compiled here, that reads a buffer with as many pinned threads, right
                  before the run and right after it; the best window of 20 ms, mean of the two

The buffer is as large as a token's bytes, or 4 times the last cache (2 GB at most) where a model is
larger than that: a small model's weights lie partly in the cache, and "what so many bytes can be
read at" is its ceiling, not the memory's ("memory" in the table says that one).

sluice counts panels, which may be larger than the file's rows: a last panel is filled up to 16 rows
and some formats keep a scale more, up to 2 % altogether.

    bench/ceiling_agrees.py --sluice build/release/sluice MODEL.gguf... --pairs 20 --check
    ... --pairs 5 --keep pairs.json     # again and again: the medians are of all pairs so far
"""
import argparse
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PROBE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
enum { kMost = 256 };
static int threads, cpus[kMost], again = 1, windows = -1;
static size_t words, stretch = 1 << 19;  /* of each thread in a window */
static uint64_t *buffer;
static volatile uint64_t sums[kMost];
static double seconds, best;
static pthread_barrier_t all;
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void *work(void *argument) {
  const long index = (long)argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus[index], &set);
  sched_setaffinity(0, sizeof set, &set);
  const size_t count = words / (size_t)threads;
  uint64_t *const own = buffer + count * (size_t)index;
  memset(own, 1, 8 * count);
  pthread_barrier_wait(&all);
  const double start = now();
  for (size_t at = 0; again;) {
    pthread_barrier_wait(&all);
    const double from = now();
    for (size_t left = stretch; left >= 8;) {
      const size_t piece = left < count - at ? left : count - at;
      const uint64_t *const part = own + at;
      uint64_t sum = 0;
      if (windows % 2 == 0) {  /* some CPUs read faster so, others do not */
        for (size_t i = 0; i + 8 <= piece; i += 8) {
          __builtin_prefetch(part + i + 128, 0, 2);
          for (size_t j = 0; j < 8; ++j) sum += part[i + j];
        }
      } else {
        for (size_t i = 0; i < piece; ++i) sum += part[i];
      }
      sums[index] += sum;
      left -= piece;
      at = (at + piece) % count;
    }
    pthread_barrier_wait(&all);
    if (index == 0) {
      const double taken = now() - from;
      const double rate = 8e-9 * (double)stretch * threads / taken;
      if (windows < 0) {
        stretch = (size_t)((double)stretch * 0.02 / taken) / 8 * 8;
      } else if (rate > best) {
        best = rate;
      }
      again = ++windows < 4 || now() - start < seconds;
    }
    pthread_barrier_wait(&all);
  }
  return NULL;
}
int main(int count, char **values) {  /* bytes seconds cpu... */
  const size_t huge = 2 << 20;
  pthread_t ids[kMost];
  words = strtoull(values[1], NULL, 10) / 8;
  seconds = atof(values[2]);
  for (threads = 0; threads + 3 < count && threads < kMost; ++threads)
    cpus[threads] = atoi(values[threads + 3]);
  uint8_t *map = mmap(NULL, 8 * words + huge, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 1;
  buffer = (uint64_t *)(map + (huge - (uintptr_t)map % huge) % huge);
  madvise(buffer, 8 * words, MADV_HUGEPAGE);
  pthread_barrier_init(&all, NULL, (unsigned)threads);
  for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, work, (void *)i);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  printf("%.4f\n", best);
  return 0;
}
"""

# GGML's types: values of a block, its bytes.
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
          10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
          20: (32, 18), 23: (256, 136), 30: (1, 2), 39: (32, 17)}


class Gguf:
    """Metadata numbers and the tensor list of a file, nothing else of it."""

    SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
             12: "d"}

    def __init__(self, path):
        self.meta, self.tensors = {}, []  # (name, [shape], bytes)
        with open(path, "rb") as self.file:
            magic, _, tensors, entries = self.unpack("4sIQQ")
            if magic != b"GGUF":
                sys.exit(f"{path}: no GGUF file")
            for _ in range(entries):
                key = self.text()
                self.meta[key] = self.value(*self.unpack("I"))
            for _ in range(tensors):
                name, (n,) = self.text(), self.unpack("I")
                shape = self.unpack(f"{n}Q")
                kind, _ = self.unpack("IQ")
                if kind not in BLOCKS:
                    sys.exit(f"{path}: {name} has type {kind}, whose size is not known here")
                values = 1
                for extent in shape:
                    values *= extent
                block, size = BLOCKS[kind]
                self.tensors.append((name, shape, values // block * size))

    def unpack(self, form):
        return struct.unpack("<" + form, self.file.read(struct.calcsize("<" + form)))

    def text(self):
        return self.file.read(self.unpack("Q")[0]).decode(errors="replace")

    def value(self, kind):
        if kind in self.SIZES:
            return self.unpack(self.SIZES[kind])[0]
        if kind == 8:
            return self.text()
        (inner, count) = self.unpack("IQ")  # an array
        if inner in self.SIZES:
            return self.unpack(f"{count}{self.SIZES[inner]}")
        return [self.value(inner) for _ in range(count)]

    def of(self, key, default=None):
        found = self.meta.get(f"{self.meta['general.architecture']}.{key}", default)
        if found is None or isinstance(found, (tuple, list)):
            sys.exit(f"{key}: expected one number in the file, found {found}")
        return found

    def weight_bytes(self):
        names = {name for name, _, _ in self.tensors}
        total = 0
        for name, shape, size in self.tensors:
            if len(shape) < 2 or (name == "token_embd.weight" and "output.weight" in names):
                continue
            if name.endswith("_exps.weight"):
                size = size * self.of("expert_used_count") / self.of("expert_count")
            total += size
        return total

    def kv_bytes(self, positions):
        heads = self.of("attention.head_count")
        width = self.of("embedding_length") // heads
        window = self.of("attention.sliding_window", 0)
        if 0 < window < positions:
            sys.exit(f"{positions} positions: expected no more than the window of {window}")
        one = self.of("attention.key_length", width) + self.of("attention.value_length", width)
        return self.of("block_count") * self.of("attention.head_count_kv", heads) * one * 2 * positions


def last_cache_bytes():
    most = 0
    folder = "/sys/devices/system/cpu/cpu0/cache"
    for index in os.listdir(folder) if os.path.isdir(folder) else []:
        try:
            size = open(f"{folder}/{index}/size").read().strip()
            most = max(most, int(size[:-1]) << {"K": 10, "M": 20}[size[-1]])
        except (OSError, KeyError):
            pass
    return most


class Probe:
    def __init__(self, folder, cpus):
        source, self.program = os.path.join(folder, "probe.c"), os.path.join(folder, "probe")
        with open(source, "w") as out:
            out.write(PROBE)
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        subprocess.run([compiler, "-O3", "-march=native", "-pthread", source, "-o", self.program],
                       check=True)
        self.cpus = [str(cpu) for cpu in cpus]
        self.memory_bytes = min(max(4 * last_cache_bytes(), 256 << 20), 2048 << 20)

    def gb_s(self, size=None):
        size = min(max(int(size or self.memory_bytes), 16 << 20), self.memory_bytes)
        done = subprocess.run([self.program, str(size), "0.3"] + self.cpus, capture_output=True,
                              text=True, check=True)
        return float(done.stdout)


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(options, model, tokens):
    """(reported share, seconds a token, CPUs busy meanwhile)"""
    command = [options.sluice, "run", model, "-p", options.prompt, "-n", str(tokens),
               "--ignore-eos", "--temp", "0", "-t", str(options.threads)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        stamps, used = [], []
        while piece := os.read(process.stdout.fileno(), 65536):
            stamps.append(time.monotonic())
            used.append(cpu_seconds(process.pid))
            if piece.endswith(b"\n") and process.poll() is not None:
                break
        code = process.wait()
        errors.seek(0)
        said = errors.read()
    closing = re.search(r"decode (\d+) tok .* = (\d+) % of ([\d.]+) GB/s", said)
    if code != 0 or not closing:
        sys.exit(f"{' '.join(command)}: exit code {code}, no closing line\n{said[-2000:]}")
    # The last piece is the newline after the last token.
    stamps, used = stamps[:-1], used[:-1]
    if int(closing[1]) != tokens or len(stamps) < 0.8 * tokens:
        sys.exit(f"{model}: {len(stamps)} pieces of text for {tokens} tokens: no time for each")
    taken = stamps[-1] - stamps[0]
    return int(closing[2]) / 100, taken / (tokens - 1), (used[-1] - used[0]) / taken


def pair(options, probe, model):
    gguf = Gguf(model)
    # About two seconds: 4 GB/s at least, 40 GB/s at most.
    tokens = options.tokens or int(min(max(30e9 / gguf.weight_bytes(), 12), 160))
    size = gguf.weight_bytes() + gguf.kv_bytes(len(options.prompt.split()) + tokens / 2)
    before = probe.gb_s(gguf.weight_bytes())
    reported, seconds, cpus = run(options, model, tokens)
    after = probe.gb_s(gguf.weight_bytes())
    ceiling = (before + after) / 2
    return {"reported": reported, "bytes": size, "ms": 1e3 * seconds, "cpus": cpus,
            "read_gb_s": ceiling, "independent": 1e-9 * size / seconds / ceiling}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sluice", default="build/release/sluice")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--tokens", type=int, help="of a run; by default about two seconds of them")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", default="The water of the river runs down to")
    parser.add_argument("--keep", help="a file to which pairs are added")
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--check", action="store_true",
                        help="exit code 1 if a median ratio is not within the tolerance")
    options = parser.parse_args()

    pairs = {}
    if options.keep and os.path.exists(options.keep):
        pairs = json.load(open(options.keep))
    with tempfile.TemporaryDirectory(prefix="sluice-ceiling-") as folder:
        probe = Probe(folder, sorted(os.sched_getaffinity(0))[:options.threads])
        for model in options.models:  # panels are made, pages are in RAM
            run(options, model, 4)
        memory = probe.gb_s()
        for _ in range(options.pairs):
            for model in options.models:
                pairs.setdefault(os.path.basename(model), []).append(pair(options, probe, model))
                if options.keep:
                    with open(options.keep, "w") as out:
                        json.dump(pairs, out)
    print(f"memory: {memory:.1f} GB/s read by {options.threads} threads\n\n"
          "| model | pairs | MB a token | ms a token | CPUs | ceiling GB/s | reported | independent "
          "| ratio | middle half |\n|---|---|---|---|---|---|---|---|---|---|")
    failed = False
    for model in options.models:
        of = pairs[os.path.basename(model)]
        middle = lambda key: statistics.median(p[key] for p in of)
        ratios = sorted(p["reported"] / p["independent"] for p in of)
        ratio = statistics.median(ratios)
        print(f"| {os.path.basename(model)} | {len(of)} | {1e-6 * middle('bytes'):.0f} | "
              f"{middle('ms'):.2f} | {middle('cpus'):.2f} | {middle('read_gb_s'):.1f} | "
              f"{100 * middle('reported'):.0f} % | {100 * middle('independent'):.0f} % | {ratio:.3f} | "
              f"{ratios[len(of) // 4]:.3f}-{ratios[-1 - len(of) // 4]:.3f} |")
        failed |= abs(ratio - 1) > options.tolerance
    sys.exit(1 if failed and options.check else 0)


if __name__ == "__main__":
    main()
