-- Vacuum by absolute numbers: with ten million finished rows the default scale factor waits for two million dead ones, and
-- each of them costs the claim.
alter table {{table}} set (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);
