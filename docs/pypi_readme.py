"""
README.md as PyPI shows it, which has no files beside it:
its links and pictures lead to the repository.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


def with_addresses(text, repository):
    """Return a README whose relative links and pictures are addresses in a repository."""
    text = re.sub(r"\]\((?!https?:)([^)#]+)", rf"]({repository}/blob/main/\1", text)
    return re.sub(r'(src|srcset)="(?!https?:)', rf'\1="{repository}/raw/main/', text)


class PypiReadme(MetadataHookInterface):
    def update(self, metadata):
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_addresses(text, metadata["urls"]["Repository"]),
        }
