"""`SummaryWriter`: numbers, texts and pictures of a training run, for TensorBoard."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import not_implemented_error, value_error
from rushlight.base.submodules import importable
from rushlight.core.tensor import Tensor

__all__ = ["SummaryWriter"]

writer = sys.modules[__name__]  # torch's class is in torch.utils.tensorboard.writer
importable(__name__, "writer")


def library() -> ModuleType:
    """The package tensorboard, with the parts that write event files."""
    try:
        import tensorboard.compat.proto.event_pb2
        import tensorboard.compat.proto.summary_pb2
        import tensorboard.plugins.text.metadata
        import tensorboard.summary.writer.event_file_writer
        import tensorboard.util.tensor_util
    except ImportError as error:
        raise ImportError("SummaryWriter needs TensorBoard: pip install tensorboard") from error
    return tensorboard


def plain(value: Any) -> ndarray:
    """A tensor, array or number as an array in NumPy's own dtypes."""
    array = value._array if isinstance(value, Tensor) else np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def number(value: Any) -> float:
    """One number. ValueError for several."""
    array = plain(value)
    if array.size != 1:
        raise value_error("scalar should be 0D", "log a mean, or each number under its own name", shape=array.shape)
    return float(array.reshape(()))


class SummaryWriter:
    """Writes TensorBoard's event files into a folder, default `runs/DATE_HOST`: `tensorboard --logdir runs` shows it.

    Context manager: it is closed at the end. ImportError without the package tensorboard.

        with SummaryWriter() as writer:
            for step in range(100):
                writer.add_scalar("loss", loss, step)
    """

    def __init__(
        self, log_dir: str | os.PathLike | None = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ):  # fmt: skip
        self._library = library()
        if log_dir is None:
            log_dir = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = os.fspath(log_dir), purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self._writers: dict[str, Any] = {}
        if purge_step is not None:
            self._writer().add_event(self._event(step=purge_step, file_version="brain.Event:2"))
            status = self._protocol("event_pb2").SessionLog
            self._writer().add_event(self._event(step=purge_step, session_log=status(status=status.START)))

    def _protocol(self, name: str) -> Any:
        return getattr(self._library.compat.proto, name)

    def _writer(self, folder: str | None = None) -> Any:
        """The writer of the folder's file, opened when it is first used, and again after `close()`."""
        folder = self.log_dir if folder is None else folder
        if folder not in self._writers:
            make = self._library.summary.writer.event_file_writer.EventFileWriter
            self._writers[folder] = make(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        return self._writers[folder]

    def _event(self, step: Any = None, walltime: float | None = None, **content: Any) -> Any:
        event = self._protocol("event_pb2").Event(wall_time=time.time() if walltime is None else walltime, **content)
        if step is not None:
            event.step = int(number(step))
        return event

    def _add(self, values: list, step: Any, walltime: float | None, folder: str | None = None) -> None:
        summary = self._protocol("summary_pb2").Summary(value=values)
        self._writer(folder).add_event(self._event(step, walltime, summary=summary))

    def _value(self, tag: str, **content: Any) -> Any:
        return self._protocol("summary_pb2").Summary.Value(tag=tag, **content)

    # -- numbers -----------------------------------------------------------------------------------

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """A number at a step. ValueError for more than one."""
        self._add([self._value(tag, simple_value=number(scalar_value))], global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Several numbers in one chart. Each is written to a separate folder and becomes a separate curve."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            self._add([self._value(main_tag, simple_value=number(value))], global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """The distribution of numbers. `bins`: the limits or the number of bins, one of NumPy's rules, or 'tensorflow'.

        ValueError for no values, and for inf and nan.
        """
        array = plain(values).astype(np.float64).reshape(-1)
        if array.size == 0 or not np.isfinite(array).all():
            raise value_error(
                "The histogram is empty, please file a bug report."
                if array.size == 0
                else "the values have inf or nan",
                "log finite numbers, at least one",
            )
        counts, limits = np.histogram(
            array, growing_limits() if isinstance(bins, str) and bins == "tensorflow" else bins
        )
        if max_bins is not None and len(counts) > max_bins:
            group = -(-len(counts) // max_bins)
            counts = np.add.reduceat(counts, np.arange(0, len(counts), group))
            limits = np.append(limits[:-1][::group], limits[-1])
        filled = np.flatnonzero(counts)
        first, last = filled[0], filled[-1] + 1
        counts = np.append(0, counts)[first : last + 1]  # an empty bin on the left, as in torch
        histogram = self._protocol("summary_pb2").HistogramProto(
            min=array.min(),
            max=array.max(),
            num=len(array),
            sum=array.sum(),
            sum_squares=array @ array,
            bucket_limit=limits[first : last + 1].tolist(),
            bucket=counts.tolist(),
        )
        self._add([self._value(tag, histo=histogram)], global_step, walltime)

    # -- texts and pictures ------------------------------------------------------------------------

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """A text in Markdown."""
        text = self._library.plugins.text.metadata
        made = self._library.util.tensor_util.make_tensor_proto(np.array([text_string.encode()], object))
        about = text.create_summary_metadata(display_name=tag, description="")
        self._add([self._value(f"{tag}/text_summary", tensor=made, metadata=about)], global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """A picture, of bytes, or floats from 0 to 1: 'CHW', 'HWC' or 'HW', with 1, 3 or 4 channels. Needs Pillow."""
        picture = in_order(plain(img_tensor), dataformats)
        self._add([self._value(tag, image=self._encoded(picture))], global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Several pictures side by side, in a grid that is nearly square."""
        array = plain(img_tensor)
        pictures = [
            in_order(one, dataformats.replace("N", "")) for one in np.moveaxis(array, dataformats.index("N"), 0)
        ]
        self._add([self._value(tag, image=self._encoded(grid(pictures)))], global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of matplotlib. `close`: close it afterwards."""
        figure.canvas.draw()
        picture = np.asarray(figure.canvas.buffer_rgba())
        if close:
            from matplotlib import pyplot

            pyplot.close(figure)
        self._add([self._value(tag, image=self._encoded(picture))], global_step, walltime)

    def _encoded(self, picture: ndarray) -> Any:
        """(H, W, C) as PNG."""
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError("pictures need Pillow: pip install pillow") from error
        import io

        pixels = (
            picture if picture.dtype == np.uint8 else (picture.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
        )
        h, w, channels = pixels.shape
        file = io.BytesIO()
        Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(file, "PNG")
        return self._protocol("summary_pb2").Summary.Image(
            height=h, width=w, colorspace=channels, encoded_image_string=file.getvalue()
        )

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A sound of one channel, numbers from -1 to 1: (samples,) or (1, samples)."""
        samples = plain(snd_tensor).astype(np.float32).reshape(-1)
        audio = self._protocol("summary_pb2").Summary.Audio(
            sample_rate=sample_rate,
            num_channels=1,
            length_frames=len(samples),
            content_type="audio/wav",
            encoded_audio_string=waves(samples, sample_rate),
        )
        self._add([self._value(tag, audio=audio)], global_step, walltime)

    # -- precision and recall ------------------------------------------------------------------

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision over recall: labels 0 or 1, predictions from 0 to 1, of one shape; at most 127 thresholds."""
        thresholds = min(num_thresholds, 127)
        curve = precision_recall(
            plain(labels).reshape(-1),
            plain(predictions).reshape(-1),
            thresholds,
            1.0 if weights is None else plain(weights).reshape(-1),
        )
        self._add_curve(tag, curve, thresholds, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision over recall, from counts at each threshold."""
        positives, negatives = (
            (true_positive_counts, false_positive_counts),
            (true_negative_counts, false_negative_counts),
        )
        rows = np.stack([plain(row) for row in (*positives, *negatives, precision, recall)])
        self._add_curve(tag, rows, min(num_thresholds, 127), global_step, walltime)

    def _add_curve(self, tag: str, curve: ndarray, thresholds: int, step: Any, walltime: float | None) -> None:
        from tensorboard.plugins.pr_curve import metadata

        made = self._library.util.tensor_util.make_tensor_proto(curve.astype(np.float32))
        about = metadata.create_summary_metadata(display_name="", description="", num_thresholds=thresholds)
        self._add([self._value(tag, tensor=made, metadata=about)], step, walltime)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default",
        metadata_header: list[str] | None = None,
    ) -> None:  # fmt: skip
        """Points (N, D) for the projector; `metadata`: N labels, or rows below `metadata_header`; `label_img`: (N, C,
        H, W).

        ValueError unless there are N labels.
        """
        points, step = plain(mat), str(0 if global_step is None else int(number(global_step))).zfill(5)
        folder = os.path.join(step, tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c"))
        os.makedirs(os.path.join(self.log_dir, folder), exist_ok=True)
        for name, given in (("labels", metadata), ("images", label_img)):
            if given is not None and len(given) != len(points):
                raise value_error(
                    f"#{name} should equal with #data points",
                    f"pass one of {name} for each row",
                    points=len(points),
                    given=len(given),
                )
        config = self._projector()
        entry = config.embeddings.add(tensor_name=f"{tag}:{step}", tensor_path=os.path.join(folder, "tensors.tsv"))
        self._write(entry.tensor_path, table(points.tolist()))
        if metadata is not None:
            entry.metadata_path = os.path.join(folder, "metadata.tsv")
            self._write(entry.metadata_path, table(metadata, metadata_header))
        if label_img is not None:
            entry.sprite.image_path = os.path.join(folder, "sprite.png")
            entry.sprite.single_image_dim.extend(plain(label_img).shape[:1:-1])
            self._write(entry.sprite.image_path, self._encoded(sprite(plain(label_img))).encoded_image_string)
        from google.protobuf import text_format

        self._write("projector_config.pbtxt", text_format.MessageToString(config).encode())

    def _projector(self) -> Any:
        """The projector's configuration so far."""
        from google.protobuf import text_format
        from tensorboard.plugins.projector import projector_config_pb2

        config, path = projector_config_pb2.ProjectorConfig(), os.path.join(self.log_dir, "projector_config.pbtxt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text_format.Parse(file.read(), config)
        return config

    def _write(self, path: str, content: bytes) -> None:
        with open(os.path.join(self.log_dir, path), "wb") as file:
            file.write(content)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Only warns: models are not traced, and nothing is written."""
        import warnings

        warnings.warn(
            "SummaryWriter.add_graph writes nothing, as models are not traced; rushlight.viz.graph shows them",
            stacklevel=2,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("add_"):
            raise not_implemented_error(
                f"SummaryWriter.{name} is not supported; supported are add_scalar, add_scalars, add_histogram, "
                "add_text, add_image, add_images, add_figure, add_audio, add_hparams, add_pr_curve, "
                "add_pr_curve_raw and add_embedding"
            )
        raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Hyperparameters and metrics of a run, in a separate folder."""
        from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        start = plugin_data_pb2.SessionStartInfo()
        for name, value in hparam_dict.items():
            value = value.item() if isinstance(value, Tensor) else value
            kind = "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
            setattr(start.hparams[name], f"{kind}_value", value)
        end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
        for tag, content in (
            (metadata.SESSION_START_INFO_TAG, {"session_start_info": start}),
            (metadata.SESSION_END_INFO_TAG, {"session_end_info": end}),
        ):
            data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
            about = self._protocol("summary_pb2").SummaryMetadata
            plugin = about.PluginData(plugin_name=metadata.PLUGIN_NAME, content=data.SerializeToString())
            self._add([self._value(tag, metadata=about(plugin_data=plugin))], global_step, None, folder)
        for name, value in metric_dict.items():
            self._add([self._value(name, simple_value=number(value))], global_step, None, folder)

    # -- the files ---------------------------------------------------------------------------------

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Write all buffered events."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write everything and close the files; later calls open new files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def growing_limits() -> ndarray:
    """TensorBoard's limits of bins: on both sides of 0, from 1e-12 on, each 1.1 times the one before."""
    positive = 1e-12 * 1.1 ** np.arange(775)  # limits of buckets up to 1e20
    return np.concatenate((-positive[::-1], [0.0], positive))


def in_order(array: ndarray, dataformats: str) -> ndarray:
    """A picture as (H, W, C)."""
    if array.ndim != len(dataformats) or sorted(dataformats) not in (sorted("CHW"), sorted("HW")):
        raise value_error(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: "
            f"{dataformats}"
        )
    if "C" not in dataformats:
        return (array if dataformats == "HW" else array.T)[..., None]
    return array.transpose([dataformats.index(axis) for axis in "HWC"])


def grid(pictures: list[ndarray]) -> ndarray:
    """Pictures of one size, row by row."""
    columns = int(np.ceil(np.sqrt(len(pictures))))
    blank = [np.zeros_like(pictures[0])] * (-len(pictures) % columns)
    rows = [np.concatenate(row, 1) for row in np.array([*pictures, *blank]).reshape(-1, columns, *pictures[0].shape)]
    return np.concatenate(rows, 0)


def precision_recall(labels: ndarray, predictions: ndarray, thresholds: int, weights: Any) -> ndarray:
    """(6, thresholds): true and false positives, true and false negatives, precision, recall."""
    cell = np.floor(predictions.astype(np.float32) * (thresholds - 1)).astype(np.int64)
    yes, no = (np.bincount(cell, weights * which, thresholds) for which in (labels == 1, labels == 0))
    # (thresholds,): counts of predictions at or above each threshold
    true, false = yes[::-1].cumsum()[::-1], no[::-1].cumsum()[::-1]
    tiny, missed = 1e-7, true[0] - true
    return np.stack(
        (
            true,
            false,
            false[0] - false,
            missed,
            true / np.maximum(tiny, true + false),
            true / np.maximum(tiny, true + missed),
        )
    )


def waves(samples: ndarray, rate: int) -> bytes:
    """A WAV file of one channel, 16 bits a sample."""
    import io
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def table(rows: Any, header: list[str] | None = None) -> bytes:
    """The lines of a TSV file: an optional header, then rows, or labels."""
    lines = [*([header] if header else []), *rows]
    lines = [row if isinstance(row, (list, tuple)) else [row] for row in lines]
    cells = ([x.item() if isinstance(x, Tensor) and x.ndim == 0 else x for x in row] for row in lines)
    return "".join("\t".join(map(str, row)) + "\n" for row in cells).encode()


def sprite(pictures: ndarray) -> ndarray:
    """Pictures (N, C, H, W) in a square grid; unused cells are blank. ValueError unless each picture is a square."""
    h, w = pictures.shape[2:]
    if h != w:
        raise value_error("Image should be square", "crop or resize the images", shape=pictures.shape)
    side = int(np.ceil(np.sqrt(len(pictures))))
    blank = np.zeros_like(pictures, shape=(side * side - len(pictures), *pictures.shape[1:]))
    return grid([picture.transpose(1, 2, 0) for picture in np.concatenate((pictures, blank))])
