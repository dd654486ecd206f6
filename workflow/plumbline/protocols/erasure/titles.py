"""The titles of the metrics of erasure, with the direction that is better."""

METRICS = {
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "normalised_aopc": "normalised AOPC ↑",
    "morf_lerf": "LeRF − MoRF ↑",
    "soft_comprehensiveness": "soft comprehensiveness ↑",
    "soft_sufficiency": "soft sufficiency ↑",
}
