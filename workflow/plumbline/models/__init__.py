"""Architectures, padded batches, training objectives and the evaluator that queries trained models.

Options:
    encoder: Encoder of the word vectors; `average` maps each word alone, the others see its context.
    attention: Scores of the attention: additive (`tanh`), scaled dot product (`dot`), or all equal (`uniform`).
    hidden: Units of the encoder: per direction if it is recurrent, per width of filters in a CNN.
    activation: Nonlinearity of the encoder `average`; the others ignore it.
    temperature: Divides attention scores before the softmax; higher is more uniform.
    checkpoint: Folder that `save_pretrained` has written, installed package with one, or name on the Hugging Face hub.
    dropout: Dropout probability in training.
    rate: Share of words that a rationale model selects, above 0 up to 1.
    strength: Weight of the penalty on selecting another share than `rate`; higher keeps closer to it.
    stop_accuracy: Dev accuracy, 0 to 1, at which training ends if the selection rate is right too.
    stop_distance: Largest distance of the dev selection rate from `rate` at which training ends.
"""
