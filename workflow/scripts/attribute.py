"""Explain the instances of a cell with the measures that share the job."""

from plumbline.attribution.files import write_importances
from plumbline.attribution.run import attribute, load_calls
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.data.instances import Instances
from plumbline.data.masking import apply_masks, seed_rows, special_ids
from plumbline.data.schemas import INSTANCES, MASKS
from plumbline.models.block import trained_models, with_answers
from plumbline.models.budget import Budget
from plumbline.runtime.job import Part, job
from plumbline.store import read_record, read_table


def texts(seed: int) -> Instances:
    """The texts that a seed's model explains: masked as in its training, or a sample per seed; of these, the job's part
    if they are split over jobs."""
    if masks is None:
        # Splits that a measure needs in full, to count in them.
        whole = {split for measure in snakemake.params.measures.values() for split in measure["splits"]}
        explained = instances.sampled(snakemake.params.sample, seed, whole)
    else:
        masked = seed_rows(masks, "masked", seed, instances)
        explained = apply_masks(instances, masked, special_ids(snakemake.input.subwords)[0])
    return explained.part(snakemake.wildcards.get("part", "1-of-1"))


with job(snakemake) as running:
    instances = Instances.from_table(read_table(snakemake.input.instances, INSTANCES), snakemake.params.splits)
    device, classes = running.device(), read_record(snakemake.input.summary)["classes"]
    models = trained_models(
        snakemake.input.weights,
        snakemake.params.model,
        with_answers(snakemake.params.model_options, classes),
        len(classes),
        snakemake.params.seeds,
        running.budget(Budget),
        device,
    )
    measures = load_calls(snakemake.params.measures)
    masks = read_table(snakemake.input.masks, MASKS) if snakemake.input.get("masks") else None
    cell = {name: snakemake.wildcards[name] for name in ("dataset", "variant", "model")}
    cell["variant"] = PLAIN if cell["variant"] == UNMASKED else cell["variant"]
    columns, seconds = attribute(models, instances, measures, texts, cell)
    write_importances(snakemake.output.importances, columns)
    running.manifest_of([Part(len(columns[name]["seed"]), seconds[name], name) for name in measures], device)
