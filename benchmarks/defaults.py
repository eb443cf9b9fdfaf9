"""
All defaults on real tables, raw and standardised, next to scikit-learn's estimators of the same objective.

`python -m benchmarks.defaults` fits linear models and networks on three splits of each table of
`benchmarks.real_tables`; `--quick` ten tables, linear models, one split; `--goals` ends with 1
where a goal is missed. A loss is a held-out score (R2 or accuracy) more than 0.02 below the best of
scikit-learn's on the same split, a win more than 0.02 above. scikit-learn's fits are kept in a file
(`--cache`), so that the next run makes only skort's. A second table compares the networks with
scikit-learn's MLP behind a StandardScaler, of y too, in groups of rows; `--networks` makes the fits
of this table only, of the network that `--hidden` and `--activation` give. A third one compares
fits with and without `early_stopping`, and `--early` makes those only.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import joblib
import sklearn

from benchmarks.default_fits import (
    CONTENDERS,
    EARLY,
    NINE_TENTHS,
    OLD,
    RAW,
    REFERENCES,
    Fit,
    fit_all,
)
from benchmarks.real_tables import load, real_tables

__all__ = ["goals", "main", "summarise"]

TOLERANCE = 0.02
N_SPLITS = 3
FAMILIES = ("linear", "MLP")
QUICK = (
    "diabetes",
    "Auto",
    "Boston",
    "quakes",
    "wage1",
    "breast_cancer",
    "wine",
    "iris",
    "OJ",
    "penguins",
)

# The largest part of the fits on raw features that may be losses.
LOSSES = {
    ("regression", "linear"): 0.14,
    ("classification", "linear"): 0.09,
    ("regression", "MLP"): 0.28,
    ("classification", "MLP"): 0.15,
}
# Whose useless fits on held-out rows are not to be exceeded, on the same raw features.
USELESS = {
    ("regression", "linear"): "Ridge, raw",
    ("classification", "linear"): "LogisticRegression, raw",
}
# Fits of so many rows take at most so many times as long as with the defaults of 0.1 on
# standardised features.
MANY_ROWS, TIME = 1000, 1.1
# Training rows of the groups in which networks are compared, each from the number before it on.
GROUPS = (300, 800, 2500, math.inf)


class Cache:
    """The fits of scikit-learn's estimators, in a file of a JSON line each."""

    def __init__(self, path, network=None):
        self.path, self._fits, self.network = path, {}, network or {}
        if path.exists():
            self._fits = {
                key: Fit(**fit) for key, fit in map(json.loads, path.read_text().splitlines())
            }

    @staticmethod
    def keeps(contender):
        """
        Return whether the fits of a contender are kept: those of scikit-learn's,
        which do not change with skort.
        """
        return contender.is_peer

    def _key(self, table, family, seed, name):
        return " ".join(
            map(str, [table.name, table.X.shape, family, seed, name, *self.network.values()])
        )

    def get(self, table, family, seed):
        """Return the fits that are kept of a split, by the names of the contenders."""
        names = [
            contender.name for contender in CONTENDERS[table.task, family] if self.keeps(contender)
        ]
        found = {name: self._fits.get(self._key(table, family, seed, name)) for name in names}
        return {name: fit for name, fit in found.items() if fit is not None}

    def put(self, table, family, seed, fits):
        """Keep those of the fits that are to be kept."""
        names = [
            contender.name for contender in CONTENDERS[table.task, family] if self.keeps(contender)
        ]
        with self.path.open("a") as file:
            for name in names:
                if name in fits:
                    file.write(
                        json.dumps((self._key(table, family, seed, name), fits[name]._asdict()))
                        + "\n"
                    )


def _job(name, family, seed, contenders, network):
    return name, family, seed, fit_all(load(name), family, seed, contenders, network)


def run(tables, families, n_splits, n_jobs, cache, names=None):
    """
    Make all fits, or those of the contenders of some names.

    Returns
    -------
    results : dict of (task, family) to dict of (table, seed) to dict of contender to Fit
    """
    results = {(table.task, family): {} for table in tables for family in families}
    jobs, by_name = [], {table.name: table for table in tables}
    # The largest first, so that no worker has the last one alone.
    for table in sorted(tables, key=lambda table: -table.X.size):
        for family in families:
            for seed in range(n_splits):
                kept = cache.get(table, family, seed)
                results[table.task, family][table.name, seed] = kept
                wanted = names or [contender.name for contender in CONTENDERS[table.task, family]]
                missing = [name for name in wanted if name not in kept]
                jobs.append(joblib.delayed(_job)(table.name, family, seed, missing, cache.network))
    for done, (name, family, seed, fits) in enumerate(
        joblib.Parallel(n_jobs, return_as="generator")(jobs)
    ):
        results[by_name[name].task, family][name, seed] |= fits
        cache.put(by_name[name], family, seed, fits)
        if sys.stderr.isatty():
            print(f"\r{done + 1} of {len(jobs)}", end="", file=sys.stderr)
    return results


