-- Wakes the relays when an insert commits. The payload is x and the transaction's id, by which a relay can tell whether
-- another one has seen its rows; equal ones of a transaction are merged. Before it stands, for rows that are not due but
-- fall due within the next 15 minutes, the time of the earliest in milliseconds since 1970. Later rows are found by the
-- fallback poll. A statement trigger also fires for statements that insert nothing: those stay silent.
create or replace function {{function}}() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp
as $outbox$
declare
  due timestamptz;
begin
  select min(greatest(programado_para, proximo_intento_en)) into due from new_rows where estado = 'pendiente';
  if due <= clock_timestamp() + interval '15 minutes' then
    perform pg_notify({{channel}},
      case when due > clock_timestamp() then ceil(extract(epoch from due) * 1000)::bigint::text else '' end
      || 'x' || pg_current_xact_id());
  end if;
  return null;
end
$outbox$;

-- A commit that notifies takes a lock of the whole cluster and holds it while the disk is written, so a relay that looks
-- anyway asks for silence. X (crossing) comes before W (watch), both are held until the commit is visible, and every
-- doubt rings: see the watch lock in docs/design.md before changing a line of this. They are asked for in the condition, so
-- that a silent writer does not pay for the function.
create or replace trigger {{trigger}} after insert on {{table}}
  referencing new table as new_rows for each statement
  when (case when pg_catalog.pg_try_advisory_xact_lock_shared({{cross_lock}})
             then pg_catalog.pg_try_advisory_xact_lock_shared({{watch_lock}}) -- not got: a relay watches, and will not sleep before this transaction has ended
             else true end)
  execute function {{function}}();
