"""Datasets, one module for each source.

Options:
    train: Number of training instances.
    dev: Number of dev instances.
    test: Number of test instances.
    size: Side in pixels to which images are resized by Pillow's bicubic filter; 0 keeps their size, which must then be
        one for all and square.
    folder: Folder of the images, inside the folder of raw data.
    text: Column of the texts.
    label: Column of the labels.
    pair: Column of second texts; empty for single texts.
    task: Task of the texts; `auto` is inference if there is a column `pair`, and classification otherwise.
    classes: Labels to keep, in the order of the classes, with or without names; by default all labels.
    answers: Columns of other answers that a row allows besides its label, such as the wrong verb; classes are then all
        answers, and only those of its row are possible.
    split: Column with the split of each row; empty if files or random draws decide.
    shares: Shares of the random splits train, dev and test; by default 0.8, 0.1 and 0.1.
    dev_share: Share of train that becomes dev if the data has no dev split, 0 to 0.9; 0 draws none.
    stratified: Whether random splits have these shares within each class, or only over all rows.
    duplicates: Whether to keep rows with the text of an earlier row, or to drop them.
    tokens: How texts become words: spaCy's in lower case with digits replaced (`cleaned`), spaCy's unchanged (`cased`),
        or what white space separates (`spaces`).
    evidence: Column that marks words of the text; empty for none.
    evidence_form: Form of the evidence: a flag for each word, or spans of characters.
    evidence_source: Who marked the words: people (`human`), or a `rule` that determines the label.
"""
