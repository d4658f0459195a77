-- The message that has been due for the longest: how long, in seconds, and its channel. No row when none is due.
-- "where_unpaused" leaves out what is paused, of the 10,000 that are due first.
-- Each epoch by itself: a due time may be infinite.
select (extract(epoch from now()) - extract(epoch from o.due))::float8, o.canal
from (
  select canal, {{tenant}}, {{due}} as due
  from {{table}}
  where estado in ('pendiente', 'procesando') and {{due}} <= now()
  order by {{due}}, id limit 10000) o
{{where_unpaused}}
order by o.due limit 1
