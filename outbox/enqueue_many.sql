-- Writes many messages and answers each: its position, the id of its row, whether it is new. Both null: find_key.
-- $1 ids, $2 tenants, $3 channels, $4 destinations, $5 templates, $6 data, $7 keys: text[]; $8 max attempts: integer[];
-- $9 scheduled for: timestamptz[]; $10 ordering keys, $11 headers: text[], only with the optional columns
-- Inserted in the order of the keys: two transactions that enqueue the same keys in another order would deadlock.
with input as (
  select u.n, u.id::uuid as id, u.tenant::{{tenant_type}} as tenant, u.canal, u.destino, u.plantilla, u.datos::jsonb as datos,
         u.clave, coalesce(u.max_intentos, 5) as max_intentos, coalesce(u.programado_para, now()) as programado_para{{optional_input}}
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::integer[], $9::timestamptz[]{{optional_arrays}})
    with ordinality as u(id, tenant, canal, destino, plantilla, datos, clave, max_intentos, programado_para{{optional}}, n)
), first as (
  select distinct on (tenant, clave) * from input order by tenant, clave, n
), inserted as (
  insert into {{table}} as o (id, {{tenant}}, canal, destino, plantilla, datos, clave_idempotencia, max_intentos, programado_para{{optional}})
  select id, tenant, canal, destino, plantilla, datos, clave, max_intentos, programado_para{{optional}}
  from first order by tenant, clave
  on conflict ({{tenant}}, clave_idempotencia) do nothing
  returning o.id
)
select i.n, coalesce(new.id, old.id)::text, new.id = i.id
from input i
join first f on f.tenant = i.tenant and f.clave = i.clave
left join inserted new on new.id = f.id
left join {{table}} old on new.id is null and old.{{tenant}} = i.tenant and old.clave_idempotencia = i.clave
order by i.n
