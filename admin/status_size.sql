-- What the catalog knows of the size, one row: blocks of the table, rows for each block by the last analyze or vacuum (-1: there
-- was none), rows in the index of what waits, rows in the index of what failed, and the shares of the channels in the last analyze.
-- $1 table, $2 index of what waits, $3 index of what failed: text
select
  pg_relation_size(c.oid) / current_setting('block_size')::bigint,
  case when c.reltuples < 0 or c.relpages = 0 then -1 else c.reltuples / c.relpages end::float8,
  (select greatest(i.reltuples, 0)::float8 from pg_catalog.pg_class i where i.oid = to_regclass($2::text)),
  (select greatest(i.reltuples, 0)::float8 from pg_catalog.pg_class i where i.oid = to_regclass($3::text)),
  coalesce((select most_common_vals::text::text[] from pg_catalog.pg_stats
            where schemaname = n.nspname and tablename = c.relname and attname = 'canal'), '{}'),
  coalesce((select most_common_freqs::float8[] from pg_catalog.pg_stats
            where schemaname = n.nspname and tablename = c.relname and attname = 'canal'), '{}')
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = $1::text::regclass
