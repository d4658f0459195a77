-- The wake-up that most outboxes have: a NOTIFY in every inserting transaction.
create function bench_notify() returns trigger language plpgsql as $$
begin
  perform pg_notify({{channel}}, '');
  return null;
end
$$;
create trigger bench_notify after insert on {{table}} for each statement execute function bench_notify();
