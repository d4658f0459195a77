-- Who holds the advisory locks of a relay that keeps the writers silent.
-- $1 class and $2 key of each lock: bigint[], as pg_locks writes them
select l.pid, coalesce(a.application_name, ''), coalesce(extract(epoch from clock_timestamp() - a.state_change), -1)::float8,
  coalesce(extract(epoch from clock_timestamp() - a.backend_start), -1)::float8
from pg_catalog.pg_locks l
left join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.mode = 'ExclusiveLock'
  and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
  and exists (select from unnest($1::bigint[], $2::bigint[]) k(class, key) where k.class = l.classid::bigint and k.key = l.objid::bigint)
group by 1, 2, 3, 4
order by 1