def differences(kind, splits, name):
    """Return the score of a contender minus the best peer's, of each split."""
    peers = [contender.name for contender in CONTENDERS[kind] if contender.is_peer]
    return {
        split: fits[name].score - max(fits[peer].score for peer in peers)
        for split, fits in splits.items()
    }


def summarise(kind, splits, name):
    """
    Count what became of the fits of one contender.

    Parameters
    ----------
    kind : (str, str)
        Task and family.
    splits : dict of (table, seed) to dict of contender to Fit
    name : str
        The contender.

    Returns
    -------
    summary : dict of str to number
        "epochs" is the median, "seconds" the sum, "time" the ratio of the sums over fits of many
        rows to those with the defaults of 0.1, where neither diverged; None where there is none,
        and for scikit-learn's, whose fits may be of another run.
    """
    fits, old = (
        [split[name] for split in splits.values()],
        [split[OLD] for split in splits.values()],
    )
    by = differences(kind, splits, name).values()
    epochs = [fit.n_epochs for fit in fits if fit.n_epochs is not None]
    is_peer = next(contender.is_peer for contender in CONTENDERS[kind] if contender.name == name)
    many = [
        (fit.seconds, other.seconds)
        for fit, other in zip(fits, old, strict=True)
        # A fit that diverges ends early: its time says nothing.
        if fit.n_rows >= MANY_ROWS and not (is_peer or fit.diverged or other.diverged)
    ]
    losses, wins = sum(d < -TOLERANCE or math.isnan(d) for d in by), sum(d > TOLERANCE for d in by)
    return {
        "fits": len(fits),
        "diverged": sum(fit.diverged for fit in fits),
        "useless": sum(fit.useless for fit in fits),
        "on training rows": sum(fit.useless_on_training for fit in fits),
        "silently": sum(fit.useless_on_training and not fit.warned for fit in fits),
        "warned": sum(fit.warned for fit in fits),
        "wins": wins,
        "ties": len(fits) - wins - losses,
        "losses": losses,
        "epochs": statistics.median(epochs) if epochs else None,
        "seconds": sum(fit.seconds for fit in fits),
        "time": sum(ours for ours, _ in many) / sum(other for _, other in many) if many else None,
    }


def table_lines(kind, splits):
    """Return the lines of one table, a line a contender."""
    summaries = {
        contender.name: summarise(kind, splits, contender.name) for contender in CONTENDERS[kind]
    }
    columns = list(next(iter(summaries.values())))[1:]
    yield f"\n{kind[0]}, {kind[1]}: {len(splits)} fits"
    yield f"| {'':<32} | " + " | ".join(columns) + " |"
    yield "| --- " * (len(columns) + 1) + "|"
    for name, summary in summaries.items():
        cells = (_cell(summary[column]).rjust(len(column)) for column in columns)
        yield f"| {name:<32} | " + " | ".join(cells) + " |"


def network_lines(task, splits):
    """Return the lines of a table of networks next to their reference, a line a group of rows."""
    pairs = [(fits[RAW], fits[REFERENCES[task]]) for fits in splits.values()]
    return _paired_lines(f"{task}, networks next to {REFERENCES[task]}", pairs)


def early_lines(kind, splits):
    """
    Yield tables of fits with `early_stopping`, and without the rows that it holds out,
    next to plain fits.
    """
    for what, name in (("early_stopping", EARLY), ("nine tenths of the rows", NINE_TENTHS)):
        pairs = [(fits[name], fits[RAW]) for fits in splits.values()]
        yield from _paired_lines(
            f"{kind[0]}, {kind[1]}, {what} next to all rows without early_stopping", pairs
        )


def _paired_lines(title, pairs):
    yield f"\n{title}: wins/ties/losses"
    yield "| training rows | fits | at .02 | at .005 | log-loss at 2 % | CPU time |"
    yield "| --- " * 6 + "|"
    for least, most in [*zip((0, *GROUPS), GROUPS, strict=False), (0, math.inf)]:
        group = [
            (ours, theirs)
            for ours, theirs in pairs
            if least <= max(ours.n_rows, theirs.n_rows) < most
        ]
        if group:
            scores = [ours.score - theirs.score for ours, theirs in group]
            losses = [
                1 - ours.log_loss / theirs.log_loss
                for ours, theirs in group
                if theirs.log_loss is not None
            ]
            time = sum(ours.seconds for ours, _ in group) / sum(
                theirs.seconds for _, theirs in group
            )
            cells = (
                counts(scores, 0.02),
                counts(scores, 0.005),
                counts(losses, 0.02) if losses else "",
            )
            yield f"| {least} to {most} | {len(group)} | {' | '.join(cells)} | {time:.2f} |"


