"""The lessons of docs/learn as notebooks for students, with checks of the exercises: `rushlight lessons`."""
