"""The shared vectors against `taut bridge nats:…`, with `taut serve` behind a worker.

usage: vectors.py TAUT NATS_SERVER DIR [WORDS...]; DIR has run_vectors.py and vectors.json, WORDS go to the runner.
"""

import os
import subprocess
import sys

from fleet import Broker, Worker

taut, nats, folder, words = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
broker = Broker(nats)
worker = Worker(taut, broker.url, [taut, "serve"])
try:
    worker.ready()
    runner = [sys.executable, os.path.join(folder, "run_vectors.py"), os.path.join(folder, "vectors.json")]
    edge = [taut, "bridge", "nats:test", "--nats", broker.url]
    status = subprocess.run([*runner, *words, "--", *edge]).returncode
finally:
    worker.kill()
    broker.kill()
sys.exit(status)