def counts(differences, tolerance):
    """Return wins, ties and losses; a difference that is no number is a loss."""
    wins, losses = (
        sum(d > tolerance for d in differences),
        sum(not d >= -tolerance for d in differences),
    )
    return f"{wins}/{len(differences) - wins - losses}/{losses}"


def _cell(value):
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) and value < 10 else f"{value:.0f}"


def goals(kind, splits):
    """Yield (what is to be reached, whether it is) for one kind of fits on raw features."""
    ours, old = summarise(kind, splits, RAW), summarise(kind, splits, OLD)
    part = ours["losses"] / ours["fits"]
    yield f"losses {part:.1%}, at most {LOSSES[kind]:.0%}", part <= LOSSES[kind]
    yield f"{ours['diverged']} diverged, none", ours["diverged"] == 0
    yield (
        f"{ours['silently']} useless on their training rows without a warning, none",
        ours["silently"] == 0,
    )
    if kind in USELESS:
        theirs = summarise(kind, splits, USELESS[kind])["useless"]
        yield (
            f"{ours['useless']} useless, at most {theirs} ({USELESS[kind]})",
            ours["useless"] <= theirs,
        )
    if ours["epochs"] is not None and old["epochs"] is not None:
        yield (
            f"{ours['epochs']:.0f} epochs, at most {old['epochs']:.0f}",
            ours["epochs"] <= old["epochs"],
        )
    if ours["time"] is not None:
        yield f"{ours['time']:.2f} times the time of 0.1, at most {TIME}", ours["time"] <= TIME


def _arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="ten tables, linear models, one split")
    parser.add_argument(
        "--networks",
        action="store_true",
        help="networks on raw features next to their reference only",
    )
    parser.add_argument(
        "--hidden", nargs="+", type=int, help="units of each layer, with --networks (50)"
    )
    parser.add_argument("--activation", help="with --networks (relu)")
    parser.add_argument(
        "--early", action="store_true", help="fits with and without early_stopping only"
    )
    parser.add_argument(
        "--splits", type=int, default=N_SPLITS, help="splits of each table (%(default)s)"
    )
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="these tables only")
    parser.add_argument(
        "--jobs", type=int, default=joblib.cpu_count(), help="processes, one thread each"
    )
    parser.add_argument("--goals", action="store_true", help="end with 1 where a goal is missed")
    parser.add_argument(
        "--lost", action="store_true", help="name the tables that are lost on raw features"
    )
    file = Path(tempfile.gettempdir()) / f"skort-default-fits-{sklearn.__version__}.jsonl"
    parser.add_argument(
        "--cache", type=Path, default=file, help="file of scikit-learn's fits (%(default)s)"
    )
    return parser.parse_args(arguments)


def _print_lost(kind, splits):
    lost = sorted(
        (by, split) for split, by in differences(kind, splits, RAW).items() if not by >= -TOLERANCE
    )
    for by, (name, seed) in lost:
        fits = splits[name, seed]
        print(
            f"lost: {name}, split {seed}: {fits[RAW].score:.3f} ({by:+.3f}), epochs "
            f"{fits[RAW].n_epochs}"
        )


def main(arguments=None):
    options = _arguments(arguments)
    start = time.perf_counter()
    tables = list(real_tables(options.tables or (QUICK if options.quick else None)))
    families, n_splits = (FAMILIES[:1], 1) if options.quick else (FAMILIES, options.splits)
    if options.networks:
        for task, reference in REFERENCES.items():
            of_task = [table for table in tables if table.task == task]
            given = {"hidden_layer_sizes": options.hidden, "activation": options.activation}
            network = {name: value for name, value in given.items() if value is not None}
            names = [RAW, reference]
            cache = Cache(options.cache, network)
            for splits in run(of_task, FAMILIES[1:], n_splits, options.jobs, cache, names).values():
                print("\n".join(network_lines(task, splits)))
        return 0
    if options.early:
        fits = run(
            tables,
            families,
            n_splits,
            options.jobs,
            Cache(options.cache),
            [RAW, EARLY, NINE_TENTHS],
        )
        for kind, splits in fits.items():
            print("\n".join(early_lines(kind, splits)))
        return 0
    results = run(tables, families, n_splits, options.jobs, Cache(options.cache))
    reached = True
    for kind, splits in results.items():
        print("\n".join(table_lines(kind, splits)))
        if kind[1] == "MLP":
            print("\n".join(network_lines(kind[0], splits)))
        print("\n".join(early_lines(kind, splits)))
        if options.lost:
            _print_lost(kind, splits)
        for goal, is_reached in goals(kind, splits) if options.goals else ():
            print(f"goal {'reached' if is_reached else 'MISSED'}: {goal}")
            reached &= is_reached
    print(f"\n{len(tables)} tables, {time.perf_counter() - start:.0f} s")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
