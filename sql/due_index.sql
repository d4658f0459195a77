-- The one index of the claim, the next-due look and the lease's end: "when does this row next need attention".
create index concurrently if not exists {{due_index}} on {{table}} ({{due}}, id)
  where estado in ('pendiente', 'procesando');
