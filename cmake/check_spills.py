#!/usr/bin/env python3
"""Reads compiled kernels and fails if an inner loop keeps vectors on the stack.

    cmake/check_spills.py [--max PERCENT] OBJECT...

A tile that is too large for the registers, or sums that a compiler re-ordered, still give the
right answer, at half the speed. For the largest tile of every PanelKernel and FloatKernel in the
x86 objects: in its innermost loops, at most PERCENT of the instructions may move vectors to or
from the stack. Needs objdump.
"""
import re
import subprocess
import sys

# GCC 12: most tiles have none, those that fold int16 sums on AVX2 up to 5.1 % (scales of the tokens
# among them, which still gain 2 % by being loaded once); tiles of 6 tokens
# there have 5 to 8 % and run at three quarters of the speed. clang 19: up to 8.2 % in the same tiles.
MAX = 5.5

FUNCTION = re.compile(r"^([0-9a-f]+) <(.*)>:$")
KERNEL = re.compile(r"(?:PanelKernel|FloatKernel)<.*?>\(")
SIZES = re.compile(r"(\d+)ul, (\d+)ul(?:, (?:true|false))?>\(")
LINE = re.compile(r"^\s+([0-9a-f]+):\s+(\S.*)$")
JUMP = re.compile(r"^j\w+\s+([0-9a-f]+)")
STACK = re.compile(r"\(%(?:rsp|esp)")
FRAME = re.compile(r"-?0x[0-9a-f]+\(%rbp\)")


def kernels(path):
    """(name, [(address, instruction)]) of every kernel in an object."""
    out = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", path], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    name, body = None, []
    for line in out.splitlines():
        start = FUNCTION.match(line)
        if start:
            if name:
                yield name, body
            name, body = (start[2] if KERNEL.search(start[2]) else None), []
        elif name:
            instruction = LINE.match(line)
            if instruction:
                body.append((int(instruction[1], 16), instruction[2]))
    if name:
        yield name, body


def inner_loops(body):
    """Ranges from the target of a backward jump to the jump that hold no other such range."""
    first = body[0][0]
    loops = []
    for address, text in body:
        jump = JUMP.match(text)
        if jump and first <= int(jump[1], 16) <= address:
            loops.append((int(jump[1], 16), address))
    return [a for a in loops
            if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def spills(body):
    """Of the worst inner loop: instructions that move vectors to or from the stack, and percent."""
    framed = any(re.match(r"mov\s+%rsp,%rbp", text) for _, text in body)
    worst = 0, 0.0
    for begin, end in inner_loops(body):
        loop = [text for address, text in body if begin <= address <= end]
        count = sum(1 for text in loop if re.search(r"%[xyz]mm", text) and
                    (STACK.search(text) or (framed and FRAME.search(text))))
        worst = max(worst, (count, 100.0 * count / len(loop)))
    return worst


def main():
    arguments = sys.argv[1:]
    most = MAX
    if arguments[:1] == ["--max"]:
        most, arguments = float(arguments[1]), arguments[2:]
    largest = {}  # by kernel without its tile: (V, T), spills, percent
    for path in arguments:
        for name, body in kernels(path):
            tile = SIZES.search(name)
            if not tile or not body:
                continue
            size = (int(tile[1]), int(tile[2]))
            key = name[:tile.start()]
            if size > largest.get(key, ((0, 0),))[0]:
                largest[key] = (size, *spills(body))
    bad = 0
    for key, (size, count, percent) in sorted(largest.items()):
        short = re.sub(r"void |sluice::|N_(?=AVX)", "", key).strip(" <,")
        if percent > most:
            bad += 1
            print(f"{short}: {count} vector moves to or from the stack in an inner loop of the "
                  f"tile {size[0]} x {size[1]}, {percent:.1f} %, expected at most {most:g} %")
    if not largest:
        print("no kernels found: expected objects of simd/byte_tiles.cc and quant/*.cc")
    print(f"{len(largest) - bad} passed, {bad + (not largest)} failed, 0 skipped")
    return 1 if bad or not largest else 0


sys.exit(main())
