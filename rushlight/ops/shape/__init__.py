"""Views, and joining and splitting."""
