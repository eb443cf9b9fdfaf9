"""From results to Markdown: `page` for readers."""

import statistics

from benchmarks.contenders import FLOOR, SCIKIT_LEARN
from benchmarks.jax_process import COMPILED, COUNTED
from benchmarks.races import ALL_CORES, LOSS_TOLERANCE, ONE_THREAD
from benchmarks.small_fits import EXACT
from benchmarks.step_profile import profile_cells

__all__ = [
    "SUMMARY",
    "figures_table",
    "growth_table",
    "page",
    "profile_table",
    "race_table",
    "summary_table",
]

#: The races of the chart and of the first table, and what they are called there.
SUMMARY = {
    "MLP 10-20-1, batches of 10": "MLP 10-20-1, batches of 10",
    "MLP 100-100-1, batches of 100": "MLP 100-100-1, batches of 100",
    "MLP 784-100-10, 70,000 rows, batches of 200, 1 epoch": "MLP 784-100-10, batches of 200",
    "Logistic regression, 100,000 x 100, batches of 500": (
        "logistic regression, 100,000 x 100, batches of 500"
    ),
    "All defaults, logistic regression, 100,000 x 100": (
        "logistic regression, 100,000 x 100, all defaults"
    ),
    "GridSearchCV, linear, 46 fits of 50 epochs on 1,000 x 20": (
        "grid search, 46 linear fits on 1,000 x 20"
    ),
    "GridSearchCV, MLP (20,), 46 fits of 5 epochs on 1,000 x 20": (
        "grid search, 46 fits of an MLP on 1,000 x 20"
    ),
    "fit of 100 x 5, linear, one epoch": "one epoch of 100 x 5, linear",
}

PEERS = [SCIKIT_LEARN, EXACT, "torch", "skorch", FLOOR, COMPILED, COUNTED]

PAGE = """\
# Speed

Written by `python -m benchmarks`, from [results.json](results.json), in which all measured times are.

{machine}

## In short

Training time relative to skort (1x), one thread; below 1, others are faster. skort trains with `solver="graph"` where
there is a choice.

{summary}

- A cell is empty if that library has no such function, or does other work: `SGDClassifier` makes an update for each
  row, so it is compared where all stop by themselves, with all defaults. "{exact}" is `LogisticRegression` or `Ridge`.
- JAX compiles the whole epoch for each shape of the data and each model. "{compiled}" leaves that time out, as in
  a long training; "{counted}" counts it, as in a program that trains once.
- Against loops of Python the gain is largest where a step is small: skort runs one graph a step. JAX runs one program
  an epoch. With large matrix products all spend most of their time in these.
- Ratios depend on the machine, above all on how fast the matrix products of each library are there. The section
  "Where the time of a step goes" has what depends on it least.

## How it is measured

All contenders of a table take turns, {repeats} times after a first run that is not measured. A time is the median of
a whole `fit`, divided by its epochs, with the range. All start from the same weights and make the same updates in
float32 on the same batches, with two exceptions: scikit-learn's neural networks draw another order of the rows from
the second epoch on, and rows marked "all defaults" use each library's default solver and stopping rule. `numpy` is a
hand-written numpy loop. JAX runs in a process of its own, on one core where all have one thread: a jitted `lax.scan`
over the batches of an epoch, with the gathering of rows inside. A column `/ graph` is the time of that contender over
the time of `solver="graph"`; it is marked where skort's loss at the end is worse by more than {tolerance:.0%}.
Searches and fits of 100 rows are compared by the time of the same number of epochs alone.

{races}

## The compilation of JAX

One thread. "Even" is the number of steps after which JAX with its compilation has overtaken `solver="graph"`.

{compilations}

## Where the time of a step goes

One thread, solver "graph": a step inside a whole `fit` (with the check of X, the gathering of rows, and all that a fit
costs once), the run of its graph alone, and the matrix products of the graph alone, all in microseconds and in the
same run. The last three columns are how many times as long as those products a step of skort, scikit-learn and JAX
takes. Differences below 5 % are noise.

{profiles}

## Fixed costs and memory

{figures}

## Growth

Nanoseconds per row and epoch of a linear model with 20 features, batches of 200; more than 1,000,000 rows are read from
a memory map.

{growth}

## Networks by default

Wins, ties and losses of a network of 50 units with all defaults, next to scikit-learn's of 300 epochs behind a
`StandardScaler`, of y too: R2 or accuracy on held-out rows of 79 real tables, two splits each
(`python -m benchmarks.defaults --networks --splits 2`). The last column is the CPU time, divided by scikit-learn's.

| rows, regression      | fits | at .02  | at .005 | log-loss at 2 % | CPU time |
| --------------------- | ---- | ------- | ------- | --------------- | -------- |
| 0 to 300              | 18   | 6/8/4   | 12/1/5  |                 | 0.44     |
| 300 to 800            | 30   | 13/17/0 | 22/6/2  |                 | 0.32     |
| 800 to 2,500          | 10   | 6/4/0   | 8/2/0   |                 | 0.49     |
| 2,500 and more        | 16   | 2/14/0  | 8/8/0   |                 | 0.15     |
| all                   | 74   | 27/43/4 | 50/17/7 |                 | 0.23     |
| rows, classification  |      |         |         |                 |          |
| 0 to 300              | 18   | 6/9/3   | 8/6/4   | 14/1/3          | 0.36     |
| 300 to 800            | 18   | 2/15/1  | 7/8/3   | 10/4/4          | 0.23     |
| 800 to 2,500          | 28   | 6/22/0  | 13/11/4 | 21/5/2          | 0.19     |
| 2,500 and more        | 20   | 1/19/0  | 8/10/2  | 7/12/1          | 0.13     |
| all                   | 84   | 15/65/4 | 36/35/13 | 52/22/10        | 0.16     |
"""


