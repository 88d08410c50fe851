"""``python -m taxolearn.cli`` is ``taxolearn``."""

import sys

from taxolearn.cli.main import main

sys.exit(main())
