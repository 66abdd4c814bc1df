"""Signal processing, as in torch.signal: its windows."""

from rushlight.signal import windows as windows
