"""A model in a file, and a service that answers from it.

One learns how to save a whole pipeline, vectorizer included, how to load it without pickle, and how a service of a
few lines answers with classes and probabilities. The loaded model answers as the one that was saved, up to the
rounding of its weights to single precision.
"""

import http.client
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import taxolearn
from taxolearn.kernels import Linear

texts, labels = taxolearn.datasets.load_docstrings(packages=["numpy"], return_X_y=True)
classifier = taxolearn.KernelLogisticClassifier(Linear(100.0), tuning=None)
fitted = make_pipeline(TfidfVectorizer(sublinear_tf=True), classifier).fit(texts, labels)

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a mapped file stays on some systems
    path = Path(folder) / "modules.taxo"
    taxolearn.save(fitted, path, report={"trained on": f"{len(texts)} docstrings"})
    model = taxolearn.load(path)
    print("report:", taxolearn.read_report(path)["report"])
    difference = np.abs(model.predict_proba(texts[:100]) - fitted.predict_proba(texts[:100])).max()
    print(f"largest difference of a probability: {difference:.1e}")

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            questions = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            proba = model.predict_proba(questions)
            labels = model.classes_[proba.argmax(axis=1)].tolist()
            answers = [{"label": c, "probability": p} for c, p in zip(labels, proba.max(axis=1), strict=True)]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answers).encode())

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Service)  # any free port of this machine
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = http.client.HTTPConnection(*server.server_address)
    client.request("POST", "/", json.dumps(["Draw samples from a binomial distribution", "Discrete Fourier transform"]))
    for answer in json.loads(client.getresponse().read()):
        print(f"{answer['label']} {answer['probability']:.3f}")
    server.shutdown()
    server.server_close()
