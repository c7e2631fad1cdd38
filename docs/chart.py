"""Line charts as SVG, for plots.py: a chart has panels, a panel two axes. Colours are those of
`sluice ... --svg`, light and dark, on a background of their own.
"""

import math
from xml.sax.saxutils import escape

COLOURS = [("#0072b2", "#56b4e9"), ("#d55e00", "#ff9b4a"), ("#009e73", "#2fd6a3"),
           ("#aa4499", "#e08ad0"), ("#997700", "#e6c84f"), ("#333333", "#d0d0d0")]
SCHEMES = [("#ffffff", "#24292f", "#57606a", "#d8dee4"),
           ("#0d1117", "#e6edf3", "#9da7b3", "#2a313a")]


def style():
    schemes = []
    for i, (page, ink, soft, grid) in enumerate(SCHEMES):
        rules = (f".page{{fill:{page}}}.text{{fill:{ink}}}.soft{{fill:{soft}}}"
                 f".grid{{stroke:{grid}}}.axis{{stroke:{soft}}}.hollow{{fill:{page}}}"
                 f".halo{{stroke:{page};stroke-width:4;paint-order:stroke}}")
        for c, colour in enumerate(COLOURS):
            rules += f".s{c}{{stroke:{colour[i]}}}.f{c}{{fill:{colour[i]}}}"
        schemes.append(rules)
    return ("text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
            f"\n{schemes[0]}\n@media (prefers-color-scheme:dark){{{schemes[1]}}}")


class Chart:
    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts, self.panels = [], []
        self.text(24, 28, title, "text", 'style="font-size:15px;font-weight:600"')

    def add(self, panel):
        self.panels.append(panel)
        return panel

    def text(self, x, y, text, kind="soft", more=""):
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}'
                          "</text>")

    def save(self, path):
        size = (f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}"')
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
                 f"<title>{escape(self.title)}</title>", f"<style>{style()}</style>",
                 f'<rect class="page" width="{self.width}" height="{self.height}"/>', *self.parts]
        for panel in self.panels:
            parts += panel.frame() + panel.parts
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(parts + ["</svg>"]) + "\n")


class Axis:
    def __init__(self, span, scale, start, end):
        self.scale, self.start, self.end = scale, start, end
        self.low, self.high = map(self.of, span)
        low, high = span
        if scale == "linear":
            step = 10 ** math.floor(math.log10(high - low))
            while (high - low) / step < 4:
                step /= 2
            self.ticks = [low + i * step for i in range(int((high - low) / step + 1e-9) + 1)]
        else:
            base = 2 if scale == "log2" else 10
            ticks = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            self.ticks = [base ** t for t in ticks]

    def of(self, value):
        return {"linear": float, "log": math.log10, "log2": math.log2}[self.scale](value)

    def at(self, value):
        return self.start + (self.of(value) - self.low) / (self.high - self.low) * (
            self.end - self.start)


def number(value):
    if value >= 1024 and value % 1024 == 0:
        return f"{value // 1024:.0f}k"
    return f"{value:g}"


class Panel:
    """box: left, top, right, bottom in pixels."""

    def __init__(self, box, x_span, y_span, x_scale, y_scale, x_name, y_name):
        self.left, self.top, self.right, self.bottom = box
        self.x = Axis(x_span, x_scale, self.left, self.right)
        self.y = Axis(y_span, y_scale, self.bottom, self.top)
        self.x_name, self.y_name = x_name, y_name
        self.marks, self.parts = [], []

    def frame(self):
        parts = []

        def line(kind, x1, y1, x2, y2):
            parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                         f'y2="{y2:.1f}"/>')

        def text(x, y, words, more):
            parts.append(f'<text class="soft" x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}'
                         "</text>")

        for tick in self.x.ticks:
            at = self.x.at(tick)
            if not self.marks:
                line("grid", at, self.top, at, self.bottom)
            text(at, self.bottom + 18, number(tick), 'text-anchor="middle"')
        for tick in self.y.ticks:
            at = self.y.at(tick)
            line("grid", self.left, at, self.right, at)
            text(self.left - 8, at + 4, number(tick), 'text-anchor="end"')
        for value, name in self.marks:
            at = self.x.at(value)
            line("grid", at, self.top, at, self.bottom)
            text(0, 0, name, f'transform="translate({at + 2:.1f} {self.top - 6}) rotate(-40)"')
        line("axis", self.left, self.bottom, self.right, self.bottom)
        line("axis", self.left, self.top, self.left, self.bottom)
        text((self.left + self.right) / 2, self.bottom + 42, self.x_name, 'text-anchor="middle"')
        text(0, 0, self.y_name, 'text-anchor="middle" transform="translate('
             f'{self.left - 48} {(self.top + self.bottom) / 2:.1f}) rotate(-90)"')
        return parts

    def mark_x(self, value, name):
        self.marks.append((value, name))

    def line(self, points, colour, dash="", width=2):
        path = " ".join(f"{self.x.at(x):.1f},{self.y.at(y):.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline class="s{colour}" fill="none" stroke-width="{width}"{dashes} '
                          f'points="{path}"/>')

    def point(self, x, y, colour, radius=4.5, hollow=False):
        kind = f"hollow s{colour}" if hollow else f"f{colour}"
        self.parts.append(f'<circle class="{kind}" cx="{self.x.at(x):.1f}" cy="{self.y.at(y):.1f}" '
                          f'r="{radius}" stroke-width="1.5"/>')

    def note(self, x, y, words, colour, anchor="start", dx=9, dy=4):
        """Text beside a point."""
        self.parts.append(f'<text class="f{colour} halo" x="{self.x.at(x) + dx:.1f}" '
                          f'y="{self.y.at(y) + dy:.1f}" text-anchor="{anchor}">{escape(words)}'
                          "</text>")

    def along(self, start, end, words, colour):
        """Text above a line between two points."""
        (x0, y0), (x1, y1) = ((self.x.at(x), self.y.at(y)) for x, y in (start, end))
        angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
        self.parts.append(f'<text class="f{colour}" text-anchor="middle" transform="translate('
                          f'{(x0 + x1) / 2:.1f} {(y0 + y1) / 2:.1f}) rotate({angle:.1f}) '
                          f'translate(0 -8)">{escape(words)}</text>')
