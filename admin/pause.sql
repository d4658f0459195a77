-- Pauses, unless it is paused already or there are as many pauses as there may be, and tells all relays. Gives how many are new.
-- $1 channel, $2 tenant: text, null for all; $3 what to tell the relays: text; $4 most pauses: integer
with added as (
  insert into {{pause_table}} (canal, {{tenant}})
  select $1::text, $2::text::{{tenant_type}} where (select count(*) from {{pause_table}}) < $4::integer
  on conflict do nothing
  returning canal
)
select count(told) from (select pg_notify({{channel}}, $3::text)::text as told from added) t
