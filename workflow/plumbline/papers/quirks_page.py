"""Overviews of the known quirks, and of published numbers that rest on them with ours in both settings."""

import pandas as pd

from plumbline.papers.comparison import DECIMALS, nan_to_none, quantity, with_spread
from plumbline.report.tables import DASH, Table, TableCell, number, without_categories


def quirks_overview(quirks: pd.DataFrame) -> Table:
    """A row per quirk: its description and the number of published numbers in this study that rest on it."""
    rows = []
    for quirk, group in without_categories(quirks).groupby("quirk", sort=False):
        known = nan_to_none(group.iloc[0].to_dict())
        count = (group["status"] == "ok").sum()
        reason = TableCell((known["reason"] or DASH).replace("`", ""), 0.0, "faint")
        rows.append(
            [
                TableCell(str(quirk)),
                *(
                    TableCell((known[key] or DASH).replace("`", ""))
                    for key in ("study", "where", "what", "with", "without")
                ),
                TableCell(f"numbers: {number(count, 0)}", float(count)) if count else reason,
            ]
        )
    columns = ["quirk", "study", "where", "description", "as published", "corrected", "in this run"]
    return Table("Known quirks: errors in the published code or in print.", columns, rows)


def quirk_numbers_overview(quirks: pd.DataFrame) -> Table:
    """A row per published number that rests on a quirk, with ours in both settings."""
    rows = []
    for row in without_categories(quirks[quirks["status"] == "ok"]).to_dict("records"):
        known = nan_to_none(row)
        decimals = DECIMALS.get(known["metric"], 3)
        ours = [with_spread(known[side], known[f"{side}_spread"], decimals) for side in ("as_published", "corrected")]
        rows.append(
            [
                TableCell(known["study"]),
                TableCell(known["quirk"]),
                *(TableCell(known[key] or DASH) for key in ("dataset", "model")),
                TableCell(quantity(known)),
                with_spread(known["published"], None, decimals),
                *ours,
            ]
        )
    columns = ["study", "quirk", "dataset", "model", "quantity", "published", "ours as published", "ours corrected"]
    caption = (
        "Published numbers that depend on a quirk, and our values with the quirk (“ours as published”) and without it "
        "(“ours corrected”): mean ± standard deviation over seeds."
    )
    return Table(caption, columns, rows, frozenset((5, 6, 7)))
