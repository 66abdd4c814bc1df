"""ATen's operators as functions of ours."""
