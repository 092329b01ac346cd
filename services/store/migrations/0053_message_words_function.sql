-- The same words, at less cost: PostgreSQL keeps the plan of a PL/pgSQL function, but plans one in SQL again in each statement that calls it.
CREATE OR REPLACE FUNCTION parley.message_words(parts text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN to_tsvector('pg_catalog.simple'::regconfig, left((
    SELECT string_agg(regexp_replace(words.found[1], '\\(u[0-9a-fA-F]{4}|.)', ' ', 'g'), ' ')
    FROM regexp_matches(left(parts, 120000), '"type":"text","text":"((?:[^"\\]|\\.)*)', 'g') AS words(found)
  ), 60000));
END
$$;
