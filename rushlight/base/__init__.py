"""The lowest layer: what knows no tensor and imports nothing else of the package."""
