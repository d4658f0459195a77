-- Sessions that may keep the notification queue from being emptied: those that do not read, and the oldest that sit in a
-- transaction. Whether they listen, only they know.
select pid, coalesce(usename::text, ''), coalesce(nullif(wait_event, ''), state, ''),
  coalesce(extract(epoch from clock_timestamp() - coalesce(xact_start, state_change)), 0)::float8
from pg_catalog.pg_stat_activity
where pid <> pg_backend_pid() and (wait_event = 'ClientWrite' or state like 'idle in transaction%')
order by wait_event = 'ClientWrite' desc, xact_start
limit 3
