"""``python -m taxolearn`` is ``taxolearn``."""

import sys

from taxolearn.cli.main import main

sys.exit(main())
