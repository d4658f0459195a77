-- Prepared transactions of this database that are older than $1 seconds: float8.
select gid, extract(epoch from clock_timestamp() - prepared)::float8
from pg_catalog.pg_prepared_xacts
where database = current_database() and prepared < clock_timestamp() - $1::float8 * interval '1 second'
order by prepared
limit 20
