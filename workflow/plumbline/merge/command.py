"""The command `plumbline merge`."""

import argparse

from plumbline.errors import PlumblineError
from plumbline.merge.merge import Merge, list_files, merge_runs


def merge(options: argparse.Namespace) -> int:
    """Merge runs of one study, or list the files of a run that a merge needs."""
    explorer = not options.no_explorer
    if options.list:
        if len(options.run) > 1 or options.into:
            raise PlumblineError("`merge --list` lists the files of one run; give one folder, without `--into`.")
        print("\n".join(list_files(options.run[0], explorer)))
        return 0
    if options.into is None:
        raise PlumblineError("`merge` needs a new folder for the merged study: add `--into DIR`.")
    return merge_runs(Merge(options.run, options.into, options.partial, explorer, options.dry_run, options.cores))
