"""The first file a node's own process runs: `python -I odradek/boot.py start ...`.

The interpreter is isolated (-I): neither the working directory nor PYTHONPATH nor the user's site can put a module in
our way. What the node needs beyond the standard library is found where the starting process found it: it passes those
folders in ODRADEK_LIBRARY_PATH, and they come last.
"""

import os
import sys

package_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for folder in [package_parent, *filter(None, os.environ.pop("ODRADEK_LIBRARY_PATH", "").split(os.pathsep))]:
    if folder not in sys.path:
        sys.path.append(folder)

from odradek.__main__ import main  # noqa: E402 - the path had to be laid first

if __name__ == "__main__":
    sys.exit(main())
