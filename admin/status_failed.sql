-- What failed, by state and channel, from the last to fail: how many, how many in the last minute, in the last hour.
-- $1 how many entries of the index to look at: integer
select o.estado, o.canal, count(*), count(*) filter (where o.actualizado_en > now() - interval '1 minute'),
       count(*) filter (where o.actualizado_en > now() - interval '1 hour')
from (
  select estado, canal, actualizado_en
  from {{table}}
  where estado in ('fallido', 'descartado')
  order by actualizado_en desc, id desc
  limit $1::integer
) o
group by 1, 2
