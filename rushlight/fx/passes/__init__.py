"""torch.fx.passes: functions that analyse graphs."""
