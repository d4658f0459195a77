-- Counts unfinished messages, and says how long the oldest that is due has waited: by channel and
--   due (pendiente, due), expired (procesando, the lease has ended), paused (either of them), later (pendiente), sending (procesando, under a lease).
-- $1 how many rows of each side of now to count at most: integer
-- One row a channel and state: channel, state, count, age of the oldest in seconds (null for what is not due).
--
-- Over the partial index of the claim from both sides of now, in its order, so that finished messages cost nothing and a
-- long backlog costs a bounded amount. A plain "count(*) group by estado" reads the whole table.
with due as materialized (
  select canal, estado, {{due}} as due, {{unpaused}} as unpaused
  from {{table}} o
  where estado in ('pendiente', 'procesando') and {{due}} <= now()
  order by {{due}}, id
  limit $1::integer
), later as materialized (
  select canal, estado
  from {{table}}
  where estado in ('pendiente', 'procesando') and {{due}} > now()
  order by {{due}}, id
  limit $1::integer
)
select canal, case when not unpaused then 'paused' when estado = 'pendiente' then 'due' else 'expired' end, count(*),
  extract(epoch from now() - min(due) filter (where unpaused))::float8
from due group by 1, 2
union all
select canal, case estado when 'pendiente' then 'later' else 'sending' end, count(*), null
from later group by 1, 2
