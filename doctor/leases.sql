-- Messages that no relay will take for long, as far as 10,000 rows of the index tell: leases without an end, and leases
-- that end in more than a day.
select
  (select count(*)::integer from (
    select estado from {{table}}
    where estado in ('pendiente', 'procesando') and {{due}} is null limit 10000) o where estado = 'procesando'),
  (select count(*)::integer from (
    select estado from {{table}}
    where estado in ('pendiente', 'procesando') and {{due}} > now() + interval '1 day'
    order by {{due}} desc, id desc limit 10000) o where estado = 'procesando')
