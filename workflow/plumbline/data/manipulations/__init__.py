"""The manipulations: changes of texts and pictures that a label decides, so that it is known what matters."""
