-- What each model call was asked in addition to the messages of the log, to show its request again.
ALTER TABLE parley.steps ADD COLUMN request text;
