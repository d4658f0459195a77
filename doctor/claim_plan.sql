-- How the claim goes through the table.
explain (format json)
select id from {{table}}
where estado in ('pendiente', 'procesando') and {{due}} <= now()
order by {{due}}, id limit 1
