-- What vacuum has to do on the table, and when it last did it.   $1 schema, $2 table: text
select s.n_dead_tup, s.n_live_tup, coalesce(extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)), -1)::float8
from pg_catalog.pg_stat_all_tables s where s.schemaname = $1::text and s.relname = $2::text
