-- The words of a message's texts, for the search of sessions. It never fails, because an index uses it: what it reads of a message is
-- limited, so that the result stays below the 1 MiB of a tsvector, and escapes of JSON are skipped instead of decoded.
CREATE FUNCTION parley.message_words(parts text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT to_tsvector('pg_catalog.simple'::regconfig,
    left(string_agg(regexp_replace(found[1], '\\(u[0-9a-fA-F]{4}|.)', ' ', 'g'), ' '), 60000))
  FROM regexp_matches(left(parts, 120000), '"type":"text","text":"((?:[^"\\]|\\.)*)', 'g') AS found
$$;
