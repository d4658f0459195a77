-- The message that has been due for the longest: how long, in seconds, and its channel. No row when none is due.
-- Each epoch by itself: a due time may be infinite.
select (extract(epoch from now()) - extract(epoch from {{due}}))::float8, canal
from {{table}}
where estado in ('pendiente', 'procesando') and {{due}} <= now()
order by {{due}}, id limit 1
