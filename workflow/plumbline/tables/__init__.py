"""What the tables of all protocols share: sources, export and models at chance."""
