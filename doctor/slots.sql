-- Replication slots without a consumer, or by which a standby's old snapshot holds back vacuum.
-- Name, kind, has a consumer, transactions that vacuum is held back by, bytes of WAL that are kept.
select slot_name::text, slot_type, active, coalesce(age(xmin), 0),
  coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, restart_lsn), 0)::bigint
from pg_catalog.pg_replication_slots
where not active or age(xmin) > 1000000
order by 1
limit 20
