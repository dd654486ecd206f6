"""The wheel carries the workflow too: its files are copied into the package, where `plumbline.project` finds them."""

from glob import glob

from setuptools import setup
from setuptools.command.build_py import build_py

FILES = [
    "Snakefile", "config.yaml", "rules/*.smk", "workflow/scripts/*.py", "envs/plumbline.yaml",
    "profiles/*/config.yaml", "studies/*.yaml",
]  # fmt: skip


class BuildWithWorkflow(build_py):
    """Add the workflow's files to the data files of the package, for wheels and for source distributions."""

    def _workflow_files(self):
        files = sorted(path for pattern in FILES for path in glob(pattern))
        return "plumbline", ".", f"{self.build_lib}/plumbline/workflow", files

    def _get_data_files(self):
        return [*super()._get_data_files(), self._workflow_files()]

    def get_data_files_without_manifest(self):
        return [*super().get_data_files_without_manifest(), self._workflow_files()]


setup(cmdclass={"build_py": BuildWithWorkflow})
