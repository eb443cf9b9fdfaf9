"""
Real text: which library does a docstring document?
===================================================

The texts are several thousand docstrings of NumPy, SciPy, scikit-learn and Python's standard
library. A linear model and a neural network learn from their TF-IDF, beside scikit-learn's own. The
network goes into an ONNX file, which takes the texts themselves.
"""

import importlib
import inspect
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from skort import OrtSGDClassifier

# %%
# The docstrings of public functions, classes and methods, up to their examples, which name the
# library.

MODULES = {
    "NumPy": """
        numpy numpy.fft numpy.lib.stride_tricks numpy.linalg numpy.ma
        numpy.polynomial.chebyshev numpy.polynomial.hermite numpy.polynomial.legendre
        numpy.polynomial.polynomial numpy.random numpy.testing""",
    "SciPy": """
        scipy.cluster.hierarchy scipy.cluster.vq scipy.fft scipy.integrate
        scipy.interpolate scipy.io scipy.linalg scipy.ndimage scipy.optimize scipy.signal
        scipy.sparse scipy.sparse.csgraph scipy.sparse.linalg scipy.spatial
        scipy.spatial.distance scipy.special scipy.stats""",
    "scikit-learn": """
        sklearn.calibration sklearn.cluster sklearn.compose sklearn.covariance
        sklearn.datasets sklearn.decomposition sklearn.ensemble
        sklearn.feature_extraction.text sklearn.feature_selection sklearn.gaussian_process
        sklearn.impute sklearn.inspection sklearn.linear_model sklearn.manifold
        sklearn.metrics sklearn.metrics.pairwise sklearn.mixture sklearn.model_selection
        sklearn.naive_bayes sklearn.neighbors sklearn.neural_network sklearn.pipeline
        sklearn.preprocessing sklearn.svm sklearn.tree sklearn.utils""",
    "Python": """
        argparse ast asyncio calendar codecs collections configparser csv ctypes datetime
        decimal difflib email.message fractions ftplib functools gzip heapq html.parser
        http.client http.cookiejar http.server imaplib inspect io ipaddress itertools json
        locale logging logging.handlers mailbox math multiprocessing operator optparse os
        pathlib pdb pickle pickletools platform poplib queue random re sched selectors
        shelve shutil signal smtplib socket socketserver sqlite3 ssl statistics string
        struct subprocess symtable tarfile tempfile textwrap threading time tokenize
        traceback types typing unittest unittest.mock urllib.parse urllib.request uuid
        wave weakref xml.dom.minidom xml.etree.ElementTree xml.sax.handler xmlrpc.client
        zipfile""",
}


def docstrings(module):
    """Yield the docstrings of what a module has, up to their examples."""
    for name in dir(module):
        item = getattr(module, name, None)
        methods = vars(item).values() if inspect.isclass(item) else ()
        for documented in (item, *methods) if not name.startswith("_") else ():
            text = inspect.getdoc(documented)
            if isinstance(text, str):
                yield text.partition(">>>")[0].partition("\nExamples")[0][:500]


library_of = {}
with warnings.catch_warnings():
    # Some names warn that they are old.
    warnings.simplefilter("ignore")
    for library, modules in MODULES.items():
        for module in map(importlib.import_module, modules.split()):
            library_of |= {
                text: library
                for text in docstrings(module)
                if len(text) > 60 and text not in library_of
            }
texts, y = np.array(list(library_of), dtype=object), np.array(list(library_of.values()))
train, test, y_train, y_test = train_test_split(texts, y, test_size=0.3, random_state=0, stratify=y)
print(f"{len(train)} texts to train on, {len(test)} to test on")

# %%
# Words that name a library are stop words. All models get the same sparse matrix, and one core. The
# CPU seconds are those of this run, and vary.

names = ["np", "numpy", "scipy", "sklearn", "scikit", "learn", "python"]
vectorizer = TfidfVectorizer(stop_words=names, sublinear_tf=True, max_features=2**12)
X_train, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
print(f"{X_train.shape[1]} words, {X_train.nnz / X_train.shape[0]:.0f} of them in a text")

candidates = {
    "SGDClassifier": SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0),
    "LogisticRegression, saga": LogisticRegression(C=10, solver="saga", random_state=0),
    "OrtSGDClassifier, LogisticRegression": OrtSGDClassifier(
        LogisticRegression(C=10), random_state=0
    ),
    "MLPClassifier": MLPClassifier(hidden_layer_sizes=(50,), max_iter=15, random_state=0),
    "OrtSGDClassifier, MLPClassifier": OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(50,)), random_state=0
    ),
}
accuracies = {}
print(f"{'model':<38}{'epochs':>6}{'seconds':>9}{'accuracy':>10}")
for name, model in candidates.items():
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    seconds = time.process_time() - start
    accuracies[name] = model.score(X_test, y_test)
    print(f"{name:<38}{np.max(model.n_iter_):>6}{seconds:>9.2f}{accuracies[name]:>10.3f}")

# %%
# The words with the largest weights of each library.

linear = candidates["OrtSGDClassifier, LogisticRegression"]
words = vectorizer.get_feature_names_out()
figure, panels = plt.subplots(
    1, len(linear.classes_), figsize=(11, 3.5), layout="constrained", sharex=True
)
for panel, library, weights in zip(panels, linear.classes_, linear.coef_, strict=True):
    largest = weights.argsort()[-10:]
    panel.barh(words[largest], weights[largest])
    panel.set(title=library, xlabel="weight")
    panel.grid(visible=False)
plt.show()

# %%
# With the vectorizer inside, the file takes texts. It needs neither scikit-learn nor a locale of
# the machine.

model = OrtSGDClassifier(
    make_pipeline(FrozenEstimator(vectorizer), MLPClassifier(hidden_layer_sizes=(50,))),
    random_state=0,
)
model.fit(train, y_train)
file = model.to_onnx().SerializeToString()
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
questions = [
    "Return the largest element of an array along an axis.",
    "Compute the cumulative distribution function of a distribution.",
    "Fit the model and transform the samples.",
    "Open a file and read a line.",
]
answers = session.run(["label"], {"X": np.array(questions, dtype=object)[:, None]})[0]
for question, answer in zip(questions, answers, strict=True):
    print(f"{answer:<14}{question}")
