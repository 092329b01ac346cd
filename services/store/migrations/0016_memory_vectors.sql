-- Vectors as packed numbers: an array of ten thousand times some hundred numbers takes PostgreSQL seconds to write out.
ALTER TABLE parley.memory_vectors ADD COLUMN packed bytea;
UPDATE parley.memory_vectors
  SET packed = (SELECT coalesce(string_agg(float4send(u.value), ''::bytea ORDER BY u.place), ''::bytea)
                FROM unnest(vector) WITH ORDINALITY AS u (value, place));
ALTER TABLE parley.memory_vectors DROP COLUMN vector;
-- 32-bit floats, the most significant byte first.
ALTER TABLE parley.memory_vectors ALTER COLUMN packed SET NOT NULL;
