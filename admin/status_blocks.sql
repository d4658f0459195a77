-- The messages among the table's blocks from $1 on, by state and channel: how many, how many of them were sent, and enqueued, in
-- the last minute and hour.
-- $1: tid as text
select estado, canal, count(*),
       count(*) filter (where enviado_en > now() - interval '1 minute'), count(*) filter (where enviado_en > now() - interval '1 hour'),
       count(*) filter (where creado_en > now() - interval '1 minute'), count(*) filter (where creado_en > now() - interval '1 hour')
from {{table}}
where ctid >= $1::text::tid
group by 1, 2
