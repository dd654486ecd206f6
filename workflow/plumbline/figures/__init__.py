"""What the figures of all protocols share: style, layout and intervals."""
