-- What waits or is being sent, by state, channel and whether it is paused: how many, how many are due, the oldest due time.
-- $1 how many entries of the index to look at, in the order in which they need attention: integer
select o.estado, o.canal, not ({{unpaused}}), count(*), count(*) filter (where o.due <= now()),
       extract(epoch from now() - min(o.due) filter (where o.due <= now() and isfinite(o.due)))::float8
from (
  select {{due}} as due, estado, canal, {{tenant}}
  from {{table}}
  where estado in ('pendiente', 'procesando')
  order by {{due}}, id
  limit $1::integer
) o
group by 1, 2, 3
order by 1, 2
