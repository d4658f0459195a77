-- The earliest due time {{after}}, of {{channels}} (text[], null for all), no further ahead than {{horizon}} (interval, null
-- without limit). In one statement with a claim it is asked for only when that left nothing, and before the next poll: under
-- an old snapshot the index is full of dead entries there, the ends of the leases of messages that were sent long ago.
-- What is due since ever (-infinity) is due, and not "none", which is how a reader takes a date without a number.
select min(greatest(due, 'epoch')) as due from (
  select {{due}} as due
  from {{table}} o
  where estado in ('pendiente', 'procesando')
    and {{due}} {{after}} and {{due}} <= coalesce(now() + {{horizon}}::interval, 'infinity')
    and ({{channels}}::text[] is null or canal = any({{channels}}::text[])){{and_unpaused}}{{and_if}}
  order by {{due}} limit 1) soonest
