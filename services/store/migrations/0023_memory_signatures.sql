-- The sign of each number of a vector, one bit each, set where it is negative: vectors that point the same way have the same signs
-- nearly everywhere, and PostgreSQL counts differing bits of ten thousand pieces in milliseconds.
CREATE FUNCTION parley.signs(packed bytea) RETURNS bit varying LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT coalesce(string_agg(get_bit(packed, place * 32 + 7)::text, '' ORDER BY place), '')::bit varying
  FROM generate_series(0, length(packed) / 4 - 1) AS place
$$;
ALTER TABLE parley.memory_vectors
  ADD COLUMN signature bit varying GENERATED ALWAYS AS (parley.signs(packed)) STORED;

-- The pieces of some scopes whose vectors have the most signs in common with a question's, nearest first as far as signs tell. Never
-- by looking up vector after vector: statistics may not know yet of what has just been indexed.
CREATE FUNCTION parley.nearest_by_signs(scopes text[], of_model text, signs bit varying, wanted integer)
RETURNS TABLE (id bigint, packed bytea) LANGUAGE sql STABLE SET enable_nestloop = off AS $$
  WITH near AS MATERIALIZED (
    SELECT c.id, c.sha256 FROM parley.memory_chunks c JOIN parley.memory_vectors v ON v.model = of_model AND v.sha256 = c.sha256
    WHERE c.scope = ANY(scopes) AND length(v.signature) = length(signs)
    -- Asked again: bits of different lengths cannot be compared, whatever is looked at first.
    ORDER BY CASE WHEN length(v.signature) = length(signs) THEN bit_count(v.signature # signs) END
    LIMIT wanted)
  SELECT near.id, (SELECT v.packed FROM parley.memory_vectors v WHERE v.model = of_model AND v.sha256 = near.sha256) FROM near
$$;
