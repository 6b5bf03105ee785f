# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes the figures of the front pages, and the table of whole programs, from docs/programs.json.

python docs/front_page.py           writes docs/figures/*.svg and the table in docs/design/musa-cuda.md
"""
# ruff: noqa: RUF001 - Chinese labels have full-width punctuation

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

DOCS = Path(__file__).resolve().parent
RECORD = DOCS / "programs.json"
TABLE_PAGE = DOCS / "design" / "musa-cuda.md"
FIGURES = DOCS / "figures"
HEAD = "| program | torch.cuda, ms | musa, ms | ratio | peak memory, ratio |\n|---|---|---|---|---|\n"
# Colours in a light and a dark theme. Each figure has its own background, so that it is readable in both.
COLOURS = {
    "#010101": ("paper", "#ffffff", "#161b22"),
    "#020202": ("ink", "#1f2328", "#e6edf3"),
    "#030303": ("grid", "#d1d9e0", "#3d444d"),
    "#040404": ("equal", "#2da44e", "#3fb950"),
    "#050505": ("near", "#0969da", "#58a6ff"),
    "#060606": ("far", "#bc4c00", "#f0883e"),
    "#070707": ("box", "#f6f8fa", "#21262d"),
    "#080808": ("ours", "#ddf4ff", "#10304f"),
}
PAPER, INK, GRID, EQUAL, NEAR, FAR, BOX, OURS = COLOURS
NEAR_LIMIT = 1.10  # the bar of docs/design/musa-cuda.md for a whole program
MEMORY_LIMIT = 1.05
SHOWN = 2.0  # the axis ends here; a longer bar is cut, and its number says so


def read_record(path: Path = RECORD) -> dict:
    """Returns the measured programs.

    Each row has `program` (of benchmarks/gpu/programs.py), `title`, `cuda_ms`, `musa_ms` (milliseconds of a
    step), `ratio` (time on musa over torch.cuda's, before rounding) and `memory` (ratio of the peak allocated
    memory); `earlier` and `earlier_memory` are ratios before the changes of those days, `note` is a remark.
    """
    return json.loads(path.read_text(encoding="utf-8"))


def summary(record: dict) -> dict[str, str]:
    """Returns the figures of the front pages as texts."""
    ratios = [row["ratio"] for row in record["rows"]]
    return {
        "programs": str(len(ratios)),
        "of": str(record["programs_of_the_benchmark"]),
        "median": f"{statistics.median(ratios):.4g}",
        "near": str(sum(ratio <= NEAR_LIMIT for ratio in ratios)),
        "largest": f"{max(ratios):g}",
        "memory": str(sum(row["memory"] <= MEMORY_LIMIT for row in record["rows"])),
    }


def table(record: dict) -> str:
    """Returns the Markdown table of the programs."""
    lines = []
    for row in record["rows"]:
        ratio = f"{row['ratio']:.2f}" if row["ratio"] < 10 else f"{row['ratio']:g}"
        if "earlier" in row:
            ratio = f"{row['earlier']:g}, {ratio}"
        memory = f"{row['memory']:.2f}" if row["memory"] < 10 else f"{row['memory']:g}"
        if "earlier_memory" in row:
            memory += f" ({row['earlier_memory']:g} before)"
        ratio += f", {row['note']}" if "note" in row else ""
        lines.append(f"| {row['title']} | {row['cuda_ms']:g} | {row['musa_ms']:g} | {ratio} | {memory} |")
    return HEAD + "\n".join(lines) + "\n"


def update_table(page: str, record: dict) -> str:
    """Returns the page with the table of the record in place of its table."""
    found = re.search(re.escape(HEAD) + r"(?:\|.*\n)*", page)
    if not found:
        raise ValueError(f"{TABLE_PAGE} has no table that begins with {HEAD.splitlines()[0]!r}")
    return page[: found.start()] + table(record) + page[found.end() :]


def labels(record: dict) -> list[tuple[str, str]]:
    """Returns the title and the number of each bar, the fastest program first."""
    rows = sorted(record["rows"], key=lambda row: row["ratio"])
    return [
        (row["title"], f"{row['ratio']:.2f}" if row["ratio"] < 10 else f"{row['ratio']:g}") for row in rows
    ]


def _themed(svg: str) -> str:
    """Replaces the placeholders of matplotlib's output by variables that follow the reader's theme."""
    for placeholder, (name, _, _) in COLOURS.items():
        svg = svg.replace(placeholder, f"var(--{name})")
    light = "".join(f"--{name}:{light};" for name, light, _ in COLOURS.values())
    dark = "".join(f"--{name}:{dark};" for name, _, dark in COLOURS.values())
    style = f"<style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    return re.sub(r"(<svg [^>]*>)", rf"\1\n {style}", svg, count=1)


def _save(figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "docs/front_page.py"})
    svg = path.read_text(encoding="utf-8")
    lines = [line.rstrip() for line in _themed(svg).splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw_programs(record: dict, path: Path) -> None:
    """Draws the ratio of each program as a point, the fastest first."""
    from matplotlib import pyplot

    names = labels(record)
    figure, axes = pyplot.subplots(figsize=(6.0, 6.9), facecolor=PAPER)
    axes.set_facecolor(PAPER)
    rows = range(len(names))
    ratios = [float(number) for _, number in names]
    colours = [EQUAL if ratio <= 1 else NEAR if ratio <= NEAR_LIMIT else FAR for ratio in ratios]
    ends = [min(ratio, SHOWN) for ratio in ratios]
    axes.hlines(rows, 1, ends, color=colours, linewidth=3.2)
    axes.scatter(ends, rows, color=colours, s=22, zorder=3)
    for row, (end, (_, number)) in enumerate(zip(ends, names)):
        text = f"{number} →" if float(number) > SHOWN else number
        left = end < 1
        axes.annotate(
            text, (end, row), (-6 if left else 6, 0), textcoords="offset points", va="center",
            ha="right" if left else "left", color=INK, fontsize=7.8,
        )  # fmt: skip
    axes.axvline(1, color=INK, linewidth=1)
    axes.axvline(NEAR_LIMIT, color=GRID, linewidth=1, linestyle="--")
    axes.set_yticks(list(rows), [title for title, _ in names], fontsize=7.8, color=INK)
    axes.set_xlim(0.68, SHOWN + 0.24)
    axes.set_ylim(len(names) - 0.4, -0.6)
    ticks = [0.8, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7.8, color=INK)
    axes.set_xlabel(f"torch_musa / torch.cuda, {record['device']}", color=INK, fontsize=8.5)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    figure.subplots_adjust(left=0.445, right=0.985, top=0.995, bottom=0.07)
    _save(figure, path)
    pyplot.close(figure)


# Boxes of the architecture: left, bottom, width, height, colour, and lines of text by language.
BOXES = (
    (0, 80, 100, 14, BOX, {"en": ("your program", "torch: the stock wheel of PyTorch"),
                           "zh": ("用户程序", "torch：PyTorch 官方 wheel，不打补丁")}),
    (0, 55, 49, 18, OURS, {"en": ("torch-musa", "torch.musa, pack loader, command line"),
                           "zh": ("torch-musa", "torch.musa、算子包加载、命令行")}),
    (51, 55, 49, 18, OURS, {"en": ("packs, each a wheel", "muDNN ops · MUSA kernels · AMP · distributed",
                                   "compile · vision · math · your pack"),
                            "zh": ("算子包，各自是独立的 wheel", "muDNN 算子 · MUSA 内核 · AMP · 分布式",
                                   "编译 · 视觉 · 数学库 · 你自己的算子包")}),
    (0, 34, 100, 14, OURS, {"en": ("musa-runtime",
                                   "device, streams, events, allocator, graphs, generator, registry"),
                            "zh": ("musa-runtime", "设备、流、事件、显存分配器、图、随机数、算子注册表")}),
    (0, 5, 32, 19, BOX, {"en": ("MUSA SDK of the vendor", "Moore Threads GPU", "not run yet"),
                         "zh": ("厂商的 MUSA SDK", "摩尔线程 GPU", "尚未运行过")}),
    (34, 5, 32, 19, OURS, {"en": ("musa-emulator", "CPU", "every test"),
                           "zh": ("musa-emulator", "CPU", "全部测试")}),
    (68, 5, 32, 19, OURS, {"en": ("musa-cuda", "NVIDIA GPU", "tests and benchmarks"),
                           "zh": ("musa-cuda", "NVIDIA GPU", "测试与性能对比")}),
)  # fmt: skip
ARROWS = ((24.5, 80, 73), (75.5, 80, 73), (24.5, 55, 48), (75.5, 55, 48), (50, 34, 29.4))
BOUNDARY = {
    "en": "the MUSA SDK's headers and library names: one binary interface, three implementations",
    "zh": "同一套 MUSA SDK 头文件与库名：一个二进制接口，三种实现",
}


def draw_architecture(language: str, path: Path) -> None:
    """Draws the layers from a program down to the three implementations of the SDK."""
    from matplotlib import pyplot
    from matplotlib.patches import FancyBboxPatch

    figure, axes = pyplot.subplots(figsize=(6.0, 3.7), facecolor=PAPER)
    axes.set(xlim=(-1, 101), ylim=(3, 96))
    axes.axis("off")
    figure.subplots_adjust(left=0.005, right=0.995, top=0.995, bottom=0.005)
    for left, bottom, width, height, colour, texts in BOXES:
        axes.add_patch(
            FancyBboxPatch(
                (left, bottom), width, height, boxstyle="round,pad=0,rounding_size=1.4",
                facecolor=colour, edgecolor=GRID, linewidth=1,
            )
        )  # fmt: skip
        lines = texts[language]
        for number, line in enumerate(lines):
            y = bottom + height * (1 - (number + 0.5) / len(lines) * 0.86 - 0.07)
            axes.text(
                left + width / 2, y, line, ha="center", va="center", color=INK,
                fontsize=8.4 if number == 0 else 6.9, weight="bold" if number == 0 else "normal",
            )  # fmt: skip
    for x, top, bottom in ARROWS:
        axes.annotate(
            "", (x, bottom), (x, top), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1}
        )
    axes.plot((0, 100), (29.4, 29.4), color=INK, linewidth=1, linestyle="--")
    axes.text(50, 27.2, BOUNDARY[language], ha="center", va="center", color=INK, fontsize=6.8, style="italic")
    _save(figure, path)
    pyplot.close(figure)


def main() -> None:
    import logging

    import matplotlib

    matplotlib.use("Agg")
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    # Text stays text: it is small, can be searched, and is drawn in a font that the reader's machine has.
    fonts = [
        "DejaVu Sans",
        "Helvetica",
        "Arial",
        "Noto Sans CJK SC",
        "PingFang SC",
        "Microsoft YaHei",
        "sans-serif",
    ]
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "torch_musa", "font.family": fonts})
    record = read_record()
    FIGURES.mkdir(exist_ok=True)
    draw_programs(record, FIGURES / "programs.svg")
    draw_architecture("en", FIGURES / "architecture.svg")
    draw_architecture("zh", FIGURES / "architecture.zh.svg")
    TABLE_PAGE.write_text(update_table(TABLE_PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


if __name__ == "__main__":
    main()
