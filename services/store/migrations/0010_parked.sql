-- Whether a turn is put aside, as it stands at the moment of the call: a VOLATILE function under READ COMMITTED reads with a snapshot
-- of its own. In the RETURNING of a statement that waited for a step's lock it sees what parking, which held that lock, has written.
CREATE FUNCTION parley.is_parked(of_turn uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT parked FROM parley.turns WHERE id = of_turn);
END $$;
