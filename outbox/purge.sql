-- Deletes the finished rows among the table's blocks from $1 to below $2.
-- $1, $2: tid as text; $3 states: text[]; $4 last touched before: timestamptz
-- By block and not by a condition alone: there is no index for it, since one would cost every finished message a write,
-- and a "limit" without one reads the same dead rows again in each batch.
delete from {{table}} where ctid = any(array(
  select ctid from {{table}}
  where ctid >= $1::text::tid and ctid < $2::text::tid
    and estado = any($3::text[]) and actualizado_en < $4::timestamptz
  for update skip locked))
