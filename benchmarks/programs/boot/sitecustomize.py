"""On PYTHONPATH only under --engine rushlight: also child processes get the alias."""

import os

if os.environ.get("PROGRAMS_ENGINE") == "rushlight":
    try:
        import engine_boot

        engine_boot.install()
    except Exception as e:  # the driver reports it again, with a traceback
        import sys

        print(f"sitecustomize: {type(e).__name__}: {e}", file=sys.stderr)
