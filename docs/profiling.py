# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Profiles one training step on the musa device and draws its trace and its table: docs/profiling.png.

python docs/profiling.py [--out docs/profiling.png]
"""

import argparse
import json
import pathlib
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch.profiler import ProfilerActivity, profile, record_function

COLOURS = {
    "user_annotation": "#9aa5b1",
    "cpu_op": "#4c78a8",
    "privateuse1_runtime": "#f58518",
    "gpu_user_annotation": "#bab0ac",
    "kernel": "#54a24b",
    "gpu_memcpy": "#e45756",
    "gpu_memset": "#b279a2",
}
LABELS = {
    "user_annotation": "range",
    "cpu_op": "operator",
    "privateuse1_runtime": "SDK call",
    "gpu_user_annotation": "range on the device",
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "fill",
}


def profiled_step():
    """A profile of the third step of a small convolutional network."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 10),
    ).to("musa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randn(32, 3, 32, 32, pin_memory=True)
    labels = torch.randint(0, 10, (32,), pin_memory=True)

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


def trace_events(prof):
    """The rows of the chrome trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "trace.json")
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return [event for event in events if event.get("ph") == "X" and event.get("cat") in COLOURS]


def in_lanes(events):
    """Each event with the depth at which it nests in those around it."""
    lanes = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        end = event["ts"] + event["dur"]
        depth = next((i for i, busy in enumerate(lanes) if busy <= event["ts"] + 0.01), len(lanes))
        lanes[depth:] = [end]
        yield depth, event


def draw_trace(axes, events):
    start = min(event["ts"] for event in events)
    host = [event for event in events if event["cat"] in ("user_annotation", "cpu_op", "privateuse1_runtime")]
    device = [event for event in events if event not in host]
    groups = {"host thread": host}
    for stream in sorted({event["tid"] for event in device}):
        groups[f"musa:0, stream {stream}"] = [event for event in device if event["tid"] == stream]
    top = 0
    for name, rows in groups.items():
        deepest = 0
        for depth, event in in_lanes(rows):
            deepest = max(deepest, depth)
            axes.broken_barh(
                [((event["ts"] - start) / 1000, event["dur"] / 1000)],
                (top + depth, 0.9),
                facecolors=COLOURS[event["cat"]],
                linewidth=0,
            )
            wide = event["dur"] > 0.08 * (max(e["ts"] + e["dur"] for e in events) - start)
            if wide and event["cat"] in ("user_annotation", "gpu_user_annotation"):
                axes.text(
                    (event["ts"] - start) / 1000, top + depth + 0.7, event["name"], fontsize=7, clip_on=True
                )
        axes.text(
            -0.005, top + deepest / 2, name, transform=axes.get_yaxis_transform(), ha="right", fontsize=8
        )
        top += deepest + 2
    axes.set_ylim(top - 1, -0.5)
    axes.set_yticks([])
    axes.set_xlabel("milliseconds")
    axes.set_title("One training step: torch.profiler on the musa device", fontsize=11)
    present = {event["cat"] for event in events}
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[c]) for c in COLOURS if c in present]
    axes.legend(
        handles,
        [LABELS[c] for c in COLOURS if c in present],
        ncol=7,
        fontsize=7,
        loc="upper right",
        frameon=False,
        bbox_to_anchor=(1, -0.12),
    )


def draw_table(axes, prof):
    rows = sorted(prof.key_averages(), key=lambda row: row.self_device_time_total, reverse=True)
    device = torch.autograd.DeviceType.PrivateUse1
    rows = [row for row in rows if row.device_type == device and not row.is_user_annotation]
    total = sum(row.self_device_time_total for row in rows)
    rows = rows[:10]
    cells = [
        [
            row.key[:60],
            f"{row.self_device_time_total:.1f} us",
            f"{100 * row.self_device_time_total / total:.1f} %",
            str(row.count),
        ]
        for row in rows
    ]
    axes.axis("off")
    table = axes.table(
        cells,
        colLabels=["kernel or copy", "Self MUSA", "Self MUSA %", "calls"],
        loc="center",
        cellLoc="right",
        colWidths=[0.5, 0.15, 0.15, 0.1],
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    for (_, column), cell in table.get_celld().items():
        cell.set_linewidth(0.3)
        if column == 0:
            cell.set_text_props(ha="left")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", default=str(pathlib.Path(__file__).with_suffix(".png")), help="file to write"
    )
    options = parser.parse_args()
    prof = profiled_step()
    print(prof.key_averages().table(sort_by="self_device_time_total", row_limit=12, max_name_column_width=40))
    figure, (trace, table) = plt.subplots(
        2, 1, figsize=(11, 8), gridspec_kw={"height_ratios": [3, 2]}, layout="constrained"
    )
    draw_trace(trace, trace_events(prof))
    draw_table(table, prof)
    figure.savefig(options.out, dpi=110)
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
