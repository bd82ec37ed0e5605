#!/usr/bin/env python3
"""Writes tensorboard.events with TensorBoard's own messages and record writer, for event_file_test.cpp.

    python3 -m venv /tmp/tb && /tmp/tb/bin/pip install tensorboard==2.21.0
    /tmp/tb/bin/python tests/golden/loggers/tensorboard_events.py
"""
import pathlib
import struct

from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

Value = summary_pb2.Summary.Value


def numbers(time_s, step, pairs):
    values = [Value(tag=tag, simple_value=value) for tag, value in pairs]
    return event_pb2.Event(wall_time=time_s, step=step, summary=summary_pb2.Summary(value=values))


def text(time_s, step, tag, markdown):
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"),
        data_class=summary_pb2.DATA_CLASS_TENSOR)
    shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, tensor_shape=shape, string_val=[markdown.encode()])
    value = Value(tag=tag, tensor=tensor, metadata=metadata)
    return event_pb2.Event(wall_time=time_s, step=step, summary=summary_pb2.Summary(value=[value]))


def histogram(time_s, step, tag, rows):
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="histograms"),
        data_class=summary_pb2.DATA_CLASS_TENSOR)
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in (len(rows), 3)]
    content = b"".join(struct.pack("<ddd", *row) for row in rows)
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_DOUBLE, tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims),
                                    tensor_content=content)
    value = Value(tag=tag, tensor=tensor, metadata=metadata)
    return event_pb2.Event(wall_time=time_s, step=step, summary=summary_pb2.Summary(value=[value]))


events = [
    event_pb2.Event(wall_time=1700000000.25, file_version="brain.Event:2"),
    text(1700000000.5, 0, "recipe", "```lua\nreturn r  -- größer\n```"),
    numbers(1700000001.0, 1, [("loss", 3.4125), ("lr", 5.8e-4), ("tokens", 524288.0)]),
    numbers(1700000002.0, 3000000000, [("mfu(%)", float("nan")), ("x", float("-inf")), ("zero", 0.0)]),
    event_pb2.Event(wall_time=1700000003.0, step=2, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)),
    numbers(1700000004.0, 2, [("long " * 60, -1.5e-30)]),
    histogram(1700000005.0, 3, "gradients/w", [(-1.0, -0.25, 4.0), (-0.25, 0.5, 0.0), (0.5, 1.25, 9.0)]),
]
with open(pathlib.Path(__file__).parent / "tensorboard.events", "wb") as file:
    writer = RecordWriter(file)
    for event in events:
        writer.write(event.SerializeToString(deterministic=True))
