"""torch.distributed.launcher: ranks that a program starts itself."""

from rushlight.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
