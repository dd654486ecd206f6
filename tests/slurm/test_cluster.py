"""The cluster for tests leaves other clusters alone. It needs none."""

import pytest

from plumbline.errors import PlumblineError

from . import cluster


@pytest.fixture
def link(monkeypatch, tmp_path):
    """The link through which SLURM's commands find their cluster, on a machine that could have one for tests."""
    link = tmp_path / "etc" / "slurm.conf"
    link.parent.mkdir()
    monkeypatch.setattr(cluster, "LINK", link)
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 0)
    monkeypatch.setattr(cluster.shutil, "which", lambda name: name)
    return link


def test_another_cluster_is_not_touched(link, tmp_path):
    link.write_text("ClusterName=ours\n")
    with pytest.raises(PlumblineError, match="belongs to another cluster"):
        cluster.start(tmp_path / "new")
    with pytest.raises(PlumblineError, match="holds no SLURM cluster for tests"):
        cluster.stop(link.parent)
    assert link.read_text() == "ClusterName=ours\n" and not (tmp_path / "new").exists()


def test_a_cluster_for_tests_that_is_up_is_named(link, tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "slurm.conf").write_text(cluster.MARK)
    link.symlink_to(tmp_path / "first" / "slurm.conf")
    with pytest.raises(PlumblineError, match=f"stop {tmp_path / 'first'}"):
        cluster.start(tmp_path / "second")
    # The link is not the cluster's folder.
    with pytest.raises(PlumblineError, match="holds no SLURM cluster for tests"):
        cluster.stop(link.parent)


def test_a_dangling_link_is_replaced(link, tmp_path):
    link.symlink_to(tmp_path / "gone" / "slurm.conf")
    assert cluster.why_not() is None


def test_missing_requirements_are_named(link, monkeypatch):
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 1000)
    assert cluster.why_not() == "it needs root"
    monkeypatch.setattr(cluster.shutil, "which", lambda name: None)
    assert "needs Debian" in cluster.why_not()
