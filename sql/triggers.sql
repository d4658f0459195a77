-- Wakes the relays when an insert commits: an empty payload for rows that are due (equal ones of a transaction are
-- merged), or for rows that fall due within the next 15 minutes the time of the earliest, in milliseconds since 1970.
-- Later ones are found by the fallback poll. A statement trigger also fires for statements that insert nothing: those
-- stay silent.
create or replace function {{function}}() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp
as $outbox$
declare
  due timestamptz;
begin
  select min(greatest(programado_para, proximo_intento_en)) into due from new_rows where estado = 'pendiente';
  if due <= clock_timestamp() then
    perform pg_notify({{channel}}, '');
  elsif due <= clock_timestamp() + interval '15 minutes' then
    perform pg_notify({{channel}}, ceil(extract(epoch from due) * 1000)::bigint::text);
  end if;
  return null;
end
$outbox$;

create or replace trigger {{trigger}} after insert on {{table}}
  referencing new table as new_rows for each statement execute function {{function}}();
