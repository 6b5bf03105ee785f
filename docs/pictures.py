# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes the pictures of tools for the manual, from runs on this machine, in docs/figures.

python docs/pictures.py [NAME ...]     # names: doctor, top, report, profiler, memory

It needs the requirements of the manual (`python3 tools/dev.py docs` installs them) and matplotlib.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
LARGEST = 150 * 1024  # bytes of a picture
COLUMNS = 120  # of a terminal
# A device with memory of its own, as most GPUs have, so that no kernel is torch's for the CPU.
GPU = {"MUSA_EMULATOR_MEMORY": "strict", "MUSA_EMULATOR_MODE": "async"}
# A machine of its own, so that `top` lists no other processes.
SETTINGS = {"top": {"MUSA_EMULATOR_MACHINE": "pictures"}, "profiler": GPU, "memory": GPU}
COLOURS = {
    "user_annotation": ("range of the program", "#9aa5b1"),
    "cpu_op": ("operator", "#4c78a8"),
    "privateuse1_runtime": ("SDK call", "#f58518"),
    "gpu_user_annotation": ("range on the device", "#bab0ac"),
    "kernel": ("kernel", "#54a24b"),
    "gpu_memcpy": ("copy", "#e45756"),
    "gpu_memset": ("fill", "#b279a2"),
}
HOST = ("user_annotation", "cpu_op", "privateuse1_runtime")
# A terminal without the font that rich would load from another host.
TERMINAL = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
TRAINING = """
import sys, torch
device, width = f"musa:{sys.argv[1]}", int(sys.argv[2])
from torch.nn import Linear, ReLU, Sequential
model = Sequential(Linear(width, width), ReLU(), Linear(width, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(64, width, device=device), torch.randint(0, 10, (64,), device=device)
while True:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def draw_terminal(name: str, command: str, text: str) -> Path:
    """Writes the output of a command as the picture of a terminal, without folders of this machine."""
    from rich.console import Console

    for folder in (r"/[\w./-]+(?=/(?:packages|\.venv)/)", re.escape(str(Path.home())), r"/tmp(?=/)"):
        text = re.sub(folder, "~", text)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(f"$ {command}", style="bold", markup=False, highlight=False)
    console.print(text, markup=False, highlight=False, overflow="ellipsis", no_wrap=True)
    path = FIGURES / f"{name}.svg"
    picture = console.export_svg(title=command, code_format=TERMINAL, unique_id=name)
    path.write_text("".join(f"{line.rstrip()}\n" for line in picture.rstrip().splitlines()))
    return path


def run_tool(*arguments: str) -> str:
    """The output of `python -m torch_musa`."""
    command = [sys.executable, "-m", "torch_musa", *arguments]
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout.rstrip()


def doctor() -> Path:
    return draw_terminal("doctor", "python -m torch_musa doctor", run_tool("doctor"))


def top() -> Path:
    """`top` beside two programs that train, each on a device."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "train.py").write_text(TRAINING)
        for device, width in ((0, 512), (1, 256)):
            # `top` shows the command line, which begins with the name of the program as it was started.
            command = [f"exec -a python {sys.executable} train.py {device} {width}"]
            environment = {**os.environ, **({"TORCH_MUSA_TOP": "1"} if device == 0 else {})}
            process = subprocess.Popen(["bash", "-c", *command], cwd=folder, env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
        time.sleep(20)
        return draw_terminal("top", "python -m torch_musa top", run_tool("top", "--once"))


def browser_picture(page: Path, name: str, width: int, height: int, act=lambda tab: None) -> Path:
    """Writes what Chromium shows of a page."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(ROOT / "tools"))
    from workspace.prerequisites import find_browser

    path = FIGURES / f"{name}.png"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_browser(), chromium_sandbox=False)
        tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        tab.goto(page.as_uri())
        act(tab)
        tab.screenshot(path=path)
        browser.close()
    return path


def report() -> Path:
    """The report of torch_musa.debug about a step with an operator of which one provider is wrong."""
    import torch
    from torch import nn

    from torch_musa import debug

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, activation) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 256), nn.Linear(256, 64)
            self.activation = activation

        def forward(self, x):
            return x + self.down(self.activation(self.up(self.norm(x))))

    # An operator whose kernel for the device has another constant than that for the CPU.
    library = torch.library.Library("example", "DEF")
    library.define("quick_gelu(Tensor self) -> Tensor")
    library.impl("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x), "CPU")
    library.impl("quick_gelu", lambda x: x * torch.sigmoid(1.7 * x), "PrivateUse1")
    activations = (
        [torch.nn.functional.gelu] * 3 + [torch.ops.example.quick_gelu] + [torch.nn.functional.gelu] * 4
    )
    model = nn.Sequential(*map(Block, activations), nn.Linear(64, 10)).to("musa")
    x = torch.randn(32, 64).to("musa")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the report names the folder of the differences
        with torch.no_grad(), debug.compare("musa_debug") as comparison, debug.log_operators() as log:
            model(x)
        page = Path(folder, "report.html")
        debug.write_report(str(page), comparison, log, title="python -m torch_musa compare train.py")
        return browser_picture(page, "report", 1000, 1000, lambda tab: tab.keyboard.press("n"))


def profiled_step():
    """A profile of the third step of a small convolutional network."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 10),
    ).to("musa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randn(16, 3, 16, 16, pin_memory=True)
    labels = torch.randint(0, 10, (16,), pin_memory=True)

    def step():
        with record_function("input"):
            x, y = images.to("musa", non_blocking=True), labels.to("musa", non_blocking=True)
        with record_function("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with record_function("backward"):
            optimizer.zero_grad()
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()
        with record_function("loss to host"):
            return loss.detach().cpu()

    step()
    step()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as prof:
        step()
        torch.musa.synchronize()
    return prof


def trace_events(prof) -> list[dict]:
    """The rows of the chrome trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return [event for event in events if event.get("ph") == "X" and event.get("cat") in COLOURS]


def in_lanes(events):
    """Each event with the depth at which it nests in those around it."""
    lanes: list[float] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        end = event["ts"] + event["dur"]
        depth = next((i for i, busy in enumerate(lanes) if busy <= event["ts"] + 0.01), len(lanes))
        lanes[depth:] = [end]
        yield depth, event


def draw_trace(axes, events) -> None:
    import matplotlib.pyplot as plt

    start = min(event["ts"] for event in events)
    length = max(event["ts"] + event["dur"] for event in events) - start
    groups = {"host": [event for event in events if event["cat"] in HOST]}
    device = [event for event in events if event["cat"] not in HOST]
    for stream in sorted({event["tid"] for event in device}):
        groups[f"musa:0\nstream {stream}"] = [event for event in device if event["tid"] == stream]
    # Work of the backward pass, which another thread enqueues, is in no range; ranges have rows of their own.
    top = 0
    axes.set_xlim(0, length / 1000)
    for name, rows in groups.items():
        lines: dict[tuple, list[dict]] = collections.defaultdict(list)
        for event in rows:
            lines[event["cat"] not in HOST + ("gpu_user_annotation",), str(event["tid"])].append(event)
        middle = top
        for _, line in sorted(lines.items()):
            deepest = 0
            for depth, event in in_lanes(line):
                deepest = max(deepest, depth)
                left, width = (event["ts"] - start) / 1000, event["dur"] / 1000
                axes.broken_barh(
                    [(left, width)], (top + depth, 0.9), facecolors=COLOURS[event["cat"]][1], linewidth=0
                )
                label = event["name"].removeprefix("musa::dnn::").partition("#")[0]
                if event["dur"] > 0.0062 * length * len(label):
                    place = (left + width / 2, top + depth + 0.47)
                    axes.text(
                        *place, label, fontsize=6.5, ha="center", va="center", color="white", clip_on=True
                    )
            top += deepest + 1
        top += 0.5
        axes.text(
            -0.008,
            (middle + top - 1.5) / 2,
            name,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
        )
    axes.set_ylim(top, -0.5)
    axes.set_yticks([])
    axes.set_xlabel("milliseconds")
    axes.set_title("One training step: torch.profiler on the musa device", fontsize=11)
    present = [kind for kind in COLOURS if any(event["cat"] == kind for event in events)]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[kind][1]) for kind in present]
    labels = [COLOURS[kind][0] for kind in present]
    axes.legend(
        handles, labels, ncol=7, fontsize=8, loc="upper center", frameon=False, bbox_to_anchor=(0.5, -0.11)
    )


def draw_table(axes, events) -> None:
    """The work on the device by name: number and time."""
    work = collections.defaultdict(list)
    for event in events:
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            work[event["name"]].append(event["dur"])
    total = sum(map(sum, work.values()))
    rows = sorted(work.items(), key=lambda row: -sum(row[1]))[:8]
    cells = [
        [name[:70], str(len(times)), f"{sum(times):.0f} us", f"{100 * sum(times) / total:.1f} %"]
        for name, times in rows
    ]
    axes.axis("off")
    head = ["work on the device", "number", "time", "part"]
    table = axes.table(cells, colLabels=head, loc="center", cellLoc="right", colWidths=[0.6, 0.1, 0.15, 0.1])
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    for (_, column), cell in table.get_celld().items():
        cell.set_linewidth(0.3)
        if column == 0:
            cell.set_text_props(ha="left")


def profiler() -> Path:
    import matplotlib.pyplot as plt

    events = trace_events(profiled_step())
    shape = {"height_ratios": [5, 2]}
    figure, (trace, table) = plt.subplots(2, 1, figsize=(11, 7.5), gridspec_kw=shape, layout="constrained")
    draw_trace(trace, events)
    draw_table(table, events)
    path = FIGURES / "profiler.png"
    figure.savefig(path, dpi=100)
    return path


def allocation_history() -> list[dict]:
    """Allocator events of three training steps of a small transformer."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).to("musa")
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(8, 64, 128).to("musa")
    torch.musa.memory._record_memory_history(stacks="python")
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()
    torch.musa.synchronize()
    snapshot = torch.musa.memory._snapshot()
    torch.musa.memory._record_memory_history(enabled=None)
    return snapshot["device_traces"][0]


def memory() -> Path:
    """The active memory timeline of memory_viz: each live block is a band over the events of its life."""
    import matplotlib.pyplot as plt

    live: dict[int, int] = {}  # the number of the block at each address
    sizes: list[int] = []
    bands: list[list[tuple[int, int]]] = []  # of each block: events and its distance from the axis
    count = 0
    for event in allocation_history():
        if event["action"] == "alloc":
            live[event["addr"]] = len(sizes)
            sizes.append(event["size"])
            bands.append([])
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
        else:
            continue
        bottom = 0
        for block in live.values():
            bands[block].append((count, bottom))
            bottom += sizes[block]
        count += 1
    figure, axes = plt.subplots(figsize=(11, 4.5), layout="constrained")
    colours = plt.get_cmap("tab20").colors
    for block, (band, size) in enumerate(zip(bands, sizes)):
        if band:
            at = [number for number, _ in band] + [band[-1][0] + 1]
            low = [bottom / 2**20 for _, bottom in [*band, band[-1]]]
            high = [bottom + size / 2**20 for bottom in low]
            axes.fill_between(at, low, high, step="post", color=colours[block % 20], linewidth=0)
    axes.set(xlim=(0, count), xlabel="events of the allocator", ylabel="MiB")
    axes.set_ylim(0)
    axes.set_title("Live blocks in three training steps, from the allocation history", fontsize=11)
    path = FIGURES / "memory.png"
    figure.savefig(path, dpi=100)
    return path


PICTURES = {function.__name__: function for function in (doctor, top, report, profiler, memory)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all pictures by default")
    names = parser.parse_args().names or list(PICTURES)
    if unknown := [name for name in names if name not in PICTURES]:
        parser.error(f"there is no picture {unknown[0]}; there are {', '.join(PICTURES)}")
    FIGURES.mkdir(exist_ok=True)
    if len(names) > 1:  # each in a process with its settings, which torch reads when it is imported
        return max(subprocess.run([sys.executable, __file__, name]).returncode for name in names)
    settings = SETTINGS.get(names[0], {})
    if not settings.items() <= os.environ.items():
        return subprocess.run([sys.executable, __file__, *names], env={**os.environ, **settings}).returncode
    path = PICTURES[names[0]]()
    print(f"written: {path}, {path.stat().st_size} bytes")
    return int(path.stat().st_size > LARGEST)


if __name__ == "__main__":
    sys.exit(main())
