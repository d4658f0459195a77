-- Takes away one pause, or all, and tells all relays. Gives how many there were.
-- $1 channel, $2 tenant: text, null for all; $3 what to tell the relays: text; $4 every pause: boolean
with gone as (
  delete from {{pause_table}}
  where $4::boolean or canal is not distinct from $1::text and {{tenant}} is not distinct from $2::text::{{tenant_type}}
  returning canal
)
select count(told) from (select pg_notify({{channel}}, $3::text)::text as told from gone) t
