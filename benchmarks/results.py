"""All that `python -m benchmarks` measures, in a file: pages and plots are made from it."""

import dataclasses
import json
from dataclasses import dataclass, field

from benchmarks.figures import Figure, Growth
from benchmarks.races import Outcome
from benchmarks.step_profile import StepProfile

__all__ = ["Results", "load", "save"]


@dataclass(frozen=True)
class Results:
    """
    What was measured.

    Parameters
    ----------
    machine : list of str
        Lines that describe it and what is installed.
    repeats : int
    races : list of Outcome
    profiles : list of StepProfile
    figures : list of Figure
    growth : Growth or None, default=None
    """

    machine: list[str]
    repeats: int
    races: list[Outcome] = field(default_factory=list)
    profiles: list[StepProfile] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    growth: Growth | None = None


def _shortened(value):
    """Return numbers with five digits, which keep the file small."""
    if isinstance(value, dict):
        return {name: _shortened(of) for name, of in value.items()}
    if isinstance(value, list):
        return [_shortened(of) for of in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def save(results, path):
    """Write results to a file."""
    text = json.dumps(_shortened(dataclasses.asdict(results)), indent=1)
    path.write_text(text + "\n")


def load(path):
    """Return the results in a file."""
    kept = json.loads(path.read_text())
    kinds = {"races": Outcome, "profiles": StepProfile, "figures": Figure}
    kept |= {name: [kind(**fields) for fields in kept[name]] for name, kind in kinds.items()}
    growth = None if kept["growth"] is None else Growth(**kept["growth"])
    return Results(**kept | {"growth": growth})
