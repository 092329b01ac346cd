-- Buttons of a text: a JSON list of labels and the input that a press counts as.
ALTER TABLE parley.outbox ADD COLUMN actions text;