def page(results):
    """Return the whole page."""
    parts = []
    for threads in (ONE_THREAD, ALL_CORES):
        tables = [
            "\n".join(race_table(outcome))
            for outcome in results.races
            if outcome.threads == threads
        ]
        parts += [f"## {threads}", *tables] if tables else []
    lines = {
        "machine": results.machine,
        "summary": summary_table(results.races),
        "compilations": compilation_table(results.races),
        "profiles": profile_table(results.profiles),
        "figures": figures_table(results.figures),
        "growth": [] if results.growth is None else growth_table(results.growth),
    }
    texts = {name: "\n".join(of) for name, of in lines.items()}
    numbers = {"repeats": results.repeats, "tolerance": LOSS_TOLERANCE}
    numbers |= {"compiled": COMPILED, "counted": COUNTED, "exact": EXACT}
    return PAGE.format(races="\n\n".join(parts), **numbers, **texts)


def main_contender(outcome):
    """Return which contender of skort a race is summarised by."""
    return "graph" if "graph" in outcome.ours else "skort"


def summarised(races):
    """Return (short name, outcome) of the races of the summary."""
    found = {outcome.name: outcome for outcome in races if outcome.threads == ONE_THREAD}
    return [(short, found[name]) for name, short in SUMMARY.items() if name in found]


def summary_table(races):
    """Return the table of the chart as lines."""
    chosen = summarised(races)
    peers = [peer for peer in PEERS if any(peer in outcome.milliseconds for _, outcome in chosen)]
    rows = []
    for short, outcome in chosen:
        ours = main_contender(outcome)
        cells = [
            _ratio_cell(outcome, peer, ours) if peer in outcome.milliseconds else ""
            for peer in peers
        ]
        rows.append([short, f"{_number(outcome.median(ours), 2)} ms / {outcome.unit}", *cells])
    return _table(["training", "skort", *peers], rows)


def race_table(outcome):
    """Return the table of a race as lines."""
    per_step = [] if outcome.n_steps is None else ["us / step"]
    loss = ["loss"] if outcome.losses else []
    header = [
        "contender",
        f"ms / {outcome.unit}",
        "range",
        *per_step,
        *loss,
        *(f"/ {ours}" for ours in outcome.ours),
    ]
    rows = []
    for name, values in outcome.milliseconds.items():
        cells = [f"{outcome.microseconds(name):.3g}"] if per_step else []
        cells += [f"{outcome.losses[name]:.5f}"] if loss else []
        cells += (
            []
            if name in outcome.ours
            else [_ratio_cell(outcome, name, ours) for ours in outcome.ours]
        )
        rows.append([name, *_median_and_range(values), *cells])
    return [f"### {outcome.name}", "", *_table(header, rows)]


def _ratio_cell(outcome, peer, ours):
    ratio = f"{outcome.ratio(peer, ours):.2f}"
    return ratio if outcome.counts(peer, ours) else f"{ratio}, at a worse loss"


def compilation_table(races):
    """Return the table of JAX's compilations as lines."""
    rows = []
    for outcome in races:
        if (
            outcome.threads == ONE_THREAD
            and outcome.n_steps
            and {"graph", COMPILED} <= outcome.milliseconds.keys()
        ):
            ours, theirs = (outcome.microseconds(name) for name in ("graph", COMPILED))
            even = (
                f"{1e3 * outcome.compilation / (ours - theirs):,.0f} steps"
                if theirs < ours
                else "never"
            )
            rows.append(
                [
                    outcome.name,
                    f"{outcome.compilation:.0f} ms",
                    f"{theirs:.1f}",
                    f"{ours:.1f}",
                    even,
                ]
            )
    return _table(["training", "compilation", "JAX, us / step", "graph, us / step", "even"], rows)


def figures_table(figures):
    """Return the table of figures as lines."""
    rows = []
    for figure in figures:
        middle, span = _median_and_range(figure.values)
        rows.append([figure.name, figure.solver, f"{middle} {figure.unit}", span])
    return _table(["figure", "solver", "median", "range"], rows)


def profile_table(profiles):
    """Return the table of step profiles as lines."""
    return _table(*profile_cells(profiles))


def growth_table(growth):
    """Return the table of the times per row and epoch as lines."""
    rows = [
        [solver, *(f"{value:.0f}" for value in values)]
        for solver, values in growth.nanoseconds.items()
    ]
    return _table(["solver", *(f"{n:,} rows" for n in growth.n_rows)], rows)


def _median_and_range(values):
    low, middle, high = (
        _number(value, 3) for value in (min(values), statistics.median(values), max(values))
    )
    return middle, f"{low} to {high}"


def _number(value, n_digits):
    """Return a number with so many digits, without an exponent."""
    return f"{float(f'{value:.{n_digits}g}'):,g}"


def _table(header, rows):
    """Return a Markdown table with aligned columns, which can be read as text."""
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return [
        f"| {' | '.join(c.ljust(w) for c, w in zip(line, widths, strict=True))} |" for line in lines
    ]
