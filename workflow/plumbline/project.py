"""Where the workflow's files are: Snakefile, rules, scripts, profiles, studies and the default config.

A clone has them at its top, next to the library's folder `workflow/`. A wheel has a copy in the package (`setup.py`).
"""

from pathlib import Path

from plumbline.errors import PlumblineError, nearest

PACKAGE = Path(__file__).parent
IN_WHEEL = PACKAGE / "workflow"
PROJECT = IN_WHEEL if IN_WHEEL.is_dir() else PACKAGE.parents[1]
SNAKEFILE = PROJECT / "Snakefile"
SCRIPTS = PROJECT / "workflow" / "scripts"
DEFAULT = "default"
CONFIG_SUFFIXES = (".yaml", ".yml", ".json")


def current_project() -> Path:
    """The project to run: the working folder if it is a clone, else that of this library."""
    here = Path.cwd()
    return here if (here / "Snakefile").is_file() and (here / "workflow" / PACKAGE.name).is_dir() else PROJECT


def library(project: Path) -> Path:
    """The package that the Snakefile of a project imports: its own in a clone, else this one."""
    own = project / "workflow" / PACKAGE.name
    return own if own.is_dir() else PACKAGE


def study_files(project: Path) -> dict[str, Path]:
    """The config files of the studies of a project by name, the default study first."""
    published = {path.stem: path for path in (project / "studies").glob("*.yaml")}
    return {DEFAULT: project / "config.yaml", **dict(sorted(published.items()))}


def find_study(study: str | Path) -> Path:
    """The config file of a study, given as the name of one of the project's studies or as a file."""
    name, path, published = str(study), Path(study), study_files(current_project())
    if name in published or path.exists() or path.suffix in CONFIG_SUFFIXES:
        return published.get(name, path)
    raise PlumblineError(f"There is no study or file '{name}'; {nearest(name, published)}")
