-- Transactions that hold back vacuum in this database and have been open for longer than $1 seconds: float8, but for those
-- of sessions called $2: text.
-- Those of autovacuum do not hold back each other.
select pid, coalesce(usename::text, ''), coalesce(state, backend_type, ''), extract(epoch from clock_timestamp() - xact_start)::float8
from pg_catalog.pg_stat_activity
where datname = current_database() and coalesce(application_name, '') <> $2::text and backend_type is distinct from 'autovacuum worker'
  and (backend_xmin is not null or backend_xid is not null)
  and xact_start < clock_timestamp() - $1::float8 * interval '1 second'
order by xact_start
limit 20
